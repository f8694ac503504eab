"""The life of an experiment with keys: frozen, stopped with a fallback arm, with a holdout, and in its own scale."""

import time

import numpy as np
import pyarrow.parquet as pq
import pytest

import sidelong as sl
from service.stores import lose_snapshots, opened, tell_one
from service.test_keyed import KEYS, ask, events, run, told
from sidelong.errors import ServiceError, UnknownDecisionError
from sidelong.evaluation import lift
from sidelong.service.http import export, views
from sidelong.service.store import journal
from sidelong.service.store.counters import UNLEARNED
from sidelong.service.store.feedback import ToldItems
from sidelong.service.store.journal import Kind
from sidelong.service.store.rules import Cancel, Decide, Tell


def tell(bench, made, loss=0.5):
    items = [told(made, k, loss) for k in range(len(made.draws.keys))]
    return run(bench, Tell(f"#{made.experiment}", items))


def drawn(made):
    """Return which arms were drawn, with which probabilities, to the bit."""
    return made.draws.arms, np.array(made.draws.probabilities).tobytes()


def test_a_frozen_one_plays_what_it_is_given_for_every_key_logs_it_and_learns_nothing(database):
    with opened(database) as bench:
        bench.create(keyed=True)
        before = ask(bench, KEYS[:3])
        bench.change(state="frozen", play={"0": 0.25, "3": 0.75})
        made = ask(bench, [*KEYS, "new"] * 5)
        assert set(made.draws.drawn_by) == {"frozen"}
        shares = {0: 0.25, 3: 0.75}
        assert made.draws.probabilities == [shares[arm] for arm in made.draws.arms]
        assert set(made.draws.arms) == {0, 3}
        assert made.draws.rounds[-2:] == [5, 5]
        assert not any(each.learned for each in tell(bench, made))
        assert not any(each.learned for each in tell(bench, before))
        counts = bench.counts()
        assert (counts[Kind.PLAYED], counts[Kind.DECIDED], counts[Kind.TOLD], counts[UNLEARNED]) == (65, 3, 3, 3)
        heard = next(event for event in events(bench) if event.kind is Kind.TOLD)
        seen = journal.read_settled(heard).observe
        sizes = [made.graph.row(arm).size for arm in made.draws.arms]
        # On a nested graph arm 3 reveals all, and arm 0 itself alone.
        assert seen.tolist() == [p for size in sizes for p in ([1.0] if size == 1 else [1.0, 0.75, 0.75, 0.75])]
        bench.change(state="running")
        assert set(ask(bench, KEYS).draws.drawn_by) == {"learner"}
        digest = bench.digest()
        bench.store.save(least=1)
    with opened(database) as bench:
        assert bench.digest() == digest
        lose_snapshots(bench.database)
    with opened(database) as bench:
        assert bench.digest() == digest


def test_what_waits_from_a_freeze_survives_a_restart_and_can_be_cancelled_and_expires(database):
    with opened(database) as bench:
        bench.create(keyed=True, expire_after=10.0)
        bench.change(state="frozen", play=2)
        made = ask(bench, KEYS)
        bench.change(state="running")
        mixed = ask(bench, KEYS[:2])
        bench.store.save(least=1)
        digest = bench.digest()
        with opened(database, bench.hands) as other:
            assert other.digest() == digest
            run(other, Cancel(f"#{made.experiment}", 1))
            settled = run(other, Tell(f"#{made.experiment}", [told(made, 1), told(mixed, 0)]))
            assert [each.learned for each in settled] == [False, True]
            other.hands.move(11)
            assert other.expire() == 11
            assert [event.kind for event in events(other)][-2:] == [Kind.EXPIRED] * 2  # one for each sort
            assert bench.digest() == other.digest()


def test_a_frozen_one_whose_arms_are_absent_refuses_and_changes_nothing(database):
    with opened(database) as bench:
        bench.create(keyed=True, learner="exp3-set", late="plain")
        bench.change(state="frozen", play=0)
        digest = bench.digest()
        with pytest.raises(ServiceError, match="no arm that it is to play") as caught:
            ask(bench, KEYS, available=[1, 2, 3])
        assert caught.value.path == "body.available"
        assert bench.digest() == digest
        ask(bench, KEYS)


def test_the_lift_is_over_the_decisions_of_all_keys(database):
    with opened(database) as bench:
        bench.create(keyed=True, holdout={"arm": 1, "share": 0.3})
        sums, share, costs = np.zeros(lift.ROWS), 0.3, {"holdout": [], "learner": []}
        for _ in range(8):
            made = ask(bench, KEYS)
            b = lift.baseline(sums, share)
            items = []
            for place, (_, _, _, arm, _, by) in enumerate(made.draws.listed()):
                items.append(told(made, place, 0.125 * arm))
                costs[by].append(0.125 * arm)
            run(bench, Tell(f"#{made.experiment}", items))
            for own in ("learner", "holdout"):  # an event for each sort
                for _, _, _, arm, _, by in made.draws.listed():
                    if by == own:
                        lift.add(sums, share, 0.125 * arm, b, held=by == "holdout")
        state = bench.store.view("e", views.state)
        assert bench.store.view("e", lambda each, _: each.counters.lift.tolist()) == sums.tolist()
        assert (state.lift.held, state.lift.learned) == (len(costs["holdout"]), len(costs["learner"]))
        assert state.counts.held == len(costs["holdout"])
        assert state.counts.decided == 96
        rows = bench.store.view("e", lambda each, _: list(each.counters.costs.values()))
        assert [rows[0][0], rows[0][2]] == [len(costs["holdout"]), len(costs["learner"])]
        assert rows[0][1] == pytest.approx(sum(costs["holdout"]))


def test_the_work_of_feedback_beside_a_holdout_grows_with_the_number_of_decisions_and_no_faster(tmp_path):
    with opened(f"sqlite:///{tmp_path}/held.db") as bench:
        bench.create(keyed=True, graph=sl.graphs.complete(24), holdout={"arm": 1, "share": 0.3})
        seconds = {}
        for n in (1000, 1000, 8000, 8000):  # the first time each is compiled
            made = ask(bench, [f"{n}-{key}" for key in range(n)])
            losses = np.full(24 * n, 0.5)
            begun = time.process_time()
            run(bench, Tell(f"#{made.experiment}", ToldItems(list(made.draws.numbers), [24] * n, losses)))
            seconds[n] = time.process_time() - begun
        assert seconds[8000] < 30 * seconds[1000]  # 8 times as many; it was more than 60 times the work


def test_costs_in_a_scale_are_told_in_items_and_in_columns(database):
    with opened(database) as bench:
        bench.create("scaled", keyed=True, scale={"best": 0.0, "worst": 200.0}, start="none")
        bench.create("plain", keyed=True, start="none")
        for in_columns in (True, False):
            for name, factor in (("scaled", 200.0), ("plain", 1.0)):
                (made,) = bench.store.run([Decide(name, keys=KEYS)])
                items = [told(made, k) for k in range(12)]
                items = [
                    item._replace(losses=[factor * 0.25 * (n + 1) for n in range(len(item.losses))]) for item in items
                ]
                of = f"#{made.experiment}"
                if in_columns:
                    numbers, sizes = [item.number for item in items], np.array([len(item.losses) for item in items])
                    losses = np.concatenate([item.losses for item in items])
                    run(bench, Tell(of, ToldItems(numbers, sizes, losses)))
                else:
                    run(bench, Tell(of, items))
        scaled, plain = (run(bench, Decide(name, keys=KEYS)) for name in ("scaled", "plain"))
        assert drawn(scaled) == drawn(plain)  # the same was learned
        for made in (scaled, plain):
            with pytest.raises(ServiceError) as caught:
                run(bench, Tell(f"#{made.experiment}", [told(made, 0, 201.0)]))
            assert caught.value.path.startswith("body.items.0.losses")


@pytest.mark.parametrize("holdout", [None, {"arm": 1, "share": 0.4}])
def test_a_default_loss_is_learned_for_every_key_whose_feedback_never_comes(database, tmp_path, holdout):
    more = {} if holdout is None else {"holdout": holdout}
    with opened(database) as bench:
        for name, loss in (("e", 3.0), ("told", None)):
            default = {} if loss is None else {"default_loss": loss, "expire_after": 10.0}
            scale = {"best": 0.0, "worst": 4.0}
            bench.create(name, keyed=True, seed=5, scale=scale, start="none", **default, **more)
        twin = run(bench, Decide("told", keys=KEYS))
        made = ask(bench, KEYS)
        run(bench, Tell(f"#{twin.experiment}", [told(twin, k, 3.0) for k in range(12)]))
        bench.hands.move(11)
        assert bench.expire() == 12
        kinds = {event.kind for event in events(bench)[1:]}
        assert kinds == {Kind.DEFAULTED}
        with pytest.raises(ServiceError, match="kept as late"):
            run(bench, tell_one(f"#{made.experiment}", *told(made, 4, 1.0)))
        with pytest.raises(ServiceError, match="has expired"):
            run(bench, Cancel(f"#{made.experiment}", 5))
        counts = bench.store.view("e", views.state).counts
        assert (counts.told, counts.defaulted, counts.expired, counts.late) == (12, 12, 0, 1)
        shown = views.decision(bench.store, f"#{made.experiment}", 5)  # which was told after all
        assert (shown.status, set(shown.losses)) == ("defaulted", {0.75})
        assert bench.store.view("e", views.state).default_loss == 3.0
        export.write(bench.store, "e", tmp_path / "log.parquet")
        log = pq.read_table(tmp_path / "log.parquet")
        assert log["status"].to_pylist() == ["defaulted"] * 12
        assert {loss for row in log["losses"].to_pylist() for loss in row} == {0.75}
        assert drawn(ask(bench, KEYS)) == drawn(run(bench, Decide("told", keys=KEYS)))  # as if it had been told
        digest = bench.digest()
        lose_snapshots(bench.database)
        with opened(database) as again:
            assert again.digest() == digest


def test_while_frozen_a_default_is_kept_and_not_learned(database):
    with opened(database) as bench:
        bench.create(keyed=True, default_loss=0.5, expire_after=10.0, start="none")
        bench.create("twin", keyed=True, start="none")
        ask(bench, KEYS)
        lost = run(bench, Decide("twin", keys=KEYS))
        for number in lost.draws.numbers:
            run(bench, Cancel(f"#{lost.experiment}", number))
        bench.change(state="frozen", play=0)
        bench.hands.move(11)
        assert bench.expire() == 12
        assert (bench.counts()[Kind.DEFAULTED], bench.counts()[UNLEARNED]) == (12, 12)
        bench.change(state="running")
        assert drawn(ask(bench, KEYS)) == drawn(run(bench, Decide("twin", keys=KEYS)))


def test_the_family_that_is_exported_has_learned_what_the_keys_have(database, tmp_path):
    with opened(database) as bench:
        bench.create(keyed=True)
        tell(bench, ask(bench, KEYS), 0.25)
        bench.store.save(least=1)
    with opened(database) as bench:
        (tmp_path / "family").write_bytes(bench.store.view("e", views.agent_file))
    family = sl.Family.load(tmp_path / "family")
    assert family.keys == KEYS
    assert np.nanmax(family.estimates().means) == 0.25


def test_the_family_that_is_exported_knows_what_waits_by_the_ids_of_the_service(database, tmp_path):
    with opened(database) as bench:
        bench.create(keyed=True, scale={"best": 0.0, "worst": 10.0}, holdout={"arm": 1, "share": 0.3})
        bench.change(labels=list("abcd"))
        ask(bench, KEYS[:4])
        made = ask(bench, KEYS)
        (tmp_path / "family").write_bytes(bench.store.view("e", views.agent_file))
    family = sl.Family.load(tmp_path / "family")
    family.save(tmp_path / "family")
    family = sl.Family.load(tmp_path / "family")  # also from a file of its own
    assert family.graph.labels == tuple("abcd")
    own = [k for k, by in enumerate(made.draws.drawn_by) if by == "learner"]
    assert 0 < len(own) < len(KEYS)
    ids = [f"{made.experiment}-{made.draws.numbers[k]}" for k in own]
    arms = [int(made.draws.arms[k]) for k in own]
    sizes = [made.graph.row(arm).size for arm in arms]
    waited = len(family.pending)
    assert family.tell(ids, np.full(sum(sizes), 2.5)) == len(own)
    assert len(family.pending) == waited - len(own)
    assert np.nanmax(family.estimates().means) == 0.25
    for key, arm in zip([KEYS[k] for k in own], arms, strict=True):
        assert family[key].estimates().counts[arm] == 1
    held = next(k for k, by in enumerate(made.draws.drawn_by) if by == "holdout")
    with pytest.raises(UnknownDecisionError):
        family.cancel([f"{made.experiment}-{made.draws.numbers[held]}"])
