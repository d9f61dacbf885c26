// The two layers next to the image as one kernel each way, in CUDA C++, compiled at run time after image_products.cu.
//
// The larger feature maps exist in shared memory only, so each input is read once. image_ends.py says what the kernels
// compute. A block has 8 warps and loops over images of one run; one image is in shared memory at a time.

// Sums over rows of each thread's 8 columns (4 tiles of 2), added over the block in a fixed order.
DEVICE void store_columns(float* out, float* space, const float* sums) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const float total = lane_sum(sums[i], 4);
    if (lane < 4) space[warp * FEATURES + (i >> 1) * 8 + 2 * lane + (i & 1)] = total;
  }
  __syncthreads();
  if (threadIdx.x < FEATURES) {
    float total = 0.0f;
    for (int w = 0; w < WARPS; ++w) total += space[w * FEATURES + threadIdx.x];
    out[threadIdx.x] = total;
  }
}

// One number of each thread, added over the block.
DEVICE void store_sum(float* out, float* space, float value) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const float total = lane_sum(value, 1);
  __syncthreads();
  if (lane == 0) space[warp] = total;
  __syncthreads();
  if (threadIdx.x == 0) {
    float all = 0.0f;
    for (int w = 0; w < WARPS; ++w) all += space[w];
    *out = all;
  }
}

// Replace two features of a map, the results of a ReLU, by their gradient, and add it to sums of columns.
DEVICE void mask(u8* map, int offset, int n, float first, float second, float* columns) {
  u32* at = (u32*)(map + offset);
  const u32 values = *at;
  first = values & 0xffffu ? first : 0.0f;
  second = values >> 16 ? second : 0.0f;
  columns[2 * n] += first;
  columns[2 * n + 1] += second;
  *at = pack(first, second);
}

// Two features after a ReLU, into a map.
DEVICE void activate(u8* map, int offset, float first, float second) {
  *(u32*)(map + offset) = pack_positive(first, second);
}

// Where the thread's two features of column g lie in the two rows of the smaller map that its warp makes.
DEVICE int small_place(int row, int n) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  return ((place<SMALL_MASK>(lane >> 2, 0) + 4 * (lane & 3)) ^ (n << 4)) + (2 * warp + row) * SMALL_ROW;
}

DEVICE int small_eight_on(int offset) { return offset + 512; }

// A thread's biases: those of its 8 columns.
DEVICE void load_bias(float* bias, const float* source) {
#pragma unroll
  for (int i = 0; i < 8; ++i) bias[i] = source[(i >> 1) * 8 + 2 * (threadIdx.x & 3) + (i & 1)];
}

// The image that a thread prefetches: 16 pixels.
struct Pixels {
  uint4 parts[C];
};

DEVICE void fetch(Pixels& pixels, const u8* image) {
#pragma unroll
  for (int c = 0; c < C; ++c) pixels.parts[c] = ((const uint4*)image)[threadIdx.x * C + c];
}

// Bytes as numbers from 0 to 1, in planes.
DEVICE void store_planes(u16* planes, const Pixels& pixels) {
  const int y = threadIdx.x >> 2, x = (threadIdx.x & 3) * 16;
  const u32* words = (const u32*)&pixels;
#pragma unroll
  for (int i = 0; i < 16 * C; ++i) {
    const float value = (float)((words[i >> 2] >> (8 * (i & 3))) & 255u) * 0.00392156862745098f;
    planes[(i % C) * PLANE + (y + 1) * STRIDE + x + i / C + 1] = (u16)pack(value, 0.0f);
  }
}

// A smaller map to memory.
DEVICE void store_map(u16* out, const u8* map) {
  for (int i = threadIdx.x; i < SMALL * SMALL * 4; i += THREADS)
    ((uint4*)out)[i] = *(const uint4*)(map + place<SMALL_MASK>(i >> 2, i & 3));
}

#if IMAGE_START
// Image -> convolution and ReLU -> convolution and ReLU.
KERNEL image_start(const u8* image, const u16* edge_w, const float* edge_bias, const u16* w, const float* bias,
                   u16* out, int images, int each) {
  const i64 run = blockIdx.y;
  u8* big = memory;
  u8* weights = big + BIG_BYTES;
  u8* edge = weights + WEIGHT_BYTES;
  u16* planes = (u16*)(edge + EDGE_BYTES);
  u8* zeros = (u8*)planes + PLANES_BYTES;
  u8* small = big;  // the result, before it is stored
  load_map<BIG_MASK>(address(weights), w + run * WEIGHTS, 16 * FEATURES);
  load_edge_weights(address(edge), edge_w + run * EDGE_WEIGHTS);
  clear_bytes((u8*)planes, PLANES_BYTES);
  clear_bytes(zeros, 16);
  float first_bias[8], second_bias[8];
  load_bias(first_bias, edge_bias + run * FEATURES);
  load_bias(second_bias, bias + run * FEATURES);
  const int start = blockIdx.x * each, end = min(start + each, images);
  Pixels pixels;
  if (start < end) fetch(pixels, image + (run * images + start) * IMAGE_BYTES);
  copies_done();
  __syncthreads();
  for (int i = start; i < end; ++i) {
    store_planes(planes, pixels);
    if (i + 1 < end) fetch(pixels, image + (run * images + i + 1) * IMAGE_BYTES);
    __syncthreads();
    edge_correlate(planes, address(edge), first_bias, [&](int offset, int, const float* s) {
      activate(big, offset, s[0], s[1]);
      activate(big, eight_on(offset), s[2], s[3]);
    });
    __syncthreads();
    float sums[2][4][4];
    correlate(address(big), address(weights), address(zeros), second_bias, sums);
    __syncthreads();
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const int offset = small_place(j >> 2, j & 3);
      const float* s = sums[j >> 2][j & 3];
      activate(small, offset, s[0], s[1]);
      activate(small, small_eight_on(offset), s[2], s[3]);
    }
    __syncthreads();
    store_map(out + (run * images + i) * (SMALL_BYTES / 2), small);
  }
}
#endif

#if IMAGE_START_GRADIENT
// Gradients of the weights of both convolutions, and of the first bias, from that of the second's sums.
KERNEL image_start_gradient(const u8* image, const u16* gradient, const u16* edge_w, const float* edge_bias,
                            const u16* w, float* parts, int images, int each) {
  const i64 run = blockIdx.y;
  u8* big = memory;
  u8* weights = big + BIG_BYTES;
  u8* edge = weights + WEIGHT_BYTES;
  u16* planes = (u16*)(edge + EDGE_BYTES);
  u8* small = (u8*)planes + PLANES_BYTES;  // two of them
  u8* zeros = small + 2 * SMALL_BYTES;
  load_map<BIG_MASK>(address(weights), w + run * WEIGHTS, 16 * FEATURES);
  load_edge_weights(address(edge), edge_w + run * EDGE_WEIGHTS);
  clear_bytes((u8*)planes, PLANES_BYTES);
  clear_bytes(zeros, 16);
  float first_bias[8], columns[8], to_w[2][2][4][4], to_edge[C][4][4];
  load_bias(first_bias, edge_bias + run * FEATURES);
  clear<8>(columns), clear<64>(to_w[0][0][0]), clear<16 * C>(to_edge[0][0]);
  const int start = blockIdx.x * each, end = min(start + each, images);
  const u16* gradients = gradient + run * images * (SMALL_BYTES / 2);
  Pixels pixels;
  if (start < end) {
    fetch(pixels, image + (run * images + start) * IMAGE_BYTES);
    load_map<SMALL_MASK>(address(small), gradients + (i64)start * (SMALL_BYTES / 2), SMALL * SMALL);
  }
  for (int i = start; i < end; ++i) {
    const u32 current = address(small + ((i - start) & 1) * SMALL_BYTES);
    copies_done();
    __syncthreads();
    store_planes(planes, pixels);
    if (i + 1 < end) {
      fetch(pixels, image + (run * images + i + 1) * IMAGE_BYTES);
      const u32 next = address(small + ((i + 1 - start) & 1) * SMALL_BYTES);
      load_map<SMALL_MASK>(next, gradients + (i64)(i + 1) * (SMALL_BYTES / 2), SMALL * SMALL);
    }
    __syncthreads();
    edge_correlate(planes, address(edge), first_bias, [&](int offset, int, const float* s) {
      activate(big, offset, s[0], s[1]);
      activate(big, eight_on(offset), s[2], s[3]);
    });
    __syncthreads();
    weight_gradient(address(big), current, address(zeros), to_w);
    __syncthreads();
    spread(current, address(weights), address(zeros), nullptr, [&](int offset, int n, const float* s) {
      mask(big, offset, n, s[0], s[1], columns);
      mask(big, sixteen_on(offset), n, s[2], s[3], columns);
    });
    __syncthreads();
    edge_weight_gradient(planes, address(big), to_edge);
  }
  float* out = parts + (run * gridDim.x + blockIdx.x) * (i64)(WEIGHTS + EDGE_WEIGHTS + FEATURES);
  store_weight_gradient(out, to_w);
  store_edge_gradient(out + WEIGHTS, (float*)big, to_edge);
  store_columns(out + WEIGHTS + EDGE_WEIGHTS, (float*)big, columns);
}
#endif

#if IMAGE_END
// A channel's products of the last layer with rows first - 1 to first + STRIP of the larger map: products[tap][pixel].
DEVICE void edge_products(u32 big, u32 edge, float* products, int first) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
  const u32 at_w = edge + place<BIG_MASK>((lane & 7) + ((lane >> 4) << 3), (lane >> 3) & 1);
  const u32 map = big + place<BIG_MASK>(lane & 15, lane >> 4);
  u32 b[2][4];
  load4(b[0], at_w);
  load4(b[1], at_w ^ SECOND);
#pragma unroll 4
  for (int tile = warp; tile < 2 * (STRIP + 2); tile += WARPS) {
    const int row = tile >> 1, y = first - 1 + row, half_row = tile & 1;
    if (y < 0 || y >= BIG) continue;
    float sums[2][4];
    clear<8>(sums[0]);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      u32 a[4];
      load4(a, (map ^ (half * SECOND)) + y * BIG_ROW + half_row * 1024);
#pragma unroll
      for (int n = 0; n < 2; ++n) multiply(sums[n], a, b[half][2 * n], b[half][2 * n + 1]);
    }
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      float* at = products + (n * 8 + 2 * t) * STRIP_PIXELS + row * BIG + half_row * 16 + g;
      at[0] = sums[n][0], at[STRIP_PIXELS] = sums[n][1];
      at[8] = sums[n][2], at[STRIP_PIXELS + 8] = sums[n][3];
    }
  }
}

// The loss of one logit; its slope replaces the logit.
DEVICE float likelihood(float& logit, float target) {
  const float small = __expf(-fabsf(logit));
  const float likely = __fdividef(logit >= 0.0f ? 1.0f : small, 1.0f + small);
  const float difference = likely - target;
#if GAUSSIAN
  logit = 2.0f * difference * likely * (1.0f - likely);
  return difference * difference;
#else
  const float loss = fmaxf(logit, 0.0f) + __logf(1.0f + small) - target * logit;
  logit = difference;
  return loss;
#endif
}

// A channel's logits of 2 STRIP rows of the image from the products, and the likelihood's slopes in its plane.
DEVICE void strip_likelihood(const float* products, const u8* image, u16* plane, float bias, int first, float& loss,
                             float& bias_sum) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, odd = warp & 1;
  const bool has_left = lane > 0, has_right = lane < BIG - 1;
  // Row 2 u of the image is made of tap rows 1 at u and 3 at u - 1, row 2 u + 1 of 2 at u and 0 at u + 1. A warp's rows
  // are all even or all odd.
  const float* near = products + (1 + odd) * 4 * STRIP_PIXELS + BIG + lane;
  const float* far = products + (odd ? 0 : 12) * STRIP_PIXELS + (odd ? 2 * BIG : 0) + lane;
#pragma unroll 2
  for (int r = warp; r < 2 * STRIP; r += WARPS) {
    const int row = 2 * first + r, y = r >> 1, other = first + y + (odd ? 1 : -1);
    const float* at = near + y * BIG;
    float even_logit = bias + at[STRIP_PIXELS] + (has_left ? at[3 * STRIP_PIXELS - 1] : 0.0f);
    float odd_logit = bias + at[2 * STRIP_PIXELS] + (has_right ? at[1] : 0.0f);
    if (other >= 0 && other < BIG) {
      at = far + y * BIG;
      even_logit += at[STRIP_PIXELS] + (has_left ? at[3 * STRIP_PIXELS - 1] : 0.0f);
      odd_logit += at[2 * STRIP_PIXELS] + (has_right ? at[1] : 0.0f);
    }
    const u8* target = image + (row * SIDE + 2 * lane) * C;
    loss += likelihood(even_logit, (float)target[0] * 0.00392156862745098f);
    loss += likelihood(odd_logit, (float)target[C] * 0.00392156862745098f);
    bias_sum += even_logit + odd_logit;
    const u32 both = pack(even_logit, odd_logit);
    u16* slopes = plane + (row + 1) * STRIDE + 2 * lane + 1;
    slopes[0] = (u16)both, slopes[1] = (u16)(both >> 16);
  }
}

// Transposed convolution and ReLU -> transposed convolution -> likelihood, and all gradients.
//
// The gradients are those of the sum of the loss over images; the caller scales them. `to_small` is masked by the ReLU
// before `features`.
KERNEL image_end(const u16* features, const u16* w, const float* bias, const u16* edge_w, const float* edge_bias,
                 const u8* image, u16* to_small, float* parts, float* losses, int images, int each) {
  const i64 run = blockIdx.y;
  u8* big = memory;
  u8* weights = big + BIG_BYTES;
  u8* edge = weights + WEIGHT_BYTES;
  u16* planes = (u16*)(edge + EDGE_BYTES);
  u8* small = (u8*)planes + PLANES_BYTES;             // two of them
  u8* targets = small + 2 * SMALL_BYTES;              // two images
  float* products = (float*)(targets + 2 * IMAGE_BYTES);
  u8* zeros = (u8*)products + PRODUCTS_BYTES;
  load_map<BIG_MASK>(address(weights), w + run * WEIGHTS, 16 * FEATURES);
  load_edge_weights(address(edge), edge_w + run * EDGE_WEIGHTS);
  clear_bytes((u8*)planes, PLANES_BYTES);
  clear_bytes(zeros, 16);
  float own_bias[8], columns[8], small_columns[8], to_w[2][2][4][4], to_edge[C][4][4];
  float loss = 0.0f, logit_bias[C], bias_sums[C];
  load_bias(own_bias, bias + run * FEATURES);
  clear<8>(columns), clear<8>(small_columns), clear<64>(to_w[0][0][0]), clear<16 * C>(to_edge[0][0]), clear<C>(bias_sums);
#pragma unroll
  for (int c = 0; c < C; ++c) logit_bias[c] = edge_bias[run * C + c];
  const int start = blockIdx.x * each, end = min(start + each, images);
  auto load = [&](int i) {
    const int buffer = (i - start) & 1;
    const i64 number = run * images + i;
    load_map<SMALL_MASK>(address(small + buffer * SMALL_BYTES), features + number * (SMALL_BYTES / 2), SMALL * SMALL);
    for (int j = threadIdx.x; j < IMAGE_BYTES / 16; j += THREADS)
      copy16(address(targets + buffer * IMAGE_BYTES) + j * 16, image + number * IMAGE_BYTES + j * 16);
  };
  if (start < end) load(start);
  for (int i = start; i < end; ++i) {
    u8* current = small + ((i - start) & 1) * SMALL_BYTES;
    copies_done();
    __syncthreads();
    if (i + 1 < end) load(i + 1);
    spread(address(current), address(weights), address(zeros), own_bias, [&](int offset, int, const float* s) {
      activate(big, offset, s[0], s[1]);
      activate(big, sixteen_on(offset), s[2], s[3]);
    });
    __syncthreads();
    const u8* target = targets + ((i - start) & 1) * IMAGE_BYTES;
#pragma unroll
    for (int c = 0; c < C; ++c)
#pragma unroll 1
      for (int first = 0; first < BIG; first += STRIP) {
        edge_products(address(big), address(edge) + c * 1024, products, first);
        __syncthreads();
        strip_likelihood(products, target + c, planes + c * PLANE, logit_bias[c], first, loss, bias_sums[c]);
        __syncthreads();
      }
    edge_weight_gradient(planes, address(big), to_edge);
    __syncthreads();
    edge_correlate(planes, address(edge), nullptr, [&](int offset, int n, const float* s) {
      mask(big, offset, n, s[0], s[1], columns);
      mask(big, eight_on(offset), n, s[2], s[3], columns);
    });
    __syncthreads();
    weight_gradient(address(big), address(current), address(zeros), to_w);
    float sums[2][4][4];
    correlate(address(big), address(weights), address(zeros), nullptr, sums);
    __syncthreads();
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const int offset = small_place(j >> 2, j & 3);
      const float* s = sums[j >> 2][j & 3];
      mask(current, offset, j & 3, s[0], s[1], small_columns);
      mask(current, small_eight_on(offset), j & 3, s[2], s[3], small_columns);
    }
    __syncthreads();
    store_map(to_small + (run * images + i) * (SMALL_BYTES / 2), current);
  }
  float* out = parts + (run * gridDim.x + blockIdx.x) * (i64)(WEIGHTS + EDGE_WEIGHTS + 2 * FEATURES + C);
  store_weight_gradient(out, to_w);
  store_edge_gradient(out + WEIGHTS, (float*)big, to_edge);
  out += WEIGHTS + EDGE_WEIGHTS;
  store_columns(out, (float*)big, columns);
  store_columns(out + FEATURES, (float*)big, small_columns);
#pragma unroll
  for (int c = 0; c < C; ++c) store_sum(out + 2 * FEATURES + c, (float*)big, bias_sums[c]);
  store_sum(losses + run * gridDim.x + blockIdx.x, (float*)big, loss);
}
#endif

#if ADD_PARTS
// The sums of the parts that blocks stored, (P, splits, n), in a fixed order, times a factor of each run. Numbers come in
// segments of s0, s1, ... numbers a run; in the result, a segment of all runs is one tensor (P, s).
KERNEL add_parts(const float* parts, const float* scale, float* out, int splits, int scaled, int s0, int s1, int s2, int s3,
                 int s4) {
  const i64 run = blockIdx.y, runs = gridDim.y;
  const int sizes[5] = {s0, s1, s2, s3, s4}, numbers = s0 + s1 + s2 + s3 + s4;
  const int i = blockIdx.x * THREADS + threadIdx.x;
  if (i >= numbers) return;
  float total = 0.0f;
  for (int split = 0; split < splits; ++split) total += parts[(run * splits + split) * numbers + i];
  if (scaled) total *= scale[run];
  int first = 0, segment = 0;
  while (i >= first + sizes[segment]) first += sizes[segment++];
  out[runs * first + run * sizes[segment] + i - first] = total;
}
#endif
