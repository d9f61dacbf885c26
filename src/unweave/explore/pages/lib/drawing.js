// Pixels: images of the decoder on a canvas, and canvases as PNG files.

const TEXT = "14px system-ui, sans-serif";

export function colours() {
  const style = getComputedStyle(document.documentElement);
  const named = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    ink: named("ink"),
    dim: named("dim"),
    paper: named("paper"),
    accent: named("accent"),
    line: named("line"),
    deepest: Number.parseFloat(named("deepest")) / 100, // share of the accent on which text can be read
  };
}

// Image i of a batch as a small canvas; one channel is grey, three are red, green and blue.
export function tile(images, i) {
  const { channels, height, width, bytes } = images;
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  const pixels = new ImageData(width, height);
  const area = width * height;
  const start = i * channels * area;
  for (let p = 0; p < area; p++) {
    for (let c = 0; c < 3; c++) pixels.data[4 * p + c] = bytes[start + (channels === 3 ? c * area : 0) + p];
    pixels.data[4 * p + 3] = 255;
  }
  canvas.getContext("2d").putImageData(pixels, 0, 0);
  return canvas;
}

export function paint(canvas, images, i = 0) {
  canvas.width = images.width;
  canvas.height = images.height;
  canvas.getContext("2d").drawImage(tile(images, i), 0, 0);
}

// A canvas of a size in CSS pixels, sharp on dense screens, cleared to the colour of the page.
export function sized(canvas, width, height) {
  const dense = Math.max(1, Math.round(devicePixelRatio));
  canvas.width = width * dense;
  canvas.height = height * dense;
  canvas.style.aspectRatio = `${width} / ${height}`;
  canvas.style.maxWidth = `${width}px`;
  const pen = canvas.getContext("2d");
  pen.scale(dense, dense);
  pen.imageSmoothingEnabled = false;
  pen.fillStyle = colours().paper;
  pen.fillRect(0, 0, width, height);
  pen.font = "13px system-ui, sans-serif";
  pen.textBaseline = "middle";
  return pen;
}

export function savePng(canvas, name) {
  canvas.toBlob((blob) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = `${name}.png`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  });
}

// Words in lines no wider than a width; words in between are separated by dots.
function lines(pen, [first, ...words], width) {
  const filled = [];
  let line = `${first}: `;
  words.forEach((word, k) => {
    const longer = k && line ? `${line} · ${word}` : line + word;
    if (k && pen.measureText(longer).width > width) {
      filled.push(line);
      line = word;
    } else line = longer;
  });
  return [...filled, line];
}

// Canvases one below the other, each under its name; small ones are enlarged without smoothing. `caption` has lists of
// words, each of which begins a line below the title.
export function stacked(title, caption, parts) {
  const margin = 16;
  const shown = parts.map(({ name, canvas }) => {
    const scale = canvas.width < 200 ? Math.round(256 / canvas.width) : 1;
    return { name, canvas, width: canvas.width * scale, height: canvas.height * scale };
  });
  const width = Math.max(640, ...shown.map((part) => part.width)) + 2 * margin;
  const sheet = document.createElement("canvas");
  const pen = sheet.getContext("2d");
  pen.font = TEXT;
  const below = caption.flatMap((words) => lines(pen, words, width - 2 * margin));
  const top = 56 + 20 * below.length;
  const height = top + shown.reduce((sum, part) => sum + part.height + 48, 0);
  sheet.width = width;
  sheet.height = height; // this clears the pen
  const { ink, paper } = colours();
  pen.fillStyle = paper;
  pen.fillRect(0, 0, width, height);
  pen.imageSmoothingEnabled = false;
  pen.fillStyle = ink;
  pen.font = "600 17px system-ui, sans-serif";
  pen.fillText(title, margin, 32);
  pen.font = TEXT;
  below.forEach((line, k) => {
    pen.fillText(line, margin, 56 + 20 * k);
  });
  let y = top;
  for (const part of shown) {
    pen.fillText(part.name, margin, y + 16);
    pen.drawImage(part.canvas, margin, y + 26, part.width, part.height);
    y += part.height + 48;
  }
  return sheet;
}
