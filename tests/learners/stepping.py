"""Learners beside their oracles, and learners stepped by hand."""

import numpy as np

import sidelong as sl
from sidelong._jit import compiled, specialise
from sidelong.learners import catalogue
from sidelong.learners.interface import Asked, Told, distribution, marking, trace_size, update
from sidelong.numerics import DRAWS, sample, uniform


class Stepper:
    """The kernels of a learner, with arms of one's own choice."""

    def __init__(self, name, graph, **options):
        self.learner = catalogue.find(name)
        self.graph = graph
        self.params = catalogue.configure(self.learner, graph, options)
        self.state = self.learner.init(self.params, graph)
        self.t = 0
        self.p = np.zeros(graph.n_arms)
        self.trace = np.zeros(trace_size(self.learner, graph.n_arms))

    def distribution(self):
        self.t += 1
        self._call(self.learner.distribution, Asked.new(self.t, self.p, self.trace, self._present()))
        return self.p

    def update(self, arm, losses):
        """`losses` has one number for every arm of the graph."""
        revealed = np.zeros(self.graph.n_arms)
        arms = self.graph.out_neighbors(arm)
        revealed[: arms.size] = np.asarray(losses, float)[arms]
        self._call(self.learner.update, Told.new(self.t, arm, self.p, revealed, self.trace, self._present()))

    def _present(self):
        """Return which arms are there: those that reveal something, if the learner lets arms be absent."""
        present = np.ones(self.graph.n_arms, np.bool_)
        marking(self.learner)(self.graph.arrays, present)
        return present

    def _call(self, kernel, round_):
        arguments = (self.params, self.state, self.graph.arrays, round_)
        compiled(kernel, *arguments)(
            *arguments
        )  # in a tenth of the time that the kernel itself takes to find its types

    def traced(self, name):
        return float(self.trace[self.learner.traces.index(name)])


def random_digraph(rng, K, *, loops=True):
    """Return a matrix in which every arm is observed, by itself too if there are loops."""
    A = rng.random((K, K)) < rng.uniform(0.05, 0.6)
    if loops:
        np.fill_diagonal(A, val=True)
    for i in np.flatnonzero(~A.any(axis=0)):
        A[rng.integers(K), i] = True
    return A


def follow(agent, oracle, bank, *, rounds=150, late=False, after=False, seed=0):
    """Compare every round of an agent with its oracle.

    The graph of a round is any one of the bank; `after` shows it when the round is told, which with `late` is many
    rounds later, out of order.
    """
    rng = np.random.default_rng([seed, late, after])
    graphs = [sl.FeedbackGraph.from_matrix(A) for A in bank]
    means = rng.random(agent.graph.n_arms)
    waiting, ours, theirs = [], [], []
    for _ in range(rounds):
        which = int(rng.integers(len(bank)))
        decision = agent.ask() if after else agent.ask(graphs[which])
        told = oracle.distribution(bank[which])
        ours.append(decision.probabilities)
        theirs.append(told.p)
        waiting.append((decision, told, which))
        while waiting and (not late or rng.random() < 0.6 or len(waiting) > 30):
            decision, told, which = waiting.pop(int(rng.integers(len(waiting))))
            arms = np.flatnonzero(bank[which][decision.arm]).tolist()
            losses = {i: float(rng.random() < means[i]) if seed % 2 else float(rng.random()) for i in arms}
            oracle.update(told, decision.arm, losses, bank[which])
            agent.tell(decision, losses, graph=graphs[which] if after else None)
    np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-290, err_msg="a row for each round")


def play_alike(a, b, *, rounds, seed=1, rtol=0.0, losses=None):
    """Play two steppers side by side, with random losses if none are given: they decide alike, to the bit or `rtol`."""
    rng, K = np.random.default_rng(seed), a.p.size
    for _ in range(rounds):
        np.testing.assert_allclose(a.distribution(), b.distribution(), rtol=rtol)
        arm = int(rng.choice(K, p=a.p))
        told = rng.random(K) if losses is None else losses(rng)
        for each in (a, b):
            each.update(arm, told)


def _play_harshly(params, state, graph, first, others, rounds, p, losses, trace, present):
    """Play where arm 0 has one loss and all others another; return the first round that goes wrong, or 0."""
    for t in range(1, rounds + 1):
        distribution(params, state, graph, Asked(t, p, trace, present, 0, np.uint64(1), 0))
        s = 0.0
        for i in range(p.size):
            if not p[i] >= 0.0:
                return t
            s += p[i]
        if not abs(s - 1.0) < 1e-12:
            return t
        arm = sample(p, uniform(np.uint64(1), DRAWS, np.int64(0), np.int64(t), np.int64(0)))
        start = graph.start[arm]
        for e in range(start, graph.stop[arm]):
            losses[e - start] = first if graph.targets[e] == 0 else others
        update(params, state, graph, Told(t, arm, p, losses, trace, present, 0, graph))
    return 0


def endure(name, graph, first, others, rounds=10_000_000, **options):
    """Play many rounds against losses without mercy, and check that every number stays finite."""
    stepper = Stepper(name, graph, **options)
    learner = stepper.learner
    play = specialise(_play_harshly, f"harsh_{name}", distribution=learner.distribution, update=learner.update)
    scratch = stepper.p, np.zeros(graph.n_arms), stepper.trace, np.ones(graph.n_arms, np.bool_)
    wrong = play(stepper.params, stepper.state, graph.arrays, first, others, rounds, *scratch)
    assert wrong == 0
    for field, array in stepper.state._asdict().items():
        assert np.isfinite(array).all(), field
    assert np.isfinite(stepper.trace).all()
