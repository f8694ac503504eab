// The small parts of the page about an experiment: what it is, whether its guarantee holds, its counts, the latest events.

import { tooMuch } from "./charts.js";
import { $, h, s, write } from "./dom.js";
import { ago, amount, clock, count, duration, number, percent, range, some } from "./format.js";

export const LATEST = 9; // events that are shown

/** What the experiment is. */
export function title(found) {
  write($("name"), found.name);
  write($("description"), found.description);
  const given = Object.entries(found.options).map(([name, value]) => `${name} ${value}`);
  const waits = found.expire_after === null ? "decisions never expire" : `feedback within ${duration(found.expire_after)}`;
  const graph = `${found.graph.name ?? "a graph"} with ${some(found.graph.n_arms, "arm")}`;
  const known = [
    found.prior ? `began with a belief about ${some(found.prior.length, "arm")}` : null,
    found.logged ? `learned ${some(found.logged, "round")} of a log first` : null,
  ];
  const facts = [[found.learner, ...given].join(", "), graph, waits, seed(found.seed), ...known, `made ${ago(found.created_at)}`];
  write($("facts"), facts.filter(Boolean).join(" · "));
}

const seed = (value) => (Number.isSafeInteger(value) ? `seed ${value}` : "a seed above 2^53"); // more digits than JavaScript has

/** What is wrong: nothing, most of the time. */
export function alarms(found) {
  const place = $("alarms");
  if (place.dataset.said === found.join("\n")) return; // not announced again
  place.dataset.said = found.join("\n");
  place.hidden = found.length === 0;
  place.replaceChildren(
    s("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, s("path", { d: "M12 4l9 16H3zM12 10v4.5M12 17.4v.1" })),
    h("div", {}, h("strong", {}, "Something is wrong."), h("ul", {}, found.map((line) => h("li", {}, line)))),
  );
}

/** Whether the guarantee holds, which half, what it promises, and why not more. One that says nothing yet is no good news. */
export function guarantee(found, round) {
  const place = $("guarantee");
  const { delay, reasons, notes, worth_from: worth } = found;
  const late = delay.late ? ", with the delay it has had" : "";
  const holds = found.holds && worth !== null && worth <= round;
  const yet = found.holds && !holds ? "A theorem covers this, and says little so far." : "No theorem covers what happened, which need not be a problem.";
  const text = holds ? `The guarantee holds${late}.` : yet;
  const lines = [...(found.holds ? promised(found) : []), ...reasons, ...notes];
  if (place.dataset.said === [text, ...lines].join("\n")) return; // not announced again
  place.dataset.said = [text, ...lines].join("\n");
  place.dataset.holds = found.holds;
  place.dataset.promises = holds; // more than that random play may lose as much
  const sign = holds ? "M5 12.5l4.5 4.5L19 7.5" : "M12 3a9 9 0 1 0 0 18a9 9 0 1 0 0-18M12 11v5.5M12 7.6v.1";
  place.replaceChildren(
    s("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, s("path", { d: sign })),
    h("div", {}, h("strong", {}, text), lines.length ? h("ul", {}, lines.map((line) => h("li", {}, line))) : null),
  );
}

function promised({ proved, worth_from: worth }) {
  const worlds = { adversarial: "against any adversary", stochastic: "in a stochastic world" };
  const where = `It holds ${proved.map((half) => worlds[half]).join(" and ")}.`;
  const first = worth === null ? null : `From round ${count(worth)} on it promises less than random play may lose.`;
  return [where, first].filter(Boolean);
}

/** What people want to know first; then what became of decisions, the regret and the sample ratio check. */
export function numbers(found, trust) {
  $("answers").replaceChildren(...answers(found, trust).map(figure));
  $("numbers").replaceChildren(...figures(found).map(figure));
}

/** Which arm wins and how sure that is, what is saved, what is spent, whom it trusts, and whether anything is wrong. */
function answers(found, trust) {
  const { alarms: wrong, spending } = found;
  const well = wrong.length ? [some(wrong.length, "alarm"), "see above", true] : ["nothing", "no check has failed"];
  const shares = followed(found, trust);
  const more = [...(spending ? [spentOf(spending)] : []), ...(shares.length ? [trusted(shares, found.keys)] : [])];
  return [winner(found), gained(found), ...more, ["anything wrong?", ...well]];
}

/** The share of the learner's own choice that follows each adviser; of keys, the mean of those that were told last. */
function followed({ advisers: known }, trust) {
  if (known !== null) return known.map(({ name, trust: share }) => [name, share]);
  const last = Object.entries(trust).map(([name, shares]) => [name, shares.findLast((share) => share !== null) ?? null]);
  return last.filter(([, share]) => share !== null);
}

function trusted(shares, keys) {
  const own = ["itself", 1 - shares.reduce((sum, [, share]) => sum + share, 0)];
  const [name, share] = [...shares, own].reduce((a, b) => (b[1] > a[1] ? b : a));
  return ["trusts", name, `${percent(share)} of its choice${keys === null ? "" : ", in the mean of the keys that were told last"}`];
}

/** A mean loss in the unit of the scale, if there is one. */
const cost = (loss, scale, digits = 3) => (scale && loss !== null ? amount(scale.best + loss * (scale.worst - scale.best)) : number(loss, digits));

function winner({ best, arms, keys, scale }) {
  if (keys === null) {
    const sure = best && `${scale && scale.best > scale.worst ? "score" : "cost"} ${cost(best.mean, scale, 2)} per round, ${percent(best.chance)} sure`;
    return ["cheapest so far", best === null ? "–" : called(best), best === null ? "nothing was told yet" : sure];
  }
  const known = arms.items.filter((arm) => arm.plays > 0);
  const most = known.reduce((a, b) => (b.plays > (a?.plays ?? -1) ? b : a), null);
  return ["most played", most === null ? "–" : called(most), most === null ? "nothing was told yet" : `over ${some(keys, "key")}, each of which has its own best arm`];
}

/** What is saved: in money where there is a scale, per round else. Without a holdout nobody can say. */
function gained({ lift, amounts }) {
  if (lift === null) return ["saved", "–", "not known without a holdout: a small share of rounds that follows what was done before"];
  if (lift.estimate === null) return ["saved", "–", "nothing was told yet"];
  const beside = `compared with ${called(lift)}`;
  if (!amounts?.saved) return ["saved", number(lift.estimate, 3), `per round, ${range(lift.low, lift.high, 2)}, ${beside}`];
  const { estimate, low, high } = amounts.saved;
  return ["saved", amount(estimate), `${amount(low)} to ${amount(high)} in all, ${beside}; ${amount(amounts.saved_per_round.estimate)} per round`];
}

function spentOf(spending) {
  const { spent, line } = spending;
  const share = line ? `${percent(Math.abs(spent / line - 1))} ${spent > line ? "above" : "below"} the line` : "nothing was told yet";
  return ["spent", amount(spent), share, tooMuch(spending)];
}

function figures(found) {
  if (found.keys === null) return checked(found);
  return [["keys", count(found.keys)], ...counted(found.counts), ...paid(found), regretted(found, ", one for all keys")];
}

function counted(counts) {
  const late = counts.late ? `${count(counts.late)} of them told, too late` : null;
  return [
    ["decided", count(counts.decided)],
    ["told", count(counts.told)],
    ["outstanding", count(counts.outstanding)],
    ["expired", count(counts.expired), late],
    ["cancelled", count(counts.cancelled)],
  ];
}

/** What was paid and saved in the unit of the scale, if there is one. */
function paid({ scale, amounts }) {
  if (amounts === null) return [];
  const name = scale.worst > scale.best ? "cost in all" : "scored in all";
  const mean = amounts.rounds ? `${amount(amounts.per_round)} per round, in ${some(amounts.rounds, "round")}` : "nothing was told yet";
  return [[name, amounts.rounds ? amount(amounts.total) : "–", mean]];
}

/** What was lost beyond the best arm; `which` says more of that arm. */
function regretted({ counts, regret, amounts, scale }, which = "") {
  const unknown = counts.told ? "cannot be estimated from this feedback" : "not known yet";
  const scaled = amounts?.regret;
  const written = (value) => amount(Math.abs(value) < 1e-9 * Math.abs(scale.worst - scale.best) ? 0 : value); // no error of rounding
  const limits = scaled && scaled.low !== null ? `${written(scaled.low)} to ${written(scaled.high)}` : range(regret.low, regret.high, 1);
  const known = regret.estimate === null ? unknown : `${limits}, against the best arm${which}`;
  return ["regret", scaled ? written(scaled.estimate) : number(regret.estimate, 1), regret.rejected ? CONTRADICTED : known, regret.rejected];
}

function checked(found) {
  const { state, arms, counts, guarantee, certificate, world, sample_ratio: ratio } = found;
  const check =
    ratio.p_value === null ? ["–", ratio.unknown] : [ratio.ok ? "fine" : "off", `p = ${probability(ratio.p_value)}`];
  const next = arms.items.reduce((most, arm) => ((arm.probability ?? 0) > (most?.probability ?? 0) ? arm : most), null);
  return [
    [state === "running" ? "plays next" : "would play", next === null ? "–" : called(next), next === null ? "not known beforehand" : `with a chance of ${percent(next.probability)}`],
    ...counted(counts),
    ...(found.lift === null ? [] : [["the holdout", count(found.lift.held), `rounds, ${percent(found.lift.share)} of all: ${cost(found.lift.held_cost, found.scale)} per round, and ${cost(found.lift.learner_cost, found.scale)} for the learner`]]),
    ...paid(found),
    regretted(found),
    [
      "bound on regret",
      number(guarantee.bound, 0),
      guarantee.bound === null ? `${guarantee.holds ? "the theorem gives no number" : "none is known for this learner"} with this feedback` : `in the mean; random play may lose ${number(guarantee.random, 0)}`,
    ],
    ["sample ratio", ...check, ratio.p_value !== null && !ratio.ok],
    ...(certificate === null ? [] : [["lost at most", number(certificate.bound, 1), certified(certificate)]]),
    ["the world", world.turned ? "has turned" : "as before", world.turned ? world.said : null, world.turned],
  ];
}

const certified = (found) => [`beyond any arm, ${percent(found.confidence)} sure at all times at once, and most beyond ${called(found)}.`, found.why].filter(Boolean).join(" ");

// Limits of some arm cross: see docs/evaluate.md.
const CONTRADICTED = "no interval: what was told contradicts the probabilities of the draws, at the level of 5 %";

const called = ({ arm, label }) => label ?? `arm ${arm}`;

const probability = (p) => (p < 0.001 ? p.toExponential(1) : p.toFixed(3));

/** What the advice of each would have lost per round, beside what was paid in these rounds. */
export function advisers(found) {
  const heads = ["adviser", "rounds", "would have lost", "was paid"].map((title) => h("th", { scope: "col" }, title));
  const rows = found.map((row) =>
    h(
      "tr",
      { "data-adviser": row.name },
      h("td", { class: "label" }, row.name, h("small", {}, row.verdict)),
      h("td", {}, count(row.rounds)),
      h("td", {}, row.loss === null ? "–" : `${number(row.loss, 3)} (${range(row.low, row.high, 2)})`),
      h("td", {}, number(row.paid, 3)),
    ),
  );
  const region = { class: "wide", tabindex: 0, role: "region", "aria-labelledby": "trust-title" };
  return h("div", region, h("table", {}, h("thead", {}, h("tr", {}, heads)), h("tbody", {}, rows)));
}

function figure([name, value, note, alarm]) {
  return h(
    "div",
    { "data-figure": name, "data-alarm": alarm ? "true" : null },
    h("dt", {}, name),
    h("dd", {}, value, note ? h("small", {}, note) : null),
  );
}

/** Put an event on top of the latest, with the arm as it is called. */
export function latest(event, labels) {
  const words = { created: "made", decided: "decided", told: "told", cancelled: "cancelled", expired: "expired", late: "told late", changed: "changed", played: "frozen", held: "holdout", fallback: "fallback", defaulted: "default", overridden: "overridden", reported: "reported", repeated: "asked again" };
  const what = event.arm === null || event.arm === undefined ? "" : labels?.[event.arm] ?? `arm ${event.arm}`;
  const line = h(
    "li",
    { class: "fresh", "data-kind": event.kind, "data-sequence": event.sequence },
    h("b", {}, words[event.kind] ?? event.kind),
    h("span", {}, [event.round ? `round ${count(event.round)}` : "", what].filter(Boolean).join(", ")),
    h("time", { datetime: event.at }, clock(event.at)),
  );
  $("latest").prepend(line);
  while ($("latest").childElementCount > LATEST) $("latest").lastElementChild.remove();
}
