// The life of an experiment: its state, what may be done with it, and a question before it is done.

import { change, get, post, remove } from "./api.js";
import { $, h, show, write } from "./dom.js";
import { ago, duration, percent } from "./format.js";

const SAYS = {
  running: "The learner decides.",
  frozen: "It plays what it was told to, and learns nothing.",
  stopped: "It decides no more, and learns what is still told.",
  archived: "It is out of memory and of the list. All of its data are kept.",
};

const FREEZES = {
  input: ["Play", "an arm, or 3: 0.5, 4: 0.5", true],
  send: (path, text) => change(path, { state: "frozen", play: play(text) }),
};

const clones = (learned) => ({
  input: ["Name of the clone", "", true],
  send: (path, text) => post(`${path}/clone`, { name: text, learned }),
  goes: (text) => text,
});

/** What may be done: in which states, what is asked, and what is sent. */
const ACTIONS = [
  {
    name: "Run",
    from: ["frozen", "stopped", "archived"],
    asks: "Let the learner decide again?",
    send: (path) => change(path, { state: "running" }),
  },
  {
    name: "Freeze",
    from: ["running", "stopped"],
    asks: "While it is frozen it plays an arm or a distribution, and learns nothing.",
    ...FREEZES,
  },
  {
    name: "Play another",
    from: ["frozen"],
    asks: "It stays frozen, and plays another arm or distribution.",
    ...FREEZES,
  },
  {
    name: "Stop",
    from: ["running", "frozen"],
    asks: "A stopped experiment refuses decisions, or answers with a fallback arm.",
    input: ["Fallback arm", "none", false],
    send: (path, text) => change(path, { state: "stopped", ...(text ? { fallback: arm(text) } : {}) }),
  },
  {
    name: "Archive",
    from: ["running", "frozen", "stopped"],
    asks: "It will answer nobody, and is taken out of the list. It can be brought back by its address.",
    send: (path) => change(path, { state: "archived" }),
  },
  {
    name: "Rename",
    asks: "Programs that ask it by its old name will hear that there is no such experiment.",
    input: ["New name", "", true],
    send: (path, text) => change(path, { name: text }),
    goes: (text) => text,
  },
  {
    name: "Clone",
    asks: "Another experiment like this one, which goes on from what this one has learned.",
    ...clones(true),
  },
  {
    name: "Clone anew",
    asks: "Another experiment like this one, which has learned nothing yet.",
    ...clones(false),
  },
  {
    name: "Delete",
    asks: "All of its data will be gone, and nothing brings them back. Only a line stays that says who deleted it, and when.",
    input: ["Repeat its name", "", true],
    repeats: true,
    send: (path, text) => remove(`${path}?name=${encodeURIComponent(text)}`),
    goes: () => "",
  },
];

const arm = (text) => (/^\d+$/.test(text) ? Number(text) : text);

/** Read an arm, or "3: 0.5, 4: 0.5". */
export function play(text) {
  if (!text.includes(":")) return arm(text);
  const pairs = text.split(",").map((part) => part.split(":").map((piece) => piece.trim()));
  if (!pairs.every(([number, share]) => /^\d+$/.test(number) && share !== "" && Number.isFinite(Number(share)))) {
    throw new Error("A distribution is written like 3: 0.5, 4: 0.5.");
  }
  return Object.fromEntries(pairs.map(([number, share]) => [number, Number(share)]));
}

let asked = null; // the action that the question is about, and the experiment

/** Show the state of an experiment, and what may be done with it by whoever may. */
export function display(found, path, may) {
  const place = $("life");
  const more = found.play ? ` It plays ${shares(found.play, found.labels)}.` : found.fallback === null ? "" : ` It answers with ${called(found.fallback, found.labels)}.`;
  const says = JSON.stringify([found.name, found.state, more, may]);
  if (place.dataset.says === says) return;
  place.dataset.says = says;
  const possible = may ? ACTIONS.filter(({ from }) => !from || from.includes(found.state)) : [];
  place.replaceChildren(
    h("p", {}, h("span", { class: "state", "data-state": found.state }, found.state), ` ${SAYS[found.state]}${more}`),
    h(
      "div",
      { class: "actions" },
      possible.map((action) =>
        h("button", { type: "button", class: action.repeats ? "plain danger" : "plain", onclick: () => ask(action, found.name, path) }, action.name),
      ),
      h("button", { type: "button", class: "plain", onclick: () => tell(path) }, "Who did what"),
    ),
  );
  show($("story"), false);
}

function ask(action, name, path) {
  asked = { action, name, path };
  const [label, hint, needed] = action.input ?? [];
  write($("life-title"), `${action.name} ${name}?`);
  write($("life-asks"), action.asks);
  show($("life-field"), Boolean(action.input));
  write($("life-label"), label ?? "");
  const input = $("life-input");
  input.value = "";
  input.placeholder = hint ?? "";
  input.required = Boolean(needed);
  $("life-error").textContent = "";
  const button = $("life-confirm");
  write(button, action.name);
  button.classList.toggle("final", Boolean(action.repeats));
  button.disabled = Boolean(action.repeats);
  $("life-dialog").showModal();
  (action.input ? input : button).focus();
}

async function tell(path) {
  const { items } = await get(`${path}/changes`);
  $("story").replaceChildren(
    ...items.map(({ at, by, change: what }) =>
      h("li", {}, h("b", {}, by ?? "somebody on this machine"), ` ${words(what)} `, h("time", { datetime: at }, ago(at))),
    ),
  );
  show($("story"));
}

const called = (number, labels) => labels?.[number] ?? `arm ${number}`;

/** What is played, as "arm 3", or "arm 3 (50.0 %), arm 4 (50.0 %)". */
const shares = (played, labels) =>
  Object.entries(played)
    .map(([number, share]) => called(number, labels) + (share === 1 ? "" : ` (${percent(share)})`))
    .join(", ");

const STATES = { created: "made it", running: "let it run", frozen: "froze it", stopped: "stopped it", archived: "archived it" };

/** How each part of a change is told, in this order. */
const TOLD = {
  state: (state) => STATES[state],
  origin: ({ name, sequence, learned }) => `as a clone of ${name} after event ${sequence}${learned ? "" : ", without what that had learned"}`,
  play: (played) => `to play ${shares(played)}`,
  fallback: (number) => (number === null ? "without a fallback arm" : `with arm ${number} as fallback`),
  name: (name) => `renamed it to ${name}`,
  description: (text) => (text ? `described it as “${text}”` : "took its description away"),
  added: (number) => `added arm ${number}`,
  retired: (number) => `retired arm ${number}`,
  labels: (labels) => (labels ? `called its arms ${labels.join(", ")}` : "took the labels of its arms away"),
  expire_after: (seconds) => (seconds === null ? "lets no decision expire" : `lets decisions expire after ${duration(seconds)}`),
};

const words = (what) =>
  Object.keys(TOLD)
    .filter((part) => part in what)
    .map((part) => TOLD[part](what[part]))
    .join(", ");

/** Make the question work; `onDone` is called with the name of the experiment to show now, or "". */
export function prepare(onDone) {
  $("life-cancel").addEventListener("click", () => $("life-dialog").close());
  $("life-input").addEventListener("input", () => {
    if (asked.action.repeats) $("life-confirm").disabled = $("life-input").value.trim() !== asked.name;
  });
  $("life-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const { action, name, path } = asked;
    const text = $("life-input").value.trim();
    $("life-error").textContent = "";
    if (action.input?.[2] && !text) return void ($("life-error").textContent = `${action.input[0]} is missing.`);
    $("life-confirm").disabled = true;
    try {
      await action.send(path, text);
      $("life-dialog").close();
      onDone(action.goes ? action.goes(text) : name);
    } catch (error) {
      $("life-error").textContent = error.message;
    } finally {
      $("life-confirm").disabled = false;
    }
  });
}
