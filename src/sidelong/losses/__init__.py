"""Worlds: where losses come from.

A loss is a pure function of the seed, the run, the round and the arm. So every learner meets the same losses, and only
observed ones are ever computed. Any part of a study can be run again anywhere, with the same bits.
"""

from sidelong.losses.adversarial import constrained, corrupted
from sidelong.losses.function import compiled, function
from sidelong.losses.moving import drifting, switching
from sidelong.losses.on_graphs import breaker, lower_bound
from sidelong.losses.replay import table
from sidelong.losses.stochastic import bernoulli, beta
from sidelong.losses.world import World

__all__ = [
    "World",
    "bernoulli",
    "beta",
    "breaker",
    "compiled",
    "constrained",
    "corrupted",
    "drifting",
    "function",
    "lower_bound",
    "switching",
    "table",
]
