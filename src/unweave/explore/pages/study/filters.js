// The filters of the study page: check boxes for words, ranges for numbers.

import { bothNames } from "../lib/names.js";
import { shortNumber } from "./axes.js";
import { make } from "./elements.js";
import { columnLabel, WORDS } from "./runs.js";

export function choice(study, names, chosen, changed, more = {}) {
  const options = names.map((name) =>
    make("option", { value: name, selected: name === chosen }, columnLabel(study, name)),
  );
  return make("select", { ...more, change: (event) => changed(event.target.value) }, ...options);
}

export function buildFilters(view, words) {
  const { study, state } = view;
  const free = () =>
    study.scoreNames.concat(study.settingNames).filter((name) => name !== "seed" && !(name in state.ranges));
  const adder = make(
    "label",
    {},
    "add",
    choice(
      study,
      ["", ...free()],
      "",
      (name) => {
        if (name) view.change({ ranges: { ...state.ranges, [name]: [null, null] } });
        showRanges(view);
      },
      { "data-add": "range" },
    ),
  );
  view.rangeNames = free;
  view.rangeAdder = adder.lastElementChild;
  showRanges(view);
  return [
    ...words.filter((name) => name !== "setting").map((name) => checkBoxes(view, name)),
    make("fieldset", { "data-filter": "setting" }, make("legend", {}, "setting"), settingList(view)),
    make("fieldset", { "data-filter": "seed" }, make("legend", {}, "seed"), rangeInputs(view, "seed")),
    make(
      "fieldset",
      { "data-filter": "ranges" },
      make("legend", {}, "ranges of scores"),
      view.rangeList,
      adder,
    ),
    make(
      "button",
      {
        type: "button",
        "data-key": "all",
        click: () => {
          view.change({ only: {}, ranges: {}, brush: null });
          view.rebuild();
          view.root.querySelector("[data-key=all]").focus();
        },
      },
      "Show all runs",
    ),
  ];
}

// Keep only some of the words of a kind; all of them is no filter.
export function keepOnly(view, name, kept) {
  const { study, state } = view;
  const rest = Object.fromEntries(Object.entries(state.only).filter(([other]) => other !== name));
  view.change({ only: kept.length < study.words[name].names.length ? { ...rest, [name]: kept } : rest });
}

function checkBoxes(view, name) {
  const checkedWords = () => inputs.filter((input) => input.checked).map((input) => input.value);
  const inputs = view.study.words[name].names.map((value) =>
    make("input", {
      type: "checkbox",
      value,
      checked: view.state.only[name]?.includes(value) ?? true,
      change: () => keepOnly(view, name, checkedWords()),
    }),
  );
  const labels = inputs.map((input) =>
    make("label", {}, input, make("span", {}, ...bothNames(view.study.labels, name, input.value))),
  );
  return make("fieldset", { "data-filter": name }, make("legend", {}, WORDS[name]), ...labels);
}

function settingList(view) {
  const { names } = view.study.words.setting;
  const options = names.map((value) => {
    const selected = view.state.only.setting?.includes(value) ?? false;
    return make("option", { value, title: value, selected }, value);
  });
  const change = (event) => {
    const kept = [...event.target.selectedOptions].map((option) => option.value);
    keepOnly(view, "setting", kept.length ? kept : names);
  };
  const label = "settings; none chosen means all";
  const size = String(Math.min(names.length, 6));
  return make("select", { multiple: true, size, "aria-label": label, change }, ...options);
}

function showRanges(view) {
  const names = Object.keys(view.state.ranges).filter((name) => name !== "seed");
  view.rangeList.replaceChildren(
    ...names.map((name) =>
      rangeInputs(view, name, () => {
        const { [name]: _, ...rest } = view.state.ranges;
        view.change({ ranges: rest });
        showRanges(view);
        view.rangeAdder.focus(); // the button that had the focus is gone
      }),
    ),
  );
  view.rangeAdder.replaceChildren(
    ...["", ...view.rangeNames()].map((name) =>
      make("option", { value: name }, columnLabel(view.study, name) || "choose…"),
    ),
  );
}

const valueOrNone = (input) => (input.value === "" ? null : Number(input.value));

function rangeInputs(view, name, remove = null) {
  const values = view.study.numbers[name].filter(Number.isFinite);
  const ends = [
    values.reduce((a, b) => Math.min(a, b), Infinity),
    values.reduce((a, b) => Math.max(a, b), -Infinity),
  ];
  const given = view.state.ranges[name] ?? [null, null];
  const inputs = ["from", "to"].map((end, k) =>
    make("input", {
      type: "number",
      step: "any",
      placeholder: shortNumber(ends[k]),
      "aria-label": `${columnLabel(view.study, name)} ${end}`,
      value: given[k] === null ? "" : String(given[k]),
      input: () => view.change({ ranges: { ...view.state.ranges, [name]: inputs.map(valueOrNone) } }),
    }),
  );
  const button = remove
    ? [
        make(
          "button",
          {
            type: "button",
            "aria-label": `remove the range of ${columnLabel(view.study, name)}`,
            click: remove,
          },
          "×",
        ),
      ]
    : [];
  return make(
    "div",
    { class: "study-range" },
    ...(remove ? [make("span", {}, columnLabel(view.study, name))] : []),
    ...inputs,
    ...button,
  );
}
