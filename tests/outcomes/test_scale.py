"""One's own numbers to [0, 1], kept by the agent."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sidelong as sl
from sidelong.errors import ConflictError, LearnerError, LossError, OutcomeError

EUROS = sl.outcomes.Scale(best=0, worst=250)
ends = st.floats(-1e9, 1e9)


@pytest.mark.interpreted
@given(ends, ends, st.floats(0, 1))
def test_the_ends_become_0_and_1_and_nothing_leaves(best, worst, at):
    if best == worst:
        return
    scale = sl.outcomes.Scale(best, worst)
    assert scale.losses([best, worst]) == [0.0, 1.0]
    value = min(max(best + at * (worst - best), min(best, worst)), max(best, worst))
    (loss,) = scale.losses([value])
    assert 0.0 <= loss <= 1.0
    assert scale.values(loss) == pytest.approx(value, rel=1e-12, abs=1e-12 * (abs(best) + abs(worst)))


def play(agent, rounds, unit):
    drawn = []
    for t in range(rounds):
        decision = agent.ask()
        drawn.append(decision.arm)
        agent.tell(decision, {int(arm): unit * ((t + 3 * int(arm)) % 5) / 4 for arm in decision.reveals})
    return drawn


def test_an_agent_with_a_scale_is_one_that_is_told_losses(tmp_path):
    graph = sl.graphs.nested(4)
    plain, scaled = sl.Agent("exp3.g++", graph, seed=3), sl.Agent("exp3.g++", graph, seed=3, scale=EUROS)
    assert play(plain, 50, 1.0) == play(scaled, 50, 250.0)
    scaled.save(tmp_path / "scaled")
    plain.save(tmp_path / "plain")
    resumed = sl.Agent.load(tmp_path / "scaled")
    assert resumed.scale == EUROS
    assert sl.Agent.load(tmp_path / "plain").scale is None
    assert play(plain, 50, 1.0) == play(resumed, 50, 250.0)
    assert resumed.scale.values(resumed.estimates().means) == pytest.approx(250 * plain.estimates().means)


def test_telling_the_same_in_ones_own_numbers_is_a_repetition():
    agent = sl.Agent("exp3.g++", sl.graphs.complete(2), seed=0, scale=EUROS)
    decision = agent.ask()
    assert agent.tell(decision, {0: 80, 1: 200})
    assert not agent.tell(decision.id, [80.0, 200.0])
    assert not agent.tell(decision.id, np.float32([80, 200]))
    with pytest.raises(ConflictError):
        agent.tell(decision, {0: 80, 1: 201})


@pytest.mark.parametrize("wrong", [250.01, -1, float("nan"), float("inf"), "80", True, None])
def test_a_value_outside_of_the_scale_is_refused_and_nothing_is_learned(wrong):
    agent = sl.Agent("exp3.g++", sl.graphs.complete(2), seed=0, scale=EUROS)
    decision = agent.ask()
    with pytest.raises(LossError, match=r"of arm 1 must be a number from 0 to 250, the ends of its scale, not"):
        agent.tell(decision, {0: 10.0, 1: wrong})
    with pytest.raises(LossError, match="at place 1"):
        agent.tell(decision, np.array([10.0, wrong], object))
    for unordered in ("12", {10, 20}, np.array(10)):
        with pytest.raises(LossError, match="must be given by arm, or a list"):
            agent.tell(decision, unordered)
    assert agent.pending == (decision,)
    assert agent.estimates().counts.tolist() == [0, 0]


def test_a_score_is_better_the_higher():
    agent = sl.Agent("hedge", sl.graphs.complete(2), seed=0, scale=sl.outcomes.Scale(best=100, worst=0))
    for _ in range(50):
        agent.tell(agent.ask(), [90, 40])
    assert agent.estimates().weights.argmax() == 0


@pytest.mark.parametrize(("best", "worst"), [(1, 1), (0, float("inf")), (float("nan"), 1), ("0", 1), (-1e308, 1e308)])
def test_a_scale_needs_two_ends(best, worst):
    with pytest.raises(OutcomeError):
        sl.outcomes.Scale(best, worst)


def test_an_agent_takes_a_scale_and_nothing_else():
    with pytest.raises(LearnerError, match=r"scale must be a sidelong.outcomes.Scale, not \(0, 250\)"):
        sl.Agent("exp3.g++", sl.graphs.nested(3), scale=(0, 250))
