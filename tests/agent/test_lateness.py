"""How late feedback was, and the bound that is made of it."""

import math

import numpy as np
import pytest

import naive
import sidelong as sl

pytestmark = pytest.mark.interpreted

GRAPH = sl.graphs.nested(4)
LEARNERS = [
    ("exp3-set", {}),
    ("exp3-set", {"late": "guarded"}),
    ("exp3.g++", {}),
    ("exp3.g++", {"late": "guarded"}),
    ("exp3.g++", {"start": "cover", "eta_scale": 2.0}),
    ("exp3.g++", {"rate": "fixed"}),
]


def play(agent, rounds, rng, drop=0.0):
    """Ask and tell out of order; return what is needed to sum it up again: round, eta, theta, sigma, exploration."""
    first = agent._setup.params.initial.size if agent.learner == "exp3.g++" else 0
    traces, waiting, rows = agent._setup.learner.traces, [], []
    for t in range(1, rounds + 1):
        sigma = sum(each.round > first for each, _ in waiting)
        decision = agent.ask()
        waiting.append((decision, sigma))
        while len(waiting) > rng.integers(1, 9):
            made, sigma = waiting.pop(int(rng.integers(len(waiting))))
            if rng.random() < drop:
                agent.cancel(made, lost=made.round % 2 == 0)
                continue
            agent.tell(made, rng.random(made.reveals.size))
            if made.round > first:
                seen = dict(zip(traces, made.drawn.trace, strict=True))
                theta = naive.theta(made.probabilities, GRAPH.matrix())
                rows.append((seen["learning_rate"], theta, sigma, seen.get("exploration_mass", 0.0), made.round < t))
    return rows, waiting, first


@pytest.mark.parametrize(("learner", "options"), LEARNERS)
@pytest.mark.parametrize("drop", [0.0, 0.2])
def test_it_counts_what_was_outstanding_and_sums_up_the_bound(learner, options, drop):
    agent = sl.Agent(learner, GRAPH, seed=3, **options)
    rows, waiting, first = play(agent, 300, np.random.default_rng(1), drop)
    eta, theta, sigma, mass, late = np.array(rows).T
    found = agent.lateness()
    assert (found.told, found.late, found.initial) == (len(rows), late.sum(), first)
    assert found.outstanding == sum(made.round > first for made, _ in waiting)
    assert found.told + found.outstanding + found.cancelled + found.lost == 300 - first
    assert bool(found.cancelled) == bool(found.lost) == bool(drop)
    assert found.most >= sigma.max()
    assert found.sum >= sigma.sum()
    assert found.rate == eta.min()
    np.testing.assert_allclose(
        [found.theta_sum, found.rated_theta, found.rated_delay, found.exploration],
        [theta.sum(), eta @ theta, eta @ sigma, mass.sum()],
        rtol=1e-12,
    )
    half = 0.5 if learner == "exp3-set" else 1.0
    bound = math.log(4) / eta.min() + eta @ (half * theta + sigma) + mass.sum() + first + found.outstanding + found.lost
    assert found.bound == pytest.approx(bound, rel=1e-12)


@pytest.mark.parametrize(("learner", "options"), LEARNERS)
def test_it_survives_save_and_load(learner, options, tmp_path):
    agent = sl.Agent(learner, GRAPH, seed=3, **options)
    play(agent, 50, np.random.default_rng(2), 0.1)
    agent.save(tmp_path / "agent.sidelong")
    loaded = sl.Agent.load(tmp_path / "agent.sidelong")
    assert loaded.lateness() == agent.lateness()
    for each in (agent, loaded):
        for made in each.pending:
            each.tell(made, [0.5] * made.reveals.size)
    assert loaded.lateness() == agent.lateness()


@pytest.mark.parametrize(
    ("learner", "options"), [("glance", {}), ("ucb-n", {}), ("exp3.g++", {"estimator": "shifted"}), ("exp3", {})]
)
def test_where_nothing_is_proved_there_is_no_bound_but_delays_are_counted(learner, options):
    agent = sl.Agent(learner, GRAPH, seed=3, **options)
    for made in [agent.ask() for _ in range(20)]:
        agent.tell(made, [0.5] * made.reveals.size)
    found = agent.lateness()
    assert found.bound is None
    assert found.most > 0
    assert found.late == found.told - 1


def test_prompt_feedback_is_not_late_and_what_is_cancelled_costs_nothing():
    agent = sl.Agent("exp3-set", GRAPH, seed=3)
    for t in range(1, 41):
        made = agent.ask()
        if t % 4 == 0:
            agent.cancel(made)
        else:
            agent.tell(made, [0.5] * made.reveals.size)
    found = agent.lateness()
    assert (found.told, found.late, found.cancelled, found.sum, found.most) == (30, 0, 10, 0, 0)
    assert found.bound == pytest.approx(math.log(4) / found.rate + found.rated_theta / 2)


@pytest.mark.parametrize("learner", ["exp3-set", "exp3.g++"])
def test_the_bound_of_the_guarded_rate_is_below_its_closed_form_on_every_path(learner):
    """With start="all", whatever the delays: ln K / eta_T + sum eta (theta + sigma) is at most 2 sqrt(...)."""
    closed = {"exp3-set": sl.theory.delay.exp3_set_guarded, "exp3.g++": sl.theory.delay.exp3_gpp_guarded}[learner]
    for seed in range(5):
        agent = sl.Agent(learner, GRAPH, seed=seed, late="guarded")
        play(agent, 200, np.random.default_rng(seed), 0.1)
        for made in agent.pending:
            agent.tell(made, [0.5] * made.reveals.size)
        found = agent.lateness()
        rounds = found.told + found.initial
        theta_sum = min(found.theta_sum + 4 * (200 - rounds), 800)  # the rate counts what was never told, too
        assert found.bound <= closed(K=4, T=200, theta_sum=theta_sum, delay_sum=found.sum, given_up=found.lost)


def test_one_arm_has_nothing_to_regret():
    agent = sl.Agent("exp3-set", sl.graphs.complete(1))
    agent.tell(agent.ask(), [1.0])
    assert agent.lateness().bound is None


def test_an_agent_that_began_with_one_arm_has_a_bound_from_the_second_on(tmp_path):
    agent = sl.Agent("exp3-set", sl.graphs.self_loops(1))
    for _ in range(5):
        agent.tell(agent.ask(), [0.4])
    assert agent.lateness().bound is None
    agent.add_arm()
    for rounds in range(20):
        agent.save(tmp_path / "agent.sidelong")
        loaded = sl.Agent.load(tmp_path / "agent.sidelong")
        assert loaded.lateness() == agent.lateness()
        assert (agent.lateness().bound > 0) == (rounds > 0)
        agent.tell(agent.ask(), [0.4])


def test_no_bound_is_shown_where_an_arm_came_while_a_decision_waited():
    agent = sl.Agent("exp3-set", sl.graphs.self_loops(2))
    first = agent.ask()
    agent.add_arm()  # which is absent in what waits
    second = agent.ask()
    assert agent.lateness().bound is None
    for decision in (second, first):
        agent.tell(decision, [0.4])
    assert agent.lateness().bound is None
    assert agent.lateness().most == 1
