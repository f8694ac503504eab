// The page: which experiment is shown, and keeping it up to date.

import * as arms from "./arms.js";
import { Refusal, follow, get, token } from "./api.js";
import { costs, rates, spending, trust } from "./charts.js";
import * as context from "./context.js";
import * as create from "./create.js";
import { $, h, show, write } from "./dom.js";
import { count, some } from "./format.js";
import { draw } from "./graph.js";
import * as instead from "./instead.js";
import * as keys from "./keys.js";
import * as life from "./life.js";
import * as panels from "./panels.js";

const MOST_AT_ONCE = 1000; // arms that one request may ask for
const ROWS = 20;

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

const size = (arms, counts) => `${some(arms, "arm")} · ${some(counts.decided, "decision")}`;

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
          item.state === "running" ? null : h("span", { class: "badge" }, item.state),
          item.alarms.length ? h("span", { class: "badge" }, "alarm") : null,
          h("span", { class: "what" }, size(item.n_arms, item.counts)),
        ),
      ),
    ),
  );
  const left = found.total - found.items.length;
  show($("more-experiments"), left > 0);
  write($("more-experiments"), `and ${count(left)} more, by their address: #/NAME`);
  show($("archived"), found.archived.length > 0);
  $("archived-list").replaceChildren(
    ...found.archived.map(({ name }) => h("li", {}, h("a", { href: `#/${encodeURIComponent(name)}` }, h("span", { class: "who" }, name)))),
  );
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
  context.clear();
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
  await refresh.now();
  if (shown !== now) return;
  show($("experiment"));
  now.stop = follow(
    `${address(name)}/events`,
    Math.max(0, now.state.sequence - panels.LATEST), // the latest are shown from the beginning
    (event) => {
      if (shown !== now) return;
      if (event.kind === "deleted") {
        leave();
        show($("experiment"), false);
        trouble(new Error(`The experiment ${name} was deleted.`));
        list().catch(trouble);
        return;
      }
      panels.latest(event, now.state.labels);
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
      const drawing = found.graph.id === now.drawn ? null : await get(`${address(now.name)}/graph?limit=200`); // arms may come and go
      if (shown !== now) return;
      if (drawing) {
        now.picture = draw($("graph"), drawing, (text) => write($("graph-caption"), text));
        now.drawn = found.graph.id;
      }
      show($("trouble"), false);
      $("rates").replaceChildren(...rates(minutes));
      $("costs").replaceChildren(...costs(minutes, found.lift));
      const advised = Object.keys(minutes.trust).length > 0;
      show($("trust-panel"), advised);
      if (advised) $("trust").replaceChildren(...trust(minutes, found.keys), found.advisers ? panels.advisers(found.advisers) : "");
      show($("spending-panel"), found.spending !== null);
      if (found.spending) $("spending").replaceChildren(...spending(found.spending));
      display(now, found, minutes.trust);
    } catch (error) {
      if (shown === now) throw error; // else it is about what nobody looks at any more
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

function display(now, found, trust) {
  now.state = found;
  panels.title(found);
  life.display(found, address(now.name), may("admin"));
  panels.alarms(found.alarms);
  if (found.guarantee !== null) panels.guarantee(found.guarantee, found.round);
  keys.offer(address(now.name), found).catch(trouble);
  panels.numbers(found, trust);
  context.offer(found.features, found.keys);
  const listed = $("experiments").querySelector("[aria-current] .what"); // which is asked for less often
  if (listed) write(listed, size(found.graph.n_arms, found.counts));
  now.picture.update(found.arms.items);
  now.all = found.arms.items;
  rows(now);
}

function rows(now) {
  const found = now.state;
  const listed = found.table ?? arms.sorted(now.all, now.sort).slice(0, now.rows);
  const paid = found.regret;
  const best = paid.rounds && paid.own_loss !== null ? paid.own_loss / paid.rounds : null;
  const focused = document.activeElement?.dataset.sort;
  $("arms").replaceChildren(
    arms.table(listed, now.sort, best, (by) => {
      now.sort = by;
      if (now.many) refresh.now().catch(trouble);
      else rows(now);
    }, found.keys !== null),
  );
  if (focused) $("arms").querySelector(`[data-sort="${focused}"]`)?.focus();
  show($("more-arms"), listed.length < found.arms.total && now.rows < MOST_AT_ONCE);
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
context.prepare(() => shown?.name);
keys.prepare(() => refresh.now().catch(trouble));
instead.prepare(() => shown?.name);
life.prepare((name) => {
  if (name === shown?.name) {
    refresh.now().catch(trouble);
    list().catch(trouble);
  } else {
    leave();
    location.hash = name ? `#/${encodeURIComponent(name)}` : "#/";
  }
});
window.addEventListener("hashchange", () => {
  route().then(() => $("main").focus());
});
setInterval(() => access && !document.hidden && list().catch(trouble), 10_000);
setInterval(() => access && !document.hidden && shown && refresh.now().catch(trouble), 15_000);
route();
