"""UCB-N against its oracle, UCB1, the world that breaks it, and what is known of how it fares."""

import math

import numpy as np
import pytest

import naive
import sidelong as sl
from learners.stepping import Stepper, follow, random_digraph
from sidelong.learners import catalogue

#: The constants of Qi, Fei, Zhu (UAI 2024), whose index is mean + sqrt(ln(sqrt(2) T^2) / n) of rewards 1 - loss.
QI = {"width": 1.0, "delta": 1 / (math.sqrt(2) * 10_000**2), "unseen": 1.0}


@pytest.mark.interpreted
@pytest.mark.parametrize("options", [QI, {"delta": 0.1}, {"unseen": 0.5, "width": 0.5}], ids=str)
@pytest.mark.parametrize("learner", ["ucb-n", "ucb-maxn"])
def test_constants_of_others_agree_with_the_oracle_and_have_no_theorem(learner, options):
    rng = np.random.default_rng(3)
    bank = [random_digraph(rng, 7) for _ in range(2)]
    agent = sl.Agent(learner, sl.FeedbackGraph.from_matrix(bank[0]), seed=1, **options)
    follow(agent, (naive.UcbN if learner == "ucb-n" else naive.UcbMaxN)(7, **options), bank, seed=1)
    assert catalogue.proved(catalogue.choose(learner, options), options) == ()


@pytest.mark.interpreted
def test_it_plays_as_the_code_of_qi_et_al_does():
    """The rule of their code, in rewards: an arm begins with mean 0 and the width of one observation."""
    rng = np.random.default_rng(5)
    graph, T = sl.graphs.circulant(12, 2), 400
    losses = (rng.random((T, 12)) < rng.random(12)).astype(float)
    agent = sl.Agent("ucb-n", graph, width=1, delta=1 / (math.sqrt(2) * T**2), unseen=1)
    n, mean, c = np.zeros(12), np.zeros(12), math.sqrt(math.log(math.sqrt(2) * T**2))
    for t in range(T):
        decision = agent.ask()
        assert decision.arm == int(np.argmax(np.round(mean + c / np.sqrt(np.maximum(n, 1)), 12))), t
        seen = decision.reveals
        mean[seen] = (mean[seen] * n[seen] + 1 - losses[t, seen]) / (n[seen] + 1)
        n[seen] += 1
        agent.tell(decision, losses[t, seen].tolist())


def ucb1(world, rounds):
    """Auer, Cesa-Bianchi, Fischer (2002): each arm once, then the best mean + sqrt(2 ln t / n) of rewards 1 - loss."""
    K = world.n_arms
    rewards = [[] for _ in range(K)]
    played = []
    for t in range(1, rounds + 1):
        if t <= K:
            arm = t - 1
        else:
            score = [np.mean(each) + math.sqrt(2 * math.log(t) / len(each)) for each in rewards]
            arm = int(np.argmax(score))
        played.append(arm)
        rewards[arm].append(1 - world.loss(3, 0, t, arm))
    return played


@pytest.mark.interpreted
@pytest.mark.parametrize("make", [sl.losses.bernoulli, lambda means: sl.losses.beta(means, 5)])
def test_on_self_loops_it_is_ucb1(make):
    world = make([0.5, 0.3, 0.6, 0.45])
    agent = sl.Agent("ucb-n", sl.graphs.self_loops(4), seed=3)
    played = []
    for t in range(1, 801):
        decision = agent.ask()
        played.append(decision.arm)
        agent.tell(decision, [world.loss(3, 0, t, decision.arm)])
    assert played == ucb1(world, 800)


BREAKABLE = {
    "self-loops": sl.graphs.self_loops(10),
    "star": sl.graphs.star(7, hub=3),
    "cliques": sl.graphs.cliques([4, 3, 3]),
    "directed cycle": sl.graphs.directed_cycle(6),
    "nested": sl.graphs.nested(8),
    "random": sl.FeedbackGraph.from_matrix(random_digraph(np.random.default_rng(0), 12)),
    "one arm": sl.graphs.complete(1),
}


@pytest.mark.parametrize("name", BREAKABLE)
def test_the_breaker_knows_every_arm_it_plays(name):
    """The recorded opponent was typed on its own; a loss of 1 in every round says that it plays as this one does."""
    graph = BREAKABLE[name]
    world = sl.losses.breaker(graph, rounds=20_000)
    result = sl.simulate("ucb-n", graph, world, rounds=20_000, checkpoints=[20_000])
    assert result.loss[0, 0] == 20_000
    assert result.regret[0, 0] >= 20_000 * (1 - 1 / graph.n_arms)


@pytest.mark.interpreted
def test_arms_never_observed_go_first_and_the_lowest_index_between_equal_ones():
    stepper = Stepper("ucb-n", sl.graphs.path(5))
    played = []
    for _ in range(4):
        p = stepper.distribution()
        assert sorted(p) == [0, 0, 0, 0, 1]
        played.append(int(np.argmax(p)))
        stepper.update(played[-1], [0.5] * 5)
    assert played == [0, 2, 4, 0]  # 2 reveals 1 and 3; then O = (1, 2, 1, 2, 1)


@pytest.mark.interpreted
def test_the_bound_is_that_of_the_formula():
    stepper = Stepper("ucb-n", sl.graphs.self_loops(3), width=0.5)
    stepper.state.O[:], stepper.state.mean[:] = [4, 9, 0], [0.5, 0.25, 0]
    stepper.t = 99
    assert stepper.distribution().tolist() == [0, 0, 1]
    radius = math.sqrt(0.5 * math.log(100))
    assert stepper.state.bound.tolist() == pytest.approx([0.5 - radius / 2, 0.25 - radius / 3, -math.inf])
