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
constexpr int BIG = 32, SMALL = 16, SIDE = 64;            // sides of the two feature maps and of the image
constexpr int BIG_BYTES = BIG * BIG * 64, SMALL_BYTES = SMALL * SMALL * 64;
constexpr int WEIGHT_BYTES = 16 * FEATURES * 64, EDGE_BYTES = 16 * C * 64, IMAGE_BYTES = SIDE * SIDE * C;
constexpr int WEIGHTS = 16 * FEATURES * FEATURES, EDGE_WEIGHTS = 16 * C * FEATURES;
// A plane is one channel of an image with a border of zeros, in bfloat16. This stride avoids bank conflicts.
constexpr int STRIDE = 82, PLANE = 66 * STRIDE, PLANES_BYTES = (C * PLANE * 2 + 15) / 16 * 16;
// The last layer's products are made and summed in strips of rows of the larger map, and one more row at either end.
constexpr int STRIP = C == 1 ? 8 : 4, STRIP_PIXELS = (STRIP + 2) * BIG + 4;
constexpr int PRODUCTS_BYTES = 16 * C * STRIP_PIXELS * 4;
constexpr int BIG_MASK = 7, SMALL_MASK = 3;
constexpr int TILES = C == 1 ? 4 : 2;  // rows of a warp at a time, limited by registers

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

DEVICE float low(u32 both) { return as_float(both << 16); }
DEVICE float high(u32 both) { return as_float(both & 0xffff0000u); }

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

// 4 x 4 windows of planes, for rows of 16 positions from x on: the first operand of a product.
DEVICE void windows(u32* a, const u16* plane, int y, int x) {
  const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  const u16* at = plane + (2 * y + (t >> 1)) * STRIDE + 2 * (x + g) + (t & 1) * 2;
  a[0] = *(const u32*)at;
  a[1] = *(const u32*)(at + 16);
  a[2] = *(const u32*)(at + 2 * STRIDE);
  a[3] = *(const u32*)(at + 2 * STRIDE + 16);
}

// The same, transposed.
DEVICE void windows_transposed(u32* a, const u16* plane, int y, int x) {
  const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  const u16* at = plane + (2 * y + (g >> 2)) * STRIDE + 2 * (x + 2 * t) + (g & 3);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const u16* from = at + (i & 1) * 2 * STRIDE + (i >> 1) * 16;
    a[i] = (u32)from[0] | ((u32)from[2] << 16);
  }
}

// Planes -> sums of 32 features at each pixel of the larger map. finish(pixel, n, sums) gets two features of a pixel, those
// of the thread in the n-th eight, and of the pixel 8 columns on.
template <typename Finish>
DEVICE void edge_correlate(const u16* planes, u32 edge, Finish finish) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2;
  u32 b[C][8];
#pragma unroll
  for (int c = 0; c < C; ++c) {
    load4_transposed(b[c], edge + place<BIG_MASK>(c * 16 + (lane & 15), lane >> 4));
    load4_transposed(b[c] + 4, edge + place<BIG_MASK>(c * 16 + (lane & 15), (lane >> 4) + 2));
  }
#pragma unroll 2
  for (int tile = 0; tile < 8; ++tile) {
    const int y = warp * 4 + (tile >> 1), x = (tile & 1) * 16;
    float sums[4][4];
    clear<16>(sums[0]);
#pragma unroll
    for (int c = 0; c < C; ++c) {
      u32 a[4];
      windows(a, planes + c * PLANE, y, x);
#pragma unroll
      for (int n = 0; n < 4; ++n) multiply(sums[n], a, b[c][2 * n], b[c][2 * n + 1]);
    }
#pragma unroll
    for (int n = 0; n < 4; ++n) finish(y * BIG + x + g, n, sums[n]);
  }
}

// sums[channel] (taps, features) += windows of planes, transposed, times the larger map.
DEVICE void edge_weight_gradient(const u16* planes, u32 big, float sums[C][4][4]) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
#pragma unroll 2
  for (int tile = 0; tile < 8; ++tile) {
    const int y = warp * 4 + (tile >> 1), x = (tile & 1) * 16;
    u32 b[8];
    load4_transposed(b, big + place<BIG_MASK>(y * BIG + x + (lane & 15), lane >> 4));
    load4_transposed(b + 4, big + place<BIG_MASK>(y * BIG + x + (lane & 15), (lane >> 4) + 2));
#pragma unroll
    for (int c = 0; c < C; ++c) {
      u32 a[4];
      windows_transposed(a, planes + c * PLANE, y, x);
#pragma unroll
      for (int n = 0; n < 4; ++n) multiply(sums[c][n], a, b[2 * n], b[2 * n + 1]);
    }
  }
}

// Larger map -> sums of the smaller one; a warp makes two rows of it.
DEVICE void correlate(u32 big, u32 weights, u32 zeros, float sums[2][4][4]) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  clear<32>(sums[0][0]);
#pragma unroll 1
  for (int ky = 0; ky < 4; ++ky) {
#pragma unroll 2
    for (int kx = 0; kx < 4; ++kx) {
      const int column = 2 * (lane & 15) - 1 + kx;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        u32 b[8];
        const int row_of_w = (ky * 4 + kx) * FEATURES + half * 16 + (lane & 15);
        load4_transposed(b, weights + place<BIG_MASK>(row_of_w, lane >> 4));
        load4_transposed(b + 4, weights + place<BIG_MASK>(row_of_w, (lane >> 4) + 2));
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int row = 2 * (warp * 2 + i) - 1 + ky;
          const bool inside = row >= 0 && row < BIG && column >= 0 && column < BIG;
          u32 a[4];
          load4(a, inside ? big + place<BIG_MASK>(row * BIG + column, half * 2 + (lane >> 4)) : zeros);
#pragma unroll
          for (int n = 0; n < 4; ++n) multiply(sums[i][n], a, b[2 * n], b[2 * n + 1]);
        }
      }
    }
  }
}

// Smaller map -> sums of the larger one. A warp makes rows of one parity and columns of one parity. finish(pixel, n, sums)
// gets two features of a pixel, and of the pixel 16 columns on.
template <typename Finish>
DEVICE void spread(u32 small, u32 weights, u32 zeros, Finish finish) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2;
  const int odd_y = (warp >> 1) & 1, odd_x = warp & 1, first = (warp >> 2) * 8;
#pragma unroll 1
  for (int y0 = first; y0 < first + 8; y0 += TILES) {
    float sums[TILES][4][4];
    clear<TILES * 16>(sums[0][0]);
#pragma unroll 1
    for (int tap = 0; tap < 4; ++tap) {
      const int dy = (tap >> 1) * (2 * odd_y - 1), dx = (tap & 1) * (2 * odd_x - 1);
      const int ky = odd_y + 1 - 2 * dy, kx = odd_x + 1 - 2 * dx, x = (lane & 15) + dx;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        u32 b[8];
        const int row_of_w = (ky * 4 + kx) * FEATURES + (lane & 7) + ((lane >> 4) << 3);
        const int chunk = half * 2 + ((lane >> 3) & 1);
        load4(b, weights + place<BIG_MASK>(row_of_w, chunk));
        load4(b + 4, weights + place<BIG_MASK>(row_of_w + 16, chunk));
#pragma unroll
        for (int i = 0; i < TILES; ++i) {
          const int y = y0 + i + dy;
          const bool inside = y >= 0 && y < SMALL && x >= 0 && x < SMALL;
          u32 a[4];
          load4(a, inside ? small + place<SMALL_MASK>(y * SMALL + x, half * 2 + (lane >> 4)) : zeros);
#pragma unroll
          for (int n = 0; n < 4; ++n) multiply(sums[i][n], a, b[2 * n], b[2 * n + 1]);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < TILES; ++i)
#pragma unroll
      for (int n = 0; n < 4; ++n) finish((2 * (y0 + i) + odd_y) * BIG + 2 * g + odd_x, n, sums[i][n]);
  }
}

// sums[tap][half of the features] += larger map, transposed, times the smaller one. A warp has two taps.
DEVICE void weight_gradient(u32 big, u32 small, u32 zeros, float sums[2][2][4][4]) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int ky = warp >> 1, x = (lane & 7) + ((lane >> 4) << 3);
#pragma unroll 2
  for (int y = 0; y < SMALL; ++y) {
    const int row = 2 * y - 1 + ky;
    if (row < 0 || row >= BIG) continue;
    u32 b[8];
    load4_transposed(b, small + place<SMALL_MASK>(y * SMALL + (lane & 15), lane >> 4));
    load4_transposed(b + 4, small + place<SMALL_MASK>(y * SMALL + (lane & 15), (lane >> 4) + 2));
#pragma unroll
    for (int tap = 0; tap < 2; ++tap) {
      const int column = 2 * x - 1 + (warp & 1) * 2 + tap;
      const bool inside = column >= 0 && column < BIG;
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        u32 a[4];
        const int chunk = 2 * m + ((lane >> 3) & 1);
        load4_transposed(a, inside ? big + place<BIG_MASK>(row * BIG + column, chunk) : zeros);
#pragma unroll
        for (int n = 0; n < 4; ++n) multiply(sums[tap][m][n], a, b[2 * n], b[2 * n + 1]);
      }
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
