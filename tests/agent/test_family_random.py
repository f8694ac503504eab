"""Whatever is done to a family, in whatever order: each key stays its agent, to the bit.

A sequence is drawn from a seed: batches with graphs and available arms by key, keys with scales and priors of their
own, feedback late, in parts, in tables and with graphs that only the outcome shows, repetitions, refusals,
cancellations, expiry, files, parts and copies.
"""

import copy
import random

import numba
import pytest

import sidelong as sl
from agent_twins import Twins
from sidelong.agent import rounds
from sidelong.errors import LossError, OutcomeError

pytestmark = [
    pytest.mark.interpreted,
    pytest.mark.skipif(not numba.config.DISABLE_JIT, reason="to compile these learners would take minutes"),
]

LEARNERS = [
    ("exp3-set", {}),
    ("glance", {}),
    ("exp3-set", {}),
    ("exp3-set", {"late": "guarded"}),
    ("exp3.g++", {"late": "guarded"}),
    ("exp3-set", {}),
    ("exp3.g++", {}),
    ("exp3.g++", {"refresh": "epoch"}),
    ("ts-n", {}),
    ("ucb-n", {}),
]
SCALES = [sl.outcomes.Scale(0, 10), sl.outcomes.Scale(50, -50), None]
K = 4


class Sequence:
    """A family beside its agents, and what is done to them next."""

    def __init__(self, seed, folder):
        self.random = random.Random(seed)
        learner, options = LEARNERS[seed % len(LEARNERS)]
        self.path = folder / "family"
        self.bank = [sl.graphs.nested(K), sl.graphs.complete(K), sl.graphs.star(K).as_arcs(), sl.graphs.self_loops(K)]
        self.keys = self.random.choice([[f"k-{i}" for i in range(6)], [3, -1, 2**65, 0, 7, 9]])
        # They have rules for absent arms and for priors.
        self.sleeps = (learner, options) in [("exp3-set", {}), ("glance", {})]
        self.hears_graphs = "refresh" not in options  # one that does not look at every arm knows its graph at `ask`
        scale = self.random.choice(SCALES)
        self.twins = Twins(
            learner, self.bank[0], binary=learner == "ts-n", scale=scale, threads=self.random.choice([1, 2]), **options
        )
        for key in self.random.sample(self.keys, 2):
            own = self.random.choice(SCALES) or scale  # None is the family's
            span = own or sl.outcomes.Scale(0, 1)
            prior = {1: ((span.best + span.worst) / 2, 20)} if self.sleeps and self.random.random() < 0.5 else None
            self.twins.add(key, scale=own, prior=prior)

    def step(self):
        deeds = [self.ask, self.ask, self.ask, self.tell, self.tell, self.tell]
        deeds += [self.refuse, self.cancel, self.expire, self.save, self.split, self.copy]
        self.random.choice(deeds)()
        assert sorted(self.twins.family.pending) == sorted(name for _, _, name in self.twins.waiting)

    def ask(self):
        keys = self.random.choices(self.keys, k=self.random.randint(0, 5))
        graph = available = None
        if keys and self.random.random() < 0.5:
            graph = [self.random.choice(self.bank) for _ in keys]
        if keys and self.sleeps and self.random.random() < 0.5:
            available = [sorted(self.random.sample(range(K), self.random.randint(1, K))) for _ in keys]
        self.twins.ask(keys, graph, available, of=lambda given, i: given and given[i])

    def places(self, most):
        waiting = range(len(self.twins.waiting))
        return self.random.sample(waiting, min(len(waiting), self.random.randint(0, most)))

    def tell(self):
        places = self.places(4)
        after = places and self.hears_graphs and self.random.random() < 0.5
        graphs = [self.random.choice(self.bank) for _ in places] if after else None
        self.twins.tell(places, graphs, as_table=self.random.random() < 0.5, again=self.random.random() < 0.5)

    def refuse(self):
        before = self.twins.family.contents()
        for key, made, name in self.twins.waiting[:1]:
            values = self.twins.losses(key, made, made.reveals)
            values[-1] = 1e6
            with pytest.raises((LossError, OutcomeError), match="must be"):
                self.twins.family.tell([name], values)
        after = self.twins.family.contents()
        assert before[0] == after[0]
        assert {name: array.tobytes() for name, array in before[1].items()} == {
            name: array.tobytes() for name, array in after[1].items()
        }

    def cancel(self):
        self.twins.cancel(self.places(2))

    def expire(self):
        self.twins.expire(self.random.randint(1, 5))

    def save(self):
        self.twins.family.save(self.path)
        self.twins.family = sl.Family.load(self.path)

    def split(self):
        parts = self.twins.family.split(self.random.randint(1, 4))
        self.random.shuffle(parts)
        self.twins.family = sl.Family.join(parts)

    def copy(self):
        self.twins.family = copy.deepcopy(self.twins.family)


@pytest.mark.parametrize("seed", range(30))
def test_whatever_is_done_each_key_stays_its_agent(seed, tmp_path, monkeypatch):
    monkeypatch.setattr(rounds, "_FEW", 1)  # threads for small batches too
    sequence = Sequence(seed, tmp_path)
    for _ in range(30):
        sequence.step()
    sequence.twins.check()
