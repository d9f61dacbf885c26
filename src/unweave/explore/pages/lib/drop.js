// A run's folder or tables of results, dropped onto the page or chosen: they are sent to the server, which opens them.

import { make } from "./elements.js";
import { askJson, sendBlob } from "./source.js";

const RUN_FILES = ["spec.json", "result.json", "scores.json", "weights.safetensors"];
const isTable = (name) => /\.csv$/i.test(name) && !/_aggregated\.csv$/i.test(name);
const LOCAL = ["127.0.0.1", "localhost", "[::1]"]; // elsewhere the server refuses files

// All entries of a dropped folder; a browser gives at most 100 at once.
async function entriesOf(folder) {
  const reader = folder.createReader();
  const entries = [];
  while (true) {
    const some = await new Promise((resolve, fail) => reader.readEntries(resolve, fail));
    if (!some.length) return entries;
    entries.push(...some);
  }
}

const fileOf = (entry) => new Promise((resolve, fail) => entry.file(resolve, fail));

// What was dropped as { name, files }; folders are read one level deep.
async function droppedFiles(items) {
  const dropped = [...items].map((item) => item.webkitGetAsEntry()); // all at once: the list is empty later
  const plain = [...items].map((item) => item.getAsFile());
  const inside = await Promise.all(
    dropped.map(async (entry, i) => {
      if (!entry?.isDirectory) return [plain[i]];
      return Promise.all((await entriesOf(entry)).filter((part) => part.isFile).map(fileOf));
    }),
  );
  const names = dropped.map((entry, i) => entry?.name ?? plain[i]?.name);
  return { name: names.join(" and "), files: inside.flat().filter(Boolean) };
}

// The files that the server knows, as one body: a line that lists them, then their contents.
function bodyOf({ name, files }) {
  const isRun = files.some((file) => file.name === "spec.json");
  const known = files.filter((file) => (isRun ? RUN_FILES.includes(file.name) : isTable(file.name)));
  const header = { name, files: known.map((file) => [file.name, file.size]) };
  return new Blob([`${JSON.stringify(header)}\n`, ...known]);
}

// Accepts files anywhere on the page; `opened` is called after the server has opened them, `failed` with an error.
export function acceptFiles(opened, failed) {
  if (!LOCAL.includes(location.hostname)) return;
  const open = async (chosen) => {
    try {
      await sendBlob("/api/drop", bodyOf(await chosen));
      opened();
    } catch (error) {
      failed(error);
    }
  };
  const mark = (on) => document.body.classList.toggle("dropping", on);
  const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
  addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    mark(true);
  });
  addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) mark(false);
  });
  addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    mark(false);
    open(droppedFiles(event.dataTransfer.items));
  });
  const choose = (text, properties) => {
    const input = make("input", { type: "file", hidden: true, ...properties });
    input.addEventListener("change", () => {
      const files = [...input.files];
      const name = files[0]?.webkitRelativePath.split("/")[0] || files.map((file) => file.name).join(" and ");
      if (files.length) open({ name, files });
      input.value = "";
    });
    return [make("button", { type: "button", textContent: text, onclick: () => input.click() }), input];
  };
  document.querySelector("header.top").append(
    make(
      "details",
      { className: "open-other" },
      make("summary", { textContent: "Open" }),
      make("p", {
        className: "hint",
        textContent:
          "Drop a run’s folder or CSV tables of results onto the page, or choose them. They stay on this machine.",
      }),
      ...choose("A run’s folder", { webkitdirectory: true }),
      ...choose("CSV tables", { accept: ".csv", multiple: true }),
    ),
  );
}

// A button that goes back from what was dropped to the subject before; `done` is called afterwards.
export function backButton(subject, done) {
  return make("button", {
    type: "button",
    className: "back",
    textContent: `← back to ${subject.before}`,
    onclick: async () => {
      await askJson("/api/back", {});
      done();
    },
  });
}
