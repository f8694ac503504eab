"""river: learners behind its bandit policies, `pull` and `update`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sidelong._install import pip_install
from sidelong.agent import Agent
from sidelong.errors import DecisionError, GraphError, LearnerError, LossError
from sidelong.graphs.families import self_loops
from sidelong.integrations.rewards import losses_of, scale_of
from sidelong.learners import catalogue

try:
    from river import bandit
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"This needs {error.name}. {pip_install(str(error.name))}", name=error.name) from None

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from sidelong.graphs import FeedbackGraph


class Policy(bandit.base.Policy):  # type: ignore[misc]  # river is optional, and not read by the type checker
    """A learner as a policy of river: wherever rewards are numbers, as in `river.bandit.evaluate`.

    It can be pickled, as models of river are, and goes on where it was. Learners explore by themselves, so that there
    is no burn-in; where river updates a policy with a metric, as in `model_selection.BanditRegressor`, it cannot serve.

    The arms are those of the first `pull`, in their order, and stay. What a play reveals of other arms is told with
    ``update(arm, reward, revealed={other: reward, ...})``; without a graph there is nothing to reveal.

    Args:
        learner: the name of a learner.
        graph: whose rewards a pull reveals, arms by their number; if not given, a pull reveals its own alone.
        seed: a whole number from 0 to 2**64 - 1.
        rewards: the smallest and the largest reward. One beyond them is refused.
        late: whether rewards may come after further pulls. Each is then taken for the oldest pull of its arm that has
            none yet, and learned with the probabilities of that pull. If not, a pull that is followed by another pull
            counts as not carried out, as in `river.bandit.evaluate_offline`. For more than this use `sidelong.Agent`,
            whose decisions have names.
        **options: the options of the learner.

    Example:
        >>> from sidelong.integrations.river import Policy
        >>> policy = Policy("tsallis-inf", seed=1)
        >>> arm = policy.pull(["red", "green", "blue"])
        >>> policy.update(arm, 1.0)
        >>> policy.ranking == [arm]
        True
    """

    def __init__(
        self,
        learner: str = "glance",
        graph: FeedbackGraph | None = None,
        *,
        seed: int = 0,
        rewards: tuple[float, float] = (0.0, 1.0),
        late: bool = False,
        **options: Any,
    ) -> None:
        super().__init__()
        # river clones a policy by the names of these arguments.
        self.learner = learner
        self.graph = graph
        self.seed = seed
        self._scale = scale_of(rewards)
        self.rewards = (self._scale.worst, self._scale.best)
        self.late = late
        self.options = options
        self._arms: dict[Hashable, int] = {}
        catalogue.choose(learner, options)  # without a graph there is no agent yet; an unknown name is refused now
        if "scale" in options:
            raise LearnerError(
                "A policy turns rewards into losses itself: give rewards=(smallest, largest) instead of a scale."
            )
        self._agent: Agent | None = None if graph is None else Agent(learner, graph, seed=seed, **options)

    def _pull(self, arm_ids: Iterable[Hashable]) -> Hashable:
        names = list(arm_ids)
        agent = self._agent or self._begin(names)
        if not self._arms:
            self._name(names)
        if names != list(self._arms):
            raise GraphError(f"The arms of a policy stay as they were at its first pull: {_listed(self._arms)}.")
        if not self.late:
            for decision in agent.pending:
                agent.cancel(decision)
        return names[agent.ask().arm]

    def _begin(self, names: list[Hashable]) -> Agent:
        if not names:
            raise GraphError("A policy needs at least one arm to pull; the list of arms is empty.")
        self._agent = Agent(self.learner, self_loops(len(names)), seed=self.seed, **self.options)
        return self._agent

    def _name(self, names: list[Hashable]) -> None:
        expected = self._agent.graph.n_arms if self._agent else 0
        if len(set(names)) != len(names) or len(names) != expected:
            raise GraphError(f"The graph has {expected} arms, and they need as many names, all different: not {names}.")
        self._arms = {name: number for number, name in enumerate(names)}

    def update(self, arm_id: Hashable, reward: float, revealed: Mapping[Hashable, float] | None = None) -> None:
        """Learn the reward of a pull, and those of other arms that it revealed.

        Args:
            arm_id: the arm that was pulled.
            reward: what it gave.
            revealed: what each other arm that it reveals would have given.
        """
        number = self._arms.get(arm_id)
        waiting = self._agent.pending if self._agent else ()
        decision = next((each for each in waiting if each.arm == number), None)
        if decision is None or self._agent is None:
            raise DecisionError(
                f"No pull of arm {arm_id!r} waits for its reward. Update what was pulled, once; "
                f"where rewards come after further pulls, make the policy with late=True."
            )
        given = {**(revealed or {}), arm_id: reward}
        for name in given:
            if name not in self._arms:
                raise LossError(f"There is no arm {name!r}. The arms are {_listed(self._arms)}.")
        losses = losses_of(given, self._scale)
        self._agent.tell(decision, {self._arms[name]: loss for name, loss in losses.items()})
        super().update(arm_id, float(reward))

    def __repr__(self) -> str:
        return str(super().__repr__()) if self._n else f"<Policy {self.learner}: no reward yet>"


def _listed(arms: Iterable[Hashable]) -> str:
    names = [repr(name) for name in arms]
    return ", ".join(names) if len(names) <= 12 else f"{names[0]}, {names[1]}, ..., {names[-1]}"
