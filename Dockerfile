# Images that run unweave. docs/install.md has the commands.
#   docker build --target cpu -t unweave .     a machine without a GPU
#   docker build --target cuda -t unweave .    NVIDIA GPUs; start it with --gpus all
#   docker build --target test .               the test command of the README
FROM python:3.12-slim AS source
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PATH="/opt/unweave/.venv/bin:$PATH"
WORKDIR /opt/unweave
COPY . .

# Address of an index with builds of torch for CPUs, which are much smaller. Without it, pip installs the default builds.
FROM source AS installed
ARG TORCH_INDEX=""
RUN python3 -m venv .venv \
    && .venv/bin/pip install -q ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} -c constraints.txt .

FROM source AS test
ARG TORCH_INDEX=""
RUN PIP_EXTRA_INDEX_URL="$TORCH_INDEX" .ci/run

# Triton compiles kernels when they are first used, and needs a C compiler for this.
FROM installed AS cuda
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /work
CMD ["unweave", "train", "beta_vae", "--preset", "quick"]

FROM installed AS cpu
WORKDIR /work
CMD ["unweave", "train", "beta_vae", "--preset", "quick"]
