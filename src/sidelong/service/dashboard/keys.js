// The keys of an experiment that has some: what all of them cost, in one picture, and some of them by name.

import { get } from "./api.js";
import { interval, scale } from "./charts.js";
import { $, h, s, show, write } from "./dom.js";
import { count, number, some } from "./format.js";

const ROWS = 20;
const WIDTH = 400;
const HEIGHT = 90;
const MORE = new Set(["decided", "cheapest arm"]); // a phone has no room for these

let asked = 0; // the last request, so that an older reply does not take its place

/** Show the keys of an experiment, or nothing if it has none. */
export async function offer(address, found) {
  const has = found.keys !== null;
  show($("keys-panel"), has);
  show($("guarantee"), !has);
  show($("instead-panel"), !has);
  show($("costs-panel"), !has);
  show($("arms-hint"), !has);
  if (!has) return;
  const number = ++asked;
  const search = encodeURIComponent($("keys-search").value.trim());
  const page = await get(`${address}/keys?limit=${ROWS}&sort=${$("keys-sort").value}&search=${search}`);
  if (number !== asked) return;
  write($("keys-hint"), said(page));
  $("keys-costs").replaceChildren(page.distribution.keys ? bars(page.distribution.bins) : "");
  $("keys").replaceChildren(table(page.items, found.labels));
}

function said({ total, items, distribution: { keys, mean, quantiles } }) {
  const found = `${some(total, "key")} found${total > items.length ? `, of which ${count(items.length)} are shown` : ""}.`;
  if (!keys) return `${found} Nothing was told yet.`;
  const [least, , half, , most] = quantiles;
  return `${found} A key costs ${number(mean, 3)} per told round in the mean; half of the keys cost at most ${number(half, 3)}, nine of ten from ${number(least, 3)} to ${number(most, 3)}.`;
}

function bars(bins) {
  const most = Math.max(...bins);
  const width = WIDTH / bins.length;
  return s(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT + 16}`, class: "costs", role: "img", "aria-label": "How many keys cost how much, from 0 to 1" },
    bins.map((n, k) =>
      s(
        "rect",
        { x: k * width + 1, y: HEIGHT - (HEIGHT * n) / most, width: width - 2, height: (HEIGHT * n) / most },
        s("title", {}, `${some(n, "key")} from ${(k / bins.length).toFixed(2)} to ${((k + 1) / bins.length).toFixed(2)}`),
      ),
    ),
    [0, 0.5, 1].map((at) =>
      s("text", { x: at * WIDTH, y: HEIGHT + 13, "text-anchor": at === 0 ? "start" : at === 1 ? "end" : "middle" }, String(at)),
    ),
  );
}

function table(items, labels) {
  const heads = ["key", "decided", "told", "cheapest arm", "cost"].map((title) => h("th", { scope: "col", class: MORE.has(title) ? "more" : null }, title));
  const plot = h("th", { class: "plot", scope: "col", "aria-label": "drawn, from 0 to 1" }, scale());
  const rows = items.map(({ key, decided, told, best, cost }) =>
    h(
      "tr",
      { "data-key": key },
      h("td", { class: "label" }, String(key)),
      h("td", { class: "more" }, count(decided)),
      h("td", {}, count(told)),
      h("td", { class: "more" }, best === null ? "–" : labels?.[best] ?? `arm ${best}`),
      h("td", {}, number(cost, 3)),
      h("td", { class: "plot" }, cost === null ? "" : interval({ value: cost })),
    ),
  );
  return h("table", {}, h("thead", {}, h("tr", {}, heads, plot)), h("tbody", {}, rows));
}

/** Look anew whenever the search or the order changes. */
export function prepare(again) {
  $("keys-form").addEventListener("submit", (event) => event.preventDefault());
  $("keys-search").addEventListener("input", again);
  $("keys-sort").addEventListener("change", again);
}
