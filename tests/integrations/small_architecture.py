"""Networks that are quick to build: one dense layer of 8 each."""

from functools import partial

from unweave.nn.networks.architectures import Architecture
from unweave.nn.networks.published import Plan, PublishedDecoder, PublishedEncoder

_PLAN = Plan(convolutions=(), encoder=(8,), decoder=(8,), decoder_activation="tanh", transposed=())
SMALL = Architecture(
    "small", "for tests", partial(PublishedEncoder, plan=_PLAN), partial(PublishedDecoder, plan=_PLAN)
)
