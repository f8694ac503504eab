"""Plays a family on two workers of a Dask cluster and prints what each round decided, in the order of the keys."""

import copy
import json

import pandas as pd
from distributed import Client, LocalCluster

import sidelong as sl
from sidelong.keys import part_of

KEYS = [f"sku-{k}" for k in range(30)]
PARTS = 2


def order(part, keys):
    """Decide for a part of the table. What Dask gives a function stays as it is: it may be given to others too."""
    part = copy.deepcopy(part)
    plan = part.ask(keys)
    return part, plan.to_arrow().to_pandas(), plan.to_arrow(reveals=True).to_pandas()


def learn(part, feedback):
    part = copy.deepcopy(part)
    part.tell(feedback)
    return part


def main():
    table = pd.DataFrame({"key": KEYS})
    pieces = [piece for _, piece in table.groupby(table.key.map(lambda key: part_of(key, PARTS)))]
    with (
        LocalCluster(n_workers=PARTS, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster,
        Client(cluster) as client,
    ):
        parts = client.scatter(sl.Family("glance", sl.graphs.nested(4), seed=5).split(PARTS))
        decided = []
        for t in range(4):
            done = client.gather(client.map(order, parts, [piece.key for piece in pieces], pure=False))
            arms = pd.concat([decisions for _, decisions, _ in done]).set_index("key").arm
            decided.append(arms[KEYS].tolist())
            feedback = [revealed.assign(loss=((revealed.arm * 7 + t) % 11) / 10) for _, _, revealed in done]
            parts = client.map(learn, [part for part, _, _ in done], feedback, pure=False)
        joined = sl.Family.join(client.gather(parts))
    assert sorted(joined.keys) == sorted(KEYS)
    assert joined.pending == []
    print(json.dumps(decided))  # noqa: T201


if __name__ == "__main__":
    main()
