"""Verdicts to losses: by enumeration of every threshold, confidence and verdict."""

import numpy as np
import pytest

import sidelong as sl
from sidelong.errors import LossError, OutcomeError

pytestmark = pytest.mark.interpreted

THRESHOLDS = [0.0, 0.25, 0.5, 1.0]
CASCADE = sl.outcomes.Cascade(THRESHOLDS, price=0.25, mistake=2.0)
CONFIDENCES = [0.0, 0.125, 0.25, 0.375, 0.5, 0.75, 1.0]
K = 5


def told(arm, confidence, wrong):
    """Return what is told after a round: the verdict only if the large model was asked."""
    return CASCADE.outcome(arm, confidence=confidence, wrong=wrong if CASCADE.asks(arm, confidence) else None)


def test_an_arm_asks_if_the_small_model_is_less_sure_than_its_threshold():
    for confidence in CONFIDENCES:
        for arm, threshold in enumerate(THRESHOLDS):
            assert CASCADE.asks(arm, confidence) == (confidence < threshold)
        assert CASCADE.asks(K - 1, confidence)  # always


def test_a_loss_is_the_price_or_the_mistake():
    assert CASCADE.unit == 2.0
    for confidence in CONFIDENCES:
        for wrong in (False, True):
            costs = [0.25 if CASCADE.asks(arm, confidence) else 2.0 * wrong for arm in range(K)]
            assert CASCADE.losses(confidence, wrong).tolist() == [cost / 2.0 for cost in costs]
    dear = sl.outcomes.Cascade([0.0, 0.5], price=3.0)
    assert dear.losses(0.2, wrong=True).tolist() == [1 / 3, 1.0, 1.0]


def test_who_asks_reveals_all_and_who_does_not_reveals_only_those_who_would_have_asked():
    for confidence in CONFIDENCES:
        for wrong in (False, True):
            asking = [arm for arm in range(K) if CASCADE.asks(arm, confidence)]
            for arm in range(K):
                revealed = told(arm, confidence, wrong)
                expected = list(range(K)) if arm in asking else asking
                assert revealed.arm == arm
                assert revealed.graph.out_neighbors(arm).tolist() == expected
                assert revealed.losses.tolist() == CASCADE.losses(confidence, wrong)[expected].tolist()


def test_the_graph_is_known_before_the_draw_whatever_is_played_and_whatever_the_verdict():
    for confidence in CONFIDENCES:
        before = CASCADE.graph(confidence)
        assert {told(arm, confidence, wrong).graph for arm in range(K) for wrong in (False, True)} == {before}
        for seen in range(K):
            reveals = [arm for arm in range(K) if seen in before.out_neighbors(arm)]
            assert before.in_neighbors(seen).tolist() == reveals


def test_every_graph_is_observable_and_most_are_weakly():
    assert CASCADE.graph().observability.kind == "weak"
    assert CASCADE.graph() == CASCADE.graph(1.0)
    assert CASCADE.graph(0.3).observability.kind == "weak"
    # Only the threshold 0 does not ask, and all others reveal it.
    assert CASCADE.graph(0.1).observability.kind == "strong"
    strict = sl.outcomes.Cascade([0.5, 0.9], price=1)
    assert strict.graph(0.1) == sl.graphs.complete(3)


@pytest.mark.parametrize(
    ("learner", "options"),
    [
        ("exp3.g", {"rate": "adaptive"}),
        ("luo-2023", {"horizon": 60, "observability": "weak", "independence": 1, "domination": 1}),
    ],
)
def test_an_agent_plays_it(learner, options):
    agent = sl.Agent(learner, CASCADE.graph(), seed=3, **options)
    rng = np.random.default_rng(1)
    for _ in range(60):
        confidence, wrong = float(rng.random()), bool(rng.random() < 0.3)
        decision = agent.ask(CASCADE.graph(confidence))
        assert agent.tell(decision, told(decision.arm, confidence, wrong))
    assert agent.estimates().counts[-1] == 60  # what asking costs is known in every round


def test_a_verdict_is_told_where_there_is_one_and_nowhere_else():
    with pytest.raises(OutcomeError, match=r"At a confidence of 0\.3 arm 2 asks the large model.*wrong is None"):
        CASCADE.outcome(2, confidence=0.3)
    with pytest.raises(OutcomeError, match=r"arm 1 does not ask, so nobody judged; wrong is False.*depend on luck"):
        CASCADE.outcome(1, confidence=0.3, wrong=False)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sl.outcomes.Cascade([], price=1), "thresholds must be one or more numbers"),
        (lambda: sl.outcomes.Cascade([0.5, 1.5], price=1), "Each of thresholds must be a number from 0 to 1, not 1.5"),
        (lambda: sl.outcomes.Cascade([0.0, 0.5], price=-1), "price must be"),
        (lambda: sl.outcomes.Cascade([0.0, 0.5], price=1, mistake=0), "mistake must be"),
        (lambda: CASCADE.graph(1.5), "confidence must be a number from 0 to 1, not 1.5"),
        (lambda: CASCADE.outcome(9, confidence=0.5), "arm must be"),
        (lambda: CASCADE.outcome(4, confidence=0.5, wrong=1), "wrong must be True, False or None, not 1"),
    ],
)
def test_what_contradicts_itself_is_refused(call, message):
    with pytest.raises(OutcomeError, match=message):
        call()


def test_it_says_what_it_is():
    assert repr(CASCADE) == "<Cascade: 4 thresholds from 0 to 1, price 0.25, mistake 2>"
    assert CASCADE.n_arms == 5
    assert CASCADE.thresholds.tolist() == THRESHOLDS


def test_a_single_threshold_is_trusted_or_not():
    cascade = sl.outcomes.Cascade([0.5], price=0.2)
    assert repr(cascade) == "<Cascade: one threshold, 0.5, price 0.2, mistake 1>"
    assert cascade.graph(0.6).matrix().tolist() == [[False, True], [True, True]]
    assert cascade.outcome(0, confidence=0.3, wrong=True).losses.tolist() == [0.2, 0.2]
    assert cascade.outcome(1, confidence=0.6, wrong=True).losses.tolist() == [1.0, 0.2]


@pytest.mark.parametrize("by", ["decision", "id"])
def test_an_outcome_of_another_confidence_than_the_one_asked_with_is_refused(by):
    agent = sl.Agent("exp3.g", CASCADE.graph(), rate="adaptive", seed=3)
    decision = agent.ask(CASCADE.graph(0.3))
    seen, others = ({"wrong": True} if CASCADE.asks(decision.arm, sure) else {} for sure in (0.3, 0.8))
    told = decision if by == "decision" else decision.id
    with pytest.raises(LossError, match=r"another graph than the one that decision 1-.* was asked with"):
        agent.tell(told, CASCADE.outcome(decision.arm, confidence=0.8, **others))
    assert agent.pending == (decision,)
    assert agent.tell(told, CASCADE.outcome(decision.arm, confidence=0.3, **seen))
