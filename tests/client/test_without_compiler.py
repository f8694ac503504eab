"""What a client shares with the library, where Numba and SciPy cannot be imported."""

import subprocess
import sys

SHARED = """
import sys


class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"numba", "llvmlite", "scipy"}:
            raise ModuleNotFoundError(f"blocked: {name}", name=name)


sys.meta_path.insert(0, Blocked())

import numpy as np
import sidelong as sl
from sidelong import batches, checks, errors, estimates, keys, tables
from sidelong.graphs.columns import each_of
from sidelong.service.client import many, wire

with sl.connect("http://127.0.0.1:1") as service:
    assert service["orders"].name == "orders"
assert sl.outcomes.Scale(best=0, worst=250).losses([125]) == [0.5]

orders = sl.outcomes.StockOrders(4, holding=1, shortage=3)
auction = sl.outcomes.FirstPrice([0.2, 0.4, 0.6, 0.8])
cascade = sl.outcomes.Cascade([0.0, 0.5, 0.8], price=0.2)
assert auction.outcome(2, value=0.5, won=True).losses.tolist() == [0.8, 0.9]
assert cascade.outcome(1, confidence=0.6).graph.n_arms == 4
assert orders.outcomes([2, 4], sales=[2, 3]).offsets.tolist() == [0, 3, 8]
assert orders.outcome(2, sales=1).graph.n_arms == 5

path = sl.graphs.directed_path(300).labelled([f"arm {i}" for i in range(300)])
assert sl.FeedbackGraph.from_edges([(0, 2), (2, 1)], 3, self_loops=True).in_neighbors(1).tolist() == [1, 2]
assert path.in_neighbors(7).tolist() == [6, 7]
assert sl.FeedbackGraph.from_matrix(np.eye(3, dtype=bool)) == sl.graphs.self_loops(3)
assert path._repr_html_() and repr(path) and path.edges().size
assert each_of([path, path], 2)[1].tolist() == [0, 0]

asked = many.ask("orders", [1, 2], (path, orders.graph), None, None, None)
assert len(asked.questions) == 2
wire.create("orders", "glance", path, {}, {"labels": None})

arm = {"observed_mean": 0.25, "observed_count": 9, "observed_spread": 0.1, "probability": 0.5}
known = wire.estimates([arm, {**arm, "observed_mean": 0.75}])
assert known.best == 0 and known.sure > 0.99
assert "cheapest so far: 0" in str(known)

assert not {"numba", "llvmlite", "scipy"} & set(sys.modules)
"""


def test_what_a_client_shares_with_the_library_needs_neither_numba_nor_scipy():
    done = subprocess.run([sys.executable, "-c", SHARED], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
