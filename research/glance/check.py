"""Compare every round of `glance_next` with its oracle: `NUMBA_DISABLE_JIT=1 python research/glance/check.py [ROUNDS]`.

Random digraphs, fixed and changing; feedback that is late; graphs that are told afterwards; arms that are absent; a
world that turns; three arms, one of which fails for some rounds; and two advisers, one of whom is silent at times.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "tests")]

import glance_next
import oracle
from trust import trust

import sidelong as sl
from learners.stepping import random_digraph


def play(seed: int, K: int, rounds: int, *, late: bool = False, after: bool = False, absent: bool = False) -> str:
    """Play a game with both; return what happened in it."""
    rng = np.random.default_rng([seed, late, after, absent])
    bank = [random_digraph(rng, K) for _ in range(1 + 2 * (seed % 2 or after))]
    graphs = [sl.FeedbackGraph.from_matrix(A) for A in bank]
    agent, slow, waiting = sl.Agent(glance_next, graphs[0], seed=seed), oracle.Glance(K), []
    means = rng.random(K)
    for t in range(rounds):
        which = int(rng.integers(len(bank)))
        asked = bank[0] if after else bank[which]
        there = np.ones(K, bool)
        if absent and t % 3 == 0:
            there[rng.choice(K, int(rng.integers(1, K)), replace=False)] = False
        A = asked & there & there[:, None]
        decision = agent.ask(graphs[0 if after else which], available=there if absent else None)
        told = slow.distribution(A)
        np.testing.assert_allclose(decision.probabilities, told.p, rtol=1e-8, atol=1e-290, err_msg=f"round {t + 1}")
        waiting.append((decision, told, which, A))
        while waiting and (not late or rng.random() < 0.6 or len(waiting) > 30):
            decision, told, which, A = waiting.pop(int(rng.integers(len(waiting))))
            now = means if t < rounds // 2 else means[::-1]
            A = bank[which] if after else A
            losses = {int(i): float(0.8 * now[i] + 0.2 * rng.random()) for i in np.flatnonzero(A[decision.arm])}
            slow.update(told, decision.arm, losses, A)
            agent.tell(decision, losses, graph=graphs[which] if after else None)
    return f"{slow.alarms} alarms, {slow.looks_back} looks back"


def fail(rounds: int) -> str:
    """Let the best of three arms fail for a tenth of the rounds."""
    agent, slow, rng = (
        sl.Agent(glance_next, sl.graphs.self_loops(3), seed=1),
        oracle.Glance(3),
        np.random.default_rng(1),
    )
    for t in range(rounds):
        decision, told = agent.ask(), slow.distribution(np.eye(3))
        np.testing.assert_allclose(decision.probabilities, told.p, rtol=1e-8, atol=1e-290, err_msg=f"round {t + 1}")
        means = (0.15, 1.0 if 0.4 < t / rounds < 0.5 else 0.08, 0.18)
        losses = {decision.arm: float(np.clip(means[decision.arm] + 0.1 * rng.standard_normal(), 0, 1))}
        slow.update(told, decision.arm, losses)
        agent.tell(decision, losses)
    return f"{slow.alarms} alarms, {slow.looks_back} looks back"


def advise(seed: int, K: int, rounds: int) -> str:
    """Let two people advise, of whom the second is silent now and then."""
    from advised import Driver  # noqa: PLC0415  # it imports benchmarks, where `learners` is another module

    rng = np.random.default_rng(seed)
    A = random_digraph(rng, K)
    graph, means = sl.FeedbackGraph.from_matrix(A), rng.random(K)
    driver, slow = Driver(graph, 2, seed), oracle.Glance(K, 2)
    for t in range(rounds):
        advice = [int(means.argmin()), int(rng.integers(K))][: 2 - (t % 4 == 0)]
        arm = driver.ask(advice)
        told = slow.distribution(A, {m: np.eye(K)[each] for m, each in enumerate(advice)})
        np.testing.assert_allclose(driver.p, told.p, rtol=1e-8, atol=1e-290, err_msg=f"round {t + 1}")
        losses = {int(i): float(0.8 * means[i] + 0.2 * rng.random()) for i in np.flatnonzero(A[arm])}
        slow.update(told, arm, losses)
        driver.tell(arm, list(losses.values()))
    return f"trust {trust(driver.state).round(3)}"


def main() -> None:
    """Compare all."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print("an arm that fails:", fail(3 * rounds), flush=True)
    for seed, K in enumerate((2, 5, 9, 14)):
        for late in (False, True):
            print(f"seed {seed}, {K} arms, {late = }:", play(seed, K, rounds, late=late), flush=True)
            print("    graphs told afterwards:", play(seed, K, rounds, late=late, after=True), flush=True)
            print("    absent arms:", play(seed, K, rounds, late=late, absent=True), flush=True)
    for seed, K in enumerate((3, 7)):
        print(f"{K} arms, two advisers:", advise(seed, K, rounds), flush=True)
    print("40 arms:", play(4, 40, rounds), flush=True)


if __name__ == "__main__":
    main()
