// Elements in one line each. Text always goes in as text: nothing that a name or a label holds is ever read as HTML.

const SVG = "http://www.w3.org/2000/svg";

function build(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

/** Make an HTML element. */
export const h = (tag, attributes, ...children) => build(document.createElement(tag), attributes, children);

/** Make an SVG element. */
export const s = (tag, attributes, ...children) => build(document.createElementNS(SVG, tag), attributes, children);

/** Find an element by its id. */
export const $ = (id) => document.getElementById(id);

/** Give an element a text, and touch it only if that is new: what has not changed is not announced again. */
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Show or hide an element. */
export function show(element, shown = true) {
  element.hidden = !shown;
}
