// The decoder of an exported run, in plain JavaScript. Activations are channels-last: (height, width, channels).

const ACTIVATIONS = {
  none: (x) => x,
  relu: (x) => (x > 0 ? x : 0),
  tanh: Math.tanh,
};

// y = x W + b, with W (inputs, outputs).
function dense({ inputs, outputs, weight, bias }, x) {
  const y = Float32Array.from(bias);
  for (let i = 0; i < inputs; i++) {
    const value = x[i];
    if (value === 0) continue; // half of what a ReLU lets through
    const row = i * outputs;
    for (let o = 0; o < outputs; o++) y[o] += value * weight[row + o];
  }
  return y;
}

// A transposed convolution of stride 2, with W (kernel, kernel, inputs, outputs): each input pixel adds to a
// patch of the output, which is twice as high and twice as wide.
function transposed({ inputs, outputs, kernel, padding, weight, bias }, x, height, width) {
  const [high, wide] = [2 * height, 2 * width];
  const y = new Float32Array(high * wide * outputs);
  for (let p = 0; p < high * wide; p++) y.set(bias, p * outputs);
  for (let row = 0; row < height; row++) {
    for (let column = 0; column < width; column++) {
      const from = (row * width + column) * inputs;
      for (let ky = 0; ky < kernel; ky++) {
        const down = 2 * row - padding + ky;
        if (down < 0 || down >= high) continue;
        for (let kx = 0; kx < kernel; kx++) {
          const across = 2 * column - padding + kx;
          if (across < 0 || across >= wide) continue;
          const to = (down * wide + across) * outputs;
          const tap = (ky * kernel + kx) * inputs;
          for (let i = 0; i < inputs; i++) {
            const value = x[from + i];
            if (value === 0) continue;
            const at = (tap + i) * outputs;
            for (let o = 0; o < outputs; o++) y[to + o] += value * weight[at + o];
          }
        }
      }
    }
  }
  return y;
}

// A function from one code to the bytes of its image, (channels, height, width).
export function decoderOf({ layers, first }, shape, numbers) {
  let at = 0;
  const take = (size) => numbers.subarray(at, (at += size));
  const ready = layers.map((layer) => ({ ...layer, weight: take(layer.size), bias: take(layer.outputs) }));
  const [channels, height, width] = shape;
  const area = height * width;
  return (code) => {
    let x = Float32Array.from(code);
    let [high, wide] = first;
    for (const layer of ready) {
      if (layer.kind === "dense") x = dense(layer, x);
      else {
        x = transposed(layer, x, high, wide);
        [high, wide] = [2 * high, 2 * wide];
      }
      if (layer.activation !== "none") x = x.map(ACTIVATIONS[layer.activation]);
    }
    const bytes = new Uint8ClampedArray(channels * area);
    for (let p = 0; p < area; p++) {
      for (let c = 0; c < channels; c++) bytes[c * area + p] = 255 / (1 + Math.exp(-x[p * channels + c]));
    }
    return bytes;
  };
}
