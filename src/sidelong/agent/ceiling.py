r"""A ceiling on the mean cost of a decision, for every learner.

The learner is not told a loss l, but a mix of loss and cost, whose share of cost is the *price*. With c the cost of an
arm, b the ceiling, and u = min(10 b, the largest bound)::

    price = 0.5;  X = Q = 0
    told:  the learner gets (1 - price) l + price min(1, c / u)  for each revealed arm                          1
           x = (cost of the arm that was carried out - b) / u;  X += x;  Q += x^2                               2
           price = clip(0.5 + X / sqrt(1 + Q), 0, 0.95)                                                         3

Line 3 is online gradient ascent on the price ("follow the regularised leader"), so that any learner with a regret bound
keeps the mean cost at the ceiling, up to O(1 / sqrt(T)), and loses as little as the best mix of arms that does:
`docs/proofs.md` has the theorem. It needs an arm that costs less than 0.47 b on average, or that a cost of b saves a
loss of less than 1.9: at the highest price, more than that is still worth it.

If each arm i has a bound b_i on its cost, a hard rule holds on every path: X u, which is what was spent above the line,
and max(0, b_i - b) for each pending decision together stay at most `overspend`. An arm that would break that is absent
for the round. An arm with b_i <= b never does. If there is none that is not retired, the one with the least bound is
always there, and the rule holds but for what that arm itself costs above the ceiling.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong._jit import kernel
from sidelong.agent.feedback import of_many, of_one
from sidelong.checks import check_number, short
from sidelong.errors import CostError, GraphError, LearnerError, LossError
from sidelong.graphs.presence import arm_of, only, present
from sidelong.learners import catalogue
from sidelong.learners.interface import Need
from sidelong.tables import are_several

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from sidelong.agent.feedback import LossColumns
    from sidelong.graphs.arrays import GraphArrays
    from sidelong.graphs.graph import FeedbackGraph
    from sidelong.learners.interface import Learner

    Floats = npt.NDArray[np.float64]
    Integers = npt.NDArray[np.int64]

#: What `Observers.spending` has of a key: b and u, how many decisions were told and what they cost, Q, and the price.
#: And whether the price is that of all keys, which is written there before each `tell`.
CEILING, UNIT, DECISIONS, SPENT, SQUARES, PRICE, SHARED = range(7)
#: A price at which nothing is known, and the highest one, at which losses still count.
FIRST, HIGHEST = 0.5, 0.95
#: So many ceilings are the most that a cost counts for the price, so that losses are not drowned.
DEAR = 10.0


class Ceiling(NamedTuple):
    """What a decision may cost on average, and what limits the total."""

    mean: float
    unit: float  #: the cost that counts as a loss of 1
    bounds: Floats | None = None  #: the most that each arm can cost
    overspend: float | None = None  #: how far the total may be above the line
    shared: bool = False  #: whether it is one line for all keys

    def spending(self) -> Floats:
        """Return what is spent before the first decision."""
        return np.array([self.mean, self.unit, 0.0, 0.0, 0.0, FIRST, self.shared])

    def excess(self, own: FeedbackGraph) -> Floats:
        """Return what is reserved for each arm: what it may cost above the ceiling, but 0 for one always there.

        Arms that are absent from the graph of the agent or the family itself are retired.
        """
        if self.bounds is None:
            return np.zeros(0)
        excess = np.maximum(self.bounds - self.mean, 0.0)
        there = np.where(present(own), excess, np.inf)
        if there.min() > 0.0:
            excess[there.argmin()] = 0.0
        return excess

    def reserved(self, own: FeedbackGraph, arms: Integers) -> float:
        """Return what pending decisions with these arms may cost above the ceiling; 0 without bounds."""
        return 0.0 if self.bounds is None else float(self.excess(own)[arms].sum())

    def levels(self, excess: Floats, over: Floats, reserved: Floats, n: Integers) -> Integers:
        """Return how many of the levels of `excess` fit for n decisions at once of each key."""
        most: Any = self.overspend
        left = np.maximum(0.0, most - over - reserved)
        return np.asarray((np.unique(excess) * n[:, None] <= left[:, None]).sum(axis=1))

    def with_arm(self, bound: Any) -> Ceiling:
        """Return it with one more arm, of which a bound is needed if others have one."""
        if (bound is None) != (self.bounds is None):
            rule = "gives every arm a bound: give cost_bound=..." if bound is None else "has no bounds: leave it out"
            raise LearnerError(f"The ceiling {rule}.")
        if self.bounds is None:
            return self
        return self._replace(bounds=np.append(self.bounds, check_number(LearnerError, "cost_bound", bound, above=0)))

    def plain(self) -> list[Any]:
        """Return it as plain values, for the tag of decisions and for files."""
        bounds = None if self.bounds is None else self.bounds.tolist()
        return [self.mean, self.unit, bounds, self.overspend, self.shared]


class Spending(NamedTuple):
    """What decisions have cost, beside what they may cost."""

    decisions: int  #: that were told what they cost, and those that are lost, which count as the most they can cost
    spent: float  #: by these
    line: float  #: the ceiling times the decisions
    reserved: float  #: what pending decisions may cost above the ceiling; 0 without bounds
    price: float  #: the share of cost in what the learner is told, from 0 to 1; of one key or of all together


@kernel
def mix_in(spending: np.ndarray, losses: np.ndarray, costs: np.ndarray, mixed: np.ndarray) -> None:
    """Write what the learner is told of losses with their costs."""
    price, unit = spending[PRICE], spending[UNIT]
    for k in range(losses.size):
        mixed[k] = (1.0 - price) * losses[k] + price * min(1.0, costs[k] / unit)  # 1


@kernel
def cost_of(graph: GraphArrays, arm: int, costs: np.ndarray) -> float:
    """Return the cost of an arm among those that it reveals."""
    first = graph.start[arm]
    for e in range(first, graph.stop[arm]):
        if graph.targets[e] == arm:
            return costs[e - first]  # type: ignore[no-any-return]
    return 0.0


@kernel
def spend(spending: np.ndarray, cost: float) -> None:
    """Count the cost of a decision."""
    spending[DECISIONS] += 1.0
    spending[SPENT] += cost
    x = (cost - spending[CEILING]) / spending[UNIT]
    spending[SQUARES] += x * x  # 2
    if spending[SHARED] > 0.0:
        return
    over = (spending[SPENT] - spending[CEILING] * spending[DECISIONS]) / spending[UNIT]
    spending[PRICE] = min(HIGHEST, max(0.0, FIRST + over / math.sqrt(1.0 + spending[SQUARES])))  # 3


def summary(spending: Floats, reserved: float) -> Spending:
    """Return what was spent, for people."""
    decisions, spent = int(spending[DECISIONS]), float(spending[SPENT])
    return Spending(decisions, spent, float(spending[CEILING]) * decisions, reserved, float(spending[PRICE]))


def over(spending: Floats) -> Floats:
    """Return what each key has spent above the line; negative if less was."""
    return np.asarray(spending[:, SPENT] - spending[:, CEILING] * spending[:, DECISIONS])


def read_ceiling(
    learner: Learner, graph: FeedbackGraph, ceiling: Any, cost_bounds: Any, overspend: Any, over_: Any = "key"
) -> Ceiling | None:
    """Return the ceiling of an agent or a family, if there is one."""
    if over_ not in {"key", "all"}:
        raise LearnerError(f"ceiling_over is 'key', a line for each key, or 'all', one for all; not {short(over_)}.")
    if ceiling is None:
        if cost_bounds is not None or overspend is not None:
            raise LearnerError("cost_bounds and overspend go with a ceiling, and none is given.")
        return None
    mean = check_number(LearnerError, "ceiling", ceiling, above=0)
    hidden = [arm for arm in graph.arms_without_self_loop.tolist() if present(graph)[arm]]
    if hidden:
        raise LearnerError(
            f"With a ceiling every arm must reveal itself, so that its cost is seen, and arm "
            f"{graph.arm_name(hidden[0])} does not."
        )
    if learner.name in catalogue.names_with_features():
        raise LearnerError(
            f"{learner.title} plays by predicted losses alone, which costs do not enter, and would not keep a ceiling. "
            f"Use glance, which predictions advise."
        )
    if Need.BINARY_LOSSES in learner.needs:
        raise LearnerError(f"{learner.title} takes losses 0 or 1 alone, and no mix of loss and cost. Use glance, say.")
    if (cost_bounds is None) != (overspend is None):
        missing = "overspend" if overspend is None else "cost_bounds"
        raise LearnerError(f"cost_bounds and overspend go together, and {missing} is not given.")
    if cost_bounds is None:
        return Ceiling(mean, DEAR * mean, shared=over_ == "all")
    catalogue.check_absence(learner, "cost_bounds=...")
    bounds = _read_bounds(cost_bounds, graph)
    most = check_number(LearnerError, "overspend", overspend, least=0)
    return Ceiling(mean, min(DEAR * mean, float(bounds.max())), bounds, most, over_ == "all")


def _read_bounds(given: Any, graph: FeedbackGraph) -> Floats:
    K = graph.n_arms
    if isinstance(given, Mapping):
        try:
            named = {arm_of(graph, arm, "cost_bounds"): bound for arm, bound in given.items()}
        except GraphError as error:
            raise LearnerError(str(error)) from error
        listed = [named.get(arm) for arm in range(K)]
    else:
        listed = list(given) if are_several(given) else []
    if len(listed) != K or None in listed:
        raise LearnerError(f"cost_bounds has the most that each of the {K} arms can cost, and is {short(given)}.")
    return np.array([check_number(LearnerError, "A bound of cost_bounds", bound, above=0) for bound in listed])


def fitting(ceiling: Ceiling, own: FeedbackGraph, graph: FeedbackGraph, levels: int) -> FeedbackGraph:
    """Return the graph of a round without the arms that do not fit, where so many levels of `excess` do.

    Raises:
        CostError: no arm that is there fits.
    """
    known, of = np.unique(ceiling.excess(own), return_inverse=True)
    if levels == known.size:
        return graph
    fits = of.reshape(-1) < levels
    if not (present(graph) & fits).any():
        least = int(np.where(present(own), of.reshape(-1), known.size).argmin())
        raise CostError(
            f"No arm that is there fits: each may cost more than the ceiling, {ceiling.mean:g}, and with what pending "
            f"decisions may cost the total could exceed the line by more than overspend, {ceiling.overspend:g}. Let "
            f"arm {graph.arm_name(least)} be available, or tell what pending decisions have cost."
        )
    return only(graph, fits)


def check_given(ceiling: Ceiling | None, given: Any) -> None:
    """Refuse costs where there is no ceiling, and a ceiling without costs."""
    if ceiling is None and given is not None:
        raise CostError("Costs are told where there is a ceiling. Make the agent or the family with ceiling=...")
    if ceiling is not None and given is None:
        raise CostError("With a ceiling, tell what the revealed arms cost: costs=..., as losses are told.")


def costs_of_one(given: Any, labels: tuple[str, ...] | None = None) -> LossColumns:
    """Return the costs of one decision, by arm, of which some may have labels, or in the order of the revealed arms."""
    try:
        return of_one(given, labels)
    except LossError as error:
        raise CostError(
            f"costs must be given by arm, or a list in the order of the revealed arms, not {short(given)}."
        ) from error


def costs_of_many(given: Any) -> LossColumns:
    """Return costs that come one after the other, decision after decision."""
    try:
        return of_many(given)
    except LossError as error:
        raise CostError(
            f"costs must be one number for each revealed arm, in their order, not {short(given)}."
        ) from error


def in_order(
    ceiling: Ceiling, told: LossColumns, due: Integers, arms: Integers, played: Integers, whose: Callable[[int], str]
) -> Floats:
    """Return the costs of decisions, each of which has so many, in the order of their arms, which are -1 if not known.

    So is the arm that was played, if a decision is not pending: one that was told before, perhaps the same.

    Raises:
        CostError: they are missing, negative, above their bounds, or of other arms.
    """
    costs, of = told.values, np.repeat(np.arange(due.size), due)
    if told.arms is not None and told.of is not None:
        order = np.lexsort((told.arms, told.of))
        costs, listed = costs[order], told.arms[order]
        if costs.size != arms.size or (told.of[order] != of).any() or ((listed != arms) & (arms >= 0)).any():
            _refuse_arms(told, due, arms, whose)
    if costs.size != arms.size:
        raise CostError(f"Costs must be one for each of the {arms.size:,} revealed arms; {costs.size:,} were given.")
    known = arms >= 0
    most = np.full(costs.size, np.finfo(np.float64).max)
    if ceiling.bounds is not None:
        most[known] = ceiling.bounds[arms[known]]
    for at in np.flatnonzero(~((costs >= 0.0) & (costs <= most))).tolist():  # NaN compares as false
        name, cost = f"The cost of arm {arms[at]}{whose(int(of[at]))}", short(told.given[at])
        if costs[at] > most[at] and ceiling.bounds is not None:
            raise CostError(
                f"{name} must be at most its bound, {most[at]:g}, not {cost}. If such costs do come, begin with a "
                f"higher bound. Nothing was learned."
            )
        raise CostError(f"{name} must be a finite number from 0 on, not {cost}. Nothing was learned.")
    seen = np.bincount(of[known & (arms == played[of])], minlength=due.size) > 0
    for at in np.flatnonzero(~seen & (played >= 0) & (np.bincount(of[known], minlength=due.size) > 0)).tolist():
        raise CostError(f"What arm {played[at]}{whose(at)} cost must be seen, and this graph does not reveal it.")
    return np.ascontiguousarray(costs)


def _refuse_arms(told: LossColumns, due: Integers, arms: Integers, whose: Callable[[int], str]) -> None:
    """Say which cost is of an arm that was not revealed, or is missing."""
    first = np.append(0, np.cumsum(due))
    for at in range(due.size):
        given: Any = told.arms
        given, wanted = given[told.of == at].tolist(), arms[first[at] : first[at + 1]].tolist()
        for arm in given:
            if arm not in wanted:
                raise CostError(
                    f"Arm {arm}{whose(at)} was not revealed, and a cost was told for it. Tell the costs of {wanted}."
                )
        for arm in wanted:
            if given.count(arm) != 1:
                raise CostError(f"Of arm {arm}{whose(at)} one cost is needed. Tell the costs of {wanted}.")
