"""The rules of `tell`: which losses it takes, and when two are the same."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.errors import LossError

if TYPE_CHECKING:
    import numpy.typing as npt

    Losses = Mapping[int, float] | Sequence[float] | npt.NDArray[np.float64]

__all__ = ["fingerprint", "read_losses", "same"]


def read_losses(losses: Losses, reveals: npt.NDArray[np.int32], into: np.ndarray) -> None:
    """Write the losses of the revealed arms into an array, in the order of the arms.

    Raises:
        LossError: if an arm is missing, was not revealed, or has a loss that is not a number in [0, 1].
    """
    arms = reveals.tolist()
    if isinstance(losses, Mapping):
        values = [losses.get(arm) for arm in arms]
        if None in values or len(losses) != len(arms):
            _refuse_arms(losses, arms)
    else:
        values = _listed_losses(losses)
        if len(values) != len(arms):
            raise LossError(
                f"Losses without arms must be one for each of the {len(arms)} revealed arms, in their order; "
                f"{len(values)} were given. The arms are {_listed(arms)}."
            )
    for k, value in enumerate(values):
        # The exact types come first: asking for Real is slow, and needed only for other kinds of numbers.
        if type(value) is not float and (isinstance(value, bool | np.bool_) or not isinstance(value, Real)):
            raise LossError(f"The loss of arm {arms[k]} must be a number in [0, 1], not {value!r}.")
        if not 0.0 <= value <= 1.0:
            raise LossError(
                f"The loss of arm {arms[k]} must be in [0, 1], not {value!r}. "
                f"Scale losses before you tell them; they are never clipped."
            )
    into[: len(values)] = values


def _listed_losses(losses: Any) -> list[Any]:
    if isinstance(losses, np.ndarray) and losses.ndim == 1:
        return list(losses.tolist())
    if isinstance(losses, Sequence) and not isinstance(losses, str | bytes):
        return list(losses)
    raise LossError(f"losses must be given by arm, or a list in the order of the revealed arms, not {losses!r}.")


def _refuse_arms(losses: Mapping[int, float], arms: list[int]) -> None:
    revealed = set(arms)
    for arm in losses:
        if arm not in revealed:
            raise LossError(
                f"Arm {arm!r} was not revealed, and a loss was told for it. The revealed arms are {_listed(arms)}. "
                f"If only the outcome shows what is revealed, tell it with graph=..."
            )
    for arm in arms:
        if arm not in losses:
            raise LossError(f"The loss of arm {arm} was revealed and is missing. Tell all of {_listed(arms)}.")
        if losses[arm] is None:
            raise LossError(f"The loss of arm {arm} must be a number in [0, 1], not None.")


def _listed(arms: list[int]) -> str:
    return ", ".join(map(str, arms)) if len(arms) <= 12 else f"{arms[0]}, {arms[1]}, ..., {arms[-1]}"


def fingerprint(arms: npt.NDArray[np.int32], values: npt.NDArray[np.float64], graph_key: int) -> bytes:
    """Return 16 bytes by which `same` recognises a repetition; the key is 0 unless `tell` was given a graph."""
    return _hash_values(values, graph_key) + _hash_arms(arms)


def same(mark: bytes, losses: Losses, graph_key: int) -> bool:
    """Tell whether these losses are those of the fingerprint."""
    by_arm = isinstance(losses, Mapping)
    try:
        arms = np.array(sorted(losses) if by_arm else [], ndmin=1)
        values = np.array([losses[arm] for arm in arms.tolist()] if by_arm else losses)
    except (TypeError, ValueError):  # of no order, or of no shape
        return False
    if values.dtype.kind not in "fiu" or (arms.size and arms.dtype.kind not in "iu"):
        return False
    told = _hash_values(values.astype(np.float64), graph_key)
    return mark == told + _hash_arms(arms) if by_arm else mark[:12] == told


def _hash_values(values: npt.NDArray[np.float64], graph_key: int) -> bytes:
    return hashlib.blake2b(values.tobytes() + graph_key.to_bytes(8, "little"), digest_size=12).digest()


def _hash_arms(arms: npt.NDArray[np.integer]) -> bytes:
    return zlib.crc32(arms.astype(np.int32).tobytes()).to_bytes(4, "little")
