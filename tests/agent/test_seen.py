"""Which arm is the cheapest as far as an agent knows, and how sure it is."""

import pickle

import numpy as np
import pytest
from scipy import special

import sidelong as sl
from sidelong import estimates
from sidelong.estimates import chance_of_best


def play(agent, rounds, losses):
    for t in range(rounds):
        decision = agent.ask()
        agent.tell(decision, losses[t][decision.reveals])
    return agent


def test_before_anything_was_told_there_is_no_cheapest_arm():
    known = sl.Agent("exp3.g++", sl.graphs.nested(3)).estimates()
    assert known.best is None
    assert known.sure == 0.0
    assert "cheapest" not in str(known)


def test_the_table_says_which_arm_by_its_label():
    agent = sl.Agent("exp3.g++", sl.graphs.nested(2).labelled(["small", "large"]), seed=1)
    play(agent, 50, np.tile([0.9, 0.1], (50, 1)))
    assert str(agent.estimates()).splitlines()[-1] == "cheapest so far: 'large', 100 % sure"


@pytest.mark.parametrize("kept", ["file", "pickle"])
def test_it_is_kept(kept, tmp_path):
    agent = play(sl.Agent("exp3-set", sl.graphs.nested(4), seed=1), 40, np.random.default_rng(2).random((40, 4)))
    if kept == "file":
        agent.save(tmp_path / "a.sidelong")
        other = sl.Agent.load(tmp_path / "a.sidelong")
    else:
        other = pickle.loads(pickle.dumps(agent))  # noqa: S301  # our own
    for mine, theirs in zip(agent.estimates()[:5], other.estimates()[:5], strict=True):
        np.testing.assert_array_equal(mine, theirs)
    more = np.random.default_rng(3).random((40, 4))
    assert play(agent, 40, more).estimates().sure == play(other, 40, more).estimates().sure


def test_where_the_outcome_decides_the_graph_days_are_not_selected():
    """Other arms reveal arm 0 on days of low demand only, on which it is cheap."""
    agent = sl.Agent("uniform", sl.graphs.self_loops(3), seed=1)
    rng = np.random.default_rng(5)
    for _ in range(2000):
        demand = int(rng.integers(0, 4))
        losses = np.array([demand / 3, max(demand - 1, 0) / 3 + 0.02, 0.3])
        decision = agent.ask()
        shown = sl.graphs.complete(3) if demand < 2 else sl.graphs.self_loops(3)
        agent.tell(decision, losses[shown.out_neighbors(decision.arm)], graph=shown)
    known = agent.estimates()
    # All that was told of arm 0 has a mean of 0.36 +- 0.01; what could not have been hidden, 0.5.
    np.testing.assert_allclose(known.means, [0.5, 0.27, 0.3], atol=0.06)  # 4 standard errors of 0.015
    assert known.counts.sum() > 3000  # all that was revealed
    assert (known.effective < known.counts).all()


@pytest.mark.parametrize("learner", ["glance", "exp3-set"])
def test_the_best_order_is_found_from_sales(learner):
    """Of what orders of each size cost, small demand shows all, and large demand the small ones alone."""
    orders = sl.outcomes.StockOrders(6, holding=1, shortage=3)
    rng = np.random.default_rng(4)
    named = played = 0
    for seed in range(8):
        demand = rng.integers(0, 7, 400)
        truth = np.mean([orders.outcome(6, sales=int(each)).losses for each in demand], axis=0)
        agent = sl.Agent(learner, orders.graph, seed=seed)
        for each in demand:
            decision = agent.ask()
            sold = min(decision.arm, int(each))
            agent.tell(decision, orders.outcome(decision.arm, sales=sold, ran_out=each > decision.arm or None))
        known = agent.estimates()
        named += truth[known.best] <= truth.min() + 0.02
        played += truth[known.weights.argmax()] <= truth.min() + 0.02
    assert min(named, played) >= 7  # by means of all that was told, the best order was named in a fourth of such games


def named_orders(learner, sales, rounds=1000, games=16):
    """Return the mean loss, beyond that of the best order, of the one that is named after games with lost sales."""
    orders = sl.outcomes.StockOrders(20, holding=1, shortage=4)
    truth = np.mean([orders.losses(each) for each in np.random.default_rng(1).poisson(7, 20_000)], axis=0)
    lost = []
    for seed in range(games):
        agent = sl.Agent(learner, orders.graph, seed=seed)
        for demand in np.random.default_rng(seed).poisson(7, rounds).tolist():
            decision = agent.ask()
            agent.tell(decision, sales(orders, decision, demand))
        lost.append(truth[agent.estimates().best] - truth.min())
    return np.mean(lost)


@pytest.mark.parametrize("learner", ["glance", "ucb-n"])
def test_neighbours_are_compared_by_the_rounds_that_show_both(learner):
    """With means of each arm's own rounds and weights of 1 / P, glance was at 0.0032 (40 games of other demands)."""
    lost = named_orders(learner, lambda orders, made, demand: orders.outcome(made.arm, sales=min(made.arm, demand)))
    assert lost < 0.002


def test_only_played_arms_count_once_an_outcome_has_hidden_what_the_graph_promised():
    """The orders that a guess shows are those of days of low demand, on which large ones cost more."""
    agent = sl.Agent("uniform", sl.graphs.complete(3), seed=1)
    rng = np.random.default_rng(2)
    for _ in range(3000):
        demand = int(rng.integers(0, 3))
        losses = np.abs(np.arange(3) - demand) / 2
        decision = agent.ask()
        shown = sl.graphs.nested(3) if decision.arm <= demand else sl.graphs.complete(3)
        agent.tell(decision, losses[shown.out_neighbors(decision.arm)], graph=shown)
    known = agent.estimates()
    np.testing.assert_allclose(known.means, [0.5, 1 / 3, 0.5], atol=0.055)  # 4 standard errors
    assert known.effective.sum() <= 3000 < known.counts.sum()


def test_arms_that_are_never_seen_together_have_their_own_means():
    """Pairs 0, 1 and 2, 3 are; the second pair lies where its surer arm does."""
    graph = sl.FeedbackGraph.from_edges([(0, 0), (1, 1), (1, 0), (2, 2), (3, 3), (3, 2)], 4)
    agent, losses = sl.Agent("uniform", graph, seed=1), np.array([0.1, 0.3, 0.7, 0.2])
    for _ in range(100):
        decision = agent.ask()
        agent.tell(decision, losses[decision.reveals], graph=graph)
    np.testing.assert_allclose(agent.estimates().means, losses, atol=1e-12)


def test_a_graph_that_is_told_counts_as_told_also_where_it_is_the_one_that_was_guessed():
    """Whether it was guessed right depends on the outcome: what else it shows may be of selected days."""
    agent, family = sl.Agent("uniform", sl.graphs.self_loops(2), seed=1), sl.Family("uniform", sl.graphs.self_loops(2))
    decision, plan = agent.ask(), family.ask(["a"])
    agent.tell(decision, [0.5], graph=sl.graphs.self_loops(2))
    family.tell(plan, [0.5], sl.graphs.self_loops(2))
    for sure in (agent.contents()[1]["observers.sure"], family.contents()[1]["observers.sure"]):
        assert sure.sum() == 1


def test_a_family_keeps_what_is_sure_once_an_outcome_has_decided_what_was_revealed(tmp_path):
    """In one of two parts of it, which are then joined; estimates are those of agents to the bit."""
    graph, losses = sl.graphs.nested(4), np.linspace(0.1, 0.9, 4)
    family = sl.Family("glance", graph)
    keys = [f"k{i}" for i in range(6)]
    agents = {key: sl.Agent("glance", graph, seed=family.seed_of(key)) for key in keys}
    for t in range(8):
        parts = family.split(2) if t == 4 else [family]
        for number, part in enumerate(parts):
            shown = sl.graphs.complete(4) if (t, number) == (4, 1) else None
            some = part.keys if t == 4 else keys
            batch, made = part.ask(some), [agents[key].ask() for key in some]
            told = [losses if shown else losses[each.reveals] for each in made]
            part.tell(batch, np.concatenate(told), shown)
            for key, each, values in zip(some, made, told, strict=True):
                agents[key].tell(each, values, shown)
        family = sl.Family.join(parts)
        family.save(tmp_path / "family")
        family = sl.Family.load(tmp_path / "family")
        assert family.contents()[1]["observers.sure"].shape == (6, 4 if t >= 4 else 0)
    for key in keys:
        ours, theirs = family[key].estimates(), agents[key].estimates()
        assert ours.means.tobytes() == theirs.means.tobytes()
        assert ours.spreads.tobytes() == theirs.spreads.tobytes()
        assert ours.effective.tobytes() == theirs.effective.tobytes()


def test_how_sure_it_is_is_how_often_it_is_right():
    """Over 1,000 problems the chances add up to the number of right answers; 5 standard errors, so 1e-6."""
    rng = np.random.default_rng(11)
    chances, right = [], []
    for _ in range(1000):
        K = int(rng.integers(2, 8))
        means = 0.5 + rng.normal(size=K) * 0.1
        counts = rng.integers(3, 200, K)
        told = [np.clip(rng.normal(mean, 0.15, n), 0.0, 1.0) for mean, n in zip(means, counts, strict=True)]
        found = np.array([each.mean() for each in told])
        spreads = np.array([each.std(ddof=1) for each in told])
        best = int(found.argmin())
        chances.append(chance_of_best(best, found, counts, spreads))
        right.append(means[best] == means.min())
    off = np.sum(chances) - np.sum(right)
    assert abs(off) < 5 * np.sqrt(np.sum(np.multiply(chances, np.subtract(1, chances))))


def test_an_arm_that_was_never_seen_may_be_the_cheapest():
    counts, spreads = np.array([100, 100, 0]), np.array([0.1, 0.1, np.nan])
    assert chance_of_best(0, np.array([0.2, 0.5, np.nan]), counts, spreads) == pytest.approx(0.8, abs=0.02)
    assert chance_of_best(0, np.array([0.2, 0.5]), counts[:2], spreads[:2]) > 0.999


def test_arms_that_are_alike_are_equally_likely_to_be_the_cheapest():
    for K in (2, 5, 10):
        chance = chance_of_best(0, np.full(K, 0.4), np.full(K, 50), np.full(K, 0.2))
        assert chance == pytest.approx(1 / K, rel=0.03)


def test_the_normal_distribution_is_that_of_scipy():
    x = np.linspace(-40.0, 40.0, 80_001)
    np.testing.assert_allclose(estimates._normal(x), special.ndtr(x), rtol=0.0, atol=4e-16)
