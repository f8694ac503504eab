"""Who is fooled: mean regret / (that of the better or worse rival)."""
from common import *
import numpy as np, problems as pb
V = {"glance": GF(), "today": run.G(rules.today()), "gauss ts": run.SIMPLE["gauss ts"], "follow means": run.SIMPLE["follow means"], "exp3-set": run.CAT["exp3-set"]}
def world(kind, K, T, gap, rng):
    g = np.full(K, gap); best = K // 2; g[best] = 0
    if kind == "constrained":
        m = np.zeros((T, 1)); end = 0; length = 1; ph = 0
        while end < T: m[end:end + length] = (1 - gap) * (ph % 2); end += length; length = -(-8 * length // 5); ph += 1
        M = m + g
    elif kind.startswith("corrupted"):
        M = np.tile(.4 + g, (T, 1)); n = int(np.sqrt(T)) if kind.endswith("root") else T // 10; M[:n] = 1 - M[:n]
    else:
        M = np.tile(.4 + g, (T, 1)); at = T // 2 if kind.endswith("half") else T // 10; h = M[0].copy(); h[best] = .4 + gap; h[0] = .4; M[:at] = h
        if kind.endswith("half"): M[at:, best] -= gap / 2
    return M
for T, runs in ((365, 24), (100000, 1)):
    print("T", T); tot = {}
    for kind in ("constrained", "corrupted root", "corrupted tenth", "switching tenth", "switching half"):
        for name, A in (("loops 8", pb.loops(8)), ("nested 12", pb.nested(12)), ("star 8", pb.star(8)), ("upwards 12", pb.upwards(12))):
            K = A.shape[0]; out = {}
            for v, rule in V.items():
                s = []
                for gap in (.1, .3):
                  for r in range(runs):
                    M = world(kind, K, T, gap, None); rng = np.random.default_rng([5, r]); l = (rng.random(M.shape) < M).astype(float)
                    s.append(rule(A[None], np.zeros(T, np.int64), l, M, r)[1] - M.sum(0).min())
                out[v] = np.mean(s)
            print(f"{kind:16s} {name:10s}", " ".join(f"{k} {x:.0f}" for k, x in out.items())); sys.stdout.flush()
            for k, x in out.items(): tot[kind, k] = tot.get((kind, k), 0) + x / 4
    for kind in dict.fromkeys(k for k, _ in tot): print("mean", kind, " ".join(f"{k} {tot[kind, k]:.0f}" for k in V))
