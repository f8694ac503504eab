"""What the service knows of a key is what an agent knows, whether the key has a name or not."""

import numpy as np
import pytest

import sidelong as sl
from service.stores import lose_snapshots, opened
from service.test_store import refused
from sidelong.service.http import views
from sidelong.service.http.messages.experiments import StateQuery
from sidelong.service.store import snapshots

GRAPH = sl.graphs.path(4)
PRIOR = [{"arm": 1, "mean": 0.2, "weight": 30.0}, {"arm": 3, "mean": 0.8, "weight": 5.0}]
BELIEVED = {1: (0.2, 30.0), 3: (0.8, 5.0)}

kinds = pytest.mark.parametrize("key", [None, "bread", 17], ids=["without keys", "text", "number"])


def created(bench, key, **spec):
    """Make an experiment, and return the agent that its key plays as."""
    seed = 7 if key is None else sl.Family("exp3-set", GRAPH, seed=7).seed_of(key)
    bench.create(graph=GRAPH, learner="exp3-set", seed=7, keyed=key is not None, **spec)
    prior = BELIEVED if "prior" in spec else None
    return sl.Agent("exp3-set", GRAPH, seed=seed, certificate=spec.get("certificate", False), prior=prior)


def play(bench, agent, key, rounds=60):
    """Let both decide and learn the same: some decisions are told late, one is given up, one carried out otherwise."""
    rng, waiting = np.random.default_rng(3), []
    for t in range(rounds):
        made, twin = bench.decide(keys=None if key is None else [key]), agent.ask()
        assert (made.arm, made.probability) == (twin.arm, twin.probability)
        if key is not None:  # another key changes nothing of this one
            other = bench.decide(keys=["rolls" if key == "bread" else 18])
            bench.tell(other, float(t % 2))
        if t == 20:
            bench.cancel(made)
            agent.cancel(twin)
            continue
        waiting.append((made, twin))
        for made, twin in [waiting.pop(0)] if t % 3 else waiting[::-1]:
            losses = rng.random(len(made.reveals)).tolist()
            bench.tell(made, losses)
            agent.tell(twin, losses)
        waiting = waiting if t % 3 else []


def state(bench, key):
    query = StateQuery(key=None if key is None else str(key))
    return bench.store.view("e", lambda each, reading: views.state(each, reading, query))


def check(bench, key, agent):
    """Compare what the service shows of a key with what an agent says."""
    found, known = state(bench, key), agent.estimates()
    assert [arm.observed_mean for arm in found.arms.items] == known.means.tolist()
    assert [arm.observed_count for arm in found.arms.items] == known.counts.tolist()
    assert [arm.probability for arm in found.arms.items] == known.weights.tolist()
    assert found.best.arm == known.best
    assert found.world.said == str(agent.health())
    assert found.guarantee.delay.most == agent.lateness().most
    assert found.guarantee.bound == agent.lateness().bound
    own, shown = agent.certificate(), found.certificate
    assert (shown.bound, shown.arm, shown.rounds) == (own.bound, own.arm, own.rounds)


@pytest.mark.postgresql
@kinds
def test_estimates_certificate_health_and_lateness_are_those_of_an_agent(database, key):
    with opened(database) as bench:
        agent = created(bench, key, certificate=True, prior=PRIOR)
        play(bench, agent, key)
        check(bench, key, agent)
        digest = bench.digest()
        bench.store.named("e").save(bench.database)
    with opened(database) as bench:  # from the snapshot
        check(bench, key, agent)
        lose_snapshots(bench.database)
    with opened(database) as bench:  # from the journal
        check(bench, key, agent)
        assert bench.digest() == digest
        play(bench, agent, key, 5)


@kinds
def test_a_clone_knows_what_the_original_knew(database, key):
    with opened(database) as bench:
        agent = created(bench, key, certificate=True, prior=PRIOR)
        play(bench, agent, key)
        bench.clone("e", "copy")
        query = StateQuery(key=None if key is None else str(key))
        copy = bench.store.view("copy", lambda each, reading: views.state(each, reading, query))
        assert [arm.observed_mean for arm in copy.arms.items] == agent.estimates().means.tolist()
        assert copy.certificate.bound == agent.certificate().bound
        assert any("It began with what" in reason for reason in copy.guarantee.reasons)


@kinds
def test_nothing_is_certified_that_was_not_asked_for(database, key):
    with opened(database) as bench:
        play(bench, created(bench, key), key, 3)
        assert state(bench, key).certificate is None
        assert (state(bench, key).world is None) == (key is not None)


@kinds
def test_what_is_believed_of_arms_that_are_not_there_is_refused(database, key):
    with opened(database) as bench:
        wrong = [{"arm": 9, "mean": 0.2, "weight": 1.0}]
        assert refused("invalid", created, bench, key, prior=wrong).path == "body.prior.0.arm"


def test_a_state_without_a_key_counts_all_keys_and_knows_none(database):
    with opened(database) as bench:
        play(bench, created(bench, "bread", certificate=True), "bread")
        found = state(bench, None)
        assert (found.keys, found.counts.decided) == (2, 120)
        assert (found.guarantee, found.certificate, found.world, found.best) == (None,) * 4
        assert found.regret.rounds == found.counts.told  # against the best arm that is the same for all keys


@pytest.mark.parametrize(("key", "asked"), [(None, "bread"), ("bread", "milk"), (17, "seventeen"), (17, "99")])
def test_a_key_that_is_not_there_is_not_found(database, key, asked):
    with opened(database) as bench:
        play(bench, created(bench, key), key, 3)
        assert refused("not_found", state, bench, asked).path == "query.key"


@kinds
def test_the_first_snapshot_of_an_experiment_that_only_played_for_others_is_whole(database, key):
    """While frozen nothing is asked of a learner, so that its block is as new when the snapshot is written."""
    with opened(database) as bench:
        agent = created(bench, key)
        bench.change(state="frozen", play=2)
        bench.decide(keys=None if key is None else [key])
        bench.store.named("e").save(bench.database)
        bench.change(state="running")
    with opened(database) as bench:
        play(bench, agent, key, 3)
        with bench.database.reading() as reading:
            assert snapshots.digest(bench.store.named("e").rebuilt(reading)) == bench.digest()
