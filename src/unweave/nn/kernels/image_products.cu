// Matrix products of two feature maps and an image in shared memory, by one block: what image_ends.cu consists of.
//
// For images of 64 x 64 pixels, CHANNELS of them, 32 features, kernels of 4, stride 2, padding 1, in bfloat16. The larger
// map has 32 x 32 pixels, the smaller one 16 x 16. Operands are loaded from shared memory by ldmatrix and multiplied by mma,
// whose fragments have the layouts of the PTX manual: thread 4 g + t has rows g and g + 8, and columns 2 t and 2 t + 1.
//
// Maps hold the 32 features of a pixel in 64 bytes, as four chunks of 16. A chunk's place depends on its pixel, so that
// the 8 chunks that a warp loads at once lie in different banks: see `place`.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef long long i64;

constexpr int C = CHANNELS;
constexpr int THREADS = 256, WARPS = 8, FEATURES = 32;
constexpr int BIG = 32, SMALL = 16, SIDE = 64;  // sides of the two feature maps and of the image
constexpr int BIG_ROW = BIG * 64, SMALL_ROW = SMALL * 64, TAP = FEATURES * 64;  // bytes of rows, and of a tap's weights
constexpr int BIG_BYTES = BIG * BIG_ROW, SMALL_BYTES = SMALL * SMALL_ROW;
constexpr int WEIGHT_BYTES = 16 * TAP, EDGE_BYTES = 16 * C * 64, IMAGE_BYTES = SIDE * SIDE * C;
constexpr int WEIGHTS = 16 * FEATURES * FEATURES, EDGE_WEIGHTS = 16 * C * FEATURES;
// A plane is one channel of an image with a border of zeros, in bfloat16. This stride avoids bank conflicts.
constexpr int STRIDE = 82, PLANE = 66 * STRIDE, PLANES_BYTES = (C * PLANE * 2 + 127) / 128 * 128;
// The last layer's products are made and summed channel by channel, in strips of rows of the larger map, and one more row
// at either end: as many as shared memory has room for.
constexpr int STRIP = C == 1 ? 32 : 16, STRIP_PIXELS = (STRIP + 2) * BIG + 4;
constexpr int PRODUCTS_BYTES = 16 * STRIP_PIXELS * 4;
constexpr int BIG_MASK = 7, SMALL_MASK = 3;
constexpr int TILES = C == 1 ? 4 : 2;  // rows of a warp at a time, limited by registers
constexpr int SECOND = 32;  // what changes in a place if 2 is added to a chunk of 0 or 1: this bit

#ifndef EMULATED
#define DEVICE __device__ __forceinline__
#define KERNEL extern "C" __global__ void __launch_bounds__(THREADS)
extern __shared__ __align__(128) u8 memory[];

DEVICE u32 address(const void* pointer) { return (u32)__cvta_generic_to_shared(pointer); }
DEVICE u32 pack(float low, float high) {
  u32 both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}
DEVICE u32 pack_positive(float low, float high) {  // negative numbers become 0
  u32 both;
  asm("cvt.rn.relu.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}
DEVICE float as_float(u32 bits) { return __uint_as_float(bits); }
DEVICE void load4(u32* r, u32 at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}
DEVICE void load4_transposed(u32* r, u32 at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}
DEVICE void multiply(float* c, const u32* a, u32 b0, u32 b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
DEVICE void copy16(u32 to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(__cvta_generic_to_global(from)) : "memory");
}
DEVICE void copies_done() { asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;" ::: "memory"); }
DEVICE float lane_sum(float value, int from) {  // over lanes whose numbers differ in the bits from `from` to 16
  for (int step = from; step < 32; step *= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}
#endif

// Where a chunk of a pixel lies. A row of a map has a multiple of 2 (MASK + 1) pixels, so the bits that depend on the pixel
// depend on its column only: rows are added to a place, as is a tap to that of a weight.
template <int MASK>
DEVICE int place(int pixel, int chunk) {
  const int pair = pixel >> 1;
  return pair * 128 + (((((pixel & 1) << 2) | chunk) ^ (pair & MASK)) << 4);
}

template <int N>
DEVICE void clear(float* values) {
#pragma unroll
  for (int i = 0; i < N; ++i) values[i] = 0.0f;
}

// Sums of a tile that start at the biases of the thread's 8 columns, or at 0.
DEVICE void begin(float sums[4][4], const float* bias) {
#pragma unroll
  for (int i = 0; i < 16; ++i) sums[i >> 2][i & 3] = bias ? bias[(i >> 2) * 2 + (i & 1)] : 0.0f;
}

// Rows of 64 bytes into a map.
template <int MASK>
DEVICE void load_map(u32 map, const u16* source, int rows) {
  for (int i = threadIdx.x; i < rows * 4; i += THREADS) copy16(map + place<MASK>(i >> 2, i & 3), source + i * 8);
}

// Edge weights (tap, channel, feature); in the map, taps of one channel are neighbours.
DEVICE void load_edge_weights(u32 map, const u16* source) {
  for (int i = threadIdx.x; i < 16 * C * 4; i += THREADS) {
    const int row = i >> 2, tap = row / C, channel = row % C;
    copy16(map + place<BIG_MASK>(channel * 16 + tap, i & 3), source + i * 8);
  }
}

DEVICE void clear_bytes(u8* at, int bytes) {
  for (int i = threadIdx.x * 4; i < bytes; i += THREADS * 4) *(u32*)(at + i) = 0;
}

// 4 x 4 windows of a plane at 16 positions, from that of `at` on: the first operand of a product.
DEVICE void windows(u32* a, const u16* at) {
  a[0] = *(const u32*)at;
  a[1] = *(const u32*)(at + 16);
  a[2] = *(const u32*)(at + 2 * STRIDE);
  a[3] = *(const u32*)(at + 2 * STRIDE + 16);
}

// The same, transposed.
DEVICE void windows_transposed(u32* a, const u16* at) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const u16* from = at + (i & 1) * 2 * STRIDE + (i >> 1) * 16;
    a[i] = (u32)from[0] | ((u32)from[2] << 16);
  }
}

// Planes -> sums of 32 features at each pixel of the larger map. A warp makes four rows. finish(offset, n, sums) gets two
// features of a pixel, their place in a map, and those of the pixel 8 columns on, whose place is `eight_on`.
template <typename Finish>
DEVICE void edge_correlate(const u16* planes, u32 edge, const float* bias, Finish finish) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
  const u32 at_w = edge + place<BIG_MASK>(lane & 15, lane >> 4);
  const u16* at = planes + (8 * warp + (t >> 1)) * STRIDE + 2 * g + (t & 1) * 2;
  const int out = warp * 4 * BIG_ROW + place<BIG_MASK>(g, 0) + 4 * t;
  u32 b[C][8];
#pragma unroll
  for (int c = 0; c < C; ++c) {
    load4_transposed(b[c], at_w + c * 1024);
    load4_transposed(b[c] + 4, (at_w ^ SECOND) + c * 1024);
  }
#pragma unroll
  for (int tile = 0; tile < 8; ++tile) {
    float sums[4][4];
    begin(sums, bias);
#pragma unroll
    for (int c = 0; c < C; ++c) {
      u32 a[4];
      windows(a, at + c * PLANE + (tile >> 1) * 2 * STRIDE + (tile & 1) * 32);
#pragma unroll
      for (int n = 0; n < 4; ++n) multiply(sums[n], a, b[c][2 * n], b[c][2 * n + 1]);
    }
#pragma unroll
    for (int n = 0; n < 4; ++n) finish((out ^ (n << 4)) + (tile >> 1) * BIG_ROW + (tile & 1) * 1024, n, sums[n]);
  }
}

DEVICE int eight_on(int offset) { return (offset ^ 64) + 512; }

// sums[channel] (taps, features) += windows of planes, transposed, times the larger map.
DEVICE void edge_weight_gradient(const u16* planes, u32 big, float sums[C][4][4]) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
  const u16* at = planes + (8 * warp + (g >> 2)) * STRIDE + 4 * t + (g & 3);
  const u32 map = big + warp * 4 * BIG_ROW + place<BIG_MASK>(lane & 15, lane >> 4);
#pragma unroll
  for (int tile = 0; tile < 8; ++tile) {
    const int row = tile >> 1, half = tile & 1;
    u32 b[8];
    load4_transposed(b, map + row * BIG_ROW + half * 1024);
    load4_transposed(b + 4, (map ^ SECOND) + row * BIG_ROW + half * 1024);
#pragma unroll
    for (int c = 0; c < C; ++c) {
      u32 a[4];
      windows_transposed(a, at + c * PLANE + row * 2 * STRIDE + half * 32);
#pragma unroll
      for (int n = 0; n < 4; ++n) multiply(sums[c][n], a, b[2 * n], b[2 * n + 1]);
    }
  }
}

// Larger map -> sums of the smaller one; a warp makes two rows of it. `zeros` is the address of 16 zero bytes.
DEVICE void correlate(u32 big, u32 weights, u32 zeros, const float* bias, float sums[2][4][4]) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, x = lane & 15;
  const u32 at_w = weights + place<BIG_MASK>(lane & 15, lane >> 4);
  u32 at[4];
#pragma unroll
  for (int kx = 0; kx < 4; ++kx)
    at[kx] = big + (4 * warp - 1) * BIG_ROW + place<BIG_MASK>(min(max(2 * x - 1 + kx, 0), BIG - 1), lane >> 4);
  begin(sums[0], bias), begin(sums[1], bias);
#pragma unroll
  for (int tap = 0; tap < 16; ++tap) {
    const int ky = tap >> 2, kx = tap & 3;
    const bool outside_x = (kx == 0 && x == 0) || (kx == 3 && x == SMALL - 1);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      u32 b[8];
      load4_transposed(b, at_w + tap * TAP + half * 1024);
      load4_transposed(b + 4, (at_w ^ SECOND) + tap * TAP + half * 1024);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int row = 2 * i + ky;
        const bool outside = outside_x || (row == 0 && warp == 0) || (row == 5 && warp == WARPS - 1);
        u32 a[4];
        load4(a, outside ? zeros : (at[kx] ^ (half * SECOND)) + row * BIG_ROW);
#pragma unroll
        for (int n = 0; n < 4; ++n) multiply(sums[i][n], a, b[2 * n], b[2 * n + 1]);
      }
    }
  }
}

// Smaller map -> sums of the larger one. A warp makes rows of one parity and columns of one parity. finish(offset, n, sums)
// gets two features of a pixel, their place in a map, and those of the pixel 16 columns on, whose place is `sixteen_on`.
template <typename Finish>
DEVICE void spread(u32 small, u32 weights, u32 zeros, const float* bias, Finish finish) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, x = lane & 15;
  const int odd_y = (warp >> 1) & 1, odd_x = warp & 1, side_y = 2 * odd_y - 1, side_x = 2 * odd_x - 1;
  const u32 at_w = weights + place<BIG_MASK>((lane & 7) + ((lane >> 4) << 3), (lane >> 3) & 1);
  const bool last_x = x == (odd_x ? SMALL - 1 : 0);
  const int own = place<SMALL_MASK>(x, lane >> 4), next = place<SMALL_MASK>(last_x ? x : x + side_x, lane >> 4);
  const int out = odd_y * BIG_ROW + place<BIG_MASK>(2 * (lane >> 2) + odd_x, 0) + 4 * (lane & 3);
#pragma unroll 1
  for (int y0 = (warp >> 2) * 8; y0 < (warp >> 2) * 8 + 8; y0 += TILES) {
    float sums[TILES][4][4];
#pragma unroll
    for (int i = 0; i < TILES; ++i) begin(sums[i], bias);
#pragma unroll
    for (int tap = 0; tap < 4; ++tap) {
      const int dy = tap >> 1, dx = tap & 1;  // 1: the neighbour on that side
      const int ky = odd_y + 1 - 2 * dy * side_y, kx = odd_x + 1 - 2 * dx * side_x;
      const u32 w = at_w + (ky * 4 + kx) * TAP, at = small + (y0 + dy * side_y) * SMALL_ROW + (dx ? next : own);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        u32 b[8];
        load4(b, w ^ (half * SECOND));
        load4(b + 4, (w ^ (half * SECOND)) + 1024);
#pragma unroll
        for (int i = 0; i < TILES; ++i) {
          const bool outside_y = dy && ((i == 0 && !odd_y && y0 == 0) || (i == TILES - 1 && odd_y && y0 + i == SMALL - 1));
          u32 a[4];
          load4(a, outside_y || (dx && last_x) ? zeros : (at ^ (half * SECOND)) + i * SMALL_ROW);
#pragma unroll
          for (int n = 0; n < 4; ++n) multiply(sums[i][n], a, b[2 * n], b[2 * n + 1]);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < TILES; ++i)
#pragma unroll
      for (int n = 0; n < 4; ++n) finish((out ^ (n << 4)) + 2 * (y0 + i) * BIG_ROW, n, sums[i][n]);
  }
}

DEVICE int sixteen_on(int offset) { return offset + 1024; }

// sums[tap][half of the features] += larger map, transposed, times the smaller one. A warp has two taps.
DEVICE void weight_gradient(u32 big, u32 small, u32 zeros, float sums[2][2][4][4]) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int ky = warp >> 1, x = (lane & 7) + ((lane >> 4) << 3);
  const u32 map = small + place<SMALL_MASK>(lane & 15, lane >> 4);
  u32 at[2];
  bool outside_x[2];
#pragma unroll
  for (int tap = 0; tap < 2; ++tap) {
    const int column = 2 * x - 1 + (warp & 1) * 2 + tap;
    outside_x[tap] = column < 0 || column >= BIG;
    at[tap] = big + (ky - 1) * BIG_ROW + place<BIG_MASK>(min(max(column, 0), BIG - 1), (lane >> 3) & 1);
  }
#pragma unroll
  for (int y = 0; y < SMALL; ++y) {
    const bool outside_y = (y == 0 && ky == 0) || (y == SMALL - 1 && ky == 3);
    u32 b[8];
    load4_transposed(b, map + y * SMALL_ROW);
    load4_transposed(b + 4, (map ^ SECOND) + y * SMALL_ROW);
#pragma unroll
    for (int tap = 0; tap < 2; ++tap)
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        u32 a[4];
        load4_transposed(a, outside_y || outside_x[tap] ? zeros : (at[tap] ^ (m * SECOND)) + 2 * y * BIG_ROW);
#pragma unroll
        for (int n = 0; n < 4; ++n) multiply(sums[tap][m][n], a, b[2 * n], b[2 * n + 1]);
      }
  }
}

// A block's sums in the order (tap, larger map's feature, smaller map's feature).
DEVICE void store_weight_gradient(float* out, const float sums[2][2][4][4]) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
#pragma unroll
  for (int tap = 0; tap < 2; ++tap)
#pragma unroll
    for (int m = 0; m < 2; ++m)
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const float* s = sums[tap][m][n];
        float* at = out + ((warp * 2 + tap) * FEATURES + m * 16 + g) * FEATURES + n * 8 + 2 * t;
        at[0] = s[0], at[1] = s[1], at[8 * FEATURES] = s[2], at[8 * FEATURES + 1] = s[3];
      }
}

// The same for edge weights: (tap, channel, feature). The warps' sums are added in a fixed order.
DEVICE void store_edge_gradient(float* out, float* space, const float sums[C][4][4]) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
  __syncthreads();
#pragma unroll
  for (int c = 0; c < C; ++c)
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const float* s = sums[c][n];
      float* at = space + warp * EDGE_WEIGHTS + (g * C + c) * FEATURES + n * 8 + 2 * t;
      at[0] = s[0], at[1] = s[1], at[8 * C * FEATURES] = s[2], at[8 * C * FEATURES + 1] = s[3];
    }
  __syncthreads();
  for (int i = threadIdx.x; i < EDGE_WEIGHTS; i += THREADS) {
    float total = 0.0f;
    for (int w = 0; w < WARPS; ++w) total += space[w * EDGE_WEIGHTS + i];
    out[i] = total;
  }
}
