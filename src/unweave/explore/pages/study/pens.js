// Pens that a plot is drawn with: one for canvases and one that writes SVG files.

const LARGEST_MARK = 9; // pixels across, with some room around it
const FONT = "12px system-ui, sans-serif";

// A pen for a canvas of that size in CSS pixels; it begins with an empty sheet, clear if it has no colour.
export function canvasPen(canvas, width, height, paper) {
  const sharp = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * sharp);
  canvas.height = Math.round(height * sharp);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.scale(sharp, sharp);
  if (paper) {
    context.fillStyle = paper;
    context.fillRect(0, 0, width, height);
  }
  context.font = FONT;
  return {
    line(x0, y0, x1, y1, colour, thick = 1) {
      context.strokeStyle = colour;
      context.lineWidth = thick;
      context.beginPath();
      context.moveTo(x0, y0);
      context.lineTo(x1, y1);
      context.stroke();
    },
    text(text, x, y, { colour, align, middle = false, turn = 0 }) {
      context.save();
      context.translate(x, y);
      context.rotate(turn);
      context.fillStyle = colour;
      context.textAlign = align;
      context.textBaseline = middle ? "middle" : "alphabetic";
      context.fillText(text, 0, 0);
      context.restore();
    },
    // Marks are mixed into the pixels here: the canvas's own functions take ten times as long for so many.
    marks(draw) {
      const pixels = context.getImageData(0, 0, canvas.width, canvas.height);
      draw((look, size, opacity) => {
        const mix = mixer(pixels, tileOf(look, size * sharp, opacity));
        return (x, y) => mix(Math.round(x * sharp), Math.round(y * sharp));
      });
      context.putImageData(pixels, 0, 0);
    },
    ring(x, y, radius, colour) {
      context.strokeStyle = colour;
      context.lineWidth = 2;
      context.beginPath();
      context.arc(x, y, radius, 0, 2 * Math.PI);
      context.stroke();
    },
    box(x0, y0, x1, y1, colour) {
      context.strokeStyle = colour;
      context.lineWidth = 1;
      context.setLineDash([4, 3]);
      context.strokeRect(x0, y0, x1 - x0, y1 - y0);
      context.setLineDash([]);
    },
  };
}

// The pixels of a mark around its middle: x, y and opacity of each, and their one colour.
function tileOf(look, scale, opacity) {
  const side = 2 * Math.ceil(LARGEST_MARK * scale * 0.5) + 1;
  const middle = (side - 1) / 2;
  const ink = new OffscreenCanvas(side, side).getContext("2d", { willReadFrequently: true });
  ink.translate(middle + 0.5, middle + 0.5);
  ink.scale(scale, scale);
  ink.fillStyle = look.colour;
  ink.fill(new Path2D(look.shape));
  const { data } = ink.getImageData(0, 0, side, side);
  const points = [];
  for (let k = 0; k < side * side; k++) {
    const alpha = (data[4 * k + 3] / 255) * opacity;
    if (alpha > 0) points.push([(k % side) - middle, Math.floor(k / side) - middle, alpha]);
  }
  const centre = 4 * (middle * side + middle); // the middle of every shape is filled
  return { middle, points, colour: [...data.slice(centre, centre + 3)] };
}

function mixer({ data, width, height }, { middle, points, colour }) {
  const steps = Int32Array.from(points, ([x, y]) => 4 * (y * width + x));
  const alphas = Float32Array.from(points, (point) => point[2]);
  const [red, green, blue] = colour;
  return (x, y) => {
    if (x < middle || y < middle || x + middle >= width || y + middle >= height) return;
    const at = 4 * (y * width + x);
    for (let k = 0; k < steps.length; k++) {
      const place = at + steps[k];
      const alpha = alphas[k];
      data[place] += (red - data[place]) * alpha;
      data[place + 1] += (green - data[place + 1]) * alpha;
      data[place + 2] += (blue - data[place + 2]) * alpha;
    }
  };
}

// A pen that writes: `finish()` gives the elements of a drawing, for a <g> of an SVG file.
export function svgPen() {
  const parts = [];
  const short = (number) => Number(number.toFixed(1));
  const plain = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
  return {
    line(x0, y0, x1, y1, colour, thick = 1) {
      parts.push(
        `<path d="M${short(x0)} ${short(y0)}L${short(x1)} ${short(y1)}" stroke="${colour}" stroke-width="${thick}"/>`,
      );
    },
    text(text, x, y, { colour, align, middle = false, turn = 0 }) {
      const anchor = { left: "start", center: "middle", right: "end" }[align];
      const place = `translate(${short(x)} ${short(y + (middle ? 4 : 0))}) rotate(${short((turn * 180) / Math.PI)})`;
      parts.push(`<text transform="${place}" fill="${colour}" text-anchor="${anchor}">${plain(text)}</text>`);
    },
    marks(draw) {
      draw((look, size, opacity) => {
        const rest = `fill="${look.colour}" fill-opacity="${opacity}" d="${look.shape}"`;
        return (x, y) =>
          parts.push(`<path transform="translate(${short(x)} ${short(y)}) scale(${size})" ${rest}/>`);
      });
    },
    ring(x, y, radius, colour) {
      parts.push(
        `<circle cx="${short(x)}" cy="${short(y)}" r="${radius}" fill="none" stroke="${colour}" stroke-width="2"/>`,
      );
    },
    box(x0, y0, x1, y1, colour) {
      const size = `width="${short(x1 - x0)}" height="${short(y1 - y0)}"`;
      parts.push(
        `<rect x="${short(x0)}" y="${short(y0)}" ${size} fill="none" stroke="${colour}" stroke-dasharray="4 3"/>`,
      );
    },
    finish: () => parts.join("\n"),
  };
}
