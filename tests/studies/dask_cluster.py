"""A real Dask cluster of two processes. It prints its address and their ids, and ends when its input does."""

import sys

from distributed import LocalCluster

if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster:
        print(cluster.scheduler_address, *(nanny.pid for nanny in cluster.workers.values()), flush=True)  # noqa: T201
        sys.stdin.read()
