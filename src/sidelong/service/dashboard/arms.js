// The table of arms.

import { interval, scale } from "./charts.js";
import { h } from "./dom.js";
import { count, number, percent, range } from "./format.js";

const COLUMNS = [
  ["arm", "arm"],
  [null, "label"],
  ["plays", "plays"],
  [null, "observed"],
  ["probability", "will play"],
  [null, "will observe"],
  ["mean", "cost"],
  [null, "95 % interval"],
];

const OF_ONE = new Set(["will play", "will observe"]); // each key has its own
const MORE = new Set(["observed", "will observe", "95 % interval"]); // a phone has no room for these; the interval is drawn too

/** Sort arms as the service does: by number, or most likely, cheapest, most played first; what is not known comes last. */
export function sorted(arms, by) {
  if (by === "arm") return [...arms].sort((a, b) => a.arm - b.arm);
  const sign = by === "mean" ? 1 : -1;
  const key = (arm) => (arm[by] === null ? Infinity : sign * arm[by]);
  return [...arms].sort((a, b) => (key(a) === key(b) ? a.arm - b.arm : key(a) < key(b) ? -1 : 1));
}

/** A table of some arms; `onSort` is called with the name of a column. Of an experiment with keys all keys are counted together. */
export function table(arms, sort, best, onSort, keyed) {
  const labelled = arms.some((arm) => arm.label);
  const columns = COLUMNS.filter(([, title]) => (labelled || title !== "label") && !(keyed && OF_ONE.has(title)));
  const head = columns.map(([by, title]) =>
    h(
      "th",
      { scope: "col", class: title === "label" ? title : MORE.has(title) ? "more" : null, "aria-sort": by === sort ? (by === "arm" || by === "mean" ? "ascending" : "descending") : null },
      by ? h("button", { type: "button", "data-sort": by, onclick: () => onSort(by) }, title) : title,
    ),
  );
  const body = arms.map((arm) =>
    h(
      "tr",
      { "data-arm": arm.arm },
      h("td", {}, arm.retired ? `${arm.arm} (retired)` : String(arm.arm)),
      labelled ? h("td", { class: "label" }, arm.label ?? "") : null,
      h("td", {}, count(arm.plays)),
      h("td", { class: "more" }, count(arm.observations)),
      keyed ? null : [h("td", {}, percent(arm.probability)), h("td", { class: "more" }, percent(arm.observe_probability))],
      h("td", {}, number(arm.mean)),
      h("td", { class: "more" }, arm.rejected ? "contradicted" : range(arm.low, arm.high)),
      h("td", { class: "plot" }, interval({ value: arm.mean, low: arm.low, high: arm.high }, best)),
    ),
  );
  return h(
    "table",
    {},
    h("thead", {}, h("tr", {}, head, h("th", { class: "plot", scope: "col", "aria-label": "drawn, from 0 to 1" }, scale()))),
    h("tbody", {}, body),
  );
}
