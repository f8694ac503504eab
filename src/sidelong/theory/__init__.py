"""Theory that runs: the paper's theorems, propositions and lemmas by number, and what they promise on a graph.

The bounds of `glance` are in `sidelong.theory.glance`, the rivals' in `sidelong.theory.rivals`, those with late
feedback in `sidelong.theory.delay`, those of `exp3-set` where arms come and go or the best one moves in
`sidelong.theory.exp3_set`, that of `exp3.g` without a horizon in `sidelong.theory.exp3_g`, that of `squarecb.g`, which
plays by features, in `sidelong.theory.squarecb`, the lower bounds in `sidelong.theory.lower`.

    >>> from sidelong import theory
    >>> round(theory.theorem_2(K=10, T=100_000, strong_independence=10))
    6080
    >>> theory.t_min(K=10, gap=0.2, lambda_=10) > 1e11  # rounds, before exploration leaves its cap
    True
"""

from sidelong.theory import delay, exp3_g, exp3_set, glance, lower, rivals, squarecb
from sidelong.theory.bounds import (
    BETA,
    GAMMA,
    Orders,
    R_tmin,
    o_t,
    t_min,
    theorem_1,
    theorem_2,
    theorem_3,
    theorem_4_adversarial,
    theorem_4_epochs,
    theorem_4_stochastic,
    theorem_4_theta,
    theorem_5,
    theorem_6,
)
from sidelong.theory.lemmas import (
    lemma_1_lower,
    lemma_1_upper,
    lemma_2,
    lemma_3,
    lemma_4,
    lemma_5_linear,
    lemma_5_root,
    lemma_6,
    lemma_8,
    lemma_9,
    lemma_10,
    proposition_2,
    proposition_3,
    proposition_5,
    proposition_6,
    proposition_7,
    proposition_8,
)
from sidelong.theory.promises import Promise, crossing, promises, worth_from
from sidelong.theory.setting import Setting

__all__ = [
    "BETA",
    "GAMMA",
    "Orders",
    "Promise",
    "R_tmin",
    "Setting",
    "crossing",
    "delay",
    "exp3_g",
    "exp3_set",
    "glance",
    "lemma_1_lower",
    "lemma_1_upper",
    "lemma_2",
    "lemma_3",
    "lemma_4",
    "lemma_5_linear",
    "lemma_5_root",
    "lemma_6",
    "lemma_8",
    "lemma_9",
    "lemma_10",
    "lower",
    "o_t",
    "promises",
    "proposition_2",
    "proposition_3",
    "proposition_5",
    "proposition_6",
    "proposition_7",
    "proposition_8",
    "rivals",
    "squarecb",
    "t_min",
    "theorem_1",
    "theorem_2",
    "theorem_3",
    "theorem_4_adversarial",
    "theorem_4_epochs",
    "theorem_4_stochastic",
    "theorem_4_theta",
    "theorem_5",
    "theorem_6",
    "worth_from",
]
