// The graph as a drawing: for each arm, a disc for the probability of playing it and a ring for that of observing it.

import { s } from "./dom.js";
import { count, percent } from "./format.js";
import { circle, fit, isOrdered, row, springs } from "./layout.js";

export const WIDTH = 560;
const ROW = 150; // the height of arms in a row

const title = (arm) => `Arm ${arm.arm}${arm.label ? ` (${arm.label})` : ""}`;

/** What is known about an arm; `reveals` is null where that is not said. */
export function sentence(arm, reveals) {
  const what = reveals === null ? "" : ` Playing it reveals ${reveals}.`;
  return `${title(arm)}: played with ${percent(arm.probability)}, observed with ${percent(arm.observe_probability)}.${what}`;
}

export class GraphDrawing {
  constructor(drawing, caption) {
    this.caption = caption;
    this.arms = [];
    this.chosen = null;
    const index = new Map(drawing.arms.map((arm, i) => [arm, i]));
    const n = drawing.arms.length;
    this.out = drawing.arms.map(() => []);
    const joined = new Map();
    const loops = new Set();
    for (const [a, b] of drawing.edges) {
      const [i, j] = [index.get(a), index.get(b)];
      this.out[i].push(j);
      if (i === j) loops.add(i);
      const key = `${Math.min(i, j)} ${Math.max(i, j)}`;
      if (i !== j) joined.set(key, (joined.get(key) ?? 0) + (i < j ? 1 : 2)); // 3: both ways
    }
    const pairs = [...joined].map(([key, ways]) => [...key.split(" ").map(Number), ways]);
    const sparse = pairs.length <= 2.5 * n;
    this.ordered = n > 2 && isOrdered(this.out);
    this.r = this.ordered ? Math.max(3, Math.min(18, (0.38 * WIDTH) / n)) : Math.max(8, Math.min(18, 230 / n + 6));
    this.sparse = sparse || this.ordered;
    this.height = this.ordered ? ROW : sparse ? 420 : 480;
    const places = this.ordered ? row(n) : sparse ? springs(n, pairs) : circle(n);
    this.at = fit(places, WIDTH, this.height, this.r + (this.ordered ? 6 : 24));
    this.edges = this.ordered ? this.spans() : pairs.map(([i, j, ways]) => this.line(ways === 2 ? j : i, ways === 2 ? i : j, ways !== 3));
    this.nodes = drawing.arms.map((arm, i) => this.node(i, loops.has(i)));
    const tip = s("path", { d: "M0 1 L9 5 L0 9 z", class: "tip" });
    this.svg = s(
      "svg",
      {
        viewBox: `0 0 ${WIDTH} ${this.height}`,
        class: `drawing${this.ordered ? " ordered" : pairs.length > 4 * n ? " dense" : ""}`,
        role: "group",
        "aria-label": `The graph: ${count(n)} arms. Arrow keys go from arm to arm.`,
        onmouseleave: () => this.choose(null),
        onkeydown: (event) => this.key(event),
        onfocusout: () => this.choose(null),
      },
      s("defs", {}, s("marker", { id: "tip", viewBox: "0 0 10 10", refX: 8, refY: 5, markerWidth: 7, markerHeight: 7, orient: "auto" }, tip)),
      this.edges.map((edge) => edge.element),
      this.nodes.map((node) => node.element),
    );
  }

  /** Of arms in a row, what each reveals: a bar below them, which is shown while one points at the arm. */
  spans() {
    return this.out.map((list, i) => {
      const [first, last] = [this.at[Math.min(...list)][0], this.at[Math.max(...list)][0]];
      const y = this.height / 2 + this.r + 26;
      const element = s("path", { class: "edge span", d: `M${(first - this.r).toFixed(1)} ${y - 6}V${y}H${(last + this.r).toFixed(1)}V${y - 6}` });
      return { i, j: i, oneWay: true, element };
    });
  }

  line(i, j, oneWay) {
    const [a, b] = [this.at[i], this.at[j]];
    const length = Math.max(Math.hypot(b[0] - a[0], b[1] - a[1]), 1e-9);
    const unit = [(b[0] - a[0]) / length, (b[1] - a[1]) / length];
    const [start, end] = [this.r + 2, this.r + (oneWay ? 4 : 2)];
    const element = s("line", {
      class: "edge",
      x1: (a[0] + unit[0] * start).toFixed(1),
      y1: (a[1] + unit[1] * start).toFixed(1),
      x2: (b[0] - unit[0] * end).toFixed(1),
      y2: (b[1] - unit[1] * end).toFixed(1),
      "marker-end": oneWay ? "url(#tip)" : null,
    });
    return { i, j, oneWay, element };
  }

  node(i, loop) {
    const [x, y] = this.at[i].map((value) => value.toFixed(1));
    const circle = (name, r) => s("circle", { class: name, cx: x, cy: y, r });
    const face = circle("face", this.r);
    if (!loop) face.setAttribute("stroke-dasharray", "4 3"); // it does not reveal itself
    const seen = circle("seen", this.r);
    seen.setAttribute("transform", `rotate(-90 ${x} ${y})`);
    const played = circle("played", 0);
    const label = s("text", this.beside(i));
    const element = s(
      "g",
      {
        class: "arm",
        role: "img",
        tabindex: i === 0 ? 0 : -1,
        onmouseenter: () => this.choose(i),
        onfocus: () => this.choose(i),
      },
      circle("halo", this.r + 4),
      face,
      seen,
      played,
      label,
    );
    return { element, seen, played, label };
  }

  /** Where the name of an arm stands: outside of the circle, going outwards at its sides, or below. */
  beside(i) {
    const [x, y] = this.at[i];
    if (this.sparse) return { x: x.toFixed(1), y: (y + this.r + 14).toFixed(1), "text-anchor": "middle" };
    const [dx, dy] = [x - WIDTH / 2, y - this.height / 2];
    const distance = Math.max(Math.hypot(dx, dy), 1e-9);
    const side = Math.abs(dx) < 0.25 * distance ? 0 : Math.sign(dx);
    const far = (this.r + (side ? 7 : 15)) / distance;
    return { x: (x + dx * far).toFixed(1), y: (y + dy * far + 4).toFixed(1), "text-anchor": ["end", "middle", "start"][side + 1] };
  }

  /** What an arm is called in the picture: its label, as much of it as there is space for, or its number. */
  called(arm) {
    const most = this.nodes.length <= 8 ? 18 : this.nodes.length <= 16 ? 12 : 8;
    const name = arm.label ?? String(arm.arm);
    if (this.ordered) {
      const letter = 0.6 * this.letters();
      const wide = WIDTH / this.nodes.length / letter; // characters that fit below an arm
      if (wide < 2.5 && arm.arm % Math.ceil(3 / wide) && arm.arm !== this.nodes.length - 1) return "";
      const room = Math.max(3, Math.floor(wide));
      return name.length <= room ? name : `${name.slice(0, room - 1)}…`;
    }
    return name.length <= most ? name : `${name.slice(0, most - 1)}…`;
  }

  /** The size of letters, which are larger on a telephone. */
  letters() {
    return parseFloat(getComputedStyle(this.nodes[0].label).fontSize) || 12.5;
  }

  /** Make the picture wide enough for the names at its sides. */
  widen() {
    const beyond = this.nodes.map(({ label }) => {
      const width = 0.6 * this.letters() * label.textContent.length;
      const x = Number(label.getAttribute("x"));
      const [left, right] = { start: [0, width], middle: [width / 2, width / 2], end: [width, 0] }[label.getAttribute("text-anchor")];
      return Math.max(left - x, x + right - WIDTH, 0);
    });
    const more = Math.ceil(Math.max(...beyond));
    this.svg.setAttribute("viewBox", `${-more} 0 ${WIDTH + 2 * more} ${this.height}`);
  }

  update(arms) {
    this.arms = arms;
    const round = 2 * Math.PI * this.r;
    arms.forEach((arm, i) => {
      const node = this.nodes[i];
      if (!node) return;
      const p = arm.probability ?? 0;
      node.played.setAttribute("r", p > 0 ? Math.max(1.2, (this.r - 3.5) * Math.sqrt(p)).toFixed(2) : 0);
      const seen = round * Math.min(1, arm.observe_probability ?? 0);
      node.seen.setAttribute("stroke-dasharray", `${seen.toFixed(2)} ${(round + 1).toFixed(2)}`);
      node.label.textContent = this.called(arm);
      node.element.setAttribute("aria-label", sentence(arm, this.names(i)));
    });
    this.widen();
    this.tell();
  }

  names(i) {
    const out = this.out[i];
    if (out.length === this.nodes.length) return "every arm";
    const named = out.map((j) => this.arms[j]?.arm).filter((arm) => arm !== undefined);
    if (named.length === 0) return "nothing";
    const run = named.length > 2 && named.at(-1) - named[0] === named.length - 1;
    if (run) return `arms ${named[0]} to ${named.at(-1)}`;
    return `${named.length === 1 ? "arm" : "arms"} ${named.slice(0, 12).join(", ")}${named.length > 12 ? ", ..." : ""}`;
  }

  choose(i) {
    this.chosen = i;
    this.svg.classList.toggle("chosen", i !== null);
    const out = new Set(i === null ? [] : this.out[i]);
    this.nodes.forEach((node, k) => {
      node.element.classList.toggle("out", out.has(k));
      node.element.classList.toggle("on", k === i);
      if (i !== null) node.element.setAttribute("tabindex", k === i ? 0 : -1);
    });
    for (const edge of this.edges) {
      edge.element.classList.toggle("out", edge.i === i || (!edge.oneWay && edge.j === i));
    }
    this.tell();
  }

  tell() {
    const arm = this.chosen === null ? null : this.arms[this.chosen];
    this.caption(arm ? sentence(arm, this.names(this.chosen)) : "Point at an arm, or go to it with Tab and the arrow keys, to see what playing it reveals.");
  }

  key(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const from = this.chosen ?? 0;
    this.nodes[(from + step + this.nodes.length) % this.nodes.length].element.focus();
  }
}
