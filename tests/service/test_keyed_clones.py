"""Clones of experiments with keys: each key plays on as its original would, to the bit."""

import copy

import numpy as np
import pytest

import sidelong as sl
from service.doubles import Meter
from service.stores import lose_snapshots, opened, small_blocks
from service.test_keyed import GRAPHS, KEYS, KeyedTwins, ask, run, told
from sidelong.errors import ServiceError
from sidelong.service.http import views
from sidelong.service.store.rules import Decide, Tell


@pytest.fixture(autouse=True)
def several_blocks(monkeypatch):
    small_blocks(monkeypatch, 5)


def cloned(twins, rng):
    """Let keys play, of which some wait, and clone them; return the agents of the clone's keys."""
    for _ in range(12):
        twins.ask(rng.choice(KEYS[:9], 6).tolist(), GRAPHS[int(rng.integers(3))])
        twins.tell(rng.permutation(list(twins.waiting))[:4].tolist(), rng)
    twins.bench.clone("e", "copy", by="ops")
    agents = copy.deepcopy(twins.agents)
    for agent in agents.values():
        for decision in agent.pending:
            agent.cancel(decision)
    return agents


def night(bench, agents, rng, name="copy"):
    """Decide for keys, and tell them; their agents must do the same."""
    made = run(bench, Decide(name, keys=KEYS[:9]))
    items = []
    for place, (_, key, _, arm, p, _) in enumerate(made.draws.listed()):
        decision = agents[key].ask()
        assert (arm, p) == (decision.arm, decision.probability)
        items.append(told(made, place, float(rng.random())))
        agents[key].tell(decision, items[-1].losses)
    assert all(each.learned for each in run(bench, Tell(f"#{made.experiment}", items)))
    return made


@pytest.mark.parametrize("options", [{}, {"refresh": "epoch"}])
def test_every_key_of_a_clone_plays_on_as_its_original_would(database, options):
    rng = np.random.default_rng(3)
    with opened(database) as bench:
        twins = KeyedTwins(bench, **options)
        agents = cloned(twins, rng)
        digest = bench.digest()
        assert night(bench, agents, rng).draws.rounds == [1] * 9  # of the clone
        night(bench, agents, rng)
        run(bench, Decide("copy", keys=["new", *KEYS[:3]]))
        assert bench.digest() == digest  # nothing of it is the original's
        state = bench.store.view("copy", views.state)
        assert (state.keys, state.round, state.origin.learned, state.origin.name) == (10, 22, True, "e")
        assert not bench.clone("e", "copy")[1]  # the same again
        with pytest.raises(ServiceError, match="already"):
            bench.clone("e", "copy", learned=False)
        made = ask(bench, KEYS[:9])
        run(bench, Tell(f"#{made.experiment}", [told(made, k) for k in range(9)]))  # the original goes on
        digest = bench.digest("copy")
        lose_snapshots(bench.database)
    with opened(database) as bench:
        assert bench.digest("copy") == digest
        bench.store.save(least=1)
    with opened(database, max_key_bytes=4000) as bench:
        assert bench.digest("copy") == digest
        bench.clone("copy", "third")
        bench.clone("copy", "anew", learned=False, wanted={"seed": 5})
        counts = [bench.store.view(name, lambda each, _: len(each.keys)) for name in ("third", "anew")]
        assert counts == [10, 0]


def test_a_large_clone_is_written_in_chunks_before_it_is_created(database, hooks):
    meter = Meter(hooks)
    with opened(database) as bench:
        bench.create(keyed=True, graph=sl.graphs.nested(200))
        made = run(bench, Decide("e", keys=list(range(400))))
        run(bench, Tell(f"#{made.experiment}", [told(made, place) for place in range(400)]))
        meter.written.clear()
        bench.clone("e", "copy")
        assert sum(each.bytes for each in meter.written) > 2**19
        assert max(each.bytes for each in meter.written) <= 2**18
        assert sum(each.bytes for each in meter.written if not each.aside) < 2**12
        digest = bench.digest("copy")
    with opened(database) as bench:
        assert bench.digest("copy") == digest
