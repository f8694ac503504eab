"""Gymnasium: worlds and graphs as an environment, and learners that play environments of others.

What goes beyond Gymnasium's own interface is in ``info``. `GraphBandit` has all of it, and `play` reads it from any
environment:

=========================  ===============================================================================
``info["revealed"]``       after a step: the reward of each arm that the play revealed, by arm
``info["graph"]``          the graph of the coming round, where graphs change and are shown before the draw
``info["outcome_graph"]``  after a step: the graph of that round, where only the outcome shows it
=========================  ===============================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong._install import pip_install
from sidelong.agent import Agent, ContextualAgent
from sidelong.checks import check_whole
from sidelong.errors import GraphError, LossError, SimulationError, WorldError
from sidelong.graphs.graph import FeedbackGraph
from sidelong.graphs.sequences import GraphSequence, fixed
from sidelong.integrations.rewards import losses_of, scale_of
from sidelong.losses.world import World

try:
    import gymnasium
    from gymnasium import spaces
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"This needs {error.name}. {pip_install(str(error.name))}", name=error.name) from None

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.outcomes.scale import Scale

Observation = dict[str, np.ndarray]


class GraphBandit(gymnasium.Env[Observation, np.int64]):
    """A world on a feedback graph, as a Gymnasium environment.

    An action is an arm. Its reward is 1 less its loss. The observation holds what the play revealed: ``losses``, which
    are 0 where nothing was revealed, and ``revealed``, which is 1 where something was. An episode never terminates; it
    is truncated after `rounds`.

    ``reset(seed=s)`` begins run 0 of seed s, and each ``reset()`` after that begins the next run. The losses are those
    of `sidelong.simulate`, to the bit. ``info`` has the round, and what this module's docstring lists.

    Args:
        graph: whose losses an arm reveals; one graph, or a sequence of graphs over time.
        world: the losses, made by a function of `sidelong.losses`.
        rounds: how long an episode is. If not given, as long as the world has losses; without end if that is for ever.

    Example:
        >>> import sidelong as sl
        >>> from sidelong.integrations.gymnasium import GraphBandit
        >>> env = GraphBandit(sl.graphs.nested(3), sl.losses.bernoulli([0.2, 0.5, 0.9]), rounds=100)
        >>> observation, info = env.reset(seed=1)
        >>> observation, reward, terminated, truncated, info = env.step(1)
        >>> observation["revealed"].tolist()  # arm 1 reveals itself and arm 0
        [1, 1, 0]
    """

    metadata = {"render_modes": []}  # noqa: RUF012  # as Gymnasium declares it

    def __init__(self, graph: FeedbackGraph | GraphSequence, world: World, rounds: int | None = None) -> None:
        if not isinstance(graph, FeedbackGraph | GraphSequence):
            raise GraphError(f"graph must be a FeedbackGraph or a GraphSequence, not {type(graph).__name__}.")
        if not isinstance(world, World):
            raise WorldError(f"world must be a world made by sidelong.losses, not {type(world).__name__}.")
        if graph.n_arms != world.n_arms:
            raise SimulationError(f"The graph has {graph.n_arms} arms and the world {world.n_arms}: they must agree.")
        self.graphs = graph if isinstance(graph, GraphSequence) else fixed(graph)
        self.world = world
        self.rounds = _episode(world, rounds)
        K = world.n_arms
        self.action_space = spaces.Discrete(K)
        seen = {"losses": spaces.Box(0.0, 1.0, (K,), np.float64), "revealed": spaces.MultiBinary(K)}
        self.observation_space = spaces.Dict(seen)  # type: ignore[assignment]  # a Dict's own type says less
        self._seed, self._run, self._round = 0, -1, 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode: run 0 of a seed, or the run after the last one."""
        super().reset(seed=seed, options=options)
        if seed is not None:
            self._seed, self._run = seed, -1
        elif self._run < 0:  # never seeded
            self._seed = int(self.np_random.integers(2**63))
        self._run += 1
        self._round = 0
        return self._nothing(), self._coming()

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Play an arm."""
        if self._run < 0:
            raise SimulationError("An episode begins with reset(); step() was called before.")
        if not self.action_space.contains(action):
            raise SimulationError(f"An action is an arm from 0 to {self.world.n_arms - 1}, not {action!r}.")
        if self._round == self.rounds:
            raise SimulationError(f"The episode ended after {self.rounds:,} rounds. Call reset().")
        t = self._round + 1
        graph = self.graphs.graph_of_round(t, seed=self._seed, run=self._run)
        arms = graph.out_neighbors(int(action))
        observation = self._nothing()
        observation["revealed"][arms] = 1
        observation["losses"][arms] = [self._loss(t, int(arm)) for arm in arms]
        self._round = t
        info = self._coming() | {"revealed": {int(arm): 1.0 - float(observation["losses"][arm]) for arm in arms}}
        if self.graphs.shown == "after":
            info["outcome_graph"] = graph
        return observation, 1.0 - self._loss(t, int(action)), False, t == self.rounds, info

    def _loss(self, t: int, arm: int) -> float:
        loss = self.world.loss(self._seed, self._run, t, arm)
        if not 0.0 <= loss <= 1.0:
            raise LossError(f"A loss must be in [0, 1]; the world gave {loss!r} in round {t}, for arm {arm}.")
        return loss

    def _nothing(self) -> Observation:
        K = self.world.n_arms
        return {"losses": np.zeros(K), "revealed": np.zeros(K, np.int8)}

    def _coming(self) -> dict[str, Any]:
        info: dict[str, Any] = {"round": self._round}
        if self.graphs.shown == "before" and self._round != self.rounds:
            info["graph"] = self.graphs.graph_of_round(self._round + 1, seed=self._seed, run=self._run)
        return info


def _episode(world: World, rounds: int | None) -> int | None:
    if rounds is None:
        return world.rounds
    wanted = check_whole(SimulationError, "rounds", rounds, 1)
    if world.rounds is not None and wanted > world.rounds:
        raise SimulationError(f"The world has {world.rounds:,} rounds, and {wanted:,} were asked for.")
    return wanted


class Played(NamedTuple):
    """What `play` did: one entry a round."""

    arms: npt.NDArray[np.int64]  #: what was played
    rewards: npt.NDArray[np.float64]  #: what it gave


def play(
    env: gymnasium.Env[Any, Any],
    agent: Agent,
    rounds: int,
    *,
    rewards: tuple[float, float] = (0.0, 1.0),
    seed: int | None = None,
) -> Played:
    """Let an agent play an environment that is a bandit: actions are arms, and each step has its reward.

    Episodes may be of one step or of many: a new one begins wherever one ends. Observations are not used, as a
    bandit's reward depends on the action alone. What a play reveals of other arms is read from
    ``info["revealed"]``; an agent on `sidelong.graphs.self_loops` needs no such thing, and so plays any bandit.

    Args:
        env: an environment whose actions are `Discrete`.
        agent: what plays, without a scale of its own; it goes on learning if it has learned before.
        rounds: how many steps to take.
        rewards: the smallest and the largest reward. One beyond them is refused: losses are made from them.
        seed: for the first reset.

    Raises:
        LossError: a reward is outside its range, or a revealed arm has none.
        SimulationError: the environment is no bandit, or none that this agent can play.

    Example:
        >>> import sidelong as sl
        >>> from sidelong.integrations.gymnasium import GraphBandit, play
        >>> env = GraphBandit(sl.graphs.nested(3), sl.losses.bernoulli([0.2, 0.5, 0.9]))
        >>> played = play(env, sl.Agent("exp3.g++", sl.graphs.nested(3), seed=1), rounds=500, seed=1)
        >>> played.arms.size
        500
    """
    scale = scale_of(rewards)
    rounds = check_whole(SimulationError, "rounds", rounds, 0)
    if not isinstance(agent, Agent) or isinstance(agent, ContextualAgent) or agent.scale is not None:
        raise SimulationError(
            f"agent must be a sidelong.Agent without a scale, not {agent!r}: losses are made here, of rewards from "
            f"{scale.worst:g} to {scale.best:g}. Give another range with rewards=(smallest, largest)."
        )
    space = env.action_space
    if not isinstance(space, spaces.Discrete):
        raise SimulationError(f"The actions of a bandit are Discrete; those of {env} are {space}.")
    if space.n != agent.graph.n_arms:
        raise SimulationError(f"The environment has {space.n} actions and the agent {agent.graph.n_arms} arms.")
    played = Played(np.empty(rounds, np.int64), np.empty(rounds))
    _, info = env.reset(seed=seed)
    over = False
    for t in range(rounds):
        if over:
            _, info = env.reset()
        decision = agent.ask(info.get("graph"))
        _, reward, terminated, truncated, info = env.step(space.start + decision.arm)
        over = terminated or truncated
        outcome = info.get("outcome_graph")
        arms = (outcome or decision.graph).out_neighbors(decision.arm).tolist()
        agent.tell(decision, _losses(decision.arm, reward, arms, info.get("revealed"), scale), graph=outcome)
        played.arms[t], played.rewards[t] = decision.arm, reward
    return played


def _losses(arm: int, reward: Any, arms: list[int], revealed: Any, scale: Scale) -> dict[int, float]:
    given = {**revealed, arm: reward} if isinstance(revealed, Mapping) else {arm: reward}
    for other in arms:
        if other not in given:
            raise LossError(
                f"The agent's graph says that arm {arm} reveals arm {other}, and the environment gives no reward for "
                f'it in info["revealed"]. Use an agent on sidelong.graphs.self_loops, or an environment that does.'
            )
    return losses_of({other: given[other] for other in arms}, scale)


gymnasium.register(id="sidelong/GraphBandit-v0", entry_point="sidelong.integrations.gymnasium:GraphBandit")
