"""The life of an experiment, on any database: frozen, stopped, archived, renamed, deleted, and what is learned then."""

import contextlib
import json

import numpy as np
import pytest

import sidelong as sl
from service.stores import last_snapshot, opened
from service.test_store import refused
from sidelong.errors import UnknownDecisionError
from sidelong.service.http import views
from sidelong.service.store import creation, journal
from sidelong.service.store.clock import Clock
from sidelong.service.store.graphs import GraphCache
from sidelong.service.store.journal import Kind
from sidelong.service.store.replay import Replayed

GRAPH = sl.graphs.cliques([3, 2])


def story(bench, name="e"):
    """Return who changed what."""
    with bench.database.reading() as reading:
        events = journal.changes(reading, reading.find(name).id)
    return [json.loads(event.context) for event in events]


def rebuilt(bench, name="e"):
    """Return the digest of what the journal alone gives."""
    with bench.database.reading() as reading:
        live = Replayed(reading.find(name), GraphCache(), Clock()).rebuilt(reading)
    return views.snapshots.digest(live)


def state(bench, name="e"):
    return bench.store.view(name, views.state)


def test_a_decision_from_before_the_freeze_is_kept_and_not_learned_while_it_lasts(bench):
    bench.create(graph=GRAPH, seed=4)
    before = [bench.decide() for _ in range(3)]
    bench.change(state="frozen", play=0)
    known = state(bench).best
    weights = bench.store.view("e", lambda each, reading: each.agent_of(reading).estimates().weights.tolist())
    assert not bench.tell(before[0], 0.0).learned
    assert bench.store.view("e", lambda each, reading: each.agent_of(reading).estimates().weights.tolist()) == weights
    assert state(bench).best == known
    during = bench.decide()
    bench.change(state="running")
    assert bench.tell(before[1], 0.0).learned  # it was decided and told while running
    assert not bench.tell(during, 0.0).learned  # a frozen round never teaches
    assert bench.tell(before[0], 0.0).duplicate
    assert "1 of 3 decisions was told while frozen, and not learned." in " ".join(
        [*state(bench).guarantee.notes, *state(bench).guarantee.reasons]
    )
    assert rebuilt(bench) == bench.digest()


def test_an_archived_experiment_that_leaves_memory_while_it_is_looked_at_is_loaded_again(database, hooks):
    with opened(database) as bench:
        bench.create()
        digest = bench.digest()
        bench.change(state="archived")

        def leave(begin):
            del hooks["reading"]
            bench.store.drop_idle()
            assert bench.store.known("e").live is None  # which takes no memory any more
            return begin()

        hooks["reading"] = leave  # it is in memory, so that this is where it is looked at
        assert state(bench).state == "archived"
        bench.change(state="running")
        assert bench.digest() != digest


@pytest.mark.postgresql
def test_a_renamed_experiment_is_found_by_its_new_name_alone_on_every_server(database):
    with opened(database) as one, opened(database) as other:
        one.create()
        made = other.decide()
        one.change(name="f", by="ops")
        assert story(one, "f") == [{"by": "ops", "name": "f", "was": "e"}]
        refused("not_found", other.decide)
        refused("not_found", one.decide)
        assert other.decide("f").experiment == made.experiment
        one.create(seed=77)  # the old name is free
        fresh = other.decide()
        assert fresh.experiment != made.experiment
        assert other.tell(made).learned
        assert state(other, "f").name == "f"
        refused("exists", other.change, "f", name="e")
        other.change("f", name="g")
        one.change("e", name="f")
        assert other.decide("f").experiment == fresh.experiment
        assert one.digest("g") == other.digest("g") == rebuilt(one, "g")


def test_a_name_is_free_at_once_on_a_server_that_knew_what_had_it(database):
    with opened(database) as one, opened(database) as other:
        for name in ("deleted", "renamed", "anew"):
            one.create(name)
            other.decide(name)
        one.delete("deleted")
        one.change("renamed", name="elsewhere")
        one.delete("anew")
        one.create("anew", graph=GRAPH)
        for name in ("deleted", "renamed"):
            refused("not_found", views.changes, other.store, name)
            refused("not_found", other.store.position, name)
            assert other.create(name, graph=GRAPH)[1]
            assert one.decide(name).number == 1
            assert state(other, name).graph.n_arms == 5
        assert other.decide("anew").number == 1  # and not 404
        one.delete("anew")
        assert other.clone("deleted", "anew")[1]
        assert one.decide("anew").number == 1


def test_a_deleted_experiment_leaves_a_line_and_nothing_else(database):
    with opened(database) as one, opened(database) as other:
        one.create()
        made = other.decide()
        one.tell(made)
        one.store.save(least=1)
        one.delete(by="ops")
        for bench in (one, other):
            refused("not_found", bench.decide)
            refused("not_found", bench.tell, made)
            refused("not_found", state, bench)
        listed = views.summaries(other.store, 0, 10)
        assert [(each.name, each.by) for each in listed.deleted] == [("e", "ops")]
        assert listed.total == 0
        with one.database.reading() as reading:
            [left] = reading.experiments(deleted=True)
        assert left.state == "deleted"
        one.store.drop_idle()
        with one.database.reading() as reading:
            assert reading.experiments(deleted=True) == [left._replace(state="gone")]
            assert reading.events(left.id, 0, 9) == []
            assert last_snapshot(reading, made.experiment) is None
        one.create()
        assert other.decide().experiment != made.experiment
        one.delete(by="boss")
        assert [each.by for each in views.summaries(one.store, 0, 9).deleted] == ["ops", "boss"]


@pytest.mark.postgresql
def test_no_decision_is_made_by_a_state_that_another_server_has_left(database):
    with opened(database) as one, opened(database) as other:
        one.create()
        other.decide()
        one.change(state="frozen", play=3)
        assert other.decide().arm == 3
        one.change(play=2)
        assert other.decide().arm == 2
        one.change(state="stopped")
        refused("stopped", other.decide)
        other.change(state="running")
        assert one.decide().drawn_by == "learner"
        assert one.digest() == other.digest() == rebuilt(one)


def play_with_holdout(bench, share=0.3, rounds=300, **how):
    """Play an experiment of which a share follows arm 2, beside an agent that knows nothing of it."""
    bench.create(graph=GRAPH, seed=11, holdout={"arm": 2, "share": share}, **how)
    agent = sl.Agent(how.get("learner", "exp3.g++"), GRAPH, seed=11)
    draws, log = np.random.default_rng(5), []
    for _ in range(rounds):
        made, losses, p = bench.decide(), draws.random(5), agent.outlook()
        if made.drawn_by == "holdout":
            assert made.arm == 2
        else:
            expected = agent.ask()
            assert made.arm == expected.arm
            agent.tell(expected, losses[expected.reveals])
        mixed = (1 - share) * p + share * (np.arange(5) == 2)
        assert made.probability == mixed[made.arm]
        learned = bench.tell(made, losses[made.reveals].tolist()).learned
        assert learned is (made.drawn_by == "learner")
        log.append((made, losses, mixed))
    return log


def test_a_holdout_follows_its_arm_and_the_learner_does_not_notice(bench):
    log = play_with_holdout(bench)
    held = [made.drawn_by == "holdout" for made, _, _ in log]
    assert 55 < sum(held) < 125  # 90 expected; outside with a probability below 1e-4
    state_ = state(bench)
    assert (state_.counts.held, state_.lift.held, state_.lift.learned) == (sum(held), sum(held), 300 - sum(held))
    own = [losses[made.arm] for made, losses, _ in log]
    assert state_.lift.held_cost == pytest.approx(np.mean([x for x, h in zip(own, held, strict=True) if h]))
    assert state_.lift.low < state_.lift.estimate < state_.lift.high
    assert rebuilt(bench) == bench.digest()


def test_the_log_has_the_probabilities_of_before_the_coin(bench):
    log = play_with_holdout(bench, rounds=60)
    with bench.database.reading() as reading:
        told = [each for each in journal.since(reading, reading.find("e").id, 0) if each.kind is Kind.TOLD]
    for event, (made, _, mixed) in zip(told, log, strict=True):
        P = GRAPH.observe_probabilities(mixed)[made.reveals]
        assert journal.read_settled(event).observe == pytest.approx(P, rel=1e-12)


@pytest.mark.parametrize("options", [{"learner": "exp3.g++", "refresh": "epoch"}, {"learner": "ts-n"}])
def test_a_holdout_beside_a_learner_that_does_not_tell_all_probabilities(database, options):
    with opened(database) as bench:
        bench.create(graph=GRAPH, seed=3, holdout={"arm": 1, "share": 0.5}, **options)
        made = [bench.decide() for _ in range(30)]
        for each in made[::2]:
            bench.tell(each, 1.0)
        digest = bench.digest()
        bench.store.save(least=1)
    with opened(database) as bench:
        assert bench.digest() == digest
        for each in made[1::2]:
            bench.tell(each, 0.0)
        assert bench.digest() == rebuilt(bench)
        assert state(bench).lift.held == state(bench).counts.held > 0


def test_a_round_in_which_the_arm_of_the_holdout_is_absent_is_the_learners_and_is_not_compared(bench):
    bench.create(learner="exp3-set", graph=GRAPH, seed=3, holdout={"arm": 1, "share": 0.5})
    for _ in range(20):
        made = bench.decide(available=[0, 3, 4])
        assert made.drawn_by == "learner"
        bench.tell(made, 0.5)
    assert state(bench).lift.learned == 0
    assert rebuilt(bench) == bench.digest()


@pytest.mark.postgresql
@pytest.mark.parametrize("learned", [True, False])
def test_a_clone_that_is_asked_for_twice_at_once_is_made_once(bench, learned):
    bench.create(graph=GRAPH, holdout={"arm": 2, "share": 0.25})

    def draft(**wanted):
        return creation.clone(bench.store, "e", "copy", wanted, learned=learned)

    drafts = [draft(), draft(), draft(holdout=None), draft(description="another")]
    made, is_new = creation.create(bench.store, drafts[0])
    assert is_new
    again, is_new = creation.create(bench.store, drafts[1])
    assert (again.key, is_new) == (made.key, False)
    for other in drafts[2:]:
        refused("exists", creation.create, bench.store, other)
    refused("exists", draft, holdout=None)  # also one after the other
    assert not creation.create(bench.store, draft())[1]


def test_a_clone_has_no_theorem_for_what_another_has_learned(bench):
    bench.create(graph=GRAPH)
    bench.clone("e", "early")
    bench.tell(bench.decide())
    bench.clone("e", "late")
    bench.clone("e", "anew", learned=False)
    for name in ("early", "late", "anew"):
        bench.tell(bench.decide(name))
    assert all(state(bench, name).guarantee.holds for name in ("e", "early", "anew"))
    verdict = state(bench, "late").guarantee
    assert not verdict.holds
    assert verdict.reasons == ["It began with what 1 round of 'e' left. The theorems are for one from the start."]


def test_the_agent_can_be_taken_out_as_a_file(bench, tmp_path):
    bench.create(graph=GRAPH, seed=11, scale={"best": 0.0, "worst": 10.0})
    for _ in range(9):
        bench.tell(bench.decide(), 2.5)
    waiting = bench.decide()
    bench.change(labels=list("abcde"))
    file = tmp_path / "agent.sidelong"
    file.write_bytes(bench.store.view("e", views.agent_file))
    agent = sl.Agent.load(file)
    assert agent.graph.labels == tuple("abcde")
    assert agent.scale == sl.outcomes.Scale(0, 10)
    assert [each.arm for each in agent.pending] == [waiting.arm]
    id_ = f"{waiting.experiment}-{waiting.number}"  # the service's own
    agent.save(file)
    agent = sl.Agent.load(file)  # also from a file of its own
    assert agent.tell(id_, [2.5] * len(waiting.reveals))
    assert not agent.tell(id_, [2.5] * len(waiting.reveals))
    bench.tell(waiting, 2.5)
    made = bench.decide()
    assert (made.arm, made.probability) == ((now := agent.ask()).arm, now.probability)


def test_an_agent_that_was_taken_out_knows_what_the_service_has_asked_whoever_decided_meanwhile(bench, tmp_path):
    bench.create(graph=GRAPH, seed=11, holdout={"arm": 2, "share": 0.5})
    made = [bench.decide() for _ in range(20)]
    (tmp_path / "agent").write_bytes(bench.store.view("e", views.agent_file))
    agent = sl.Agent.load(tmp_path / "agent")
    for each in made:
        id_, losses = f"{each.experiment}-{each.number}", [0.25] * len(each.reveals)
        if each.drawn_by == "holdout":
            with pytest.raises(UnknownDecisionError):
                agent.tell(id_, losses)
        else:
            before = set(agent.pending)
            assert agent.tell(id_, losses)
            (told,) = before - set(agent.pending)
            assert told.arm == each.arm
    assert not agent.pending


def test_feedback_in_the_scale_of_the_experiment_is_kept_as_losses(bench):
    bench.create(scale={"best": 100.0, "worst": 0.0})
    made = bench.decide()
    wrong = refused("invalid", bench.tell, made, 101.0)
    assert (wrong.path, wrong.value) == ("body.losses.0", 101.0)
    assert bench.tell(made, 75.0).learned
    assert bench.tell(made, 75.0).duplicate
    refused("conflict", bench.tell, made, 74.0)
    with bench.database.reading() as reading:
        [told] = [each for each in journal.since(reading, reading.find("e").id, 0) if each.kind is Kind.TOLD]
    assert set(journal.read_settled(told).losses) == {0.25}
    assert rebuilt(bench) == bench.digest()
    assert refused("invalid", bench.create, "f", scale={"best": 1.0, "worst": 1.0}).path == "body.scale"


def test_a_default_loss_that_nobody_could_tell_is_refused(bench):
    for wrong, how in ((5.0, {"scale": {"best": 0.0, "worst": 4.0}}), (2.0, {}), (0.5, {"learner": "ts-n"})):
        error = refused("invalid", bench.create, default_loss=wrong, expire_after=10.0, **how)
        assert error.path == "body.default_loss"


@pytest.mark.postgresql
def test_others_decide_between_any_two_portions_of_a_deletion(database, hooks, monkeypatch):
    monkeypatch.setattr("sidelong.service.store.store.FORGOTTEN", 1000)
    portions, decided = [], []
    with opened(database) as bench:
        bench.create("kept")
        bench.create(graph=GRAPH)
        for _ in range(9):
            bench.tell(bench.decide())
            bench.store.save(least=1)
        bench.delete()

        def forget(method, experiment, most_bytes):
            assert most_bytes == 1000
            portions.append(method(experiment, most_bytes))
            return portions[-1]

        @contextlib.contextmanager
        def between(begin, **how):
            with begin(**how) as writing:
                yield writing
            if how.get("aside"):
                decided.append(bench.decide("kept"))

        hooks["forget"], hooks["writing"] = forget, between
        bench.store.drop_idle()
        hooks.clear()
        assert len(portions) > 3
        assert portions[-1] == 0
        assert [made.number for made in decided] == list(range(1, len(portions) + 1))
        with bench.database.reading() as reading:
            assert [each.state for each in reading.experiments(deleted=True)] == ["gone"]
