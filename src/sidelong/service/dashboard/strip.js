// The probabilities of more arms than can be drawn as a graph.

import { s } from "./dom.js";
import { count, percent } from "./format.js";
import { WIDTH, sentence } from "./drawing.js";

const MIDDLE = 170;
const FOOT = 340;

/** Many arms: two rows of bars, one for playing and one for observing; several arms share a bar where there are too many. */
export class Strip {
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
