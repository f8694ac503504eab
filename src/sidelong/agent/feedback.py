"""The rules of `tell`: which losses it takes, and when two are the same."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.agent.arms import as_present
from sidelong.checks import plain, short
from sidelong.errors import LossError

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.agent.decision import Decision
    from sidelong.graphs.graph import FeedbackGraph
    from sidelong.outcomes.revealed import Losses, Revealed
    from sidelong.outcomes.scale import Scale


def read_losses(
    losses: Losses, reveals: npt.NDArray[np.int32], graph: FeedbackGraph, into: np.ndarray, *, binary: str = ""
) -> None:
    """Write the losses of the revealed arms into an array, in the order of the arms.

    Args:
        losses: by arm, or in the order of the revealed arms.
        reveals: the revealed arms.
        graph: whose labels name arms in messages.
        into: where they go.
        binary: the name of the learner, if it needs losses that are 0 or 1.

    Raises:
        LossError: if an arm is missing, was not revealed, or has a loss that is not a number in [0, 1], or, for a
            learner that needs it, neither 0 nor 1.
    """
    if not binary and _are_losses(losses, reveals.shape):  # a hundred thousand of them take a tenth of a second below
        into[: reveals.size] = losses
        return
    arms = reveals.tolist()
    if isinstance(losses, Mapping):
        values = [losses.get(arm) for arm in arms]
        if len(losses) != len(arms) or any(value is None for value in values):
            _refuse_arms(losses, arms, graph)
    else:
        values = _listed_losses(losses)
        if len(values) != len(arms):
            raise LossError(
                f"Losses without arms must be one for each of the {len(arms)} revealed arms, in their order; "
                f"{len(values)} were given. The arms are {listed(arms, graph)}."
            )
    for k, value in enumerate(values):
        # The exact type comes first: asking for Real is slow, and needed only for other kinds of numbers.
        if not 0.0 <= (value if type(value) is float else plain(value)) <= 1.0:
            raise LossError(
                f"The loss of arm {graph.arm_name(arms[k])} must be a number in [0, 1], not {short(value)}. "
                f"Scale losses before you tell them; they are never clipped."
            )
        if binary and value not in {0, 1}:
            name = graph.arm_name(arms[k])
            raise LossError(f"The loss of arm {name} must be 0 or 1 for {binary}, not {value!r}.")
    into[: len(values)] = values


def took_floats(losses: Any, reveals: npt.NDArray[np.int32], slots: Any) -> bool:
    """Write the losses into `slots` if they are what most are: floats in [0, 1] by arm, in a dict. Else say no.

    What is in the slots then means nothing. `read_losses` takes all that is allowed, and says what is wrong with the
    rest.
    """
    if type(losses) is not dict or len(losses) != len(reveals):
        return False
    k = 0  # a loop by hand: every nanosecond of it is that of a decision
    try:
        for arm in reveals.tolist():
            value = losses[arm]
            if type(value) is not float or not 0.0 <= value <= 1.0:
                return False
            slots[k] = value
            k += 1
    except KeyError:
        return False
    return True


def opened(
    revealed: Revealed, graph: FeedbackGraph | None, decision: Decision | str, scale: Scale | None
) -> tuple[dict[int, float], FeedbackGraph]:
    """Return what an outcome revealed as losses by arm and the graph of the round, if it is one of this decision.

    Raises:
        LossError: the outcome is of another arm or of a graph that was not asked with, or something was given that it
            says already.
    """
    if graph is not None or scale is not None:
        what = "its graph" if graph is not None else "losses in [0, 1], so that the agent needs no scale"
        raise LossError(f"What was revealed has {what}: tell it alone.")
    arms = revealed.graph.out_neighbors(revealed.arm)
    if not isinstance(decision, str):
        if decision.arm != revealed.arm:
            name = decision.graph.arm_name
            raise LossError(
                f"This is what arm {name(revealed.arm)} revealed, and decision {decision.id} plays arm "
                f"{name(decision.arm)}. Each decision is told its own outcome; for old ones there is agent.learn(log)."
            )
        if revealed.foreseen and as_present(revealed.graph, decision.graph) != decision.graph:
            raise LossError(
                f"This outcome is of a round with another graph than the one that decision {decision.id} was asked "
                f"with. Here the graph is known before the draw: ask with it, and keep its values for the outcome."
            )
        there = decision.graph.arrays.start[arms] < decision.graph.arrays.stop[arms]
        return dict(zip(arms[there].tolist(), revealed.losses[there].tolist(), strict=True)), revealed.graph
    return dict(zip(arms.tolist(), revealed.losses.tolist(), strict=True)), revealed.graph


def _are_losses(losses: Any, shape: tuple[int, ...]) -> bool:
    """Tell whether an array is all that it should be; what is wrong with another one is found out one by one."""
    array = isinstance(losses, np.ndarray) and losses.dtype == np.float64 and losses.shape == shape
    return array and bool(((losses >= 0.0) & (losses <= 1.0)).all())


def _listed_losses(losses: Any) -> list[Any]:
    if isinstance(losses, np.ndarray) and losses.ndim == 1:
        return list(losses.tolist())
    if isinstance(losses, Sequence) and not isinstance(losses, str | bytes):
        return list(losses)
    raise LossError(f"losses must be given by arm, or a list in the order of the revealed arms, not {losses!r}.")


def _refuse_arms(losses: Mapping[int, float], arms: list[int], graph: FeedbackGraph) -> None:
    revealed, known = set(arms), listed(arms, graph)
    for arm in losses:
        if arm not in revealed:
            raise LossError(
                f"Arm {arm!r} was not revealed, and a loss was told for it. The revealed arms are {known}. "
                f"If only the outcome shows what is revealed, tell it with graph=..."
            )
    for arm in arms:
        if arm not in losses:
            raise LossError(f"The loss of arm {graph.arm_name(arm)} was revealed and is missing. Tell all of {known}.")
        if losses[arm] is None:
            raise LossError(f"The loss of arm {graph.arm_name(arm)} must be a number in [0, 1], not None.")


def listed(arms: list[int], graph: FeedbackGraph | None = None) -> str:
    """Return arms for a message, a few of them if they are many, with the labels of the graph."""
    shown = arms if len(arms) <= 12 else [*arms[:2], arms[-1]]
    names = [str(arm) if graph is None else graph.arm_name(arm) for arm in shown]
    return ", ".join(names if shown is arms else [*names[:2], "...", names[2]])


def fingerprint(arms: npt.NDArray[np.integer], values: npt.NDArray[np.float64], graph_key: int) -> bytes:
    """Return 16 bytes by which `same` recognises a repetition; the key is 0 unless `tell` was given a graph."""
    return _hash_values(values, graph_key) + _hash_arms(arms)


def same(mark: bytes, losses: Losses, graph_key: int) -> bool:
    """Tell whether these losses are those of the fingerprint."""
    if isinstance(losses, Mapping):
        try:
            arms = sorted(int(arm) for arm in losses if arm == int(arm))
        except (TypeError, ValueError, OverflowError):  # keys that are not even numbers
            return False
        values = [losses.get(arm) for arm in arms]
        return len(arms) == len(losses) and mark == fingerprint(np.array(arms, np.int64), _floats(values), graph_key)
    try:
        values = _listed_losses(losses)
    except LossError:
        return False
    return mark[:12] == _hash_values(_floats(values), graph_key)


def _floats(values: list[Any]) -> npt.NDArray[np.float64]:
    """Return values with NaN in place of what is no loss, which no fingerprint is made of."""
    return np.array([value if 0.0 <= value <= 1.0 else np.nan for value in map(plain, values)], np.float64)


def _hash_values(values: npt.NDArray[np.float64], graph_key: int) -> bytes:
    # + 0.0: -0.0 is 0.0
    return hashlib.blake2b((values + 0.0).tobytes() + graph_key.to_bytes(8, "little"), digest_size=12).digest()


def _hash_arms(arms: npt.NDArray[np.integer]) -> bytes:
    return zlib.crc32(arms.astype(np.int32).tobytes()).to_bytes(4, "little")
