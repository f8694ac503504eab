"""The half that nothing was chosen on: python held.py"""
from common import *
V = {"glance": G2(), "glance student": G2(STUD=2., BC=4.)}
W = {"today": run.G(rules.today()), "two changes": run.G(rules.two()), "rule A": run.G(rules.rule_a(1.))}
for half in (1, 0):
    insts, ref = load(half)
    print("OWNERS half", half); run.report(insts, ref, {**ref, **run.table(insts, {**V, **(W if half else {})})}, half, by_family=False)
    turn_report(half, V, True)
