// The kernels of image_ends.cu as a library for the CPU. A launch takes pointers to the arguments, as CUDA's does.
#include "emulation.h"

#include <utility>

#include "image_products.cu"
#include "image_ends.cu"

template <typename... Arguments, size_t... I>
bool call(void (*kernel)(Arguments...), int splits, int runs, int bytes, void** arguments, std::index_sequence<I...>) {
  return launch(splits, runs, bytes, [&] { kernel(*(Arguments*)arguments[I]...); });
}

template <typename... Arguments>
bool call(void (*kernel)(Arguments...), int splits, int runs, int bytes, void** arguments) {
  return call(kernel, splits, runs, bytes, arguments, std::index_sequence_for<Arguments...>{});
}

#define LAUNCH(kernel)                                                                          \
  extern "C" bool launch_##kernel(int splits, int runs, int bytes, void** arguments) {          \
    return call(kernel, splits, runs, bytes, arguments);                                        \
  }

LAUNCH(image_start)
LAUNCH(image_start_gradient)
LAUNCH(image_end)
LAUNCH(add_parts)
