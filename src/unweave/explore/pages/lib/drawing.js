// Pixels: images of the decoder on a canvas, and canvases as PNG files.

export function colours() {
  const style = getComputedStyle(document.documentElement);
  const named = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    ink: named("ink"),
    dim: named("dim"),
    paper: named("paper"),
    accent: named("accent"),
    line: named("line"),
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

// Canvases one below the other, each under its title; small ones are enlarged without smoothing.
export function stacked(title, parts) {
  const margin = 16;
  const shown = parts.map(({ name, canvas }) => {
    const scale = canvas.width < 200 ? Math.round(256 / canvas.width) : 1;
    return { name, canvas, width: canvas.width * scale, height: canvas.height * scale };
  });
  const width = Math.max(640, ...shown.map((part) => part.width)) + 2 * margin;
  const height = 56 + shown.reduce((sum, part) => sum + part.height + 48, 0);
  const sheet = document.createElement("canvas");
  sheet.width = width;
  sheet.height = height;
  const pen = sheet.getContext("2d");
  const { ink, paper } = colours();
  pen.fillStyle = paper;
  pen.fillRect(0, 0, width, height);
  pen.imageSmoothingEnabled = false;
  pen.fillStyle = ink;
  pen.font = "600 17px system-ui, sans-serif";
  pen.fillText(title, margin, 32);
  let y = 56;
  for (const part of shown) {
    pen.font = "14px system-ui, sans-serif";
    pen.fillText(part.name, margin, y + 16);
    pen.drawImage(part.canvas, margin, y + 26, part.width, part.height);
    y += part.height + 48;
  }
  return sheet;
}
