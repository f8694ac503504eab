"""The inequalities of rule.md on random paths: python check.py"""
import math
import numpy as np, problems as pb, glance_check as g
rng = np.random.default_rng(1); worst = {}
def note(k, x): worst[k] = max(worst.get(k, -9e9), float(x))
es = ey = 0.0
for trial in range(300):
    K = int(rng.integers(2, 13)); T = int(rng.integers(50, 2500))
    A = [pb.loops(K), pb.nested(K), pb.star(K), pb.upwards(K), pb.randg(K, .3, rng), pb.complete(K)][rng.integers(6)]
    bank = np.stack([A, pb.randg(K, .2, rng)]); which = rng.integers(0, 2, T) if rng.random() < .3 else np.zeros(T, np.int64)
    kind = rng.integers(4)
    if kind == 0: M = np.tile(rng.random(K), (T, 1))
    elif kind == 1: M = rng.random((int(T / 20) + 1, K)).repeat(20, 0)[:T]
    elif kind == 2: M = (rng.random((T, K)) < .5) * (np.arange(T)[:, None] // 50 % 2 == np.arange(K) % 2)
    else: M = pb.constrained(rng, T)[2][0][:, :1] * np.ones(K) * rng.uniform(.5, 1, K)
    l = (rng.random((T, K)) < M).astype(float)
    log = np.zeros((T, 14 + 5 * K)); g.play(bank, which, l, l, trial, log)
    live = log[:, 13] > 0
    if live.sum() < 3: continue
    n = max(2, int(math.floor(math.log(K) + .5))); H = n * (K ** (1 / n) - 1); t0 = int(np.argmax(live)); m = g.M
    x1 = math.sqrt(2 / H) / (2 * m); xb = np.concatenate([[x1], log[live, 0]])[:-1]  # x before each round
    x, share, Z, eps, S, arm, sumC, dz, y, h, W, J, yl = (log[live, k] for k in range(13))
    q, a, p, P, r = (log[live, 14 + k * K:14 + (k + 1) * K] for k in range(5))
    d = bank.sum(2).max(); wh = which[live]; rho = np.minimum(.5, .02 + .002 * xb)
    note("budget: Z - W - max J <= 0", (Z - np.maximum.accumulate(W) - np.maximum.accumulate(np.maximum(J, 0))).max())
    note("J / (2 + d (1 + 1/rho)) <= 1", (J / (2 + d * (1 + 1 / rho))).max())
    note("C / B <= 1", ((S + .3 * eps) / (4.5 * (1 + 2 / rho * d) + .15)).max())
    note("eps / (4 eta y') <= 1", (eps * xb / np.maximum(4 * yl, 1e-300)).max())
    note("-a r / (.45 x) <= 1", (-a * r / (.45 * xb[:, None])).max())
    note("(rho/2) q / p <= 1", (rho[:, None] / 2 * q / np.maximum(p, 1e-300)).max())
    hn = np.concatenate([h[1:], [0]]); L0 = np.array([0.0])
    for u in range(K):
        left = (((q - (np.arange(K) == u)) * a).sum(1)).cumsum()[:-1]
        xn = np.concatenate([xb[1:], [x[-1]]])
        right = 1 + H * x1 + np.cumsum((xn - xb) * hn)[:-1] + np.cumsum(S)[:-1]
        note("FTRL: left - right <= 0", (left - right).max())
    es += (S * xb).sum(); ey += y.sum()
    note("rounds with budget used up", (share == 0).sum())
worst["sum x S / sum y (mean <= 1)"] = es / ey
for k, v in worst.items(): print(f"{k}: {v:.4g}")
