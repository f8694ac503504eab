"""A family beside single agents with the same seeds: every decision must be the same, to the bit."""

import numpy as np

import sidelong as sl
from sidelong.graphs.presence import present


def loss(key, t, arm):
    """Return a loss that differs between keys, rounds and arms, and favours an arm that depends on the key."""
    text = str(key)
    favourite = sum(map(ord, text)) % 5
    return min(1.0, abs(arm - favourite) / 12 + (hash_of(text, t, arm) % 1000) / 2000)


def hash_of(text, t, arm):
    value = 17
    for number in (*text.encode(), t, arm):
        value = (value * 1_000_003 + number) % (2**31 - 1)
    return value


class Twins:
    """Asks and tells both sides, and compares all that they show."""

    def __init__(self, learner, graph, *, binary=False, **options):
        self.family = sl.Family(learner, graph, seed=11, **options)
        self._kind = (learner, graph, {name: value for name, value in options.items() if name != "threads"})
        self.agents = {}
        self.waiting = []  #: key, decision of the agent, id of the family
        self._binary = binary

    def agent(self, key):
        if key not in self.agents:
            learner, graph, options = self._kind
            self.agents[key] = sl.Agent(learner, graph, seed=self.family.seed_of(key), **options)
        return self.agents[key]

    def add(self, key, **own):
        """Add a key with a scale or a prior of its own."""
        learner, graph, options = self._kind
        self.family.add([key], **own)
        self.agents[key] = sl.Agent(learner, graph, seed=self.family.seed_of(key), **options | own)

    def ask(self, keys, graph=None, available=None, *, of=lambda given, _: given):
        """Ask both; `of` returns what an agent is given for the i-th key."""
        plan = self.family.ask(keys, graph, available)
        assert plan.keys == list(keys)
        for i, key in enumerate(keys):
            made = self.agent(key).ask(of(graph, i), of(available, i))
            assert (plan.rounds[i], plan.arms[i]) == (made.round, made.arm)
            assert np.array_equal(plan.probabilities[i], made.probability, equal_nan=True)
            shown = plan.reveals[plan.offsets[i] : plan.offsets[i + 1]]
            assert shown.tolist() == made.reveals.tolist()
            self.waiting.append((key, made, plan.ids[i]))
        return plan

    def take(self, places):
        """Take some of the decisions that wait out of the list."""
        chosen = [self.waiting[at] for at in places]
        self.waiting = [each for at, each in enumerate(self.waiting) if at not in set(places)]
        return chosen

    def losses(self, key, made, arms):
        """Return what the arms cost, in the scale of the key."""
        values = [loss(key, made.round, int(arm)) for arm in arms]
        values = [float(value > 0.4) for value in values] if self._binary else values
        scale = self.agent(key).scale
        return values if scale is None else [scale.best + value * (scale.worst - scale.best) for value in values]

    def tell(self, places, graphs=None, *, as_table=False, again=False):
        """Tell both the decisions at these places; `graphs` are those of the rounds, as the outcomes made them."""
        chosen = self.take(places)
        names, arms, told = [name for _, _, name in chosen], [], []
        for i, (key, made, _) in enumerate(chosen):
            shown = made.graph if graphs is None else graphs[i]
            arms.append([arm for arm in shown.out_neighbors(made.arm).tolist() if present(made.graph)[arm]])
            told.append(self.losses(key, made, arms[-1]))
            self.agent(key).tell(made, told[-1], None if graphs is None else shown)
        losses = np.array([value for values in told for value in values])
        if as_table:
            of = [name for name, some in zip(names, arms, strict=True) for _ in some]
            columns = {"decision": of, "arm": [arm for some in arms for arm in some], "loss": losses}
            losses = {name: np.array(column)[::-1] for name, column in columns.items()} if of else losses
        assert self.family.tell(names, losses, graphs) == len(chosen)
        if again:
            assert self.family.tell(names, losses, graphs) == 0

    def cancel(self, places):
        chosen = self.take(places)
        for key, made, _ in chosen:
            self.agent(key).cancel(made)
        self.family.cancel([name for _, _, name in chosen])

    def expire(self, age):
        """Give up old decisions on both sides."""
        old = [at for at, (key, made, _) in enumerate(self.waiting) if self.agents[key].round - made.round >= age]
        chosen = self.take(old)
        for key, made, _ in chosen:
            self.agents[key].cancel(made)
        assert set(self.family.expire(age)) == {name for _, _, name in chosen}

    def check(self):
        """Compare what both have learned."""
        for key, agent in self.agents.items():
            one, other = self.family[key].estimates(), agent.estimates()
            for name in ("means", "counts", "spreads", "gaps", "weights"):
                np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
            assert [made.arm for made in self.family[key].pending] == [made.arm for made in agent.pending]
            assert self.family[key].round == agent.round
