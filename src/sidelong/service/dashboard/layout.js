// Where arms lie in the drawing: around a circle, or by springs where there are few edges (Fruchterman, Reingold 1991).

export function circle(n) {
  return Array.from({ length: n }, (_, i) => {
    const angle = (2 * Math.PI * i) / n - Math.PI / 2;
    return [Math.cos(angle), Math.sin(angle)];
  });
}

/** Edges are pairs of places. The same graph gives the same picture: nothing here is random. */
export function springs(n, edges) {
  const rest = 2 / Math.sqrt(n);
  let at = circle(n);
  const steps = 300;
  for (let step = 0; step < steps; step += 1) {
    const most = 0.2 * (1 - step / steps) + 0.002;
    const move = at.map(([x, y]) => [-0.3 * x, -0.3 * y]);
    for (let i = 0; i < n; i += 1) {
      for (let j = i + 1; j < n; j += 1) {
        const [dx, dy, d] = between(at[i], at[j]);
        if (d < 3 * rest) push(move, i, j, dx, dy, (rest / d) ** 2);
      }
    }
    for (const [i, j] of edges) {
      const [dx, dy, d] = between(at[i], at[j]);
      push(move, i, j, dx, dy, -d / rest);
    }
    at = at.map(([x, y], i) => {
      const size = Math.max(Math.hypot(...move[i]), 1e-9);
      const scale = Math.min(size * 0.1, most) / size;
      return [x + move[i][0] * scale, y + move[i][1] * scale];
    });
  }
  return at;
}

function between(a, b) {
  const dx = a[0] - b[0];
  const dy = a[1] - b[1];
  return [dx, dy, Math.max(Math.hypot(dx, dy), 1e-3)];
}

function push(move, i, j, dx, dy, force) {
  move[i][0] += dx * force;
  move[i][1] += dy * force;
  move[j][0] -= dx * force;
  move[j][1] -= dy * force;
}

/** Places beside each other, for arms that have an order; one after the other from left to right. */
export function row(n) {
  return Array.from({ length: n }, (_, i) => [i, 0]);
}

/** Whether arms stand well in a row: each reveals a run of arms that it is in, as orders, bids and thresholds do. */
export function isOrdered(out) {
  const runs = out.every((list, i) => list.length > 0 && Math.max(...list) - Math.min(...list) === list.length - 1 && list.includes(i));
  return runs && out.some((list) => list.length < out.length);
}

/** Fit places into a box, without stretching. */
export function fit(at, width, height, margin) {
  const low = [0, 1].map((k) => Math.min(...at.map((place) => place[k])));
  const size = [0, 1].map((k) => Math.max(Math.max(...at.map((place) => place[k])) - low[k], 1e-9));
  const room = [width - 2 * margin, height - 2 * margin];
  const scale = Math.min(room[0] / size[0], room[1] / size[1]);
  return at.map((place) => [0, 1].map((k) => (place[k] - low[k]) * scale + margin + (room[k] - size[k] * scale) / 2));
}
