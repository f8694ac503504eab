"""Changing the life of an experiment: what may be asked for, and what is refused."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sidelong.errors import ServiceError
from sidelong.service.store.creation import arm_called, check_count, check_labels
from sidelong.service.store.database import Listed
from sidelong.service.store.rules import Command, taken

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sidelong.service.store.experiment import LiveExperiment
    from sidelong.service.store.lifecycle import Life
    from sidelong.service.store.rules import Turn

_SLACK = 1e-9  # by which probabilities may miss a sum of 1


@dataclass
class Change(Command):
    """Freeze, stop, archive, bring back, rename, or describe anew."""

    of: str
    wanted: Mapping[str, Any]  #: `state`, `play`, `fallback`, `name`, `description`, `labels`, `expire_after`: some
    by: str | None = None  #: the name of the token of whoever asks

    def run(self, turn: Turn) -> bool:
        """Change what is not so already; tell whether there was anything."""
        experiment = turn.experiment
        change = experiment.life.changed_to(self._life(experiment))
        name, old = self.wanted.get("name"), experiment.identity.name
        if name is not None and name != old:
            if turn.writing.find(name) is not None:
                raise taken(name)
            change |= {"name": name, "was": old}
        if not change:
            return False
        if "state" in change and experiment.life.state == "archived":
            check_count(turn.writing, turn.settings.max_experiments)
        turn.events.append(experiment.change({**change, "by": self.by}, turn.moment))
        if "name" in change:
            turn.listed["name"] = name
        if "state" in change:
            turn.listed |= {"state": change["state"], "changed_at": turn.moment.at, "changed_by": self.by}
        return True

    def _life(self, experiment: LiveExperiment) -> Life:
        """Return what it is to become, or refuse."""
        wanted, life = self.wanted, experiment.life
        state = wanted.get("state", life.state)
        new = life if state == life.state else life.after({"state": state})
        new = new._replace(**{each: wanted[each] for each in ("description", "expire_after") if each in wanted})
        if "labels" in wanted:
            check_labels(wanted["labels"], experiment.n_arms)
            new = new._replace(labels=wanted["labels"])
        for name, of in (("play", "frozen"), ("fallback", "stopped")):
            if wanted.get(name) is not None and state != of:
                raise _invalid(f"{name} is for an experiment that is {of}, and this one would be {state}.", name)
        if "play" in wanted:
            new = new._replace(play=None if wanted["play"] is None else _shares(experiment, new, wanted["play"]))
        if "fallback" in wanted and wanted["fallback"] is not None:
            new = new._replace(fallback=arm_called(wanted["fallback"], experiment.graph, new.labels, "fallback"))
        elif "fallback" in wanted:
            new = new._replace(fallback=None)
        if state == "frozen" and new.play is None:
            raise _invalid("A frozen experiment plays an arm or a distribution: say which, in play.", "play")
        return new


def _shares(experiment: LiveExperiment, life: Life, play: Any) -> dict[str, float]:
    """Return what is to be played as the probability of each arm that has one."""
    if isinstance(play, int | str):
        return {str(arm_called(play, experiment.graph, life.labels, "play")): 1.0}
    if isinstance(play, list):
        if len(play) != experiment.n_arms:
            text = f"A list of probabilities has one for each of the {experiment.n_arms} arms, not {len(play)}."
            raise _invalid(text, "play")
        play = dict(enumerate(play))
    if not play:
        raise _invalid("A distribution names at least one arm.", "play")
    shares = {arm_called(int(arm), experiment.graph, None, "play"): float(share) for arm, share in play.items()}
    total = math.fsum(shares.values())
    if abs(total - 1.0) > _SLACK or min(shares.values()) < 0.0:
        raise _invalid(f"The probabilities of what is played must sum to 1, not {total!r}.", "play", total)
    return {str(arm): share for arm, share in sorted(shares.items()) if share > 0.0}


def _invalid(message: str, part: str, value: object = None) -> ServiceError:
    return ServiceError(message, status=422, code="invalid", path=f"body.{part}", value=value)


@dataclass
class Delete(Command):
    """Delete an experiment, with all of its data."""

    of: str
    by: str | None = None

    def run(self, turn: Turn) -> Listed:
        """Leave a line of it: what it was called, when it was deleted, and by whom."""
        identity = turn.experiment.identity
        turn.deletion = Listed(identity.id, identity.name, turn.experiment.head, "deleted", turn.moment.at, self.by)
        return turn.deletion
