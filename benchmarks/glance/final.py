"""The final prototype, on both halves: python final.py"""
from common import *
V = {"glance": GF()}
for half in (0, 1):
    insts, ref = load(half)
    print("OWNERS half", half, "(tuned)" if half == 0 else "(held back)"); run.report(insts, ref, {**ref, **run.table(insts, V)}, half, by_family=False); sys.stdout.flush()
    turn_report(half, V, False); sys.stdout.flush()
insts, ref, simple = long_setup()
long.report_mine(insts, ref, {**simple, "glance": long.play_mine(insts, V["glance"])})
