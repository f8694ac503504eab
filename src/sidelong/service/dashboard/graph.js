// What is played and what that reveals: a drawing of the graph, or bars where there are too many arms.

import { h, s } from "./dom.js";
import { GraphDrawing } from "./drawing.js";
import { Strip } from "./strip.js";

export const MOST_NODES = 60;

/** Draw a graph into a place. The result has `update(arms)`, for probabilities that change. */
export function draw(place, drawing, caption) {
  const picture =
    drawing.total_arms <= MOST_NODES ? new GraphDrawing(drawing, caption) : new Strip(drawing.total_arms, caption);
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
