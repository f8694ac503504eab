"""Long instances of benchmarks/suites.py as tables, against the catalogue's regret as measured through the package."""
import sys; sys.path.insert(0, "..")
import numpy as np, suites, time
def spec(kind, gaps, level, rng):
    early = max(1, round(gaps.size / (2 * gaps.max()))); means = level * (1 - gaps.max()) + gaps
    attack = str(rng.choice(["flip", "swap"])) if kind == "corrupted" else ""
    return SpecW(kind, gaps, means, early, attack)
class SpecW:
    def __init__(self, *a): self.a = a; self.n_arms = a[1].size
    def table(self, rng, T):
        kind, gaps, means, early, attack = self.a; K = gaps.size
        if kind == "beta": l = rng.beta(10 * means, np.maximum(10 * (1 - means), 1e-9), (T, K)); return l, np.tile(means, (1, 1))
        M = means[None]
        if kind == "constrained":
            M = np.zeros((T, K)); end = 0; length = 1; ph = 0
            while end < T:
                M[end:end + length] = gaps + (1 - gaps.max()) * (ph % 2); end += length; length = -(-8 * length // 5); ph += 1
        elif kind == "switching" or kind == "corrupted" and attack == "swap":
            best = int(np.argmin(gaps)); other = (best + 1) % K
            if kind == "corrupted": other = int(np.argsort(means, kind="stable")[1])
            bf = means.copy(); bf[[best, other]] = means[[other, best]]
            M = np.where((np.arange(T) < early)[:, None], bf, means)
        l = (rng.random((T, K)) < M).astype(np.float64)
        if kind == "corrupted" and attack == "flip":
            l[:early] = 1 - l[:early]; M = np.tile(means, (T, 1)); M[:early] = 1 - means
        return l, np.ascontiguousarray(M)
suites.world_of = spec
suites.Instance = lambda name, graph, losses, rounds: (name, graph, losses, rounds)
def instances(which):
    return list(suites.tune())[1:-6:5] if which == "tune" else list(suites.report())[:-1]
def bank_of(graph, T, rng):
    if not hasattr(graph, "bank"): return graph.matrix()[None] if callable(graph.matrix) else graph.matrix[None], np.zeros(T, np.int64)
    gs = [graph.graph_of_round(t) for t in range(1, 65)]
    return np.stack([g.matrix() if callable(g.matrix) else g.matrix for g in gs]), np.arange(T) % 64
def regrets(which, rule, runs=3, every=1, only=None, cap=10**9):
    ref = np.load(f"./longref_{which}.npz"); out = []
    for k, (name, graph, world, T) in enumerate(instances(which)):
        if k % every or (only and not only(name)) or T > cap: continue
        s = 0.0
        for run in range(runs):
            rng = np.random.default_rng([77, k, run]); bank, wh = bank_of(graph, T, rng); l, M = world.table(rng, T)
            tot = rule(np.ascontiguousarray(bank), wh, l, M, run)[1]
            cum = M.sum(0) * (T / M.shape[0]); s += tot - cum.min()
        K = int(ref["arms"][k]); best = np.nanmin(ref["regret"][:, k]); who = ref["contestants"][np.nanargmin(ref["regret"][:, k])]
        out.append((name, K, T, s / runs, best, str(who), max(s / runs + K, 0) / max(best + K, 1.0), ref["regret"][0, k]))
    return out
def report(label, out, n=6):
    rat = np.array([o[6] for o in out]); sw = np.array(["switching" in o[0] for o in out])
    prac = np.array([max(o[7] + o[1], 0) / max(o[4] + o[1], 1) for o in out])
    print(f"{label}: worst {rat[~sw].max():.2f} geo {np.exp(np.log(np.maximum(rat[~sw], .05)).mean()):.2f} median {np.median(rat[~sw]):.2f} | today worst {prac[~sw].max():.2f} geo {np.exp(np.log(np.maximum(prac[~sw],.05)).mean()):.2f} | switching R/sqrt(KT) {np.mean([o[3] / np.sqrt(o[1] * o[2]) for o in np.array(out, object)[sw]]) if sw.any() else 0:.3f} today {np.mean([o[7] / np.sqrt(o[1] * o[2]) for o in np.array(out, object)[sw]]) if sw.any() else 0:.3f}")
    for k in np.argsort(-rat)[:n]: print("    %.2f %s: %.0f against %.0f %s, today %.0f" % (rat[k], out[k][0], out[k][3], out[k][4], out[k][5], out[k][7]))
    sys.stdout.flush()
def mine(runs=2, cap=60000):
    """A tuning set of all worlds: every seventh instance of the tune suite, T <= cap, with tables kept."""
    out = []
    for k, (name, graph, world, T) in enumerate(list(suites.tune())[3:-6:7]):
        if T > cap or graph.n_arms > 60: continue
        tabs = []
        for run in range(runs):
            rng = np.random.default_rng([78, k, run]); bank, wh = bank_of(graph, T, rng); l, M = world.table(rng, T); tabs.append((np.ascontiguousarray(bank), wh, l, M))
        out.append((name, graph.n_arms, T, world.a[0], tabs))
    return out
def play_mine(insts, rule):
    v = []
    for name, K, T, kind, tabs in insts:
        s = 0
        for r, (bank, wh, l, M) in enumerate(tabs): s += rule(bank, wh, l, M, r)[1] - (M.sum(0) * (T / M.shape[0])).min()
        v.append(s / len(tabs))
    return np.array(v)
def report_mine(insts, ref, rows, n=4, every=None):
    names = list(ref); R = np.array([ref[k] for k in names]); K = np.array([i[1] for i in insts]); best = np.nanmin(R, 0); kind = np.array([i[3] for i in insts]); T = np.array([i[2] for i in insts])
    kinds = list(dict.fromkeys(kind))
    print(f"{'ratio to best':26s}  worst   geo | " + " ".join(f"{k[:9]:>9s}" for k in kinds))
    for name, v in {**(ref if every else {}), **rows}.items():
        rat = np.maximum(v + K, 0) / np.maximum(best + K, 1); ok = kind != "switching"
        gm = lambda z: np.exp(np.log(np.maximum(z, .05)).mean())
        print(f"{name:26s} {np.nanmax(rat[ok]):6.2f} {gm(rat[ok]):5.2f} | " + " ".join(f"{gm(rat[kind == k]):9.2f}" if k != "switching" else f"{(v / np.sqrt(K * T))[kind == k].mean():9.3f}" for k in kinds), " | ", "; ".join(f"{rat[j]:.1f} {insts[j][0]}: {v[j]:.0f} against {best[j]:.0f} {names[int(np.nanargmin(R[:, j]))]}" for j in np.argsort(-np.where(ok, rat, 0))[:n]))
    sys.stdout.flush()
