"""A database in which everything has happened once, as a file that every version to come must open.

Whoever adds a migration writes the database of the new schema, and never changes one that is there:

    PYTHONPATH=tests python -m service.old_database
"""

import itertools
import sqlite3
import tempfile
from pathlib import Path

import sidelong as sl
from service.stores import opened
from sidelong.service.store import creation, graphs
from sidelong.service.store.batches import TellMany
from sidelong.service.store.commands import DecideKeys
from sidelong.service.store.settled import ToldItem
from sidelong.service.store.sql import migrate

FOLDER = Path(__file__).parent / "files"
GRAPH = sl.graphs.cliques([3, 2])
_orders = itertools.count(1)


def fill(bench):
    """Let everything happen once that leaves something in the database."""
    holdout = {"arm": 2, "share": 0.3}
    bench.create("first", GRAPH, "exp3-set", holdout=holdout, expire_after=60.0, scale={"best": 0.0, "worst": 10.0})
    play(bench, "first", 6)
    bench.change("first", by="robot", state="frozen", play={"1": 0.5, "4": 0.5})
    play(bench, "first", 3)
    bench.change("first", by="robot", state="stopped", fallback=3)
    play(bench, "first", 2)
    bench.change("first", by="robot", state="running", name="life", labels=["a", "b", "c", "d", "e"])
    bench.decide("life", graph=sl.graphs.nested(5))
    bench.hands.move(61.0)
    bench.expire("life")
    bench.store.save(least=1)
    play(bench, "life", 4)  # behind the snapshot
    bench.create("silent", GRAPH, "exp3-set", default_loss=0.75, expire_after=1.0)
    bench.decide("silent")
    bench.hands.move(2.0)
    bench.expire("silent")
    bench.clone("life", "twin", by="robot")
    play(bench, "twin", 2)
    bench.change("silent", by="robot", state="archived")
    bench.create("wrong", GRAPH)
    bench.delete("wrong", by="robot")
    bench.create("shop", GRAPH, "exp3.g++", keyed=True, holdout=holdout)
    for keys in (["bread", "milk", "rolls"], ["milk", "cakes"], ["cakes", "bread", "milk", "rolls"] * 3):
        (made,) = bench.store.run([DecideKeys("shop", keys)])
        told = [ToldItem(number, [0.25] * GRAPH.row(arm).size) for number, _, _, arm, *_ in made.draws.listed()]
        bench.store.run([TellMany("shop", told[:-1])])  # the last one waits
    bench.change("shop", by="robot", state="frozen", play=1)
    bench.store.run([DecideKeys("shop", ["milk", "beer"])])
    bench.store.named("shop").save(bench.database)
    bench.change("shop", by="robot", state="running")
    bench.store.run([DecideKeys("shop", ["beer", "bread"])])  # behind the snapshot
    creation.keep_graph(bench.store, sl.graphs.erdos_renyi(60, 0.3, seed=1))  # which is in parts


def play(bench, name, rounds):
    """Decide and tell, and leave the last decision waiting."""
    for left in reversed(range(rounds)):
        made = bench.decide(name, key=f"order-{next(_orders)}")
        if left:
            bench.tell(made, 2.5)


def main():
    graphs.PART = 2**10  # so that the file is small
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made.db"
        with opened(str(path)) as bench:
            fill(bench)
        with sqlite3.connect(path) as connection:
            written = "\n".join(connection.iterdump()) + "\n"
        connection.close()
    (FOLDER / f"schema-{migrate.LATEST}.sql").write_text(written, encoding="utf-8")


if __name__ == "__main__":
    main()
