// The form for a new experiment.

import { get, post } from "./api.js";
import { $, h, show } from "./dom.js";

const OWN = "own edges";
let catalogue = null;

/** Read "rate=fixed, gamma=4" into an object; what looks like JSON is read as JSON. */
export function options(text) {
  const found = {};
  for (const part of text.split(",").filter((piece) => piece.trim())) {
    const [name, ...rest] = part.split("=");
    if (!rest.length || !name.trim()) throw new Error(`“${part.trim()}” is not an option, such as gamma=4.`);
    found[name.trim()] = value(rest.join("=").trim());
  }
  return found;
}

function value(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Read lines "0 1" into pairs. */
export function edges(text) {
  const pairs = text
    .split("\n")
    .filter((line) => line.trim())
    .map((line) => {
      const found = line.match(/^\s*(\d+)[\s,;>-]+(\d+)\s*$/);
      if (!found) throw new Error(`“${line.trim()}” is not an edge, such as 0 1.`);
      return [Number(found[1]), Number(found[2])];
    });
  if (!pairs.length) throw new Error("A graph of your own needs at least one edge.");
  return pairs;
}

function graph(form) {
  if (form.family.value === OWN) {
    const pairs = edges(form.edges.value);
    return { n_arms: Math.max(...pairs.flat()) + 1, edges: pairs, self_loops: true };
  }
  const content = { name: form.family.value };
  for (const input of $("new-arguments").querySelectorAll("input")) {
    if (input.value.trim()) {
      content[input.dataset.argument] = value(input.dataset.list ? `[${input.value}]` : input.value.trim());
    } else if (input.required) {
      throw new Error(`The graph needs ${input.dataset.argument}.`);
    }
  }
  return content;
}

function content(form) {
  const name = form.elements.name.value.trim();
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(name)) {
    throw new Error("A name begins with a letter or a digit, and goes on with letters, digits, dots, dashes and underscores.");
  }
  const seed = form.seed.value.trim();
  if (!/^\d*$/.test(seed)) throw new Error("A seed is a whole number.");
  if (Number(seed) > Number.MAX_SAFE_INTEGER) throw new Error("A seed above 9007199254740991 must be given by a program.");
  return {
    name,
    description: form.description.value.trim(),
    learner: form.learner.value,
    options: options(form.elements.options.value),
    graph: graph(form),
    expire_after: form.expire.value ? Number(form.expire.value) : null,
    ...(seed ? { seed: Number(seed) } : {}),
    ...(seesFeatures(form) ? { features: names(form.features.value) } : {}),
    ...(form.certificate.checked ? { certificate: true } : {}),
  };
}

const seesFeatures = (form) => catalogue.with_features.includes(form.learner.value);

/** Read "weekday, temperature" into names. */
function names(text) {
  const found = text.split(",").map((name) => name.trim()).filter(Boolean);
  if (!found.length) throw new Error("This learner plays by features: name at least one, such as weekday.");
  return found;
}

function showArguments(form) {
  const family = catalogue.families.find(({ name }) => name === form.family.value);
  show($("new-edges-field"), !family);
  $("new-arguments").replaceChildren(
    ...(family?.arguments ?? []).map(({ name, kind, default: usual }) => {
      const id = `new-argument-${name}`;
      const list = kind === "list";
      const example = list ? "4, 3, 3" : kind === "number" ? "0.3" : "";
      return h(
        "div",
        {},
        h("label", { for: id }, name.replaceAll("_", " ")),
        h("input", {
          id,
          autocomplete: "off",
          spellcheck: "false",
          inputmode: kind === "whole" ? "numeric" : null,
          required: usual === null,
          value: usual === null ? (name === "n" ? 10 : null) : null,
          placeholder: usual === null ? example : usual,
          "data-argument": name,
          "data-list": list || null,
        }),
      );
    }),
  );
}

/** Make the form work; `onCreated` is called with the name. */
export function prepare(onCreated) {
  const form = $("create-form");
  form.family.addEventListener("change", () => showArguments(form));
  form.learner.addEventListener("change", () => show($("new-features-field"), seesFeatures(form)));
  $("create-cancel").addEventListener("click", () => $("create").close());
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = event.submitter ?? form.querySelector("[type=submit]");
    $("create-error").textContent = "";
    button.disabled = true;
    try {
      const made = await post("v1/experiments", content(form));
      $("create").close();
      form.reset();
      showArguments(form);
      show($("new-features-field"), false);
      onCreated(made.name);
    } catch (error) {
      $("create-error").textContent = error.message;
    } finally {
      button.disabled = false;
    }
  });
}

/** Open the form, with the learners and the families of graphs that the service knows. */
export async function open() {
  const form = $("create-form");
  if (!catalogue) {
    catalogue = await get("v1/catalogue");
    form.learner.replaceChildren(...[...catalogue.learners, ...catalogue.with_features].map((name) => h("option", { value: name, selected: name === "glance" }, name)));
    const families = [...catalogue.families.map(({ name }) => name), OWN];
    form.family.replaceChildren(...families.map((name) => h("option", { value: name, selected: name === "nested" }, name.replaceAll("_", " "))));
    showArguments(form);
  }
  $("create-error").textContent = "";
  $("create").showModal();
  form.elements.name.focus();
}
