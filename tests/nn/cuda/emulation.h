// Runs CUDA C++ on a CPU: the threads of a block are fibers, and operations of a warp or a block wait for all of them.
//
// It stands in for the part of CUDA that image_ends.cu uses, so that its kernels can be tested without a GPU.
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#define EMULATED
#define DEVICE static inline
#define KERNEL extern "C" void

struct uint4 {
  unsigned x, y, z, w;
};
struct Index {
  int x, y;
};
using std::max;
using std::min;

namespace emulation {
constexpr int THREADS = 256, LANES = 32, STACK = 1 << 16, MEMORY = 232448;  // the most shared memory of an H200
alignas(128) unsigned char shared[MEMORY];
ucontext_t scheduler, fibers[THREADS];
char stacks[THREADS][STACK];
bool finished[THREADS];
int current;

struct Barrier {
  int arrived = 0, generation = 0;
};
Barrier block, warps[THREADS / LANES];

void wait(Barrier& barrier, int threads) {
  const int generation = barrier.generation;
  if (++barrier.arrived == threads) {
    barrier.arrived = 0;
    ++barrier.generation;
  } else {
    while (barrier.generation == generation) swapcontext(&fibers[current], &scheduler);
  }
}

// What the lanes of a warp show each other. The halves alternate, so that one wait is enough.
struct Exchange {
  unsigned values[2][LANES][6];
  int half[LANES] = {};
};
Exchange exchanges[THREADS / LANES];

template <int N>
const unsigned (*shown(const unsigned* values))[6] {
  Exchange& exchange = exchanges[current / LANES];
  const int lane = current % LANES, half = exchange.half[lane] ^= 1;
  std::copy(values, values + N, exchange.values[half][lane]);
  wait(warps[current / LANES], LANES);
  return exchange.values[half];
}

float number(unsigned bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

unsigned rounded(float value) {  // to bfloat16, ties to even
  unsigned bits;
  std::memcpy(&bits, &value, 4);
  return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}

float half_of(unsigned both, int which) { return number(which ? both & 0xffff0000u : both << 16); }

void load(unsigned* r, unsigned at, bool transposed) {
  const auto addresses = shown<1>(&at);
  const int lane = current % LANES;
  for (int matrix = 0; matrix < 4; ++matrix) {
    unsigned short pair[2];
    for (int i = 0; i < 2; ++i) {
      const int row = transposed ? 2 * (lane % 4) + i : lane / 4, column = transposed ? lane / 4 : 2 * (lane % 4) + i;
      std::memcpy(&pair[i], shared + addresses[matrix * 8 + row][0] + 2 * column, 2);
    }
    r[matrix] = pair[0] | (unsigned)pair[1] << 16;
  }
}
}  // namespace emulation

struct Thread {
  struct {
    operator int() const { return emulation::current; }
  } x;
};
inline Thread threadIdx;
inline Index blockIdx, gridDim;
#define memory emulation::shared
#define __syncthreads() emulation::wait(emulation::block, emulation::THREADS)
#define __expf std::exp
#define __logf std::log
#define __fdividef(a, b) ((a) / (b))

DEVICE unsigned address(const void* pointer) { return (unsigned)((const unsigned char*)pointer - emulation::shared); }
DEVICE unsigned pack(float low, float high) { return emulation::rounded(low) | emulation::rounded(high) << 16; }
DEVICE unsigned pack_positive(float low, float high) { return pack(std::max(low, 0.0f), std::max(high, 0.0f)); }
DEVICE float as_float(unsigned bits) { return emulation::number(bits); }
DEVICE void load4(unsigned* r, unsigned at) { emulation::load(r, at, false); }
DEVICE void load4_transposed(unsigned* r, unsigned at) { emulation::load(r, at, true); }
DEVICE void multiply(float* c, const unsigned* a, unsigned b0, unsigned b1) {
  const unsigned own[6] = {a[0], a[1], a[2], a[3], b0, b1};
  const auto all = emulation::shown<6>(own);
  const int lane = emulation::current % 32;
  for (int i = 0; i < 4; ++i) {
    const int row = lane / 4 + (i >= 2 ? 8 : 0), column = 2 * (lane % 4) + (i & 1);
    double total = c[i];
    for (int k = 0; k < 16; ++k) {
      const unsigned first = all[(row % 8) * 4 + (k % 8) / 2][(row >= 8 ? 1 : 0) + (k >= 8 ? 2 : 0)];
      const unsigned second = all[column * 4 + (k % 8) / 2][4 + (k >= 8 ? 1 : 0)];
      total += (double)emulation::half_of(first, k & 1) * emulation::half_of(second, k & 1);
    }
    c[i] = (float)total;
  }
}
DEVICE void copy16(unsigned to, const void* from) { std::memcpy(emulation::shared + to, from, 16); }
DEVICE void copies_done() {}
DEVICE float lane_sum(float value, int from) {
  for (int step = from; step < 32; step *= 2) {
    unsigned bits;
    std::memcpy(&bits, &value, 4);
    value += emulation::number(emulation::shown<1>(&bits)[(emulation::current % 32) ^ step][0]);
  }
  return value;
}

// Runs a kernel for all blocks, and returns whether they kept to so many bytes of shared memory. It starts as NaN, and so
// do results that the caller filled with it.
template <typename Body>
bool launch(int splits, int runs, int bytes, Body body) {
  using emulation::shared;
  bool kept = true;
  static Body* running;
  running = &body;
  gridDim = {splits, runs};
  for (blockIdx.y = 0; blockIdx.y < runs; ++blockIdx.y)
    for (blockIdx.x = 0; blockIdx.x < splits; ++blockIdx.x) {
      std::memset(shared, 0xff, emulation::MEMORY);
      for (int i = 0; i < emulation::THREADS; ++i) {
        emulation::finished[i] = false;
        getcontext(&emulation::fibers[i]);
        emulation::fibers[i].uc_stack = {emulation::stacks[i], 0, emulation::STACK};
        emulation::fibers[i].uc_link = &emulation::scheduler;
        makecontext(&emulation::fibers[i], (void (*)())(+[] {
          (*running)();
          emulation::finished[emulation::current] = true;
        }), 0);
      }
      for (bool busy = true; busy;) {
        busy = false;
        for (int i = 0; i < emulation::THREADS; ++i)
          if (!emulation::finished[i]) {
            busy = true;
            emulation::current = i;
            swapcontext(&emulation::scheduler, &emulation::fibers[i]);
          }
      }
      kept &= std::all_of(shared + bytes, shared + emulation::MEMORY, [](unsigned char byte) { return byte == 0xff; });
    }
  return kept;
}
