from common import *
import glance_reveal as gr
def GR(*a): return lambda b, w, l, m, s: gr.play(b, w, l, m, s, N14, *a)
V = {"rule": GR(4., 4., 2., .02, .002, 0.), "rho .05": GR(4., 4., 2., .05, .002, 0.), "sharp 2": GR(2., 4., 2., .02, .002, 0.), "sharp 2, rho .05, reveal .5": GR(2., 4., 2., .05, .002, .5), "sharp 3, rho .1": GR(3., 4., 2., .1, .002, 0.), "sharp 1": GR(1., 4., 2., .02, .002, 0.)}
for k, v in V.items():
    hubs = long.regrets("tune", v, 4, only=lambda name: "star" in name or "wheel" in name or "nested" in name, cap=30000)
    long.report(k + " (tune, Bernoulli: stars, wheels, nested, 4 runs)", hubs, 3)
all3({k: V[k] for k in ("sharp 2", "rho .05", "sharp 2, rho .05, reveal .5")}, turn=False)
