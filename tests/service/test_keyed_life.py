"""The life of an experiment with keys: frozen, stopped with a fallback arm, with a holdout, and in its own scale."""

import time

import numpy as np
import pytest

import sidelong as sl
from service.stores import opened
from service.test_keyed import KEYS, ask, run, told
from sidelong.errors import ServiceError, UnknownDecisionError
from sidelong.evaluation import lift
from sidelong.service.http import views
from sidelong.service.store.feedback import ToldItems
from sidelong.service.store.rules import Decide, Tell


def drawn(made):
    """Return which arms were drawn, with which probabilities, to the bit."""
    return made.draws.arms, np.array(made.draws.probabilities).tobytes()


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
            assert caught.value.path == "body.losses"


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
