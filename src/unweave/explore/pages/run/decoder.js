// What an exported run does to a code, in plain JavaScript: the steps that explore/program.py wrote down.
// Every value is its numbers in a row, without a shape.

// To each number, with the settings of a step.
const MAPS = {
  abs: () => Math.abs,
  clamp: (low, high) => (x) => Math.min(Math.max(x, low ?? -Infinity), high ?? Infinity),
  exp: () => Math.exp,
  gelu: () => (x) => x * normalShare(x),
  leaky_relu:
    (slope = 0.01) =>
    (x) =>
      x > 0 ? x : slope * x,
  log: () => Math.log,
  neg: () => (x) => -x,
  reciprocal: () => (x) => 1 / x,
  relu: () => (x) => Math.max(x, 0),
  round: () => (x) => (x - Math.floor(x) === 0.5 ? 2 * Math.round(x / 2) : Math.round(x)), // halves to even
  rsqrt: () => (x) => 1 / Math.sqrt(x),
  sigmoid: () => (x) => 1 / (1 + Math.exp(-x)),
  sqrt: () => Math.sqrt,
  tanh: () => Math.tanh,
};

// The share of a standard normal distribution below x, to 1e-7: Abramowitz and Stegun, formula 26.2.17.
function normalShare(x) {
  const t = 1 / (1 + 0.2316419 * Math.abs(x));
  const series = [0.31938153, -0.356563782, 1.781477937, -1.821255978, 1.330274429];
  const sum = series.reduceRight((rest, factor) => (rest + factor) * t, 0);
  const above = (Math.exp(-0.5 * x * x) / Math.sqrt(2 * Math.PI)) * sum;
  return x > 0 ? 1 - above : above;
}

const PAIRS = {
  add: (a, b) => a + b,
  div: (a, b) => a / b,
  eq: (a, b) => (a === b ? 1 : 0),
  maximum: Math.max,
  minimum: Math.min,
  mul: (a, b) => a * b,
  sub: (a, b) => a - b,
};

const STEPS = {
  each: ({ which, settings }, x) => x.map(MAPS[which](...settings)),

  // Two values over one shape; a stride of 0 repeats a number along an axis.
  pair({ which, shape, strides: [down, across] }, a, b) {
    const [join, at] = [PAIRS[which], shape.map(() => 0)];
    const y = new Float32Array(shape.reduce((size, side) => size * side, 1));
    let [i, j] = [0, 0];
    for (let n = 0; n < y.length; n++) {
      y[n] = join(a[i], b[j]);
      for (let axis = shape.length - 1; axis >= 0; axis--) {
        [i, j] = [i + down[axis], j + across[axis]];
        if (++at[axis] < shape[axis]) break;
        [i, j, at[axis]] = [i - down[axis] * shape[axis], j - across[axis] * shape[axis], 0];
      }
    }
    return y;
  },

  // Numbers at some places of all values one after another.
  take({ places }, ...values) {
    const all = values.length === 1 ? values[0] : values.flatMap((value) => Array.from(value));
    return Float32Array.from(places, (place) => all[place]);
  },

  // (rows, inner) times (inner, columns).
  product({ rows, inner, columns }, x, weight) {
    const y = new Float32Array(rows * columns);
    for (let row = 0; row < rows; row++) {
      for (let i = 0; i < inner; i++) {
        const value = x[row * inner + i];
        if (value === 0) continue; // half of what a ReLU lets through
        for (let o = 0; o < columns; o++) y[row * columns + o] += value * weight[i * columns + o];
      }
    }
    return y;
  },

  transposed(step, x, weight, bias) {
    const { height, width, inputs, outputs } = step;
    const { pixels, area } = transposedPixels(step, lastAxisFirst(x, height * width, inputs), weight, bias);
    return lastAxisFirst(pixels, outputs, area);
  },

  argmin({ among }, x) {
    return Float32Array.from({ length: x.length / among }, (_, row) => {
      const part = x.subarray(row * among, (row + 1) * among);
      return part.indexOf(part.reduce((least, value) => Math.min(least, value)));
    });
  },

  // Of each row of x, those of these numbers.
  gather: ({ among, each }, x, numbers) =>
    numbers.map((number, n) => x[Math.floor(n / each) * among + number]),
};

// (rows, columns) from (columns, rows).
function lastAxisFirst(x, rows, columns) {
  const y = new Float32Array(x.length);
  for (let c = 0; c < columns; c++) for (let r = 0; r < rows; r++) y[r * columns + c] = x[c * rows + r];
  return y;
}

// A transposed convolution of (height, width, inputs), with W (kernel, kernel, inputs, outputs): each input
// pixel adds to a patch of the output.
function transposedPixels({ height, width, inputs, outputs, kernel, stride, padding }, x, weight, bias) {
  const [high, wide] = [height, width].map((size) => stride * (size - 1) + kernel - 2 * padding);
  const pixels = new Float32Array(high * wide * outputs);
  for (let p = 0; p < high * wide; p++) pixels.set(bias, p * outputs);
  for (let row = 0; row < height; row++) {
    for (let column = 0; column < width; column++) {
      const from = (row * width + column) * inputs;
      for (let ky = 0; ky < kernel; ky++) {
        const down = stride * row - padding + ky;
        if (down < 0 || down >= high) continue;
        for (let kx = 0; kx < kernel; kx++) {
          const across = stride * column - padding + kx;
          if (across < 0 || across >= wide) continue;
          const to = (down * wide + across) * outputs;
          const tap = (ky * kernel + kx) * inputs;
          for (let i = 0; i < inputs; i++) {
            const value = x[from + i];
            if (value === 0) continue;
            const at = (tap + i) * outputs;
            for (let o = 0; o < outputs; o++) pixels[to + o] += value * weight[at + o];
          }
        }
      }
    }
  }
  return { pixels, area: high * wide };
}

// A function from one code to what the steps make of it.
export function computing({ steps, sizes, result }, numbers) {
  let end = 0;
  const constants = sizes.map((size) => {
    end += size;
    return numbers.subarray(end - size, end);
  });
  return (code) => {
    const values = [Float32Array.from(code)];
    const operand = (number) => (number < 0 ? constants[-number - 1] : values[number]);
    for (const step of steps) values.push(STEPS[step.do](step, ...step.of.map(operand)));
    return operand(result);
  };
}

// A function from one code to the bytes of its image, (channels, height, width).
export function decoderOf(program, numbers) {
  const logits = computing(program, numbers);
  return (code) => Uint8ClampedArray.from(logits(code), (logit) => 255 / (1 + Math.exp(-logit)));
}
