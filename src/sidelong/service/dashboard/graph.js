// The graph: for each arm, a disc for the probability of playing it and a ring for that of observing it.

import { h, s } from "./dom.js";
import { count, percent } from "./format.js";
import { circle, fit, springs } from "./layout.js";

export const MOST_NODES = 60;
const WIDTH = 560;

/** Draw a graph into a place. The result has `update(arms)`, for probabilities that change. */
export function draw(place, drawing, caption) {
  const picture =
    drawing.total_arms <= MOST_NODES ? new Net(drawing, caption) : new Strip(drawing.total_arms, caption);
  place.replaceChildren(picture.svg, legend(drawing.total_arms <= MOST_NODES));
  return picture;
}

function legend(round) {
  const key = (shape) => s("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, shape);
  const box = (name) => s("rect", { x: 2, y: 4, width: 12, height: 9, class: name });
  const items = round
    ? [
        [s("circle", { cx: 8, cy: 8, r: 4.5, class: "key-play" }), "disc: probability of playing"],
        [s("path", { d: "M8 2a6 6 0 0 1 5.2 9", class: "key-see" }), "ring: probability of observing"],
      ]
    : [
        [box("key-play"), "probability of playing"],
        [box("key-seen-box"), "probability of observing"],
      ];
  return h("ul", { class: "legend" }, items.map(([shape, text]) => h("li", {}, key(shape), text)));
}

const title = (arm) => `Arm ${arm.arm}${arm.label ? ` (${arm.label})` : ""}`;

function sentence(arm, reveals) {
  const what = reveals === null ? "" : ` Playing it reveals ${reveals}.`;
  return `${title(arm)}: played with ${percent(arm.probability)}, observed with ${percent(arm.observe_probability)}.${what}`;
}

class Net {
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
      else joined.set(`${Math.min(i, j)} ${Math.max(i, j)}`, (joined.get(`${Math.min(i, j)} ${Math.max(i, j)}`) ?? 0) + (i < j ? 1 : 2));
    }
    const pairs = [...joined].map(([key, ways]) => [...key.split(" ").map(Number), ways]);
    const sparse = pairs.length <= 2.5 * n;
    this.r = Math.max(8, Math.min(18, 230 / n + 6));
    this.sparse = sparse;
    this.height = sparse ? 420 : 480;
    this.at = fit(sparse ? springs(n, pairs) : circle(n), WIDTH, this.height, this.r + 24);
    this.edges = pairs.map(([i, j, ways]) => this.line(ways === 2 ? j : i, ways === 2 ? i : j, ways !== 3));
    this.nodes = drawing.arms.map((arm, i) => this.node(i, loops.has(i)));
    const tip = s("path", { d: "M0 1 L9 5 L0 9 z", class: "tip" });
    this.svg = s(
      "svg",
      {
        viewBox: `0 0 ${WIDTH} ${this.height}`,
        class: `net${pairs.length > 4 * n ? " dense" : ""}`,
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

  /** Where the name of an arm stands: outside of the circle, or below. */
  beside(i) {
    const [x, y] = this.at[i];
    if (this.sparse) return { x: x.toFixed(1), y: (y + this.r + 14).toFixed(1) };
    const [dx, dy] = [x - WIDTH / 2, y - this.height / 2];
    const far = (this.r + 15) / Math.max(Math.hypot(dx, dy), 1e-9);
    return { x: (x + dx * far).toFixed(1), y: (y + dy * far + 4).toFixed(1) };
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
      node.label.textContent = arm.label && arm.label.length <= 6 ? arm.label : arm.arm;
      node.element.setAttribute("aria-label", sentence(arm, this.names(i)));
    });
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

const MIDDLE = 170;
const FOOT = 340;

/** Many arms: two rows of bars, one for playing and one for observing; several arms share a bar where there are too many. */
class Strip {
  constructor(total, caption) {
    this.total = total;
    this.caption = caption;
    this.bars = [];
    this.chosen = null;
    this.content = s("g", {});
    this.cursor = s("line", { class: "cursor", y1: 20, y2: FOOT, visibility: "hidden" });
    this.svg = s(
      "svg",
      {
        viewBox: `0 0 ${WIDTH} ${FOOT + 20}`,
        class: "strip",
        role: "img",
        tabindex: 0,
        "aria-label": `The probabilities of ${count(total)} arms. Arrow keys go from arm to arm.`,
        onmousemove: (event) => this.choose(this.under(event)),
        onmouseleave: () => this.choose(null),
        onkeydown: (event) => this.key(event),
        onblur: () => this.choose(null),
      },
      this.content,
      this.cursor,
    );
  }

  update(arms) {
    const sorted = [...arms].sort((a, b) => a.arm - b.arm);
    const each = Math.ceil(sorted.length / 160);
    this.bars = [];
    for (let i = 0; i < sorted.length; i += each) this.bars.push(sorted.slice(i, i + each));
    const wide = WIDTH / this.bars.length;
    const high = (bar, name) => Math.max(...bar.map((arm) => arm[name] ?? 0));
    const top = Math.max(...this.bars.map((bar) => high(bar, "probability")), 1e-12);
    const column = (bar, i, name, scale, foot, space) => {
      const size = Math.max(0, (high(bar, name) / scale) * space);
      const gap = wide > 3 ? 1 : 0;
      return s("rect", {
        class: name === "probability" ? "played" : "seen",
        x: (i * wide).toFixed(2),
        y: (foot - size).toFixed(2),
        width: (wide - gap).toFixed(2),
        height: size.toFixed(2),
      });
    };
    const text = (y, words) => s("text", { x: 0, y }, words);
    this.content.replaceChildren(
      text(14, `playing, up to ${percent(top)}`),
      ...this.bars.map((bar, i) => column(bar, i, "probability", top, MIDDLE, MIDDLE - 24)),
      s("line", { class: "axis", x1: 0, x2: WIDTH, y1: MIDDLE, y2: MIDDLE }),
      text(MIDDLE + 24, "observing, up to 100 %"),
      ...this.bars.map((bar, i) => column(bar, i, "observe_probability", 1, FOOT, FOOT - MIDDLE - 34)),
      s("line", { class: "axis", x1: 0, x2: WIDTH, y1: FOOT, y2: FOOT }),
      text(FOOT + 17, `arm ${sorted[0]?.arm ?? 0}`),
      s("text", { x: WIDTH, y: FOOT + 17, "text-anchor": "end" }, `arm ${sorted.at(-1)?.arm ?? 0}`),
    );
    this.choose(this.chosen);
  }

  under(event) {
    const box = this.svg.getBoundingClientRect();
    const i = Math.floor(((event.clientX - box.left) / box.width) * this.bars.length);
    return Math.max(0, Math.min(this.bars.length - 1, i));
  }

  choose(i) {
    this.chosen = i === null || i >= this.bars.length ? null : i;
    this.cursor.setAttribute("visibility", this.chosen === null ? "hidden" : "visible");
    if (this.chosen === null) {
      const shown = this.bars.reduce((n, bar) => n + bar.length, 0);
      this.caption(shown < this.total ? `The ${count(shown)} arms that are played most, of ${count(this.total)}.` : "");
      return;
    }
    const x = ((this.chosen + 0.5) * WIDTH) / this.bars.length;
    this.cursor.setAttribute("x1", x);
    this.cursor.setAttribute("x2", x);
    const bar = this.bars[this.chosen];
    const best = bar.reduce((a, b) => ((b.probability ?? 0) > (a.probability ?? 0) ? b : a));
    const among = bar.length > 1 ? `Of arms ${bar[0].arm} to ${bar.at(-1).arm} the most likely: ` : "";
    this.caption(among + sentence(best, null));
  }

  key(event) {
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const from = this.chosen ?? (step > 0 ? -1 : this.bars.length);
    this.choose(Math.max(0, Math.min(this.bars.length - 1, from + step)));
  }
}
