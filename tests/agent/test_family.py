"""A family plays each key as an agent of its own would: to the bit, in any batches, on any number of threads."""

import hashlib

import numba
import numpy as np
import pytest

import sidelong as sl
from agent_twins import Twins
from sidelong.agent import rounds
from sidelong.errors import OutcomeError
from sidelong.keys import part_of

pytestmark = pytest.mark.interpreted

PLAIN = numba.config.DISABLE_JIT
#: What is not compiled here for its own sake is compared in plain Python, which is the same code.
ONLY_PLAIN = pytest.mark.skipif(
    not PLAIN, reason="to compile these learners would take a minute; plain Python has them"
)
KEYS = [f"sku-{k}" for k in range(6 if PLAIN else 40)]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_family_is_its_agents_with_late_feedback_in_random_batches_and_saved_in_between(
    threads, tmp_path, monkeypatch
):
    monkeypatch.setattr(rounds, "_FEW", 1)  # threads for small batches too
    rng = np.random.default_rng(threads)
    bank = [sl.graphs.nested(5), sl.graphs.star(5, hub=1), sl.graphs.cliques([2, 3]).as_arcs()]
    twins = Twins("glance", bank[0], threads=threads)
    for t in range(12 if PLAIN else 200):
        keys = rng.choice(KEYS, rng.integers(1, 10)).tolist()  # some more than once
        if t % 3:
            twins.ask(keys)
        else:
            index = rng.integers(3, size=len(keys))
            twins.ask(keys, (bank, index), of=lambda graph, i: graph and graph[0][graph[1][i]])
        twins.tell(rng.permutation(len(twins.waiting))[: rng.integers(0, 12)].tolist())
        if t % 10 == 4:
            twins.cancel([0] if twins.waiting else [])
        if t % 60 == 7:
            twins.family.save(tmp_path / "family")
            twins.family = sl.Family.load(tmp_path / "family")
            twins.family.threads = threads
    twins.check()


def test_neither_the_other_keys_nor_the_batches_matter():
    alone, together = (sl.Family("glance", sl.graphs.nested(4), seed=3) for _ in range(2))
    for _ in range(10):
        one, all_ = alone.ask(["b"]), together.ask(["a", "b", "c"])
        assert one.arms[0] == all_.arms[1]
        alone.tell(one, np.full(one.reveals.size, 0.25))
        together.tell(all_, np.full(all_.reveals.size, 0.25))
    assert alone["b"].estimates().weights.tobytes() == together["b"].estimates().weights.tobytes()


@pytest.mark.parametrize(("learner", "options"), [("exp3.g++", {}), ("exp3.g++", {"refresh": "epoch"}), ("ts-n", {})])
def test_a_family_knows_with_which_probability_each_arm_would_be_revealed(learner, options):
    family = sl.Family(learner, sl.graphs.nested(4), seed=3, **options)
    agents = {key: sl.Agent(learner, family.graph, seed=family.seed_of(key), **options) for key in "abc"}
    after = sl.graphs.complete(4)
    for _ in range(8):
        batch = family.ask(list(agents))
        decisions = [agent.ask() for agent in agents.values()]
        expected = [each.revealed_probabilities for each in decisions]
        found = family.observe_probabilities(batch)
        assert found.tobytes() == np.concatenate(expected).tobytes()
        if learner == "exp3.g++" and not options:
            assert family.observe_probabilities(batch, after) == pytest.approx(1.0)
        losses = np.ones(batch.reveals.size)
        family.tell(batch, losses)
        for decision, agent in zip(decisions, agents.values(), strict=True):
            agent.tell(decision, [1.0] * decision.reveals.size)
    with pytest.raises(sl.errors.DecisionError, match="pending"):
        family.observe_probabilities(batch)


def test_keys_that_were_only_asked_have_one_state_in_common():
    bank = [sl.graphs.nested(5), sl.graphs.star(5, hub=1)]
    twins = Twins("glance", bank[0])
    for index in ([0, 0, 0, 0], [0, 1, 1, 0]):
        twins.ask(KEYS[:4], (bank, index), of=lambda graph, i: graph and graph[0][graph[1][i]])
    common = twins.family._rounds.rows.common
    assert common[0] == common[3] != common[1] == common[2]
    assert (common >= 0).all()
    twins.tell([0])
    twins.cancel([0])
    assert (common >= 0).tolist() == [False, True, True, True]
    for _ in range(3):
        twins.ask(KEYS[:4])
        twins.tell([0, 2])
    twins.check()


def test_graphs_that_only_the_outcome_shows():
    wider = [sl.graphs.nested(5), sl.graphs.complete(5)]
    rng = np.random.default_rng(5)
    twins = Twins("glance", wider[0])
    for _ in range(8 if PLAIN else 40):
        twins.ask(KEYS[:4])
        places = list(range(min(len(twins.waiting), 5)))
        twins.tell(places, [wider[rng.integers(2)] for _ in places])
    twins.check()


OTHERS = [
    ("exp3-set", {}, False),
    ("exp3-set", {"late": "guarded"}, False),
    ("exp3.g++", {"gamma": 0.2, "beta": 0.01}, False),
    ("exp3.g++", {"refresh": "epoch"}, False),
    ("ts-n", {}, True),
    ("ucb-n", {}, False),
    ("tsallis-inf", {}, False),
    ("exp3-dom", {}, False),
]


@ONLY_PLAIN
@pytest.mark.parametrize(("learner", "options", "binary"), OTHERS)
def test_other_learners(learner, options, binary, tmp_path):
    """One with a prior for losses 0 or 1, those that count what is outstanding, and those that see few arms."""
    rng = np.random.default_rng(7)
    twins = Twins(learner, sl.graphs.nested(4), binary=binary, **options)
    for t in range(20):
        twins.ask(KEYS[: rng.integers(1, 4)])
        twins.tell(rng.permutation(len(twins.waiting))[: rng.integers(0, 5)].tolist())
        if t % 4 == 3:
            twins.ask(KEYS[:1])
            twins.cancel([len(twins.waiting) - 1])
        if t == 12:
            twins.family.save(tmp_path / "family")
            twins.family = sl.Family.load(tmp_path / "family")
    twins.check()


@ONLY_PLAIN
def test_arms_that_are_absent_for_a_round():
    rng = np.random.default_rng(9)
    twins = Twins("exp3-set", sl.graphs.nested(5))
    for t in range(15):
        flags = rng.random((3, 5)) < 0.6
        flags[np.arange(3), rng.integers(5, size=3)] = True
        if t % 2:
            twins.ask(KEYS[:3], None, flags, of=lambda given, i: given if given is None else given[i])
        else:
            twins.ask(KEYS[:3], None, [0, 2, 3])
        twins.tell([0, 1])
    twins.check()


@ONLY_PLAIN
def test_a_prior_and_a_scale_for_all_keys_and_for_some():
    graph = sl.graphs.nested(4)
    euros, cents = sl.outcomes.Scale(0, 10), sl.outcomes.Scale(0, 1000)
    prior = {0: (9.0, 50), 1: (1.0, 50)}
    family = sl.Family("exp3-set", graph, seed=2, scale=euros, prior=prior)
    family.add(["mine"], scale=cents, prior=[{0: (10.0, 50)}])
    agents = {
        "mine": sl.Agent("exp3-set", graph, seed=family.seed_of("mine"), scale=cents, prior={0: (10.0, 50)}),
        "all": sl.Agent("exp3-set", graph, seed=family.seed_of("all"), scale=euros, prior=prior),
    }
    for _ in range(10):
        plan = family.ask(["all", "mine"])
        for i, key in enumerate(plan.keys):
            made = agents[key].ask()
            assert made.probability == plan.probabilities[i]
            agents[key].tell(made, [3.5] * made.reveals.size)
        family.tell(plan, np.full(plan.reveals.size, 3.5))
        family = sl.Family.join(family.split(2))  # which keep both
    plan = family.ask(["mine", "all"])
    with pytest.raises(OutcomeError, match=r"of arm \d of the key 'all'.* from 0 to 10, the ends of its scale, not 11"):
        family.tell(plan, np.full(plan.reveals.size, 11.0))


def test_one_key_is_asked_and_told_like_an_agent():
    family = sl.Family("glance", sl.graphs.nested(4), seed=1)
    agent = sl.Agent("glance", sl.graphs.nested(4), seed=family.seed_of("a"))
    for t in range(6):
        one, other = family["a"].ask(), agent.ask()
        assert one.probabilities.tobytes() == other.probabilities.tobytes()
        assert one.reveals.tolist() == other.reveals.tolist()
        losses = {int(arm): t / 10 for arm in one.reveals}
        assert family["a"].tell(one if t % 2 else one.id, losses)
        assert not family["a"].tell(one.id, losses)
        agent.tell(other, losses)
    waiting = family["a"].ask()
    assert [made.id for made in family["a"].pending] == [waiting.id] == family.pending
    family["a"].cancel(waiting)
    assert family["a"].pending == ()
    orders = sl.outcomes.StockOrders(3, holding=1, shortage=4)
    made = family["a"].ask()
    assert family["a"].tell(made, orders.outcome(made.arm, sales=0, ran_out=made.arm == 0))


@pytest.mark.parametrize("keys", [[1, -5, 2**70], ["é", "", "a-b-c", "\ud800"], np.arange(3), np.array(["x", "y"])])
def test_a_key_is_any_text_or_whole_number(keys, tmp_path):
    family = sl.Family("glance", sl.graphs.nested(3))
    plan = family.ask(keys)
    family.save(tmp_path / "family")
    family = sl.Family.load(tmp_path / "family")
    assert family.keys == plan.keys
    assert family.pending == plan.ids
    family.tell(plan.ids, np.full(plan.reveals.size, 0.5))
    assert len(set(map(family.seed_of, plan.keys))) == len(plan.keys)


def test_seeds_and_parts_are_the_same_for_ever():
    family = sl.Family("glance", sl.graphs.nested(3), seed=7)
    digest = hashlib.blake2b(b"ssku-1", digest_size=8, key=bytes([7, 0, 0, 0, 0, 0, 0, 0])).digest()
    assert family.seed_of("sku-1") == 13174831654840207243 == int.from_bytes(digest, "little")
    assert [part_of(key, 10) for key in ("sku-1", "sku-2", 1, 2, -3)] == [4, 6, 6, 8, 5]


def test_parts_that_remember_other_numbers_of_decisions_are_joined():
    family = sl.Family("exp3-set", sl.graphs.nested(3), seed=7)
    plan = family.ask(["a", "b", "c", "d", "e"])
    family.tell(plan, np.full(plan.reveals.size, 0.5))
    parts = family.split(2)
    parts[0].remembers = 9
    together = sl.Family.join(parts)
    assert together.remembers == 9
    assert together.tell(plan, np.full(plan.reveals.size, 0.5)) == 0  # all of it was told before


def test_rows_that_somebody_holds_are_those_of_the_family_after_an_arm_has_come():
    family = sl.Family("exp3-set", sl.graphs.nested(3), seed=7)
    plan = family.ask(["a"])
    rows = family.rows
    family.add_arm(reveals=[0])
    rows.ask(np.array([0]))
    assert family["a"].round == 2
    with pytest.raises(sl.errors.SidelongError, match="99"):
        rows.override(np.array([0]), plan.rounds, np.array([99]))
    with pytest.raises(sl.errors.DecisionError, match="was absent"):
        rows.override(np.array([0]), plan.rounds, np.array([3]))


def test_a_log_that_can_be_read_once_is_learned():
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"action": [0, 1, 2] * 20, "loss": [0.1] * 60, "pscore": [1 / 3] * 60})
    family = sl.Family("exp3-set", sl.graphs.self_loops(3), seed=7)
    agent = sl.Agent("exp3-set", sl.graphs.self_loops(3), seed=family.seed_of("a"))
    assert family.learn({"a": pa.RecordBatchReader.from_batches(table.schema, table.to_batches())}) == agent.learn(
        table
    )
    assert np.array_equal(family.outlook(["a"])[0], agent.outlook())
    assert np.array_equal(family["a"].outlook(), agent.outlook())
    np.testing.assert_array_equal(family["a"].estimates().gaps, agent.estimates().gaps)
    assert family["a"].lateness() == agent.lateness()


def test_what_is_observed_by_an_arm_that_a_sparing_learner_did_not_draw_is_unknown():
    graph = sl.graphs.nested(4)
    family = sl.Family("exp3.g++", graph, seed=7, refresh="epoch")
    plan = family.ask(["a", "b"])
    family.override(plan[:1], [3 - plan.arms[0]])
    observed = np.split(family.observe_probabilities(plan), [4 - plan.arms[0]])
    assert np.isnan(observed[0]).all()
    assert not np.isnan(observed[1]).any()
    with pytest.raises(sl.errors.DecisionError, match="must know at `ask`"):
        family.observe_probabilities(plan, sl.graphs.complete(4))
