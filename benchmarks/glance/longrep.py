"""All 120 instances of the report suite of up to 50,000 rounds, 2 runs, against the catalogue through the package (6 runs): python longrep.py"""
from common import *
out = long.regrets("report", GF(), 2)
pickle.dump(out, open("longrep.pkl", "wb"))
long.report("glance, report suite", out, 12)
for kind in ("bernoulli", "constrained", "beta", "corrupted", "switching"):
    sub = [o for o in out if f", {kind}," in o[0]]
    r = run.np.array([o[6] for o in sub]); print(kind, len(sub), "worst %.2f geo %.2f" % (r.max(), run.np.exp(run.np.log(run.np.maximum(r, .05)).mean())), "R/sqrt(KT) %.3f today %.3f" % (run.np.mean([o[3] / (o[1] * o[2]) ** .5 for o in sub]), run.np.mean([o[7] / (o[1] * o[2]) ** .5 for o in sub])))
