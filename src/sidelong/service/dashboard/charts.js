// Small charts in SVG: what happened in each minute, and estimates with their intervals.

import { h, s } from "./dom.js";
import { amount, clock, count, percent, short, some } from "./format.js";

const W = 440;
const H = 150;
const FOOT = 128;
const LEFT = 34;

/** Decisions and feedback in each of the last minutes. */
export function rates(data) {
  const n = data.minutes.length;
  const top = nice(Math.max(1, ...data.decided, ...data.told, ...data.expired));
  const x = (i) => LEFT + (i * (W - LEFT)) / Math.max(n, 1);
  const y = (value) => FOOT - (value / top) * (FOOT - 14);
  const steps = (values) => values.map((value, i) => `V${y(value).toFixed(1)}H${x(i + 1).toFixed(1)}`).join("");
  const line = (values) => `M${LEFT} ${y(values[0]).toFixed(1)}${steps(values)}`;
  const sum = (values) => values.reduce((a, b) => a + b, 0);
  const says =
    `Last ${some(n, "minute")}: ${some(sum(data.decided), "decision")}, ${count(sum(data.told))} told, ` +
    `${count(sum(data.expired))} expired.`;
  const picture = s(
    "svg",
    { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": says },
    [0, top / 2, top].map((value) => [
      s("line", { class: "axis", x1: LEFT, x2: W, y1: y(value), y2: y(value) }),
      Number.isInteger(value) ? s("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, short(value)) : null,
    ]),
    n ? s("path", { class: "decided-area", d: `M${LEFT} ${FOOT}${steps(data.decided)}V${FOOT}z` }) : null,
    n ? s("path", { class: "decided-line", d: line(data.decided) }) : null,
    n ? s("path", { class: "told-line", d: line(data.told) }) : null,
    data.expired.map((value, i) =>
      value
        ? s("rect", { class: "expired-bar", x: x(i), y: y(value), width: Math.max(2, x(i + 1) - x(i) - 1), height: FOOT - y(value) })
        : null,
    ),
    s("text", { x: LEFT, y: H - 6 }, n ? clock(data.minutes[0]).slice(0, 5) : ""),
    s("text", { x: W, y: H - 6, "text-anchor": "end" }, "now"),
  );
  const key = (name, text) =>
    h("li", {}, s("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, s("path", { class: name, d: "M1 8H15" })), text);
  const last = (values) => count(values.at(-1) ?? 0);
  return [
    picture,
    h(
      "ul",
      { class: "legend" },
      key("decided-line", `${last(data.decided)} decided`),
      key("told-line", `${last(data.told)} told`),
      sum(data.expired) ? key("expired-line", `${last(data.expired)} expired`) : null,
      h("li", {}, "in this minute"),
    ),
  ];
}

/** The mean loss of the rounds that were told in each minute, and beside it that of the holdout. */
export function costs(data, lift) {
  const n = data.minutes.length;
  const x = (i) => LEFT + ((i + 0.5) * (W - LEFT)) / Math.max(n, 1);
  const most = Math.max(...data.cost, ...data.held_cost) || 1; // where nothing is known, all of it
  const top = [0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1].find((value) => value >= most);
  const y = (value) => FOOT - (value / top) * (FOOT - 14);
  const points = (values) => values.map((value, i) => (value === null ? null : [x(i), y(value)])).filter(Boolean);
  const line = (values) => points(values).map(([a, b], i) => `${i ? "L" : "M"}${a.toFixed(1)} ${b.toFixed(1)}`).join("");
  const dots = (name, values) => points(values).map(([cx, cy]) => s("circle", { class: name, cx, cy, r: 2 }));
  const mean = (values) => {
    const known = values.filter((value) => value !== null);
    return known.length ? (known.reduce((a, b) => a + b, 0) / known.length).toFixed(2) : "–";
  };
  const says = `Mean loss in each of the last ${some(n, "minute")}: the learner's ${mean(data.cost)}${lift ? `, the holdout's ${mean(data.held_cost)}` : ""}.`;
  const key = (name, text) =>
    h("li", {}, s("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, s("path", { class: name, d: "M1 8H15" })), text);
  return [
    s(
      "svg",
      { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": says },
      [0, top / 2, top].map((value) => [
        s("line", { class: "axis", x1: LEFT, x2: W, y1: y(value), y2: y(value) }),
        s("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, String(Number(value.toFixed(3)))),
      ]),
      s("path", { class: "decided-line", d: line(data.cost) }),
      dots("decided-dot", data.cost),
      lift ? s("path", { class: "held-line", d: line(data.held_cost) }) : null,
      lift ? dots("held-dot", data.held_cost) : null,
      s("text", { x: LEFT, y: H - 6 }, n ? clock(data.minutes[0]).slice(0, 5) : ""),
      s("text", { x: W, y: H - 6, "text-anchor": "end" }, "now"),
    ),
    h("ul", { class: "legend" }, key("decided-line", "the learner"), lift ? key("held-line", `the holdout, ${lift.label ?? `arm ${lift.arm}`}`) : null),
  ];
}

/** How far each adviser was followed at the end of each minute, and what is left for the learner itself; the last known share goes on. */
export function trust(data, keys) {
  const names = Object.keys(data.trust);
  const n = data.minutes.length;
  const x = (i) => LEFT + ((i + 0.5) * (W - LEFT)) / Math.max(n, 1);
  const y = (share) => FOOT - share * (FOOT - 14);
  const known = (values) => values.map((value, i) => (value === null ? null : [x(i), y(value)])).filter(Boolean);
  const line = (values) => known(values).map(([a, b], i) => `${i ? "L" : "M"}${a.toFixed(1)} ${b.toFixed(1)}`).join("");
  const last = (values) => values.findLast((value) => value !== null) ?? null;
  const now = names.map((name) => [name, last(data.trust[name])]).filter(([, share]) => share !== null);
  const own = 1 - now.reduce((sum, [, share]) => sum + share, 0);
  const told = [...now, ["the learner itself", own]].map(([name, share]) => `${name} ${percent(share)}`);
  const mine = names.length ? data.minutes.map((_, i) => (data.trust[names[0]][i] === null ? null : 1 - names.reduce((sum, name) => sum + (data.trust[name][i] ?? 0), 0))) : [];
  const all = [...names.map((name, k) => [`trust-line trust-${k % 6}`, data.trust[name]]), ["trust-line own", mine]];
  const key = (name, text) =>
    h("li", {}, s("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, s("path", { class: name, d: "M1 8H15" })), text);
  return [
    s(
      "svg",
      { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `Followed now: ${told.join(", ")}.` },
      [0, 0.5, 1].map((share) => [
        s("line", { class: "axis", x1: LEFT, x2: W, y1: y(share), y2: y(share) }),
        s("text", { x: LEFT - 6, y: y(share) + 4, "text-anchor": "end" }, String(share)),
      ]),
      all.map(([name, values]) => [s("path", { class: name, d: line(values) }), known(values).map(([cx, cy]) => s("circle", { class: name.replace("line", "dot"), cx, cy, r: 2 }))]),
      s("text", { x: LEFT, y: H - 6 }, n ? clock(data.minutes[0]).slice(0, 5) : ""),
      s("text", { x: W, y: H - 6, "text-anchor": "end" }, "now"),
    ),
    h("ul", { class: "legend" }, all.map(([name], k) => key(name, told[k] ?? names[k]))),
    keys === null ? "" : h("p", { class: "caption" }, "Each key trusts on its own; this is the mean of the keys that were told last in each minute."),
  ];
}

/** Whether more was spent than may be: above the overspend or, where there is none, a tenth above the line. */
export const tooMuch = ({ spent, line, overspend }) => spent - line > (overspend ?? 0.1 * line);

/** What decisions have cost, as a bar, beside the line that the ceiling draws; behind it what is reserved for those that wait. */
export function spending({ ceiling, over, decisions, spent, line, reserved, overspend, price, aside_spent: aside, aside_decisions: others }) {
  const most = 1.1 * Math.max(line, spent + reserved, Number.MIN_VALUE);
  const x = (value) => (value / most) * W;
  const gap = Math.abs(spent - line);
  const where = spent > line ? "above" : "below";
  const says = `${amount(spent)} was spent on ${some(decisions, "decision")}, ${amount(gap)} ${where} the line of ${amount(line)}.`;
  const limit = overspend === null ? "on average" : `and by at most ${amount(overspend)} in all above that${over === "key" ? "" : ", for all keys together"}`;
  const more = [
    `A decision may cost ${amount(ceiling)}, ${limit}.`,
    reserved ? `${amount(reserved)} is reserved for decisions that wait.` : null,
    price === null ? null : `Cost is ${percent(price)} of what the learner is told.`,
    others ? `${some(others, "decision")} that the learner did not make cost ${amount(aside)}, and are not counted.` : null,
  ];
  return [
    s(
      "svg",
      { viewBox: `0 0 ${W} 56`, role: "img", "aria-label": says },
      s("rect", { class: "reserved-bar", x: x(spent), y: 12, width: x(reserved), height: 22 }),
      s("rect", { class: tooMuch({ spent, line, overspend }) ? "spent-bar over" : "spent-bar", x: 0, y: 12, width: x(spent), height: 22 }),
      s("line", { class: "spending-line", x1: x(line), x2: x(line), y1: 4, y2: 42 }),
      s("text", { x: x(line), y: 54, "text-anchor": x(line) > W / 2 ? "end" : "start" }, `the line: ${amount(line)}`),
    ),
    h("p", {}, says),
    h("p", { class: "caption" }, more.filter(Boolean).join(" ")),
  ];
}

/** The smallest of 1, 2, 4, 10, 20, 40, 100, ... that is large enough. */
function nice(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 10].map((k) => k * power).find((k) => k >= value);
}

const place = (value) => `${(Math.min(1, Math.max(0, value)) * 95 + 2.5).toFixed(2)}%`;

/** The scale above a column of intervals: losses from 0 to 1. */
export function scale() {
  const text = (value) => s("text", { x: place(value), y: 18, "text-anchor": "middle" }, String(value));
  return s("svg", { "aria-hidden": "true" }, [0, 0.5, 1].map(text));
}

/** An estimate as a dot, and a line for its interval. */
export function interval({ value, low, high }, line = null) {
  const known = (number) => number !== null && number !== undefined;
  const upright = (name, at) => s("line", { class: name, x1: place(at), x2: place(at), y1: 0, y2: 22 });
  return s(
    "svg",
    { "aria-hidden": "true" },
    [0, 0.5, 1].map((at) => upright("rule", at)),
    known(line) ? upright("mean", line) : null,
    known(low) ? s("line", { class: "thin", x1: place(low), x2: place(high), y1: 11, y2: 11 }) : null,
    known(value) ? s("circle", { class: "dot", cx: place(value), cy: 11, r: 3.5 }) : null,
  );
}
