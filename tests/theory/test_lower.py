"""The linear program c*, and the lower bound against adversaries."""

import math

import numpy as np
import pytest
from scipy import optimize

import sidelong as sl
from sidelong import graphs, theory
from sidelong.errors import ObservabilityError, TheoryError
from sidelong.learners import catalogue
from sidelong.theory import lower

MEANS = [0.4, 0.6, 0.6, 0.6, 0.6]


@pytest.mark.parametrize(
    ("graph", "value"),
    [
        (graphs.self_loops(5), 9.865213850),
        (graphs.complete(5), 0.0),
        (graphs.star(5), 0.0),  # the hub is best
        (graphs.star(5, hub=1), 2.466303462),
    ],
)
def test_c_star_in_closed_form(graph, value):
    found = lower.c_star(graph, MEANS)
    assert found.value == pytest.approx(value, abs=5e-10)
    assert found.upper == pytest.approx(value, abs=5e-10)


@pytest.mark.parametrize("seed", range(40))
def test_c_star_is_the_program_of_its_definition_and_its_two_sides_are_certified(seed):
    rng = np.random.default_rng(seed)
    K = int(rng.integers(2, 15))
    A = (rng.random((K, K)) < rng.uniform(0.05, 0.6)) | np.eye(K, dtype=bool)
    graph = sl.FeedbackGraph.from_matrix(A)
    means = np.round(rng.uniform(0.05, 0.95, K), int(rng.integers(1, 4)))
    gap = means - means.min()
    need = [1 / lower.relative_entropy(mu, means.min()) if g > 0 else 0.0 for mu, g in zip(means, gap, strict=True)]
    found = lower.c_star(graph, means)
    want = optimize.linprog(gap, A_ub=-A.T.astype(float), b_ub=-np.array(need), bounds=(0, None))
    assert found.value == pytest.approx(want.fun, rel=1e-6, abs=1e-6)
    # what the plays and the prices prove, with nothing trusted
    free = gap == 0
    observed = A.T.astype(float) @ found.plays + np.where(A[free].any(axis=0), np.inf, 0.0)
    assert (observed >= np.array(need) * (1 - 1e-12)).all()
    assert (A.astype(float) @ found.prices <= gap * (1 + 1e-12)).all()
    assert found.plays @ gap == pytest.approx(found.upper, rel=1e-12)
    assert found.prices @ need >= found.value * (1 - 1e-12)
    assert found.value <= found.upper <= found.value * (1 + 1e-7) + 1e-12


def test_a_best_arm_that_never_loses_is_known_at_once():
    assert lower.c_star(graphs.self_loops(3), [0.0, 0.5, 0.5]).value == 0


def test_c_star_refuses_what_it_is_not_for():
    with pytest.raises(TheoryError, match="3 numbers from 0 to 1"):
        lower.c_star(graphs.self_loops(3), [0.1, 0.2])
    with pytest.raises(TheoryError, match="no arm reveals arm 1"):
        lower.c_star(sl.FeedbackGraph.from_matrix([[1, 0], [0, 0]]), [0.1, 0.2])
    with pytest.raises(TheoryError, match="at most 1,000,000 edges"):
        lower.c_star(graphs.nested(2000), np.linspace(0, 1, 2000))


def test_the_adversarial_floor_begins_at_374_alpha_cubed():
    assert lower.adversarial_floor(T=374 * 8, independence=2) == pytest.approx(0.06 * math.sqrt(2 * 374 * 8))
    assert lower.adversarial_floor(T=374 * 8 - 1, independence=2) is None
    assert lower.adversarial_floor(T=1e9, independence=1) is None


def can_play(name, graph):
    try:
        catalogue.check_graph(catalogue.find(name), graph)
    except ObservabilityError:
        return False
    return True


def test_no_bound_is_below_the_adversarial_floor():
    """A bound of a learner and the lower bound cannot both be right if they cross."""
    for graph in (graphs.self_loops(6), graphs.cycle(9), graphs.star(5), graphs.erdos_renyi(12, 0.3, 1, directed=True)):
        setting = theory.Setting(graph)
        for T in (1e4, 1e6, 1e9):
            floor = lower.adversarial_floor(T=T, independence=setting.independence[0]) or 0.0
            names = [name for name in catalogue.names() if can_play(name, graph)]
            for promise in theory.promises(setting, names):
                if promise.adversarial:
                    assert promise.adversarial(setting, T) > floor, promise.title
