"""Ask and tell with features."""

import copy
import hashlib
import math
import pickle

import numpy as np
import pytest
from river import linear_model as river_linear
from sklearn.linear_model import SGDRegressor

import naive
import sidelong as sl
from sidelong.agent import state_file
from sidelong.errors import ConflictError, FeatureError, GraphError, LearnerError, LossError, StateFileError

K, D = 4, 3
NESTED = sl.graphs.nested(K)


def make(graph=NESTED, regressor="ridge", **options):
    return sl.ContextualAgent("squarecb.g", graph, regressor, seed=7, **options)


def world(rounds, seed=0):
    """Return features and losses that are linear in them, with some noise."""
    rng = np.random.default_rng(seed)
    X, W = rng.normal(size=(rounds, D)), rng.normal(size=(D, K)) * 0.15
    return X, np.clip(0.5 + X @ W + 0.05 * rng.normal(size=(rounds, K)), 0, 1)


def play(agent, X, losses):
    """Play all rounds, each told at once; return what was paid in the mean."""
    paid = 0.0
    for x, row in zip(X, losses, strict=True):
        decision = agent.ask(x)
        paid += row[decision.arm]
        agent.tell(decision, row[decision.reveals])
    return paid / len(losses)


@pytest.mark.interpreted
def test_the_decisions_are_those_of_the_pseudo_code():
    X, losses = world(40)
    agent, A = make(gamma_scale=5.0), NESTED.matrix()
    Theta, seen = K + 1.0, [([], []) for _ in range(K)]
    for x, row in zip(X, losses, strict=True):
        decision = agent.ask(x)
        with_one = np.append(x, 1.0)
        f = [with_one @ naive.ridge_weights(np.array(a).reshape(-1, D + 1), np.array(b), 1.0) for a, b in seen]
        assert decision.predictions == pytest.approx(np.clip(f, 0, 1), abs=1e-9)
        assert decision.gamma == pytest.approx(5 * math.sqrt(Theta))
        p = naive.squarecb_played(decision.predictions, A, decision.gamma)
        value = naive.squarecb_value(p, decision.predictions, A, decision.gamma)
        assert decision.value == pytest.approx(value, abs=1e-9)
        assert decision.probabilities == pytest.approx(p, abs=1e-6)
        assert decision.reveals.tolist() == list(range(decision.arm + 1))
        Theta += decision.gamma * decision.value
        agent.tell(decision, row[decision.reveals])
        for arm in decision.reveals:
            seen[arm][0].append(with_one)
            seen[arm][1].append(row[arm])


@pytest.mark.interpreted
def test_same_input_same_bits_with_the_jit_on_and_off():
    X, losses = world(30, seed=3)
    agent, digest = make(forgetting=0.98), hashlib.sha256()
    for x, row in zip(X, losses.round(3), strict=True):
        decision = agent.ask({"a": float(x[0].round(3)), "word": "up" if x[1] > 0 else "down", "flag": bool(x[2] > 0)})
        digest.update(bytes([decision.arm]) + decision.probabilities.tobytes() + decision.predictions.tobytes())
        agent.tell(decision, row[decision.reveals])
    assert digest.hexdigest()[:16] == "c62beb8b8614d76e"


@pytest.mark.parametrize(
    ("graph", "margin"), [(sl.graphs.nested(K), 0.1), (sl.graphs.cliques([2, 2]), 0.1), (sl.graphs.complete(K), 0.1)]
)
def test_what_is_seen_on_the_side_helps(graph, margin):
    # The losses of 400 rounds, with seeds 0 to 4: what is paid beyond the best arm of each round.
    def excess(graph):
        return sum(play(make(graph), *world(400, seed)) - world(400, seed)[1].min(axis=1).mean() for seed in range(5))

    assert excess(graph) < (1 - margin) * excess(sl.graphs.self_loops(K))


def test_late_and_out_of_order():
    X, losses = world(60)
    agent = make()
    for batch in np.split(np.arange(60), 12):
        made = [agent.ask(X[t]) for t in batch]
        before = [each.predictions.copy() for each in made]
        for t, each in reversed(list(zip(batch, made, strict=True))):
            assert agent.tell(each.id, losses[t][each.reveals])
        assert all(np.array_equal(a, b.predictions) for a, b in zip(before, made, strict=True))
    assert agent.pending == ()
    assert agent.lateness().late > 0
    # The order within a batch makes no difference but rounding: each was predicted from the same.
    assert agent.predict(X[0]) == pytest.approx(agent.predict(X[0].tolist()))
    assert not agent.tell(made[0], losses[batch[0]][made[0].reveals])  # told before
    with pytest.raises(ConflictError):
        agent.tell(made[0], np.zeros(made[0].reveals.size))


def test_a_saved_agent_goes_on_to_the_bit(tmp_path):
    X, losses = world(40)
    agent = make(penalty=0.5, forgetting=0.99)
    agent.save(tmp_path / "empty")
    assert sl.ContextualAgent.load(tmp_path / "empty").ask(X[0]).predictions.tolist() == [0.0] * K
    play(agent, X[:20], losses[:20])
    waiting = agent.ask(X[20])
    agent.save(tmp_path / "state")
    for other in (sl.ContextualAgent.load(tmp_path / "state"), copy.deepcopy(agent), pickle.loads(pickle.dumps(agent))):  # noqa: S301
        assert [each.id for each in other.pending] == [waiting.id]
        assert other.pending[0].predictions.tolist() == waiting.predictions.tolist()
        assert other.scale == agent.scale
        original = copy.deepcopy(agent)
        for each in (original, other):
            each.tell(waiting.id, losses[20][waiting.reveals])
        for t in range(21, 40):
            one, two = original.ask(X[t]), other.ask(X[t])
            assert (one.arm, one.probabilities.tolist()) == (two.arm, two.probabilities.tolist())
            original.tell(one, losses[t][one.reveals])
            other.tell(two, losses[t][two.reveals])


def test_files_of_agents_with_and_without_features_are_told_apart(tmp_path):
    make().save(tmp_path / "with")
    sl.Agent("exp3-set", NESTED).save(tmp_path / "without")
    with pytest.raises(StateFileError, match=r"ContextualAgent\.load"):
        sl.Agent.load(tmp_path / "with")
    with pytest.raises(StateFileError, match=r"Agent\.load"):
        sl.ContextualAgent.load(tmp_path / "without")


def test_arms_with_features_share_one_model():
    rng = np.random.default_rng(1)
    w, agent, paid, best = np.array([0.3, -0.2]), make(), [], []
    for t in range(300):
        table = rng.normal(size=(K, 2))
        row = np.clip(0.5 + table @ w, 0, 1)
        decision = agent.ask(table if t % 2 else table.tolist())
        agent.tell(decision, row[decision.reveals])
        paid.append(row[decision.arm])
        best.append(row.min())
    assert np.mean(paid[50:]) < np.mean(best[50:]) + 0.03
    with pytest.raises(FeatureError, match="a row for each of the 4 arms, and has 3"):
        agent.ask(np.zeros((3, 2)))


def test_words_and_numbers_by_name():
    agent = make(sl.graphs.self_loops(K))
    days = ["Monday", "Tuesday", "Wednesday", "Thursday"]
    for t in range(400):
        decision = agent.ask({"day": days[t % 4], "rain": t % 2 == 0, "temperature": (t % 7) / 7})
        agent.tell(decision, [0.1 if decision.arm == t % 4 else 0.9])
    for arm, day in enumerate(days):
        assert agent.predict({"day": day, "temperature": 0.5, "rain": arm % 2 == 0}).argmin() == arm
    rows = make()
    decision = rows.ask([{"size": arm, "colour": "red"} for arm in range(K)])
    assert rows.tell(decision, np.full(decision.reveals.size, 0.5))


@pytest.mark.parametrize("model", [river_linear.LinearRegression(), SGDRegressor(random_state=0)])
@pytest.mark.parametrize("kind", ["vector", "names", "rows"])
def test_models_of_other_packages(model, kind, tmp_path):
    X, losses = world(300, seed=2)
    agent = make(regressor=model)
    paid = []
    for x, row in zip(X, losses, strict=True):
        given = x
        if kind == "names":
            given = {f"x{k}": float(v) for k, v in enumerate(x)}
        elif kind == "rows":
            given = np.column_stack([np.roll(x, arm) for arm in range(K)]).T
        decision = agent.ask(given)
        agent.tell(decision, row[decision.reveals])
        paid.append(row[decision.arm])
    if kind != "rows":
        assert np.mean(paid[100:]) < losses[100:].mean(axis=0).min() - 0.03
    again = pickle.loads(pickle.dumps(agent))  # noqa: S301
    assert again.predict(given).tolist() == agent.predict(given).tolist()
    with pytest.raises(StateFileError, match="pickle the agent"):
        agent.save(tmp_path / "no")
    assert "another package" in repr(agent)


def test_arms_that_are_not_available_are_not_played():
    X, losses = world(30)
    agent = make(NESTED.labelled(list("abcd")))
    for t, x in enumerate(X):
        there = [0, 2] if t % 2 else ["b", "d"]
        decision = agent.ask(x, available=there)
        assert decision.arm in ({0, 2} if t % 2 else {1, 3})
        assert set(decision.reveals) <= ({0, 2} if t % 2 else {1, 3})
        agent.tell(decision, losses[t][decision.reveals])
    with pytest.raises(GraphError, match="names no arm"):
        agent.ask(X[0], available=[])


def test_a_graph_for_a_round_and_one_that_the_outcome_shows():
    agent = make(sl.graphs.self_loops(K))
    assert agent.ask([1.0, 2.0], graph=sl.graphs.complete(K)).reveals.size == K
    guess = agent.ask([1.0, 2.0])
    before = agent.predict([1.0, 2.0])
    agent.tell(guess, np.full(K, 0.5), graph=sl.graphs.complete(K))
    changed = agent.predict([1.0, 2.0]) != before
    assert np.flatnonzero(changed).tolist() == [guess.arm]  # the outcome may have chosen the others


def test_costs_in_a_scale_of_ones_own_and_a_decision_that_is_given_up():
    agent = make(scale=sl.outcomes.Scale(best=0, worst=50))
    decision = agent.ask([1.0])
    agent.tell(decision, np.full(decision.reveals.size, 25.0))
    assert 0 < agent.predict([1.0])[0] < 0.5
    agent.cancel(agent.ask([1.0]))
    assert agent.pending == ()
    assert agent.round == 2
    assert repr(agent).startswith("<ContextualAgent squarecb.g with ridge on <FeedbackGraph nested(4)")


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([1.0, 2.0, 3.0], "must have 2 features, as the first one had, and has 3"),
        ({"a": 1.0}, "a list of numbers, as the first one was, and is a mapping"),
        ([[1.0, 2.0]] * K, "is a row of numbers for each arm"),
        ([math.nan, 1.0], r"must be finite numbers, and x\[0\] is nan"),
        (np.array([1.0, math.inf]), r"must be finite numbers, and x\[1\] is inf"),
        (["Monday", 1.0], "Words need names"),
        ([], "shape is"),
        (None, "must be a list of numbers"),
    ],
)
def test_features_that_are_not_like_the_first_are_refused_and_nothing_changes(x, message):
    agent = make()
    agent.ask([0.1, 0.2])
    before = state_file.pack(*agent.contents())
    with pytest.raises(FeatureError, match=message):
        agent.ask(x)
    assert agent.round == 1
    assert state_file.pack(*agent.contents()) == before


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ({"a": None}, "must be a number or a word, not None. Leave out what is missing"),
        ({"a": math.nan}, "must be a number or a word, not nan"),
        ({"a": math.inf}, "must be a finite number"),
        ({1: 2.0}, "name of a feature must be text, not 1"),
        ([{"a": 1}] * 3, "a row for each of the 4 arms, and has 3"),
        ([{"a": 1}, {"a": 1}, 3, 4], "one of them is 3"),
    ],
)
def test_mappings_that_cannot_be_read(x, message):
    with pytest.raises(FeatureError, match=message):
        make().ask(x)


def test_wrong_options_and_losses():
    for options, message in (
        ({"regressor": "forest"}, "must be 'ridge' or a model, not 'forest'"),
        ({"regressor": object()}, "learn_one and predict_one"),
        ({"regressor": SGDRegressor}, "not its class"),
        ({"regressor": SGDRegressor(), "penalty": 1.0}, "penalty is an option of regressor='ridge'"),
        ({"penalty": 0}, "penalty must be a finite number above 0"),
        ({"forgetting": 1.5}, "forgetting must be a number"),
        ({"hashed": 0}, "hashed must be a whole number"),
        ({"gamma_scale": -1}, "gamma_scale must be a number"),
    ):
        with pytest.raises(LearnerError, match=message):
            make(**options)
    with pytest.raises(LearnerError, match=r"takes the learner 'squarecb\.g', not 'glance'"):
        sl.ContextualAgent("glance", NESTED)
    with pytest.raises(GraphError, match="needs every arm to reveal itself"):
        make(sl.FeedbackGraph.from_matrix([[0, 1], [1, 1]]))
    agent = make()
    decision = agent.ask([1.0])
    with pytest.raises(LossError):
        agent.tell(decision, np.full(decision.reveals.size, 1.5))
    assert [each.id for each in agent.pending] == [decision.id]


class Wild:
    """A model that predicts what is no number."""

    def learn_one(self, x, y):
        pass

    def predict_one(self, x):  # noqa: ARG002
        return math.nan


def test_a_model_that_predicts_no_number_is_named():
    agent = make(regressor=Wild())
    decision = agent.ask([1.0])
    agent.tell(decision, np.full(decision.reveals.size, 0.5))
    with pytest.raises(LearnerError, match="regressor predicts nan"):
        agent.ask([1.0])
    assert agent.round == 1


@pytest.mark.interpreted
def test_features_that_would_leave_nothing_but_rounding_are_refused_and_to_look_changes_nothing():
    agent = make(penalty=0.25)
    agent.predict([1.0, 2.0])
    agent.ask([0.1, 4e5, 0.2])  # of another size: a look before the first decision fixes nothing
    for x in ([0.1, 6e5, 0.2], np.array([0.1, 6e5, 0.2]), [0.1, 1e300, 0.2]):
        with pytest.raises(FeatureError, match=r"at most 500,000; one is (600000|1e\+300)"):
            agent.ask(x)
    assert agent.round == 1
    with pytest.raises(FeatureError, match="at most 500,000"):
        make(penalty=0.25).ask({"price": 5.1e5})


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("pending.x", lambda array: array.astype(np.float32)),
        ("pending.x", lambda array: array.astype(bool)),
        ("pending.x", lambda array: array * np.nan),
        ("pending.x", lambda array: array[:, :, :1]),
        ("ridge.B", lambda array: array * np.inf),
        ("ridge.w", lambda array: array * np.nan),
        ("ridge.w", lambda array: array[0]),
        ("ridge.group", lambda array: array + 4),
        ("ridge.groups", lambda array: array + 4),
        ("ridge.limit", lambda array: -array),
    ],
)
def test_a_file_with_a_regression_that_cannot_be_is_refused(tmp_path, name, change):
    agent = sl.ContextualAgent("squarecb.g", sl.graphs.nested(4), seed=5)
    for _ in range(3):
        decision = agent.ask([1.0, 2.0])
        agent.tell(decision, [0.5] * decision.reveals.size)
    agent.ask([1.0, 2.0])
    header, arrays = agent.contents()
    state_file.write(tmp_path / "agent", header, arrays)
    sl.ContextualAgent.load(tmp_path / "agent")
    state_file.write(tmp_path / "agent", header, {**arrays, name: change(arrays[name])})
    with pytest.raises(StateFileError):
        sl.ContextualAgent.load(tmp_path / "agent")
