// The kernels of image_ends.cu as a library for the CPU. A launch takes pointers to the arguments, as CUDA's does.
#include "emulation.h"

#include <utility>

#include "image_products.cu"
#include "image_ends.cu"

template <typename... Arguments, size_t... I>
void call(void (*kernel)(Arguments...), int splits, int runs, void** arguments, std::index_sequence<I...>) {
  launch(splits, runs, [&] { kernel(*(Arguments*)arguments[I]...); });
}

template <typename... Arguments>
void call(void (*kernel)(Arguments...), int splits, int runs, void** arguments) {
  call(kernel, splits, runs, arguments, std::index_sequence_for<Arguments...>{});
}

#define LAUNCH(kernel) \
  extern "C" void launch_##kernel(int splits, int runs, void** arguments) { call(kernel, splits, runs, arguments); }

LAUNCH(image_start)
LAUNCH(image_start_gradient)
LAUNCH(image_end)
LAUNCH(add_parts)
