"""Layers of many models at once: every parameter and every input has a leading axis of runs.

Images are logically (P, B, C, H, W) and lie channels-last in memory where a layer made them, features are
(P, B, features). A run's initial weights come from its own stream and from the name of the layer, so they
are the same whether it trains alone or with other runs.

Each layer computes in a precision (precision.py). Weights are float32, rounded at use, except for those of
dense layers in "bf16", which are rounded copies of what the optimiser keeps. Images are bytes of 0 to 255 or
numbers from 0 to 1.
"""

from unweave.nn.layers.convolution import (
    Conv2d,
    ConvTranspose2d,
    SameConv2d,
    conv2d,
    conv_transpose2d,
    have_kernels,
    through,
    through_to_likelihood,
)
from unweave.nn.layers.dense import Linear, heads, linear
from unweave.nn.layers.layer import (
    LEAKY_SLOPE,
    Activation,
    Layer,
    as_numbers,
    at_least_float32,
    glorot_uniform,
    rounded_copy,
)
from unweave.nn.layers.network import (
    chosen,
    keep_rounded_copies,
    lay_out_for_kernels,
    num_runs,
    select_runs,
    set_precision,
)

__all__ = [
    "LEAKY_SLOPE",
    "Activation",
    "Conv2d",
    "ConvTranspose2d",
    "Layer",
    "Linear",
    "SameConv2d",
    "as_numbers",
    "at_least_float32",
    "chosen",
    "conv2d",
    "conv_transpose2d",
    "glorot_uniform",
    "have_kernels",
    "heads",
    "keep_rounded_copies",
    "lay_out_for_kernels",
    "linear",
    "num_runs",
    "rounded_copy",
    "select_runs",
    "set_precision",
    "through",
    "through_to_likelihood",
]
