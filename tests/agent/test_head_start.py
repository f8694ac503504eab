"""A head start: a prior, the rounds of a log, and outcomes that know their arm."""

import itertools
import math

import numpy as np
import pytest

import sidelong as sl
from sidelong import theory
from sidelong.errors import EvaluationError, LearnerError, LossError

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

PATH5 = sl.graphs.path(5)


# What one believes.


def first(prior, graph=PATH5, **options):
    return sl.Agent("exp3-set", graph, seed=1, prior=prior, **options).ask().probabilities


@pytest.mark.interpreted
def test_a_prior_tilts_round_1_as_its_file_says():
    prior = {1: (0.2, 10), 3: (0.9, 4)}
    eta = math.sqrt(math.log(5) / 5)
    w = np.exp(-eta * np.array([0, 10 * (0.2 - 0.5), 0, 4 * (0.9 - 0.5), 0]))
    q = w / w.sum() / 2 + 1 / 10
    assert first(prior) == pytest.approx(q, rel=1e-12)
    assert first({}) == pytest.approx([0.2] * 5)
    assert first({2: (0.1, 0)}) == pytest.approx([0.2] * 5)


@pytest.mark.interpreted
def test_however_sure_it_is_half_of_the_probability_stays_where_it_was():
    q = first({1: (0.0, 1e6)})
    assert q == pytest.approx([0.1, 0.6, 0.1, 0.1, 0.1])
    assert first({1: (1.0, 1e6)}) == pytest.approx([0.225, 0.1, 0.225, 0.225, 0.225])


@pytest.mark.interpreted
@pytest.mark.parametrize("seed", range(4))
def test_the_inequality_of_its_proof_holds_on_every_path(seed):
    """sum <p, x> - sum x_k <= ln(1 / (K q_k)) / eta_1 + ln K / eta + sum (eta / 2) <p, x^2>, for every arm k."""
    rng = np.random.default_rng(seed)
    prior = {arm: (float(rng.random()), float(rng.integers(30))) for arm in range(0, 5, 2)}
    agent = sl.Agent("exp3-set", PATH5, seed=seed, prior=prior)
    offset, start = agent._state.Lhat.copy(), None
    suffered = spread = 0.0
    for t in range(300):
        decision = agent.ask()
        p, eta = decision.probabilities, float(decision.drawn.trace[1])
        start = (p.copy(), eta) if start is None else start
        before = agent._state.Lhat.copy()
        agent.tell(decision, {int(i): float((t // 30) % 5 == i) for i in decision.reveals})
        x = agent._state.Lhat - before
        suffered += p @ x
        spread += eta / 2 * p @ x**2
        q, eta_1 = start
        allowed = -np.log(5 * q) / eta_1 + math.log(5) / eta + spread
        assert (suffered - (agent._state.Lhat - offset) <= allowed + 1e-9).all()
    assert agent.lateness().bound > 0


@pytest.mark.interpreted
def test_the_bound_by_hand():
    plain = theory.exp3_set.absent(K=5, theta_sum=100)
    assert theory.exp3_set.prior(K=5, theta_sum=100, q_1=1 / 5) == pytest.approx(plain)
    wrong = theory.exp3_set.prior(K=5, theta_sum=100, q_1=1 / 10)
    assert wrong - plain == pytest.approx(math.log(2) * math.sqrt(5 / math.log(5)))
    assert theory.exp3_set.prior(K=5, theta_sum=100, q_1=0.6) < plain


@pytest.mark.interpreted
def test_a_prior_is_in_the_units_and_names_of_the_agent_and_survives_a_file(tmp_path):
    graph = PATH5.labelled([*"abcde"])
    agent = sl.Agent("exp3-set", graph, seed=1, scale=sl.outcomes.Scale(0, 100), prior={"b": (20, 10)})
    agent.save(tmp_path / "agent")
    again = sl.Agent.load(tmp_path / "agent")
    assert again.ask().probabilities.tobytes() == agent.ask().probabilities.tobytes()
    assert again.pending[0].probabilities == pytest.approx(first({1: (0.2, 10)}))
    assert again.lateness() == agent.lateness()


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ([0.5], "prior is {arm"),
        ({0: 0.5}, r"is \(mean, weight\); that of 0 is 0.5"),
        ({5: (0.5, 1)}, "arms from 0 to 4, not 5"),
        ({"a": (0.5, 1)}, "the graph has no labels"),
        ({0: (1.5, 1)}, "The mean that is believed of arm 0 must be"),
        ({0: (0.5, -1)}, "The weight of the prior of arm 0 must be"),
        ({0: (0.5, math.nan)}, "The weight of the prior of arm 0 must be"),
    ],
)
def test_what_is_no_prior_is_refused(prior, message):
    with pytest.raises(LearnerError, match=message):
        sl.Agent("exp3-set", PATH5, prior=prior)


@pytest.mark.interpreted
def test_a_prior_names_an_arm_once():
    with pytest.raises(LearnerError, match=r"prior names arm 1 \('b'\) twice"):
        sl.Agent("exp3-set", PATH5.labelled([*"abcde"]), prior={"b": (0.2, 10), 1: (0.9, 10)})


@pytest.mark.interpreted
def test_other_learners_name_the_one_that_takes_a_head_start():
    with pytest.raises(LearnerError, match=r"ucb-n has none\. Use glance or exp3-set"):
        sl.Agent("ucb-n", PATH5, prior={0: (0.5, 1)})
    with pytest.raises(LearnerError, match=r"exp3.g\+\+ has none\. Use glance or exp3-set"):
        sl.Agent("exp3.g++", PATH5).learn({"action": [0], "loss": [0.5], "pscore": [0.5]})
    with pytest.raises(LearnerError, match=r"exp3-set with track=... has none\. Use glance or exp3-set"):
        sl.Agent("exp3-set", PATH5, track=1, prior={0: (0.5, 1)})


# Rounds of a log.


def columns(rounds):
    """Return the columns of a log: for each round the arm, and by arm the loss and the probability of seeing it."""
    lists = ("observed", "losses", "observe_probabilities")
    found = {name: [] for name in ("round", "action", "loss", *lists)}
    for t, (arm, seen) in enumerate(rounds, 1):
        found["round"].append(t)
        found["action"].append(arm)
        found["loss"].append(seen[arm][0])
        for name, values in zip(lists, (list(seen), *map(list, zip(*seen.values(), strict=True))), strict=True):
            found[name].append(values)
    return found


ROUNDS = [(1, {0: (0.5, 0.75), 1: (0.25, 0.5), 2: (1.0, 0.8)}), (4, {3: (0.0, 0.5), 4: (1.0, 0.25)})]


def state_after(log):
    agent = sl.Agent("exp3-set", PATH5, seed=1)
    assert agent.learn(log) == 2
    return agent._state


@pytest.mark.interpreted
def test_a_log_is_learned_as_its_file_says(tmp_path):
    K, L, Theta = 5, np.zeros(5), 5.0
    for _, seen in ROUNDS:
        w = np.exp(-math.sqrt(math.log(K) / Theta) * L)
        p = w / w.sum()
        Theta += min(K, sum(p[arm] / P**2 for arm, (_, P) in seen.items()))
        for arm, (loss, P) in seen.items():
            L[arm] += loss / P
    found = columns(ROUNDS)
    parquet.write_table(pa.table(found), tmp_path / "log.parquet")
    for log in (found, pa.table(found), tmp_path / "log.parquet", str(tmp_path / "log.parquet")):
        state = state_after(log)
        assert state.Lhat == pytest.approx(L, rel=1e-12)
        assert state.Theta[0] == pytest.approx(Theta, rel=1e-12)


@pytest.mark.interpreted
def test_it_is_without_bias_by_enumeration():
    """Over all draws of three rounds of a policy of its own, each arm's estimate has the mean of its losses."""
    A, losses = PATH5.matrix(), np.random.default_rng(1).random((3, 5))
    p = np.array([0.4, 0.1, 0.1, 0.1, 0.3])
    P, expected = p @ A, np.zeros(5)
    for draws in itertools.product(range(5), repeat=3):
        rounds = [
            (arm, {i: (float(l[i]), float(P[i])) for i in np.flatnonzero(A[arm]).tolist()})
            for arm, l in zip(draws, losses, strict=True)
        ]
        agent = sl.Agent("exp3-set", PATH5)
        agent.learn(columns(rounds) | {"all_observe_probabilities": [P.tolist()] * 3})
        expected += math.prod(p[arm] for arm in draws) * agent._state.Lhat
    np.testing.assert_allclose(expected, losses.sum(axis=0), rtol=1e-12)


@pytest.mark.interpreted
def test_a_log_in_which_an_arm_could_not_be_seen_is_refused():
    """It would be learned as if it had cost nothing, and played ever after."""
    log = {"action": [0, 1, 2, 3] * 25, "loss": [0.5] * 100, "pscore": [0.25] * 100}
    agent = sl.Agent("exp3-set", PATH5)
    with pytest.raises(EvaluationError, match="In 100 of the 100 rounds of the log, arm 4 could not be seen"):
        agent.learn(log)
    assert not agent._state.Lhat.any()
    found = columns(ROUNDS) | {"all_observe_probabilities": [[0.75, 0.5, 0.8, 0.0, 0.1], [0.2, 0.2, 0.5, 0.5, 0.25]]}
    with pytest.raises(EvaluationError, match="In 1 of the 2 rounds of the log, arm 3 could not be seen"):
        agent.learn(found)
    agent = sl.Agent("exp3-set", sl.graphs.path(4))
    assert agent.learn(log) == 100
    agent.add_arm()
    assert agent.ask().probabilities == pytest.approx([0.2] * 5)
    agent = sl.Agent("exp3-set", PATH5)
    agent.retire(4)
    assert agent.learn(log) == 100  # which is not played any more


@pytest.mark.interpreted
def test_what_was_learned_shows_and_survives_a_file(tmp_path):
    rng, K = np.random.default_rng(2), 5
    action = rng.integers(K, size=2_000)
    loss = (rng.random(2_000) < np.array([0.5, 0.5, 0.2, 0.5, 0.5])[action]).astype(float)
    agent = sl.Agent("exp3-set", PATH5, seed=1)
    assert agent.learn({"action": action, "loss": loss, "pscore": np.full(2_000, 1 / K)}) == 2_000
    assert agent.estimates().weights[2] > 0.9
    assert agent.lateness().bound is None  # which is of the rounds that follow alone
    agent.save(tmp_path / "agent")
    again = sl.Agent.load(tmp_path / "agent")
    assert again.estimates().weights.tobytes() == agent.estimates().weights.tobytes()
    assert again.lateness().bound is None


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("log", "message"),
    [
        ({"action": [0], "loss": [0.5]}, "A log has a column pscore, or all of"),
        ({"action": [5], "loss": [0.5], "pscore": [0.5]}, "The log has an arm 5, and there are 5 arms"),
        ({"action": [0], "loss": [0.5], "pscore": [0.0]}, "a probability is above 0"),
        ({"action": [0], "loss": [1.5], "pscore": [0.5]}, "a loss, and a reward, is a number in"),
        (3, "A log is the path of a Parquet file, a table, or a dict of columns, and 3 is none"),
        ("nowhere.parquet", "The log cannot be read as Parquet"),
    ],
)
def test_a_log_that_lacks_something_is_refused_and_nothing_is_learned(log, message):
    agent = sl.Agent("exp3-set", PATH5, seed=1)
    with pytest.raises(EvaluationError, match=message):
        agent.learn(log)
    assert (agent._state.Lhat == 0).all()


# Outcomes that know their arm.


@pytest.mark.interpreted
def test_an_outcome_is_told_whole_and_is_no_tuple():
    orders = sl.outcomes.StockOrders(6, holding=1, shortage=4)
    one, other = (sl.Agent("glance", orders.graph, seed=7) for _ in range(2))
    for demand in (2, 5, 0, 6, 3):
        a, b = one.ask(), other.ask()
        seen = orders.outcome(a.arm, sales=min(a.arm, demand))
        assert seen.arm == a.arm
        assert one.tell(a, seen)
        assert not one.tell(a, seen)
        assert other.tell(b, seen.losses, seen.graph)
    assert one.ask().probabilities.tobytes() == other.ask().probabilities.tobytes()
    with pytest.raises(TypeError):
        tuple(seen)


@pytest.mark.interpreted
@pytest.mark.parametrize("lists", [False, True])
def test_a_log_of_one_arm_that_was_certain_is_refused_in_every_form(lists):
    """It would leave the weight .002 on the only arm that is known to be good."""
    log = {"action": [2] * 50, "loss": [0.2] * 50, "pscore": [1.0] * 50}
    if lists:
        log = log | {"observed": [[2]] * 50, "losses": [[0.2]] * 50, "observe_probabilities": [[1.0]] * 50}
    agent = sl.Agent("exp3-set", sl.graphs.self_loops(5))
    with pytest.raises(EvaluationError, match="In 50 of the 50 rounds of the log, arm 0 could not be seen"):
        agent.learn(log)
    both = {name: column + column for name, column in log.items()}
    both["action"] = [2] * 50 + [3] * 50
    if lists:
        both["observed"] = [[2]] * 50 + [[3]] * 50
    with pytest.raises(EvaluationError, match="could not be seen"):
        agent.learn(both)


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("actions", "pscore"),
    [([2, 3] * 25, 0.5), ([1, 2, 3, 4] * 12, 0.25), ([3, 2] * 2, 0.5)],
    ids=["two", "four", "few"],
)
def test_a_log_that_never_saw_an_arm_is_refused_however_long_it_is(actions, pscore):
    """On self-loops, such probabilities of the arms that were seen leave nothing to the others."""
    n = len(actions)
    log = {"action": actions, "loss": [0.2 if arm == 2 else 0.9 for arm in actions], "pscore": [pscore] * n}
    agent = sl.Agent("exp3-set", sl.graphs.self_loops(5))
    with pytest.raises(EvaluationError, match=f"In {n} of the {n} rounds of the log, arm 0 could not be seen, or was"):
        agent.learn(log)
    assert not agent._state.Lhat.any()
    lists = {"observed": [[arm] for arm in actions], "losses": [[loss] for loss in log["loss"]]}
    lists |= {"observe_probabilities": [[pscore]] * n, "all_observe_probabilities": [[0.1, *[pscore] * 4]] * n}
    every = lists["all_observe_probabilities"]
    with pytest.raises(EvaluationError, match="with all_observe_probabilities needs observed, losses, observe_prob"):
        agent.learn(log | {"all_observe_probabilities": every})
    assert agent.learn(log | lists) == n  # so it was chance


@pytest.mark.interpreted
def test_one_round_that_reveals_all_does_not_hide_those_that_could_reveal_one():
    seen = [[2]] * 49 + [[0, 1, 2, 3, 4]]
    lists = {"observed": seen, "losses": [[0.2] * len(each) for each in seen]}
    lists["observe_probabilities"] = [[1.0] * len(each) for each in seen]
    log = {"action": [2] * 50, "loss": [0.2] * 50, **lists}
    with pytest.raises(EvaluationError, match="In 49 of the 50 rounds of the log, arm 0 could not be seen"):
        sl.Agent("exp3-set", sl.graphs.self_loops(5)).learn(log)
    # Here all arms reveal arm 2, so that it is certain to be seen, whichever of them was played.
    graph = sl.FeedbackGraph.from_edges([(i, 2) for i in range(5)], self_loops=True)
    log["observe_probabilities"] = [[1.0 if arm == 2 else 0.5 for arm in each] for each in seen]
    assert sl.Agent("exp3-set", graph).learn(log) == 50


@pytest.mark.interpreted
def test_the_outcome_of_another_arm_is_refused():
    orders = sl.outcomes.StockOrders(6, holding=1, shortage=4)
    agent = sl.Agent("glance", orders.graph, seed=7)
    decision = agent.ask()
    old = orders.outcome((decision.arm + 1) % 7, sales=0)
    for told in (decision, decision.id):
        with pytest.raises(LossError, match="Each decision is told its own outcome"):
            agent.tell(told, old)
    seen = orders.outcome(decision.arm, sales=0)
    with pytest.raises(LossError, match="has its graph: tell it alone"):
        agent.tell(decision, seen, orders.graph)
    scaled = sl.Agent("glance", orders.graph, seed=7, scale=sl.outcomes.Scale(0, 2))
    again = scaled.ask()
    with pytest.raises(LossError, match="needs no scale"):
        scaled.tell(again, seen)


@pytest.mark.interpreted
def test_an_outcome_is_taken_without_the_arms_that_were_absent():
    orders = sl.outcomes.StockOrders(6, holding=1, shortage=4)
    agent = sl.Agent("exp3-set", orders.graph, seed=7)
    decision = agent.ask(available=[0, 2, 6])
    assert agent.tell(decision, orders.outcome(decision.arm, sales=0))
    assert not agent.tell(decision, orders.outcome(decision.arm, sales=0))
    assert agent._state.Lhat[[1, 3, 4, 5]] == pytest.approx(agent._state.Lhat[1])


def test_a_trusted_history_teaches_the_bold_half_alone(tmp_path):
    history = {"action": [0, 1, 2, 3] * 25, "loss": [0.5, 0.4, 0.1, 0.6] * 25}
    agent, fresh = sl.Agent("glance", sl.graphs.self_loops(4), seed=1), sl.Agent("glance", sl.graphs.self_loops(4))
    assert agent.learn(history, trusted=True) == 100
    assert agent.ask().probabilities[2] > 0.9
    for name in ("state.L", "state.z", "state.rate"):  # what the theorems are about
        assert np.array_equal(agent.contents()[1][name], fresh.contents()[1][name])
    parquet.write_table(pa.table(history), tmp_path / "history.parquet")
    keys = sl.Family("glance", sl.graphs.self_loops(4), seed=1)
    assert keys.learn({"a": tmp_path / "history.parquet", "b": history}, trusted=True) == 200
    assert (keys.ask(["a", "b"]).arms == 2).all()


def test_a_trusted_history_may_say_what_else_was_revealed():
    seen = {
        "action": [3, 2],
        "loss": [0.4, 0.3],
        "observed": [[0, 1, 2, 3], [2]],
        "losses": [[0.1, 0.2, 0.3, 0.4], [0.3]],
    }
    weighed = {"observe_probabilities": [[1.0] * 4, [0.5]], "all_observe_probabilities": [[1.0] * 4, [0.5] * 4]}
    one, two = (sl.Agent("glance", sl.graphs.nested(4), seed=1) for _ in range(2))
    one.learn(seen, trusted=True)
    two.learn(seen | weighed, trusted=True)  # it counts as it is
    assert one.outlook().tolist() == two.outlook().tolist()
    two.learn(seen | weighed)
    assert one.outlook().tolist() != two.outlook().tolist()


def test_a_trusted_history_needs_a_learner_that_no_theorem_ties_to_it():
    with pytest.raises(LearnerError, match=r"must be without bias\. Use glance with trusted=True"):
        sl.Agent("exp3-set", sl.graphs.nested(4)).learn({"action": [1], "loss": [0.5]}, trusted=True)
    with pytest.raises(EvaluationError, match="a loss, and a reward, is a number in"):
        sl.Agent("glance", sl.graphs.nested(4)).learn({"action": [1], "loss": [1.5]}, trusted=True)
