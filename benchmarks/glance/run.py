import numpy as np, sys, time, pickle, os
import problems, rules
NOLOG = np.zeros((0, 8))
_SC = {}
def play(inst, rule, seeds=1):
    """Mean over runs of the loss of the rule."""
    out = np.zeros(inst.losses.shape[0])
    for r in range(inst.losses.shape[0]):
        s = 0
        for k in range(seeds): s += rule(inst.bank, inst.which[r], inst.losses[r], score(inst, r), 1000 * r + k)[1]
        out[r] = s / seeds
    return out
def score(inst, r):
    """What a play is charged: the mean of the arm where nothing changes, over time where it does"""
    if inst.family in problems.OWNERS and inst.family != "stock seasonal":
        if (inst.name, inst.half) not in _SC: _SC[inst.name, inst.half] = inst.losses.mean((0, 1))[None]
        return _SC[inst.name, inst.half]
    return inst.losses[r]
def best_uniform(inst):
    m = inst.losses.mean(0).sum(0)  # by arm
    return m.min(), m.mean()
R = rules
SIMPLE = {
    "follow means": lambda b, w, l, m, s: R.simple(b, w, l, m, R.FTM, 0., 0., 0., s),
    "eps-greedy": lambda b, w, l, m, s: R.simple(b, w, l, m, R.EPS, 1., 0., 0., s),
    "bernstein": lambda b, w, l, m, s: R.simple(b, w, l, m, R.BERN, .25, .01, 0., s),
    "root .3": lambda b, w, l, m, s: R.simple(b, w, l, m, R.ROOT, .3, 0., 0., s),
    "gauss ts": lambda b, w, l, m, s: R.simple(b, w, l, m, R.GTS, 1., .1, 0., s),
    "maillard": lambda b, w, l, m, s: R.simple(b, w, l, m, R.MAIL, 1., .1, 0., s),
}
CAT = {
    "ucb-n": lambda b, w, l, m, s: R.simple(b, w, l, m, R.UCBN, 0., 0., 0., s),
    "ts-n": lambda b, w, l, m, s: R.simple(b, w, l, m, R.TSN, 0., 0., 0., s),
    "exp3-set": lambda b, w, l, m, s: R.exp3set(b, w, l, m, s),
}
def G(prm):
    return lambda b, w, l, m, s: R.glance(b, w, l, m, prm, s, NOLOG)
def table(insts, named, cache=None, seeds=1):
    """shares (rule, instance): regret over random play's regret"""
    store = pickle.load(open(cache, "rb")) if cache and os.path.exists(cache) else {}
    rows = {}
    for name, rule in named.items():
        if name in store and len(store[name]) == len(insts): rows[name] = store[name]; continue
        t0 = time.time(); v = []
        for i in insts:
            if name == "ts-n" and not i.binary: v.append(np.nan); continue
            best, uni = best_uniform(i)
            v.append((play(i, rule, seeds).mean() - best) / (uni - best))
        rows[name] = np.array(v); print(f"{name}: {time.time() - t0:.1f} s", file=sys.stderr, flush=True)
        if cache: store[name] = rows[name]; pickle.dump(store, open(cache, "wb"))
    return rows
def scaled(insts, named, cache=None, seeds=1):
    """regret / (range sqrt(KT)) (rule, instance)"""
    rows = {}
    for name, rule in named.items():
        v = []
        for i in insts:
            m = i.losses.mean(0).sum(0)
            v.append((play(i, rule, seeds).mean() - m.min()) / np.sqrt(i.K * i.T) / np.ptp(i.losses))
        rows[name] = np.array(v)
    return rows
def get(kind):
    f = f"./{kind}.pkl"
    if not os.path.exists(f):
        pickle.dump(problems.suite(getattr(problems, kind)), open(f, "wb"), protocol=4)
    return pickle.load(open(f, "rb"))
def report(insts, ref, rows, half=None, worst=3, by_family=False):
    idx = np.array([i for i, x in enumerate(insts) if half is None or x.half == half])
    best = np.fmin.reduce([v for v in ref.values()])[idx]
    T = np.array([insts[i].T for i in idx])
    print(f"{'rule':28s} meanex worstex  mean |" + "".join(f"{h:7d}" for h in problems.HORIZONS) + " | worst")
    for name, v in rows.items():
        v = v[idx]; ex = v - np.minimum(best, v) if False else v - best
        if np.isnan(v).all(): continue
        o = np.argsort(-np.nan_to_num(ex, nan=-9))[:worst]
        print(f"{name:28s} {np.nanmean(ex):6.3f} {np.nanmax(ex):6.3f} {np.nanmean(v):6.3f} |" + "".join(f"{np.nanmean(v[T == h]):7.3f}" for h in problems.HORIZONS) + " | " + "; ".join(f"{insts[idx[k]].name} {ex[k]:.2f}" for k in o))
    if by_family:
        fam = np.array([insts[i].family for i in idx])
        for name, v in rows.items():
            print(name, " ".join(f"{g}:{np.nanmean(v[idx][fam == g] - best[fam == g]):.2f}" for g in dict.fromkeys(fam)))
