import run, rules, sys
R = rules
def load(half=0, kind="OWNERS"):
    insts = [i for i in run.get(kind) if half is None or i.half == half]
    ref = run.table(insts, {**run.SIMPLE, **run.CAT}, f"ref_{kind}{half}.pkl")
    return insts, ref
def g(**k):
    p = rules.rule_a(k.pop("lift", 0.)); p[R.BC] = 2; p[R.BV0] = .1; p[R.BUD] = 1; p[R.BUD0] = 1; p[R.FLOOR] = 1e9; p[R.BVSHARE] = 2; p[R.BCAP] = 1; p[R.MIXC] = 1; p[R.RHO] = .02; p[R.RHOX] = .01; p[R.BUD] = 1; p[R.BUD0] = 1
    for n, x in k.items(): p[getattr(R, n)] = x
    return run.G(p)

def turn_report(half, V, show=True):
    insts = [i for i in run.get("TURNING") if half is None or i.half == half]
    import os, pickle
    f = f"ref_turn{half}.pkl"
    if not os.path.exists(f):
        pickle.dump(run.scaled(insts, {k: v for k, v in {**run.SIMPLE, **run.CAT, "today": run.G(rules.today()), "A": g(BCAP=0), "A lift": g(BCAP=0, lift=1.)}.items() if k != "ts-n"}), open(f, "wb"))
    ref = pickle.load(open(f, "rb"))
    rows = run.scaled(insts, V)
    fam = run.np.array([i.family for i in insts])
    print(f"{'regret/(range sqrt KT)':24s}" + "".join(f"{k[:10]:>11s}" for k in dict.fromkeys(fam)))
    for name, v in {**(ref if show else {}), **rows}.items():
        print(f"{name:24s}" + "".join(f"{v[fam == k].mean():11.3f}" for k in dict.fromkeys(fam)))
import rules2, long, os, pickle
N = run.NOLOG
def G2(**k):
    p = rules2.default(**k); return lambda b, w, l, m, s: rules2.glance(b, w, l, m, p, s, N)
def long_setup():
    insts = long.mine()
    f = "ref_long.pkl"
    if not os.path.exists(f):
        rules_ = {"today": run.G(rules.today()), "A": g(BCAP=0), **{k: run.CAT[k] for k in ("ucb-n", "ts-n", "exp3-set")}}
        ref = {k: long.play_mine(insts, r) for k, r in rules_.items()}
        for j, i in enumerate(insts):
            if i[3] == "beta": ref["ts-n"][j] = float("nan")
        simple = {k: long.play_mine(insts, run.SIMPLE[k]) for k in ("gauss ts", "maillard", "root .3", "follow means")}
        pickle.dump((ref, simple), open(f, "wb"))
    return insts, *pickle.load(open(f, "rb"))
def all3(V, owners=True, turn=True, lng=True, first=False):
    if owners:
        insts, ref = load(); run.report(insts, ref, run.table(insts, V), 0)
    if turn: turn_report(0, V, first)
    if lng:
        insts, ref, simple = long_setup()
        if first: long.report_mine(insts, ref, simple, 2, True)
        long.report_mine(insts, ref, {k: long.play_mine(insts, r) for k, r in V.items()})
import glance
N14 = run.np.zeros((0, 14))
def GF(*a): return lambda b, w, l, m, s: glance.play(b, w, l, m, s, N14, *a)
