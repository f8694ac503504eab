from common import *
V = {"glance": GF()}
insts, ref = load(1); rows = run.table(insts, V)
run.report(insts, ref, {**ref, **rows}, 1, 4, by_family=False); run.report(insts, ref, rows, 1, 6, by_family=True)
m365 = [k for k, i in enumerate(insts) if i.T == 365]
