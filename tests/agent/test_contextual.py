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
from sidelong.errors import (
    AdviceError,
    ConflictError,
    CostError,
    DecisionError,
    FeatureError,
    GraphError,
    LearnerError,
    LossError,
    StateFileError,
)
from sidelong.graphs.presence import present

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
    assert digest.hexdigest()[:16] == "02801703c4e103d3"


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
    assert (agent.predict([1.0, 2.0]) != before).all()


@pytest.mark.interpreted
def test_what_an_outcome_shows_is_learned_with_the_weights_of_how_seldom_that_is():
    agent, rng = make(gamma_scale=200.0), np.random.default_rng(8)
    stock = sl.outcomes.StockOrders(K - 1, holding=1, shortage=2)
    seen = [([], []) for _ in range(K)]
    for _ in range(60):
        x, demand = rng.normal(size=D), int(rng.integers(0, K))
        decision = agent.ask(x)
        outcome = stock.outcome(decision.arm, min(decision.arm, demand))
        P = outcome.graph.observe_probabilities(decision.probabilities)
        agent.tell(decision, outcome)
        for arm, loss in zip(outcome.graph.row(decision.arm), outcome.losses, strict=True):
            root = np.sqrt(min(20.0, 1.0 / P[arm]))
            seen[arm][0].append(root * np.append(x, 1.0))
            seen[arm][1].append(root * loss)
    fitted = [naive.ridge_weights(np.array(rows), np.array(losses), 1.0) for rows, losses in seen]
    assert agent.predict(x) == pytest.approx(np.clip(np.append(x, 1.0) @ np.transpose(fitted), 0, 1), abs=1e-9)


@pytest.mark.parametrize("learner", ["squarecb.g", "glance"])
def test_orders_follow_a_demand_that_falls_by_two_fifths(learner):
    # They stayed 70 % too high, with any `forgetting`, while only the loss of the played order was learned.
    stock, rng, orders = sl.outcomes.StockOrders(30, holding=1, shortage=3), np.random.default_rng(1), []
    agent = sl.ContextualAgent(learner, stock.graph, seed=1, forgetting=0.9)
    for t in range(800):
        saturday = t % 6 == 5
        demand = round(np.clip(rng.normal((14 + 6 * saturday) * (0.6 if t >= 600 else 1.0), 2), 0, 30))
        decision = agent.ask({"saturday": saturday})
        agent.tell(decision, stock.outcome(decision.arm, min(decision.arm, demand)))
        orders.append(decision.arm)
    wanted = 0.6 * 15 + 0.67 * 2
    assert 0.8 < np.mean(orders[500:600]) / (15 + 0.67 * 2) < 1.2
    assert 0.8 < np.mean(orders[700:]) / wanted < 1.25


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
    with pytest.raises(LearnerError, match=r"takes the learner 'glance' or 'squarecb\.g', not 'exp3-set'"):
        sl.ContextualAgent("exp3-set", NESTED)
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
        ("pending.x", lambda array: array[:, :1]),
        ("regressor.B", lambda array: array * np.inf),
        ("regressor.w", lambda array: array * np.nan),
        ("regressor.w", lambda array: array[:, 0]),
        ("regressor.group", lambda array: array + 4),
        ("regressor.groups", lambda array: array + 4),
        ("regressor.limit", lambda array: -array),
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


def features_of(kind, key, t):
    """Return features of a key in a round."""
    numbers = [((t * 7 + len(str(key)) * 3 + k) % 11) / 10 - 0.5 for k in range(D)]
    if kind == "vector":
        return numbers
    if kind == "names":
        return {"word": "up" if numbers[0] > 0 else "down", "level": numbers[1]}
    return [[number * (arm + 1) / K for number in numbers] for arm in range(K)]


class FeatureTwins:
    """A family beside a `ContextualAgent` for each key: every decision must be the same, to the bit."""

    def __init__(self, kind, **options):
        self.kind, self.agents, self.waiting = kind, {}, []
        self.family = sl.Family("squarecb.g", NESTED, seed=11, **options)
        self._options = {name: value for name, value in options.items() if name != "threads"}

    def agent(self, key):
        if key not in self.agents:
            seed = self.family.seed_of(key)
            self.agents[key] = sl.ContextualAgent("squarecb.g", NESTED, seed=seed, **self._options)
        return self.agents[key]

    def ask(self, keys, **rest):
        x = [features_of(self.kind, key, self.agent(key).round + keys[:i].count(key)) for i, key in enumerate(keys)]
        plan = self.family.ask(keys, x=np.array(x) if self.kind != "names" and len(keys) % 2 else x, **rest)
        for i, key in enumerate(keys):
            made = self.agent(key).ask(x[i], **rest)
            assert (plan.rounds[i], plan.arms[i], plan.probabilities[i]) == (made.round, made.arm, made.probability)
            self.waiting.append((key, made, plan.ids[i]))

    def tell(self, places, graph=None):
        chosen = [self.waiting.pop(at) for at in sorted(places, reverse=True)]
        losses = []
        for key, made, name in chosen:
            if made.round % 5 == 0:
                made = self.agent(key).override(made, 0)  # noqa: PLW2901
                self.family.override([name], [0])
            there = present(made.graph)
            shown = [arm for arm in (graph or made.graph).row(made.carried_out).tolist() if there[arm]]
            losses.append([((len(str(key)) + made.round * 3 + 2 * arm) % 10) / 10 for arm in shown])
            assert self.agent(key).tell(made, losses[-1], graph)
        told = self.family.tell([name for *_, name in chosen], np.concatenate(losses), graph)
        assert told == len(chosen)

    def check(self):
        """Compare what was learned, and what waits."""
        for key, agent in self.agents.items():
            member, x = self.family[key], features_of(self.kind, key, 5)
            assert member.predict(x).tobytes() == agent.predict(x).tobytes()
            for one, other in zip(member.pending, agent.pending, strict=True):
                assert one.predictions.tobytes() == other.predictions.tobytes()
                assert (one.gamma, one.value, one.x[0]) == (other.gamma, other.value, other.x[0])
                assert one.x[1].tobytes() == other.x[1].tobytes()
            for name in ("means", "counts", "gaps", "weights"):
                one, other = getattr(member.estimates(), name), getattr(agent.estimates(), name)
                np.testing.assert_array_equal(one, other)


@pytest.mark.compiled
@pytest.mark.parametrize("kind", ["vector", "names", "rows"])
def test_each_key_of_a_family_with_features_plays_as_an_agent_of_its_seed(kind, tmp_path):
    twins = FeatureTwins(kind, forgetting=0.97, penalty=0.5, hashed=8, gamma_scale=10.0, threads=2)
    keys = ["a", "bb", "ccc", "dddd"]
    for t in range(8):
        twins.ask([*keys[: 1 + t % 4], "bb"])  # one key twice
        twins.ask(keys[2:], available=[0, 2, 3])
        twins.tell([0, len(twins.waiting) - 1], sl.graphs.complete(K) if t % 3 == 2 else None)
        twins.tell(range(0, len(twins.waiting), 2))
    key, made, name = twins.waiting.pop()
    twins.agents[key].cancel(made)
    twins.family.cancel([name])
    twins.check()
    twins.family.save(tmp_path / "family")
    parts = pickle.loads(pickle.dumps(sl.Family.load(tmp_path / "family"))).split(3)  # noqa: S301
    twins.family = sl.Family.join(parts)
    assert set(twins.family.keys) == set(keys)
    twins.check()
    twins.family.retire(3)
    twins.agent("new")
    for agent in twins.agents.values():
        agent.retire(3)
    twins.ask([*keys, "new"])
    twins.tell(range(len(twins.waiting)))
    twins.check()
    assert np.isnan(twins.family.outlook(keys)).all()


@pytest.mark.interpreted
def test_features_of_a_family_that_are_none_are_refused_and_nothing_changes():
    family = sl.Family("squarecb.g", NESTED, seed=3)
    family.add(["old"])
    assert family.predict(["old"], [[1.0]]).tolist() == [[0.0] * K]
    family.ask(["a"], x=[[0.1, 0.2]])
    before = state_file.pack(*family.contents())
    for keys, x, message in (
        (["a", "b"], None, "plays by features"),
        (["a", "b"], [[0.1, 0.2]], "features of each of the 2 keys, one after the other, not 1"),
        (["a", "b"], {"a": 1.0}, "features of each of the 2 keys"),
        (["a", "b"], [[0.1, 0.2], [0.1]], "of the key 'b' are not like those of 'a'"),
        (["a", "b"], [[0.1, 0.2], {"level": 1.0}], "of the key 'b' are not like those of 'a'"),
        (["a", "b"], [[0.1, 0.2], [0.1, math.nan]], r"of the key 'b': Features must be finite numbers, and x\[1\]"),
        (["a", "b"], np.zeros((2, 3)), "must have 2 features, as the first one had, and has 3"),
        (["a", "b"], np.zeros((2, K, 2)), "must be a list of numbers, as the first one was"),
        (["a", "b"], np.full((2, 2), 2e6), r"at most 1e\+06; one is 2e\+06"),
        (["a", "b"], np.array([[0.0, 1.0], [math.inf, 0.0]]), "must be finite numbers"),
    ):
        with pytest.raises(FeatureError, match=message):
            family.ask(keys, x=x)
        assert state_file.pack(*family.contents()) == before
    assert len(family.ask([], x=[])) == 0
    with pytest.raises(FeatureError, match="does not see features"):
        sl.Family("glance", NESTED).ask(["a"], x=[[1.0]])
    with pytest.raises(LearnerError, match="regressor of a family is 'ridge'"):
        sl.Family("squarecb.g", NESTED, regressor=SGDRegressor())
    with pytest.raises(LearnerError, match="regressor of a family is 'ridge'"):
        sl.Family("exp3-set", NESTED, regressor="ridge")
    other = sl.Family("squarecb.g", NESTED, seed=3)
    other.ask(["b"], x=[{"level": 1.0}])
    with pytest.raises(sl.SidelongError, match="features of different kinds"):
        sl.Family.join([family, other])


@pytest.mark.interpreted
@pytest.mark.parametrize("name", ["regressor.group", "regressor.groups", "regressor.B", "pending.x"])
def test_a_file_of_a_family_with_a_regression_that_cannot_be_is_refused(name, tmp_path):
    family = sl.Family("squarecb.g", NESTED, seed=3)
    plan = family.ask(["a", "b"], x=[[0.1, 0.2], [0.3, 0.4]])
    family.tell(plan, np.full(plan.reveals.size, 0.5))
    family.ask(["b"], x=[[0.1, 0.2]])
    header, arrays = family.contents()
    wrong = arrays[name] + 9 if arrays[name].dtype.kind == "i" else arrays[name] * np.nan
    state_file.write(tmp_path / "family", header, {**arrays, name: wrong})
    with pytest.raises(StateFileError):
        sl.Family.load(tmp_path / "family")


# Features as advice.


@pytest.mark.interpreted
def test_the_best_arm_of_the_regressor_is_advice_to_the_bit():
    X, losses = world(60)
    agent = sl.ContextualAgent("glance", NESTED, seed=5, penalty=0.5)
    plain = sl.Agent("glance", NESTED, seed=5)
    for t, (x, row) in enumerate(zip(X, losses, strict=True)):
        there = [0, 1, 3] if t % 7 == 3 else range(K)
        f = agent.predict(x)
        others = {"team": 2} if t % 2 else {}
        best = min(there, key=lambda arm: f[arm])
        silent = len({f[arm] for arm in there}) == 1
        decision = agent.ask(x, available=there, advice=others or None)
        other = plain.ask(available=there, advice=others | {"features": None if silent else best})
        assert decision.arm == other.arm
        assert decision.probabilities.tolist() == other.probabilities.tolist()
        assert [row.tolist() for row in decision.advice.values()] == [row.tolist() for row in other.advice.values()]
        agent.tell(decision, row[decision.reveals])
        plain.tell(other, row[other.reveals])
    assert [each.name for each in agent.advisers()] == [each.name for each in plain.advisers()]


def test_features_have_the_guarantee_and_are_worth_something():
    X, losses = world(1500, seed=4)
    agent, blind = sl.ContextualAgent("glance", NESTED, seed=5), sl.Agent("glance", NESTED, seed=5)
    paid, fixed = play(agent, X, losses), 0.0
    for row in losses:
        decision = blind.ask()
        fixed += row[decision.arm] / len(losses)
        blind.tell(decision, row[decision.reveals])
    best = losses.min(axis=1).mean()
    assert paid - best < 0.5 * (fixed - best)
    noise = sl.ContextualAgent("glance", NESTED, seed=5)
    rng = np.random.default_rng(0)
    assert play(noise, rng.normal(size=X.shape), losses) < fixed + 0.03  # features that say nothing


def test_several_regressors_compete_under_their_names():
    X, losses = world(300, seed=2)
    models = {"ridge": "ridge", "sgd": SGDRegressor(random_state=0), "river": river_linear.LinearRegression()}
    agent = sl.ContextualAgent("glance", NESTED, models, seed=5, forgetting=0.99)
    play(agent, X[:200], losses[:200])
    waiting = agent.ask(X[200])
    other = pickle.loads(pickle.dumps(agent))  # noqa: S301
    assert set(agent.predict(X[0])) == set(models)
    for each in (agent, other):
        each.tell(waiting.id, losses[200][waiting.reveals])
        play(each, X[201:], losses[201:])
    assert [each.round for each in (agent, other)] == [300, 300]
    assert [row.trust for row in agent.advisers()] == [row.trust for row in other.advisers()]
    assert {row.name for row in agent.advisers()} == set(models)
    with pytest.raises(StateFileError, match="several regressors"):
        agent.contents()


def test_a_saved_agent_goes_on_with_its_adviser(tmp_path):
    X, losses = world(60)
    agent = sl.ContextualAgent("glance", NESTED, {"mine": "ridge"}, seed=5, forgetting=0.98)
    play(agent, X[:30], losses[:30])
    agent.save(tmp_path / "state")
    other = sl.ContextualAgent.load(tmp_path / "state")
    for x, row in zip(X[30:], losses[30:], strict=True):
        one, two = agent.ask(x, advice={"team": 1}), other.ask(x, advice={"team": 1})
        assert (one.arm, one.probabilities.tolist()) == (two.arm, two.probabilities.tolist())
        agent.tell(one, row[one.reveals])
        other.tell(two, row[two.reveals])
    assert [each.name for each in other.advisers()] == ["mine", "team"]
    header, arrays = agent.contents()
    with pytest.raises(StateFileError, match="no name"):
        sl.ContextualAgent.from_contents(header | {"regressor": header["regressor"] | {"advisers": [3]}}, arrays, "it")


def test_a_key_of_a_family_is_its_agent_to_the_bit(tmp_path):
    X, losses = world(80, seed=6)
    family = sl.Family("glance", NESTED, seed=5, regressor="ridge", penalty=0.5)
    agents = {key: sl.ContextualAgent("glance", NESTED, seed=family.seed_of(key), penalty=0.5) for key in "ab"}
    for t in range(0, 80, 2):
        plan = family.ask(["a", "b"], x=X[t : t + 2], advice={"team": [1, -1]})
        made = [
            agent.ask(x, advice={"team": 1 if key == "a" else None})
            for (key, agent), x in zip(agents.items(), X[t : t + 2], strict=True)
        ]
        assert plan.arms.tolist() == [each.arm for each in made]
        told = [losses[t + k][each.reveals] for k, each in enumerate(made)]
        family.tell(plan, np.concatenate(told))
        for agent, decision, row in zip(agents.values(), made, told, strict=True):
            agent.tell(decision, row)
        if t == 40:
            family.save(tmp_path / "family")
            family = sl.Family.load(tmp_path / "family")
    assert family["a"].advisers().rows == agents["a"].advisers().rows
    pooled = sl.Family("glance", NESTED, seed=5, regressor="ridge", pooled=True)
    plan = pooled.ask(["a", "b"], x=X[:2])
    assert pooled.tell(plan, np.full(plan.reveals.size, 0.5)) == 2


LIMITS = (
    {"prior": {0: (0.1, 3.0), 2: (0.4, 5.0)}},
    {"incumbent": "team", "allowance": 4.0},
    {"incumbent": "team", "allowance": 60.0, "scale": sl.outcomes.Scale(best=10, worst=60), "prior": {1: (20.0, 2.0)}},
    {"ceiling": 0.4},
    {"ceiling": 0.4, "cost_bounds": [1.0, 0.9, 0.6, 0.3], "overspend": 1.5, "prior": {3: (0.2, 4.0)}},
)


@pytest.mark.compiled
@pytest.mark.parametrize("limits", LIMITS, ids="-".join)
def test_a_key_with_features_and_an_agent_take_the_same_priors_and_limits_to_the_bit(limits, tmp_path):
    X, losses = world(80, seed=6)
    family = sl.Family("glance", NESTED, seed=5, regressor="ridge", penalty=0.5, **limits)
    agents = {
        key: sl.ContextualAgent("glance", NESTED, seed=family.seed_of(key), penalty=0.5, **limits) for key in "ab"
    }
    costs, late = np.array([0.9, 0.7, 0.5, 0.1]), []
    for t in range(0, 80, 2):
        there = None if t % 6 else [0, 1, 3]
        plan = family.ask(["a", "b"], available=there, x=X[t : t + 2], advice={"team": [1, 3]})
        advice = {"a": 1, "b": 3}
        made = [
            agents[key].ask(x, None, there, {"team": advice[key]}) for key, x in zip("ab", X[t : t + 2], strict=True)
        ]
        for k, each in enumerate(made):
            assert (plan.arms[k], plan.probabilities[k]) == (each.arm, each.probability)
            assert plan.reveals[plan.offsets[k] : plan.offsets[k + 1]].tolist() == each.reveals.tolist()
        late.append((plan, made))
        if t % 4:
            continue
        for batch, decisions in late:  # some at once, and some after two rounds
            told = [losses[t + k][each.reveals] for k, each in enumerate(decisions)]
            told = told if family.scale is None else [10 + 50 * each for each in told]
            spent = [costs[each.reveals] if "ceiling" in limits else None for each in decisions]
            together = np.concatenate(spent) if "ceiling" in limits else None
            assert family.tell(batch, np.concatenate(told), costs=together) == 2
            for key, decision, row, cost in zip("ab", decisions, told, spent, strict=True):
                assert agents[key].tell(decision, row, costs=cost)
        late = []
        if t == 40:
            family.save(tmp_path / "family")
            family = sl.Family.load(tmp_path / "family")
            for key, agent in agents.items():
                agent.save(tmp_path / key)
                agents[key] = sl.ContextualAgent.load(tmp_path / key)
    for key, agent in agents.items():
        member = family[key]
        assert member.predict(X[0]).tobytes() == agent.predict(X[0]).tobytes()
        assert member.advisers().rows == agent.advisers().rows
        assert "incumbent" not in limits or member.allowance_left == agent.allowance_left
        assert "ceiling" not in limits or member.spending() == agent.spending()


def test_models_of_other_packages_take_limits_and_priors():
    X, losses = world(40, seed=2)
    for model in (SGDRegressor(random_state=0), {"sgd": SGDRegressor(random_state=0), "mine": "ridge"}):
        given = {"ceiling": 0.5, "cost_bounds": [1.0] * K, "overspend": 2.0, "prior": {0: (0.1, 3.0)}}
        limited = sl.ContextualAgent("glance", NESTED, model, seed=5, **given)
        plain = sl.ContextualAgent("glance", NESTED, model, seed=5)
        for x, row in zip(X, losses, strict=True):
            decision = limited.ask(x)
            limited.tell(decision, row[decision.reveals], costs=[0.2] * decision.reveals.size)
            other = plain.ask(x)  # overridden, so that both models learn the same
            other = other if other.arm == decision.arm else plain.override(other, decision.arm)
            plain.tell(other, row[decision.reveals])
        one, two = limited.predict(X[0]), plain.predict(X[0])
        for name in one if isinstance(one, dict) else [...]:
            assert one[name] == pytest.approx(two[name], abs=1e-12)


def test_a_prior_or_limit_that_features_cannot_have_is_refused_and_nothing_changes():
    for given, message in (
        ({"prior": {0: (0.1, 3.0)}}, r"squarecb\.g has none. Use glance"),
        ({"incumbent": "team", "allowance": 5.0}, r"squarecb\.g has no rule for an incumbent"),
        ({"overspend": 0.5}, "go with a ceiling"),
    ):
        with pytest.raises(LearnerError, match=message):
            make(**given)
        with pytest.raises(LearnerError, match=message):
            sl.Family("squarecb.g", NESTED, **given)
    limits = {"incumbent": "features", "allowance": 5.0}
    with pytest.raises(AdviceError, match="is the name of a regressor"):
        sl.ContextualAgent("glance", NESTED, **limits)
    with pytest.raises(AdviceError, match="is the name of a regressor"):
        sl.Family("glance", NESTED, regressor="ridge", **limits)
    agent = sl.ContextualAgent("glance", NESTED, incumbent="team", allowance=5.0)
    before = state_file.pack(*agent.contents())
    for advice in (None, {"other": 1}, {"team": None}):
        with pytest.raises(AdviceError, match="must advise in every round"):
            agent.ask([1.0], advice=advice)
    assert state_file.pack(*agent.contents()) == before
    assert agent.ask([1.0, 2.0], advice={"team": 1}).advice["team"].tolist() == [0, 1, 0, 0]  # nothing was fixed
    agent = sl.ContextualAgent("glance", NESTED, ceiling=0.5)
    decision = agent.ask([1.0])
    with pytest.raises(CostError, match="tell what the revealed arms cost"):
        agent.tell(decision, np.full(decision.reveals.size, 0.5))
    plain = sl.ContextualAgent("glance", NESTED)
    decision = plain.ask([1.0])
    with pytest.raises(CostError, match="Costs are told where there is a ceiling"):
        plain.tell(decision, np.full(decision.reveals.size, 0.5), costs=np.full(decision.reveals.size, 0.5))


def test_what_features_as_advice_cannot_be_is_refused():
    agent = sl.ContextualAgent("glance", NESTED, seed=5)
    with pytest.raises(AdviceError, match="is the name of a regressor"):
        agent.ask([1.0], advice={"features": 1})
    with pytest.raises(AdviceError, match="must be an arm"):
        agent.ask([1.0], advice=1.5)
    decision = agent.ask([1.0, 2.0])  # what was refused has fixed nothing
    with pytest.raises(DecisionError, match="Predictions were advice here"):
        _ = decision.predictions
    with pytest.raises(AdviceError, match=r"squarecb\.g takes no advice"):
        make().ask([1.0], advice=1)
    with pytest.raises(LearnerError, match="compete as advisers"):
        make(regressor={"a": "ridge"})
    for wrong in ({}, {1: "ridge"}, {"a": "forest"}, {"a": 3}):
        with pytest.raises(LearnerError):
            sl.ContextualAgent("glance", NESTED, wrong)
    with pytest.raises(LearnerError, match="gamma_scale"):
        sl.ContextualAgent("glance", NESTED, gamma_scale=3.0)
    with pytest.raises(LearnerError, match="has no model of a new arm"):
        agent.add_arm()
    family = sl.Family("glance", NESTED, regressor="ridge")
    with pytest.raises(AdviceError, match="is the name of a regressor"):
        family.ask(["a"], x=[[1.0]], advice={"features": [1]})
    with pytest.raises(FeatureError, match="give those of each key as x"):
        family.ask(["a"])
