from common import *
import glance_reveal as gr
def GR(r): return lambda b, w, l, m, s: gr.play(b, w, l, m, s, N14, 4., 4., 2., .02, .002, r)
V = {"reveal 0": GR(0.), "reveal .5": GR(.5), "reveal 1": GR(1.)}
if __name__ == "__main__":
    all3(V, turn=False)
    import re
    for k, v in V.items():
        hubs = long.regrets("tune", v, 2, only=lambda name: "star" in name or "wheel" in name or "nested" in name)
        long.report(k + " (tune, Bernoulli: stars, wheels, nested)", hubs, 3)
