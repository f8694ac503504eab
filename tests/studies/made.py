"""Curves whose mean is known, for tests of what a report says of them."""

import numpy as np

from sidelong.studies.curves import Curve


def curve(mean, noise=0.02, runs=40, seed=0, last=100_000, points=80, **spec):
    """Make a curve whose runs differ by a factor that stays and by steps that do not."""
    rounds = np.unique(np.geomspace(1, last, points).astype(np.int64))
    random = np.random.default_rng(seed)
    factor = 1 + noise * random.standard_normal((runs, 1))
    regret = mean(rounds.astype(float)) * factor * (1 + 0.1 * noise * random.standard_normal((runs, rounds.size)))
    said = {"learner": {"name": "x"}, "graph": {"name": "star", "n": 4}, "world": {"name": "bernoulli"}, "delay": 0}
    said |= spec
    return Curve(said, 4, rounds, regret, {}, (), tuple((0, run) for run in range(runs)))


def shifted(one, by):
    """Return the same curve with more regret in every run."""
    return Curve(one.spec, one.arms, one.rounds, one.regret + by, {}, (), one.runs)
