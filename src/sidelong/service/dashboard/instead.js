// Off-policy estimates: what something else would have cost in the same rounds.

import { post } from "./api.js";
import { interval, scale } from "./charts.js";
import { context } from "./context.js";
import { $, h, show } from "./dom.js";
import { count, number, range, some } from "./format.js";

const MOST = 12;

/** Read "3: 0.5, 4: 0.5"; null if nothing was written. */
export function distribution(text) {
  if (!text.trim()) return null;
  const shares = {};
  for (const part of text.split(/[,;\n]+/).filter((piece) => piece.trim())) {
    const found = part.match(/^\s*(\d+)\s*[:=]\s*([0-9.eE+-]+)\s*$/);
    if (!found || !Number.isFinite(Number(found[2]))) throw new Error(`“${part.trim()}” is not an arm and a share, such as 3: 0.5.`);
    shares[found[1]] = (shares[found[1]] ?? 0) + Number(found[2]);
  }
  const sum = Object.values(shares).reduce((a, b) => a + b, 0);
  if (Math.abs(sum - 1) > 1e-6) throw new Error(`The shares must have the sum 1, not ${sum.toPrecision(4)}.`);
  return shares;
}

const possible = (low, high) => range(Math.max(low, 0), Math.min(high, 1)); // no cost is outside of [0, 1]

function row(name, found, played) {
  return h(
    "tr",
    {},
    h("td", { class: "label" }, name),
    h("td", {}, number(found.value, 4)),
    h("td", { class: "more" }, found.rejected ? "?" : possible(found.lower, found.upper)),
    h("td", { class: "more" }, count(Math.round(found.effective))),
    h(
      "td",
      { class: "plot" },
      interval({ value: found.value, low: found.lower, high: found.upper }, played),
    ),
  );
}

function table(result) {
  const percent = `${+(100 * result.confidence).toFixed(3)} %`;
  const named = (arm) => `arm ${arm.arm}${arm.label ? ` · ${arm.label}` : ""}`;
  return h(
    "table",
    {},
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ["instead", "cost per round"].map((title) => h("th", { scope: "col" }, title)),
        [`${percent} interval`, "effective rounds"].map((title) => h("th", { scope: "col", class: "more" }, title)),
        h("th", { class: "plot", scope: "col", "aria-label": "drawn, from 0 to 1" }, scale()),
      ),
    ),
    h(
      "tbody",
      {},
      h("tr", { class: "total" }, h("td", {}, "what was played"), h("td", {}, number(result.played, 4)), h("td", { class: "more", colspan: 2 }), h("td", {})),
      result.distributions.map((found) => row(found.name, found, result.played)),
      result.arms.map((found) => row(named(found), found, result.played)),
    ),
  );
}

function notes(result) {
  const regret = result.regret;
  return [
    `${some(result.rounds, "round")}, ${count(result.without_feedback)} without feedback. `,
    regret.rejected
      ? "The log contradicts what intervals assume: the limits of an arm cross. "
      : null,
    regret.value === null || regret.rejected
      ? null
      : `Regret against the arm whose interval ends lowest: ${number(regret.value, 1)} in all. The interval, whichever ` +
        `arm is best: ${range(regret.lower, regret.upper, 1)}. `,
    "An interval holds whatever the losses are and however rounds depend on each other, with any missing losses, if the logged " +
      "probabilities are right. Each interval holds by itself. The dotted line is what was paid.",
  ];
}

/** Make the form work for an experiment, whose name is asked for when it is needed. */
export function prepare(current) {
  $("instead-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const name = current();
    const button = event.submitter;
    $("mix-error").textContent = "";
    button.disabled = true;
    try {
      const content = {
        distribution: distribution($("mix").value),
        confidence: Number($("confidence").value),
        where: context($("where").value),
        limit: MOST,
      };
      const result = await post(`v1/experiments/${encodeURIComponent(name)}/evaluation`, content);
      if (name !== current()) return;
      const region = { class: "wide", tabindex: 0, role: "region", "aria-labelledby": "instead-title" };
      $("instead").replaceChildren(h("div", region, table(result)), h("p", { class: "caption" }, notes(result)));
      show($("instead"));
    } catch (error) {
      $("mix-error").textContent = error.message;
    } finally {
      button.disabled = false;
    }
  });
}

/** Forget what was shown for another experiment. */
export function clear() {
  show($("instead"), false);
  $("mix-error").textContent = "";
}
