"""An experiment that knows something before its first round: what is believed of arms, or a log."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sidelong as sl
from service.stores import lose_snapshots, opened
from service.test_keyed import ask
from service.test_store import refused
from sidelong.service.http import views
from sidelong.service.store import creation
from sidelong.service.store.spec import RequestedSpec

GRAPH = sl.graphs.path(5)
EXPORTED = {"action": [0], "observed": [[0, 1]], "losses": [[0.5, 0.25]], "observe_probabilities": [[0.5, 0.5]]}
PRIOR = [{"arm": 1, "mean": 0.2, "weight": 30.0}, {"arm": "d", "mean": 0.8, "weight": 30.0}]


def log(seed=1, rounds=600):
    """Return the columns of an A/B test in which arm 2 was best."""
    draws = np.random.default_rng(seed)
    shown = draws.integers(5, size=rounds)
    lost = (draws.random(rounds) < np.array([0.5, 0.5, 0.3, 0.5, 0.5])[shown]).astype(float)
    return {"action": shown.tolist(), "loss": lost.tolist(), "pscore": [0.2] * rounds}


def create(bench, name="e", columns=None, **more):
    spec = {"learner": "exp3-set", "seed": 7, "expire_after": None, "labels": list("abcde"), **more}
    return creation.create(bench.store, creation.draft(bench.store, name, RequestedSpec(**spec), GRAPH, columns))


def play(bench, agent, name="e"):
    """Check that an experiment decides as an agent does."""
    for number in range(20):
        made, expected = bench.decide(name), agent.ask()
        assert (made.arm, made.probability) == (expected.arm, expected.probability)
        bench.tell(made, number / 20)
        agent.tell(expected, [number / 20] * len(made.reveals))


def state(bench, name="e"):
    return bench.store.view(name, views.state)


def test_what_is_believed_is_as_for_an_agent_and_is_so_again_after_a_replay(database):
    believed = {1: (0.2, 30.0), 3: (0.8, 30.0)}
    with opened(database) as bench:
        assert create(bench, prior=PRIOR)[1]
        play(bench, sl.Agent("exp3-set", GRAPH, seed=7, prior=believed))
        assert [(each.arm, each.mean) for each in state(bench).prior] == [(1, 0.2), (3, 0.8)]
        assert state(bench).guarantee.bound > 0.0
        assert state(bench).guarantee.worth_from is None
        assert not create(bench, prior=PRIOR)[1]  # the same again
        assert refused("exists", create, bench, prior=PRIOR[:1]).status == 409
        bench.clone("e", "fresh", learned=False, wanted={"seed": 7})
        play(bench, sl.Agent("exp3-set", GRAPH, seed=7, prior=believed), "fresh")
        digest = bench.digest()
        lose_snapshots(bench.database)
    with opened(database) as bench:
        assert bench.digest() == digest


def test_beliefs_and_logs_are_in_the_scale_of_feedback(database):
    with opened(database) as bench:
        scale = {"best": 0.0, "worst": 4.0}
        create(bench, prior=[{"arm": 1, "mean": 0.8, "weight": 30.0}], scale=scale)
        create(bench, "logged", {**log(), "loss": [4.0 * each for each in log()["loss"]]}, scale=scale)
        agent = sl.Agent("exp3-set", GRAPH, seed=7, prior={1: (0.2, 30.0)})
        assert bench.decide().probability == agent.ask().probability
        agent = sl.Agent("exp3-set", GRAPH, seed=7)
        agent.learn(log())
        assert bench.decide("logged").probability == agent.ask().probability


def test_a_log_is_learned_before_the_first_round_and_is_there_again_after_a_replay(database):
    agent = sl.Agent("exp3-set", GRAPH, seed=7)
    agent.learn(log())
    with opened(database) as bench:
        assert create(bench, columns=log())[1]
        play(bench, agent)
        found = state(bench)
        assert (found.logged, found.round) == (600, 20)
        assert not found.guarantee.holds
        assert "It learned 600 rounds of a log" in found.guarantee.reasons[0]
        assert not create(bench, columns=log())[1]
        assert refused("exists", create, bench, columns=log(seed=2)).status == 409
        bench.clone("e", "fresh", learned=False, wanted={"seed": 7})
        bench.clone("e", "twin")
        play(bench, sl.Agent("exp3-set", GRAPH, seed=7), "fresh")
        assert (state(bench, "fresh").logged, state(bench, "twin").logged) == (None, 600)
        play(bench, agent, "twin")
        digests = {name: bench.digest(name) for name in ("e", "fresh", "twin")}
        lose_snapshots(bench.database)
    with opened(database) as bench:
        assert {name: bench.digest(name) for name in digests} == digests


def test_each_key_learns_its_rounds_of_a_log_and_they_are_there_again_after_a_replay(database):
    keys = ["a", "b", "b"] * 200
    seeds = sl.Family("exp3-set", GRAPH, seed=7)
    with opened(database) as bench:
        assert create(bench, columns={**log(), "key": keys}, keyed=True, labels=None)[1]
        draws = ask(bench, ["b", "new", "a"]).draws
        for key, probability in zip(draws.keys, draws.probabilities, strict=True):
            agent = sl.Agent("exp3-set", GRAPH, seed=seeds.seed_of(key))
            own = [place for place, each in enumerate(keys) if each == key]
            if own:
                agent.learn({name: [column[place] for place in own] for name, column in log().items()})
            assert agent.ask().probability == probability
        digest = bench.digest()
    with opened(database) as bench:
        assert bench.digest() == digest


@pytest.mark.parametrize(
    ("wrong", "part", "said"),
    [
        ({"prior": [{"arm": 5, "mean": 0.2, "weight": 1.0}]}, "prior.0.arm", "5"),
        ({"prior": [{"arm": "x", "mean": 0.2, "weight": 1.0}]}, "prior.0.arm", "x"),
        ({"prior": [PRIOR[0], {**PRIOR[0], "arm": "b"}]}, "prior.1.arm", "twice"),
        ({"prior": [{**PRIOR[0], "mean": 1.5}]}, "prior.0.mean", "not 1.5"),
        (
            {"prior": [PRIOR[0], {**PRIOR[1], "mean": 3.5}], "scale": {"best": 2.0, "worst": 0.0}},
            "prior.1.mean",
            "from 0 to 2",
        ),
        ({"prior": PRIOR, "learner": "ucb-n"}, "learner", "Use glance or exp3-set"),
        ({"options": {"prior": {"1": [0.2, 30]}}}, "learner", "beside the options"),
        ({"prior": PRIOR, "learner": "squarecb.g", "features": ["x"]}, "prior", "features"),
        ({"columns": log(), "learner": "ucb-n"}, "learner", "Use glance or exp3-set"),
        ({"columns": {**log(), "loss": [0.5]}}, "log", "equally long"),
        ({"columns": {"action": [0], "loss": [0.5]}}, "log", "loss, pscore or observed, losses, observe_probabilities"),
        ({"columns": {**log(), **EXPORTED}}, "log", "this one has action, loss, pscore, observed"),
        ({"columns": {**EXPORTED, "losses": [[0.5, 2.0]]}}, "log", "in [0, 1]"),
        ({"columns": {**log(), "key": ["a"] * 600}}, "log.key", "without keys"),
        ({"columns": log(), "keyed": True}, "log.key", "needs a column key"),
        ({"columns": {**EXPORTED, "key": ["a", 1]}, "keyed": True}, "log", "equally long"),
        ({"columns": {**log(rounds=2), "key": ["a", 1]}, "keyed": True}, "log", "text"),
        ({"columns": {**log(), "action": [0] * 600, "key": ["a"] * 600}, "keyed": True}, "log", "the key 'a'"),
        ({"columns": {**log(), "action": [9] * 600}}, "log", "arm"),
        ({"columns": {**log(), "action": [0] * 600}}, "log", "could not be seen"),
        ({"columns": log(), "learner": "squarecb.g", "features": ["x"]}, "log", "features"),
    ],
)
def test_what_cannot_be_known_is_refused_and_nothing_is_made(tmp_path, wrong, part, said):
    with opened(f"sqlite:///{tmp_path}/service.db") as bench:
        error = refused("invalid", create, bench, **wrong)
        assert error.path == f"body.{part}"
        assert said in str(error)
        assert bench.store.names(0, 9)[0] == 0


def test_a_head_start_over_the_network_is_that_of_an_agent(nursery, tmp_path):
    server = nursery.start(f"sqlite:///{tmp_path}/service.db")
    agent = sl.Agent("exp3-set", GRAPH, seed=7, prior={1: (0.2, 30), 3: (0.8, 30)})
    learned = sl.Agent("exp3-set", GRAPH, seed=7, scale=sl.outcomes.Scale(best=0.0, worst=2.0))
    columns = {**log(), "loss": 2.0 * np.array(log()["loss"])}
    learned.learn(log())
    with sl.connect(server.address) as service:
        made = service.create("believed", "exp3-set", GRAPH, seed=7, prior={1: (0.2, 30), 3: (0.8, 30)})
        assert made.ask().probability == agent.ask().probability
        made = service.create("logged", "exp3-set", GRAPH, seed=7, log=columns, scale=learned.scale)
        assert made.ask().probability == learned.ask().probability
        family = sl.Family("exp3-set", GRAPH, seed=7, prior={1: (0.2, 30)})
        made = service.create("shop", "exp3-set", GRAPH, seed=7, keyed=True, prior={1: (0.2, 30)})
        assert made.ask_many(["bread"]).probabilities == family.ask(["bread"]).probabilities


def test_what_is_not_the_exported_log_of_an_experiment_is_refused_before_it_is_sent(service, tmp_path):
    (tmp_path / "text").write_text("no log")
    with pytest.raises(sl.SidelongError, match="cannot be read as Parquet"):
        service.create("e", "exp3-set", GRAPH, log=tmp_path / "text")
    pq.write_table(pa.table({"action": [0], "reward": [1.0]}), tmp_path / "table")
    with pytest.raises(sl.SidelongError, match="not the exported log of an experiment: it has no column drawn_by"):
        service.create("e", "exp3-set", GRAPH, log=str(tmp_path / "table"))
