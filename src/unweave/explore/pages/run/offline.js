// An exported page: the run and its decoder are inside of it, and nothing is asked for.

import { make } from "../lib/elements.js";
import { skipTo } from "../lib/focus.js";
import { decoderOf } from "./decoder.js";
import { showRun } from "./run.js";

const PATIENCE = 25; // milliseconds of decoding before the page may answer the reader again
const STEPS = [5, 7]; // images further for the next sheet of swaps, so that all sheets differ; 7 for 5 and 10 images

const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

function offlineSource({ run, decoder, weights, examples, interventions }) {
  const [channels, height, width] = run.shape;
  const decodeOne = decoderOf(decoder, new Float32Array(bytesOf(weights).buffer));
  const batch = (bytes) => ({
    n: bytes.length / (channels * height * width),
    channels,
    height,
    width,
    bytes,
  });
  const shown = examples.map(({ image, code }) => ({ images: batch(bytesOf(image)), code }));
  // Levels of a code need its encoder, which this page does not have.
  const swap = run.swap?.content && shown.length ? { ...run.swap, sheets: shown.length } : null;
  const decode = async (codes) => {
    const bytes = new Uint8Array(codes.length * channels * height * width);
    let began = performance.now();
    for (const [i, code] of codes.entries()) {
      if (performance.now() - began > PATIENCE) {
        await new Promise((resolve) => setTimeout(resolve));
        began = performance.now();
      }
      bytes.set(decodeOne(code), i * channels * height * width);
    }
    return batch(bytes);
  };
  return {
    decode,
    describe: async () => ({ ...run, swap, examples: shown.length ? shown : null }),
    intervene: async (_factors, factor) => interventions[factor],
    swap: async (sheet) => {
      const { content, rows, columns } = run.swap;
      const step = STEPS[shown.length % STEPS[0] ? 0 : 1];
      const chosen = Array.from(
        { length: rows + columns },
        (_, i) => shown[(step * sheet + i) % shown.length],
      );
      const styles = chosen.slice(rows);
      const codes = chosen
        .slice(0, rows)
        .flatMap((a) => styles.map((b) => [...a.code.slice(0, content), ...b.code.slice(content)]));
      const parts = [...chosen.map(({ images }) => images), await decode(codes)];
      return batch(new Uint8Array(await new Blob(parts.map(({ bytes }) => bytes)).arrayBuffer()));
    },
  };
}

const main = document.getElementById("main");
skipTo(main);
try {
  const record = JSON.parse(document.getElementById("record").textContent);
  await showRun(main, offlineSource(record));
} catch (error) {
  main.replaceChildren(
    make("p", { className: "message", role: "alert", textContent: `This page is damaged: ${error.message}` }),
  );
}
