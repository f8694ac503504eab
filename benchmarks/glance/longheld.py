"""Every second instance of the report suite (nothing was chosen on it): python longheld.py"""
from common import *
import numpy as np
def report_set(runs=2, cap=60000):
    out = []
    for k, (name, graph, world, T) in enumerate(list(long.suites.report())[:-1:2]):
        if T > cap or graph.n_arms > 60: continue
        tabs = []
        for r in range(runs):
            rng = np.random.default_rng([79, k, r]); bank, wh = long.bank_of(graph, T, rng); l, M = world.table(rng, T); tabs.append((np.ascontiguousarray(bank), wh, l, M))
        out.append((name, graph.n_arms, T, world.a[0], tabs))
    return out
insts = report_set()
R_ = {"glance": GF(), "today": run.G(rules.today()), **{k: run.CAT[k] for k in ("ucb-n", "ts-n")}, **{k: run.SIMPLE[k] for k in ("gauss ts", "follow means", "root .3")}}
rows = {k: long.play_mine(insts, r) for k, r in R_.items()}
for j, i in enumerate(insts):
    if i[3] == "beta": rows["ts-n"][j] = np.nan
long.report_mine(insts, {k: rows[k] for k in ("today", "ucb-n", "ts-n")}, rows, 5)
pickle.dump((rows, [i[:4] for i in insts]), open("longheld.pkl", "wb"))
