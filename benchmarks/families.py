"""A hundred thousand products: one family beside as many agents, by the time of both cores together."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from measure import Row, best_within, print_table, seconds

import sidelong as sl

if TYPE_CHECKING:
    from collections.abc import Iterator

KEYS, MANY, AGENTS = 100_000, 1_000_000, 1_000
GRAPH = sl.graphs.nested(24)


def rows() -> Iterator[Row]:
    """Measure a round of all keys, files, and the first round of a million keys."""
    family, keys = sl.Family("glance", GRAPH, seed=7), list(map("sku-{}".format, range(KEYS)))
    agents = [sl.Agent("glance", GRAPH, seed=k) for k in range(AGENTS)]
    for _ in range(2):  # after which every arm is known, and all is compiled
        a_round(family, keys)
        for agent in agents:
            a_decision(agent)
    ours, theirs = best_within(
        6.0, lambda: seconds(lambda: a_round(family, keys)) / KEYS, lambda: seconds(lambda: told(agents)) / AGENTS
    )
    yield Row("a key: ask and tell, nested, K = 24", ours, "an agent", theirs, at_least=4)
    waited = best_within(4.0, lambda: seconds(lambda: a_round(family, keys)))[0]
    yield Row(f"{KEYS:,} keys, {kilobytes(family):.1f} KB each, a round", waited, at_most=0.3)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "family.sidelong")
        saved, loaded = best_within(
            2.0, lambda: seconds(lambda: family.save(path)), lambda: seconds(lambda: sl.Family.load(path))
        )
    yield Row(f"{KEYS:,} keys, saved", saved, at_most=2)
    yield Row(f"{KEYS:,} keys, loaded", loaded, at_most=2)
    for kind, name in (("numbers", int), ("text", "sku-{}".format)):
        many = list(map(name, range(MANY)))
        first = seconds(lambda many=many: sl.Family("glance", GRAPH, seed=7).ask(many))
        yield Row(f"{MANY:,} new keys, {kind}, asked", first, at_most=5)


def a_round(family: sl.Family, keys: list[str]) -> None:
    """Ask for all keys, and tell what was revealed."""
    plan = family.ask(keys)
    family.tell(plan, (plan.reveals + plan.rounds[0]) % 7 / 6)


def told(agents: list[sl.Agent]) -> None:
    """Do the same with agents."""
    for agent in agents:
        a_decision(agent)


def a_decision(agent: sl.Agent) -> None:
    """Ask and tell once."""
    decision = agent.ask()
    agent.tell(decision, (decision.reveals + decision.round) % 7 / 6)


def kilobytes(family: sl.Family) -> float:
    """Return what a key takes where nothing is outstanding, as its file has it; its place in an index is not there."""
    return sum(array.nbytes for array in family.contents()[1].values()) / len(family) / 1024


if __name__ == "__main__":
    print_table(rows())
