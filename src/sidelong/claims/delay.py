"""Beyond the paper: late feedback, and graphs that are seen afterwards (docs/proofs.md)."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong import graphs, theory
from sidelong.agent import Agent
from sidelong.agent.decision import redraw
from sidelong.claims.algorithm import ROUNDING, largest
from sidelong.claims.chance import least_mean, mean_fails_from
from sidelong.claims.claim import Outcome, Trial, claim
from sidelong.graphs import FeedbackGraph
from sidelong.learners import exp3set
from sidelong.simulation.delays import delay_of, read_delay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from sidelong.agent import Lateness
    from sidelong.learners.interface import Learner

    Floats = npt.NDArray[np.float64]

_PAGE = "docs/proofs.md"
_LAWS = ("constant:25", "uniform:0:60", "geometric:30:100000", "pareto:2:0.8:100000")


@dataclass(frozen=True)
class _LateGame:
    """A game with late feedback, which was all told in the end."""

    name: str
    guarded: bool
    K: int
    T: int
    regret: float  #: against the arm that is best in every round
    most: float  #: the regret of the arm that is worst in every round
    late: Lateness

    @property
    def least_bound(self) -> float:
        """The smaller of its bounds."""
        bound = self.late.bound or np.nan
        return min(bound, self.closed) if self.guarded else bound

    @property
    def closed(self) -> float:
        """The bound that is known beforehand, for the delays that there were."""
        bound = theory.delay.exp3_gpp_guarded if self.late.initial else theory.delay.exp3_set_guarded
        return bound(K=self.K, T=self.T, theta_sum=self.late.theta_sum, delay_sum=self.late.sum)


def _games(trial: Trial) -> list[_LateGame]:
    """Play 24 settings, six graphs and four laws of delays, with both learners, plain and guarded; made once."""
    if "late" not in trial.shared:
        trial.shared["late"] = list(_played(trial))
    return trial.shared["late"]  # type: ignore[no-any-return]


def _played(trial: Trial) -> Iterator[_LateGame]:
    T = trial.size(200, 60)
    players: list[tuple[str | Learner, dict[str, Any], bool]] = [
        (trial.learner, {"rate": "adaptive"}, False),
        (trial.guarded, {"late": "guarded"}, True),
        (exp3set.LEARNER.name, {}, False),
        (exp3set.LEARNER.name, {"late": "guarded"}, True),
    ]
    for number, (graph, law) in enumerate(itertools.product(_graphs(), _LAWS)):
        rng = trial.rng(f"late {number}")
        losses = rng.choice([0.0, 0.1], (T, 1)) + np.where(np.arange(graph.n_arms) == number % graph.n_arms, 0.0, 0.9)
        read = read_delay(law, graph.n_arms)
        due = [t + int(delay_of(read.arrays, np.uint64(trial.seed), number, t, 0)) for t in range(1, T + 1)]
        for learner, options, guarded in players:
            for run in range(2):
                agent = Agent(learner, graph, seed=2 * number + run, **options)
                regret, late = _play(agent, losses, due)
                yield _LateGame(f"{graph.name}, {law}", guarded, graph.n_arms, T, regret, 0.9 * T, late)


def _graphs() -> list[FeedbackGraph]:
    return [
        graphs.self_loops(4),
        graphs.star(5),
        graphs.nested(5),
        graphs.complete(4),
        graphs.cliques([2, 2]),
        graphs.directed_cycle(4),
    ]


def _play(agent: Agent, losses: Floats, due: list[int]) -> tuple[float, Lateness]:
    """Tell each round after the draw of the one it is due with, and what is left at the end."""
    waiting: dict[int, list[Any]] = {}
    regret = 0.0
    for t, row in enumerate(losses, 1):
        decision = agent.ask()
        regret += float(decision.probabilities @ row - row.min())
        waiting.setdefault(due[t - 1], []).append(decision)
        for each in waiting.pop(t, []):
            agent.tell(each, losses[each.round - 1][each.reveals])
    for each in itertools.chain.from_iterable(waiting.values()):
        agent.tell(each, losses[each.round - 1][each.reveals])
    return regret, agent.lateness()


@claim("delay-rate", "the guarded rate keeps what happened below its closed bound", f"{_PAGE}, the closed bounds")
def rate(trial: Trial) -> Outcome:
    """ln K / eta_T + sum eta_t (theta_t + sigma_t) <= 2 sqrt(2 ln K (K + sum theta_t + D)) on every path.

    Whatever the delays are; with theta_t / 2, and 2 D and no K under the root, for EXP3-SET. In 24 settings, with
    heavy-tailed delays among them.
    """
    ratios = [(game.late.bound or np.nan) / game.closed for game in _games(trial) if game.guarded]
    worst = largest(ratios)
    return Outcome(worst, 1 + ROUNDING, f"left / right up to {worst:.4g} on {len(ratios)} paths", "1")


@claim("delay-regret", "regret with late feedback is below both bounds", f"{_PAGE}, the proof", random=True)
def regret(trial: Trial) -> Outcome:
    """R <= E[ln K / eta_T + sum eta_t (theta_t + sigma_t)] + ..., and, guarded, the closed bound, in 24 settings.

    A lower limit for the mean of regret over bound, of all settings together, for each learner.
    """
    games = _games(trial)
    players = [[game for number, game in enumerate(games) if number // 2 % 4 == player] for player in range(4)]
    risk = trial.risk / len(players)
    limits = [least_mean(np.array([game.regret / game.least_bound for game in each]), risk) for each in players]
    possible = [least_mean(np.array([game.most / game.least_bound for game in each]), risk) for each in players]
    worst = largest([game.regret / game.least_bound for game in games])
    shown = f"regret / bound up to {worst:.3g} in {len(games)} games of 24 settings"
    fails_from = mean_fails_from(min(map(len, players)), risk) if max(possible) > 1.0 else math.inf
    return Outcome(largest(limits), 1.0, shown, "1", fails_from=fails_from)


def _cross(losses: Floats, delays: Callable[[int, int], int]) -> tuple[float, float, float]:
    """Return E sum eta q lhat_t lhat_s over s in M_t, the same with l for lhat, and E sum eta sigma; by enumeration.

    EXP3-SET on two self-loops. `delays` says from a round and its arm how many draws later it is told.
    """
    T, terms = len(losses), np.zeros(3)
    for arms in itertools.product((0, 1), repeat=T):
        chance, Theta, told = 1.0, 2.0, np.zeros(2)
        lhat, theta, known = np.zeros((T, 2)), np.zeros(T), np.zeros(T, bool)
        path = np.zeros(3)
        for t, arm in enumerate(arms):
            for s in range(t):
                if not known[s] and s + 1 + delays(s, arms[s]) <= t:
                    known[s], told, Theta = True, told + lhat[s], Theta + theta[s]
            eta = np.sqrt(np.log(2) / Theta)
            w = np.exp(-eta * (told - told.min()))
            p = w / w.sum()
            if p[arm] == 0.0:  # it underflows, and is never drawn
                chance = 0.0
                break
            lhat[t, arm] = losses[t, arm] / p[arm]
            theta[t] = 2.0
            for s in range(t):
                if not known[s]:
                    path += eta * np.array([(p * lhat[t]) @ lhat[s], (p * losses[t]) @ losses[s], 1.0])
            chance *= p[arm]
        terms += chance * path if chance > 0.0 else 0.0
    return float(terms[0]), float(terms[1]), float(terms[2])


@claim("delay-cross", "what is outstanding says nothing about the draws, unless delays depend on the arm", _PAGE)
def cross(trial: Trial) -> Outcome:
    """E sum eta_t <q_t lhat_t, lhat_s> over the outstanding s is that with l_s and l_t, for delays fixed beforehand.

    By enumeration of all draws. Where arm 0 reports late and arm 1 at once it is not, and exceeds E sum eta_t sigma_t.
    """
    rng = trial.rng("delay-cross")
    errors = []
    for _ in range(trial.size(8, 2)):
        fixed = rng.integers(0, 4, 6)
        found, exact, most = _cross(rng.random((6, 2)), lambda s, _, fixed=fixed: int(fixed[s]))  # type: ignore[misc]
        errors += [abs(found - exact), max(0.0, exact - most)]
    broken, _, allowed = _cross(np.ones((6, 2)), lambda _, arm: 6 if arm == 0 else 0)
    worst = largest(errors) if broken > allowed else float("inf")
    shown = f"differs by {worst:.1g}; with delays by arm it is {broken:.3g}, and {allowed:.3g} would be allowed"
    return Outcome(worst, 1e-12, shown, "0")


@claim("seen-after", "the adversarial bound holds if graphs are shown after the draw", "docs/proofs.md")
def seen_after(trial: Trial) -> Outcome:
    """E sum (l_(t,I) - l_(t,k)) <= E[ln K / eta_T + sum eta_t theta_t + sum eps] + K for every arm k.

    Losses and graphs are any functions of the draws before, and what is drawn for is a guess. By enumeration.
    """
    rng = trial.rng("seen-after")
    ratios = [_watched(trial, rng, K=2, T=7) for _ in range(trial.size(6, 2))]
    worst = largest(ratios)
    return Outcome(worst, 1.0, f"left / right up to {worst:.3g} in {len(ratios)} games", "1")


def _watched(trial: Trial, rng: np.random.Generator, K: int, T: int) -> float:
    """Return the regret over its bound where losses and graphs are tables by history, and guesses by round."""
    tables: dict[tuple[int, ...], tuple[Floats, FeedbackGraph]] = {}
    guesses = [_random_graph(rng, K) for _ in range(T)]
    regret, bound = np.zeros(K), 0.0
    for arms in itertools.product(range(K), repeat=T - K):
        agent = Agent(trial.learner, guesses[0], rate="adaptive")
        chance, path = 1.0, np.zeros(K)
        for t in range(T):
            decision = agent.ask(guesses[t])
            history = arms[: max(t - K, 0)] if t >= K else (-1 - t,)
            if history not in tables:
                tables[history] = rng.random(K).round(1), _random_graph(rng, K)
            losses, shown = tables[history]
            if t >= K:
                redraw(decision, arms[t - K])  # every draw is played once, with its probability
                chance *= decision.probability
            path += losses[decision.arm] - losses
            agent.tell(decision, losses[shown.out_neighbors(decision.arm)], shown)
        regret += chance * path
        bound += chance * (agent.lateness().bound or np.nan)
    return float(regret.max()) / bound


def _random_graph(rng: np.random.Generator, K: int) -> FeedbackGraph:
    return FeedbackGraph.from_matrix((rng.random((K, K)) < 0.5) | np.eye(K, dtype=bool))
