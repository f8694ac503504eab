// The page: which experiment is shown, and keeping it up to date.

import * as arms from "./arms.js";
import { Refusal, follow, get, token } from "./api.js";
import { rates } from "./charts.js";
import * as create from "./create.js";
import { $, h, s, show, write } from "./dom.js";
import { ago, clock, count, duration, number, range, some } from "./format.js";
import { draw } from "./graph.js";
import * as instead from "./instead.js";

const MOST_AT_ONCE = 1000; // arms that one request may ask for
const ROWS = 20;
const LATEST = 9;

let access = null; // what the token may do
let shown = null; // the experiment on the page

const address = (name) => `v1/experiments/${encodeURIComponent(name)}`;
const wanted = () => decodeURIComponent(location.hash.replace(/^#\/?/, ""));

// Who may see this

async function enter() {
  access = await get("v1/access");
  show($("token-form"), false);
  show($("forget"), Boolean(token.get()));
  if (!may("read")) throw new Refusal(403, "forbidden", "This token may not read. Ask for one with the scope read.");
  show($("new"), may("admin"));
  show($("first"), may("admin"));
}

const may = (scope) => access.open || access.scopes.includes(scope) || access.scopes.includes("admin");

function demandToken(message) {
  leave();
  show($("welcome"), false);
  show($("experiment"), false);
  show($("new"), false);
  show($("trouble"), false);
  $("experiments").replaceChildren();
  $("token-error").textContent = message;
  show($("token-form"));
  $("token").focus();
}

// The list

async function list() {
  const found = await get("v1/experiments?limit=100");
  $("experiments").replaceChildren(
    ...found.items.map((item) =>
      h(
        "li",
        {},
        h(
          "a",
          { href: `#/${encodeURIComponent(item.name)}`, "aria-current": item.name === shown?.name ? "page" : null },
          h("span", { class: "who" }, item.name),
          item.degraded ? h("span", { class: "badge" }, "degraded") : null,
          h("span", { class: "what" }, `${some(item.n_arms, "arm")} · ${some(item.counts.decided, "decision")}`),
        ),
      ),
    ),
  );
  const left = found.total - found.items.length;
  show($("more-experiments"), left > 0);
  write($("more-experiments"), `and ${count(left)} more, by their address: #/NAME`);
  return found;
}

// One experiment

function leave() {
  shown?.stop();
  shown = null;
  state("quiet");
}

function state(kind) {
  $("link").dataset.state = kind;
  write($("link"), { live: "live", lost: "connection lost, trying again", busy: "loading", quiet: "" }[kind]);
}

async function open(name) {
  leave();
  state("busy");
  const now = { name, sort: "probability", rows: ROWS, picture: null, state: null, all: [], stop: () => {} };
  shown = now;
  instead.clear();
  $("latest").replaceChildren();
  $("experiment").dataset.name = name;
  document.title = `${name} · sidelong`;
  for (const link of $("experiments").querySelectorAll("a")) {
    if (link.hash === `#/${encodeURIComponent(name)}`) {
      link.setAttribute("aria-current", "page");
      link.scrollIntoView({ block: "nearest", inline: "nearest" });
    } else {
      link.removeAttribute("aria-current");
    }
  }
  const drawing = await get(`${address(name)}/graph?limit=200`);
  if (shown !== now) return;
  now.picture = draw($("graph"), drawing, (text) => write($("graph-caption"), text));
  await refresh.now();
  if (shown !== now) return;
  show($("experiment"));
  now.stop = follow(
    `${address(name)}/events`,
    Math.max(0, now.state.sequence - LATEST), // the latest are shown from the beginning
    (event) => {
      if (shown !== now) return;
      latest(event);
      refresh.soon();
    },
    (kind, error) => shown === now && (state(kind), error && trouble(error), kind === "live" && refresh.soon()),
  );
}

/** Ask for everything that changes; while requests come fast, about once a second. */
const refresh = {
  timer: null,
  busy: false,
  again: false,
  soon() {
    if (this.busy) this.again = true;
    else this.timer ??= setTimeout(() => this.now().catch(trouble), 300);
  },
  async now() {
    clearTimeout(this.timer);
    this.timer = null;
    if (!shown) return;
    const now = shown;
    this.busy = true;
    this.again = false;
    try {
      const [found, minutes] = await Promise.all([ask(now), get(`${address(now.name)}/rates?minutes=60`)]);
      if (shown !== now) return;
      show($("trouble"), false);
      $("rates").replaceChildren(...rates(minutes));
      display(now, found);
    } finally {
      this.busy = false;
      if (this.again) setTimeout(() => this.soon(), 700);
    }
  },
};

/** Return the state with all arms, or with those that are played most and, beside them, those that the table shows. */
async function ask(now) {
  const first = await get(`${address(now.name)}?limit=${MOST_AT_ONCE}&sort=${now.many ? "probability" : "arm"}`);
  const many = first.arms.total > MOST_AT_ONCE;
  if (many && !now.many) {
    now.many = true;
    return ask(now);
  }
  const table = many ? (await get(`${address(now.name)}?limit=${now.rows}&sort=${now.sort}`)).arms.items : null;
  return { ...first, table };
}

function display(now, found) {
  now.state = found;
  write($("name"), found.name);
  write($("description"), found.description);
  const given = Object.entries(found.options).map(([name, value]) => `${name} ${value}`);
  const waits = found.expire_after === null ? "decisions never expire" : `feedback within ${duration(found.expire_after)}`;
  const graph = `${found.graph.name ?? "a graph"} with ${some(found.graph.n_arms, "arm")}`;
  write($("facts"), [[found.learner, ...given].join(", "), graph, waits, seed(found.seed), `made ${ago(found.created_at)}`].join(" · "));
  guarantee(found.guarantee);
  $("numbers").replaceChildren(...numbers(found).map(figure));
  now.picture.update(found.arms.items);
  now.all = found.arms.items;
  rows(now);
}

const seed = (value) => (Number.isSafeInteger(value) ? `seed ${value}` : "a seed above 2^53"); // more digits than JavaScript has

function guarantee({ holds, reasons }) {
  const place = $("guarantee");
  const text = holds ? "The guarantee holds." : "The guarantee is degraded.";
  if (place.dataset.said === [text, ...reasons].join("\n")) return; // not announced again
  place.dataset.said = [text, ...reasons].join("\n");
  place.dataset.holds = holds;
  const sign = holds ? "M5 12.5l4.5 4.5L19 7.5" : "M12 4l9 16H3zM12 10v4.5M12 17.4v.1";
  place.replaceChildren(
    s("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, s("path", { d: sign })),
    h("div", {}, h("strong", {}, text), reasons.length ? h("ul", {}, reasons.map((reason) => h("li", {}, reason))) : null),
  );
}

function numbers({ counts, regret, sample_ratio: ratio }) {
  const late = counts.late ? `${count(counts.late)} of them told, too late` : null;
  const check =
    ratio.p_value === null ? ["–", "not enough feedback yet"] : [ratio.ok ? "fine" : "off", `p = ${probability(ratio.p_value)}`];
  return [
    ["decided", count(counts.decided)],
    ["told", count(counts.told)],
    ["outstanding", count(counts.outstanding)],
    ["expired", count(counts.expired), late, counts.expired > 0],
    ["cancelled", count(counts.cancelled)],
    [
      "regret",
      number(regret.estimate, 1),
      regret.estimate === null ? "not known yet" : `${range(regret.low, regret.high, 1)}, against arm ${regret.best_arm}`,
    ],
    ["sample ratio", ...check, ratio.p_value !== null && !ratio.ok],
  ];
}

const probability = (p) => (p < 0.001 ? p.toExponential(1) : p.toFixed(3));

function figure([name, value, note, alarm]) {
  return h(
    "div",
    { "data-figure": name, "data-alarm": alarm ? "true" : null },
    h("dt", {}, name),
    h("dd", {}, value, note ? h("small", {}, note) : null),
  );
}

function rows(now) {
  const found = now.state;
  const listed = found.table ?? arms.sorted(now.all, now.sort).slice(0, now.rows);
  const best = found.regret.rounds && found.regret.own_loss !== null ? found.regret.own_loss / found.regret.rounds : null;
  const focused = document.activeElement?.dataset.sort;
  $("arms").replaceChildren(
    arms.table(listed, now.sort, best, (by) => {
      now.sort = by;
      if (now.many) refresh.now().catch(trouble);
      else rows(now);
    }),
  );
  if (focused) $("arms").querySelector(`[data-sort="${focused}"]`)?.focus();
  show($("more-arms"), listed.length < found.arms.total && now.rows < MOST_AT_ONCE);
}

function latest(event) {
  const words = { created: "made", decided: "decided", told: "told", cancelled: "cancelled", expired: "expired", late: "told late" };
  const what = event.arm === null || event.arm === undefined ? "" : `arm ${event.arm}`;
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

// What to show

function trouble(error) {
  if (error.status === 401) return demandToken(token.get() ? error.message : "");
  write($("trouble"), error.message);
  show($("trouble"));
}

async function route() {
  show($("trouble"), false);
  if (!shown) state("busy");
  try {
    if (!access) await enter();
    const found = await list();
    const name = wanted();
    show($("welcome"), !name && found.total === 0);
    if (name && name !== shown?.name) {
      show($("experiment"), false);
      await open(name);
    } else if (!name && found.total > 0) {
      location.replace(`#/${encodeURIComponent(found.items[0].name)}`);
    } else if (!name) {
      leave();
      show($("experiment"), false);
    }
  } catch (error) {
    state("quiet");
    trouble(error);
    if (error.status === 0 || error.status >= 500) setTimeout(route, 3000); // it may come back
  }
}

$("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  token.set($("token").value.trim());
  $("token").value = "";
  access = null;
  route();
});
$("forget").addEventListener("click", () => {
  token.forget();
  location.reload();
});
for (const id of ["new", "first"]) $(id).addEventListener("click", () => create.open().catch(trouble));
$("more-arms").addEventListener("click", () => {
  shown.rows += 5 * ROWS;
  if (shown.many) refresh.now().catch(trouble);
  else rows(shown);
});
create.prepare((name) => {
  location.hash = `#/${encodeURIComponent(name)}`;
});
instead.prepare(() => shown?.name);
window.addEventListener("hashchange", () => {
  route().then(() => $("main").focus());
});
setInterval(() => access && !document.hidden && list().catch(trouble), 10_000);
setInterval(() => access && !document.hidden && shown && refresh.now().catch(trouble), 15_000);
route();
