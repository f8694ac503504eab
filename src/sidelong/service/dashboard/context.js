// What the learner predicts for a context that is typed in.

import { post } from "./api.js";
import { interval, scale } from "./charts.js";
import { $, h, show, write } from "./dom.js";
import { number, some } from "./format.js";

const MOST = 12;

/** Read "weekday: Monday, temperature: 1.5"; null if nothing was written. */
export function context(text) {
  if (!text.trim()) return null;
  const found = {};
  for (const part of text.split(/[,;\n]+/).filter((piece) => piece.trim())) {
    const [name, ...rest] = part.split(/[:=]/);
    const value = rest.join(":").trim();
    if (!name.trim() || !value) throw new Error(`“${part.trim()}” is not a name and a value, such as weekday: Monday.`);
    found[name.trim()] = read(value);
  }
  return found;
}

function read(value) {
  if (value === "true" || value === "false") return value === "true";
  return Number.isFinite(Number(value)) ? Number(value) : value;
}

function table(found) {
  const heads = ["arm", "predicted cost"].map((title) => h("th", { scope: "col" }, title));
  const plot = h("th", { class: "plot", scope: "col", "aria-label": "drawn, from 0 to 1" }, scale());
  const rows = found.items.map(({ arm, label, loss }) =>
    h(
      "tr",
      { "data-arm": arm },
      h("td", { class: "label" }, label ?? `arm ${arm}`),
      h("td", {}, number(loss, 4)),
      h("td", { class: "plot" }, interval({ value: loss })),
    ),
  );
  return h("table", {}, h("thead", {}, h("tr", {}, heads, plot)), h("tbody", {}, rows));
}

/** Make the form work for an experiment, whose name is asked for when it is needed. */
export function prepare(current) {
  $("context-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const name = current();
    const button = event.submitter;
    $("context-error").textContent = "";
    button.disabled = true;
    try {
      const content = { context: context($("context").value) ?? {}, limit: MOST, ...keyed() };
      const found = await post(`v1/experiments/${encodeURIComponent(name)}/predictions`, content);
      if (name !== current()) return;
      const region = { class: "wide", tabindex: 0, role: "region", "aria-labelledby": "context-title" };
      const more = found.total > MOST ? `The ${MOST} cheapest of ${some(found.total, "arm")}, after` : "After";
      const after = `${more} ${some(found.round, "decision")}. An arm of which nothing was learned is predicted to cost 0.`;
      $("predictions").replaceChildren(h("div", region, table(found)), h("p", { class: "caption" }, after));
      show($("predictions"));
    } catch (error) {
      $("context-error").textContent = error.message;
    } finally {
      button.disabled = false;
    }
  });
}

/** Return the key that the predictions are for, if the experiment has keys. */
function keyed() {
  return $("context-key-field").hidden ? {} : { key: $("context-key").value.trim() };
}

/** Offer the form where the learner sees features, and name them. Where there are keys, it asks for one of them. */
export function offer(features, keys) {
  show($("context-panel"), features !== null);
  show($("context-key-field"), keys !== null);
  write($("features"), (features ?? []).join(", "));
}

/** Forget what was shown for another experiment. */
export function clear() {
  show($("context-panel"), false);
  show($("predictions"), false);
  $("context").value = $("context-key").value = "";
  $("context-error").textContent = "";
}
