"""Agents beside the oracles of naive.py: the same probabilities in every round, also with late feedback.

Learners whose oracle needs more than a graph of each round are compared with it in files of their own.
"""

import numpy as np
import pytest

import naive
import sidelong as sl
from learners.stepping import follow, random_digraph
from nightly import share


def undirected(rng, K):
    A = random_digraph(rng, K)
    return A | A.T


def complete(_, K):
    return np.ones((K, K), bool)


def played(learner, bank, seed, **options):
    return sl.Agent(learner, sl.FeedbackGraph.from_matrix(bank[0]), seed=seed, **options)


def exp3pp(K, bank, seed):
    """Half of the seeds have constants that let gaps show early."""
    constants = {"gamma": 0.1, "beta": 0.001} if seed % 2 else {}
    return played("exp3++", bank, seed, **constants), naive.Exp3pp(K, **constants)


def exp3_set(K, bank, seed):
    scale = [1.0, 0.7, 3.0][seed]
    return played("exp3-set", bank, seed, eta_scale=scale), naive.Exp3Set(K, scale)


def ito_2022(K, bank, seed):
    Z = max(naive.strong_independence(A) for A in bank)
    return played("ito-2022", bank, seed, horizon=5000, strong_independence=Z), naive.Ito2022(K, Z, 5000)


def maillard(K, bank, seed):
    sharpness = [1.0, 0.5, 4.0][seed]
    return played("maillard", bank, seed, sharpness=sharpness), naive.Maillard(K, sharpness)


def q_tsallis(K, bank, seed):
    alpha = float(np.mean([naive.independence(A) for A in bank]))
    return played("q-tsallis", bank, seed, horizon=500, independence=alpha), naive.QTsallis(K, alpha, 500)


def spm_2024(K, bank, seed):
    alpha = 1.0 + seed % K
    return played("spm-2024", bank, seed, independence=alpha), naive.Spm2024(K, naive.default_power(K, alpha))


def tsallis(**options):
    return lambda K, bank, seed: (played("tsallis-inf", bank, seed, **options), naive.TsallisInf(K, **options))


def ucb_n(K, bank, seed):
    width = [2.0, 0.5, 1.0][seed]
    return played("ucb-n", bank, seed, width=width), naive.UcbN(K, width)


def ucb_maxn(K, bank, seed):
    width = [2.0, 0.2, 2.0][seed]
    return played("ucb-maxn", bank, seed, width=width), naive.UcbMaxN(K, width)


#: Of each learner: who plays, the kind of graphs, whether a graph may be shown after the draw, and rounds.
PAIRS = {
    "exp3": (lambda K, bank, seed: (played("exp3", bank, seed), naive.Exp3(K)), random_digraph, False, 150),
    "exp3++": (exp3pp, random_digraph, False, 400),
    "exp3-ix": (lambda K, bank, seed: (played("exp3-ix", bank, seed), naive.Exp3Ix(K)), random_digraph, True, 150),
    "exp3-set": (exp3_set, random_digraph, True, 150),
    "hedge": (lambda K, bank, seed: (played("hedge", bank, seed), naive.Hedge(K)), complete, False, 150),
    "ito-2022": (ito_2022, random_digraph, True, 150),
    "maillard": (maillard, random_digraph, False, 150),
    "q-tsallis": (q_tsallis, undirected, True, 150),
    "spm-2024": (spm_2024, undirected, True, 60),
    "tsallis-inf": (tsallis(), random_digraph, True, 150),
    "tsallis-inf rv": (tsallis(estimator="rv"), random_digraph, True, 150),
    "tsallis-inf graph": (tsallis(feedback="graph"), random_digraph, True, 150),
    "tsallis-inf rv, graph": (tsallis(estimator="rv", feedback="graph"), random_digraph, True, 150),
    "ucb-maxn": (ucb_maxn, random_digraph, False, 150),
    "ucb-n": (ucb_n, random_digraph, True, 150),
}
GAMES = [
    (name, late, after)
    for name, (_, _, may_be_after, _) in PAIRS.items()
    for late in (False, True)
    for after in ((False, True) if may_be_after else (False,))
]


@pytest.mark.interpreted
@pytest.mark.parametrize(("name", "late", "after"), GAMES)
@pytest.mark.parametrize("seed", share(range(3), 2))
def test_agrees_with_the_oracle_in_every_round(name, late, after, seed):
    """Random digraphs of 2 to 8 arms, of which there are three; odd seeds have losses 0 and 1."""
    make, graphs, _, rounds = PAIRS[name]
    rng = np.random.default_rng(seed)
    K = int(rng.integers(2, 9))
    bank = [graphs(rng, K) for _ in range(3)]
    agent, oracle = make(K, bank, seed)
    follow(agent, oracle, bank, rounds=rounds, late=late, after=after, seed=seed)
    if hasattr(oracle, "O"):
        assert getattr(agent._state, "O", agent.estimates().counts).tolist() == list(oracle.O)
    if name == "exp3++":
        assert (agent.estimates().gaps > 0).any() == (seed % 2 == 1)
