"""The commands that change an experiment as a whole: freeze, stop, archive, rename, delete, add and retire arms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong.agent.graphs import named_arms, with_new_arm, without_arm
from sidelong.errors import GraphError, LearnerError, ServiceError
from sidelong.graphs.presence import arm_of, present
from sidelong.service.store.arms import ArmChange
from sidelong.service.store.creation import arm_called, check_count, check_labels, played_arm
from sidelong.service.store.database import Listed
from sidelong.service.store.feedback import number_or_label
from sidelong.service.store.graphs import identify
from sidelong.service.store.journal import Kind, labels_at, read_columns
from sidelong.service.store.rules import Command, check_present, taken
from sidelong.service.store.spec import MOST_LABELS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sidelong.graphs import FeedbackGraph
    from sidelong.service.store.experiment import LiveExperiment
    from sidelong.service.store.graphs import KnownGraph
    from sidelong.service.store.journal import Event
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
        if new.expire_after is None and experiment.identity.spec.sticky is not None:
            raise _invalid("The decisions of a sticky experiment end: say after how many seconds.", "expire_after")
        if "labels" in wanted:
            check_labels(wanted["labels"], experiment.n_arms)
            new = new._replace(labels=wanted["labels"])
        for name, of in (("play", "frozen"), ("fallback", "stopped")):
            if wanted.get(name) is not None and state != of:
                raise _invalid(f"{name} is for an experiment that is {of}, and this one would be {state}.", name)
        if "play" in wanted:
            new = new._replace(play=None if wanted["play"] is None else _shares(experiment, new, wanted["play"]))
        if "fallback" in wanted and wanted["fallback"] is not None:
            new = new._replace(fallback=played_arm(wanted["fallback"], experiment.graph, new.labels, "fallback"))
        elif "fallback" in wanted:
            new = new._replace(fallback=None)
        if state == "frozen" and new.play is None:
            raise _invalid("A frozen experiment plays an arm or a distribution: say which, in play.", "play")
        return new


def _shares(experiment: LiveExperiment, life: Life, play: Any) -> dict[str, float]:
    """Return what is to be played as the probability of each arm that has one."""
    if isinstance(play, int | str):
        return {str(played_arm(play, experiment.graph, life.labels, "play")): 1.0}
    if isinstance(play, list):
        if len(play) != experiment.n_arms:
            text = f"A list of probabilities has one for each of the {experiment.n_arms} arms, not {len(play)}."
            raise _invalid(text, "play")
        play = dict(enumerate(play))
    if not play:
        raise _invalid("A distribution names at least one arm.", "play")
    graph = experiment.graph
    shares = {arm_called(int(arm), graph, None, "play"): float(share) for arm, share in play.items()}
    total = math.fsum(shares.values())
    if abs(total - 1.0) > _SLACK or min(shares.values()) < 0.0:
        raise _invalid(f"The probabilities of what is played must sum to 1, not {total!r}.", "play", total)
    return {str(played_arm(arm, graph, None, "play")): share for arm, share in sorted(shares.items()) if share > 0.0}


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


class ChangedArms(NamedTuple):
    """What became of a command that changes arms."""

    arm: int
    label: str | None
    graph: KnownGraph  #: the own one from then on
    retired: bool
    duplicate: bool


@dataclass
class AddArm(Command):
    """Add an arm, which enters with the weight of the average of all arms."""

    of: str
    label: str | None = None
    reveals: list[int | str] | tuple[()] = ()  #: beside itself, by number or label
    revealed_by: list[int | str] | tuple[()] = ()
    key: str | None = None  #: the Idempotency-Key
    by: str | None = None  #: the name of the token of whoever asks
    cost_bound: float | None = None  #: where the other arms have bounds under a ceiling

    def run(self, turn: Turn) -> ChangedArms:
        """Add it, or find the one that was added under the same Idempotency-Key."""
        experiment, before = turn.experiment, turn.made_under(self.key)
        if before is not None:
            return self._repeated(turn, before)
        check_present(experiment)
        own, labels = experiment.graph, experiment.life.labels
        _check_size(own, turn)
        try:
            with_new_arm(experiment.module, own, (), (), None)  # refuses a learner that cannot take in an arm
        except LearnerError as error:
            raise _unable(error, experiment) from error
        _check_bound(experiment, self.cost_bound)
        change = self._change(own, labels)
        if (self.label is None) != (labels is None):
            rule = (
                "The arms have no labels: add one without a label."
                if labels is None
                else ("The other arms have labels: say what to call this one, as label.")
            )
            raise _invalid(f"Either every arm of an experiment has a label or none has. {rule}", "label", self.label)
        if labels is not None:
            _check_label(labels, str(self.label))
            labels = [*labels, str(self.label)]
        return _changed(turn, change, labels, self.key, self.by)

    def _change(self, own: FeedbackGraph, labels: list[str] | None) -> ArmChange:
        """Return what is asked for, with the numbers of arms."""
        found = []
        for part in ("reveals", "revealed_by"):
            try:
                mask = named_arms(own.labelled(labels), getattr(self, part), part)
            except GraphError as error:
                raise _invalid(str(error), part) from error
            found.append(np.flatnonzero(mask).tolist())
        return ArmChange(own.n_arms, found[0], found[1], self.cost_bound)

    def _repeated(self, turn: Turn, before: Event) -> ChangedArms:
        experiment = turn.experiment
        labels = labels_at(turn.writing, experiment.identity, before.seq, turn.events)
        called = labels_at(turn.writing, experiment.identity, before.seq + 1, turn.events)
        if before.kind is Kind.CHANGED and "reveals" in read_columns(before):
            change = ArmChange.read(before)
            label = None if called is None else called[change.arm]
            same = label == self.label
            try:
                same = same and self._change(experiment.own.before(before.seq).graph, labels) == change
            except ServiceError:
                same = False
            if same:
                graph = experiment.own.before(before.seq + 1)
                return ChangedArms(change.arm, label, graph, retired=False, duplicate=True)
        text = "This Idempotency-Key was used before, with another request."
        raise ServiceError(text, status=409, code="key_reused", path="header.idempotency-key", value=self.key)


@dataclass
class RetireArm(Command):
    """Take an arm out for good: it is neither played nor revealed any more. Its number stays with it."""

    of: str
    arm: str  #: its number, or its label
    by: str | None = None

    def run(self, turn: Turn) -> ChangedArms:
        """Retire it, or find that it is."""
        experiment = turn.experiment
        check_present(experiment)
        own, life = experiment.graph, experiment.life
        try:
            arm = arm_of(own.labelled(life.labels), number_or_label(self.arm))
            label = None if life.labels is None else life.labels[arm]
            if not present(own)[arm]:
                return ChangedArms(arm, label, experiment.own.now, retired=True, duplicate=True)
            without_arm(experiment.module, own, arm)
        except LearnerError as error:
            raise _unable(error, experiment) from error
        except GraphError as error:
            raise ServiceError(str(error), status=422, code="invalid", path="path.arm", value=self.arm) from error
        self._check_unused(experiment, arm)
        return _changed(turn, ArmChange(arm), life.labels, None, self.by)

    def _check_unused(self, experiment: LiveExperiment, arm: int) -> None:
        """Refuse an arm that is played without the learner: nobody has said what should take its place."""
        holdout, life = experiment.holdout, experiment.life
        if holdout is not None and holdout.arm == arm:
            what = "is the one that the holdout follows. Clone the experiment with another holdout, or without one"
        elif life.fallback == arm:
            what = "is the fallback of this stopped experiment. Name another fallback first"
        elif life.play is not None and str(arm) in life.play:
            what = "is played while the experiment is frozen. Let it play others first"
        else:
            return
        text = f"Arm {arm} {what}. It was not retired."
        raise ServiceError(text, status=409, code="conflict", path="path.arm", value=self.arm)


def _changed(turn: Turn, change: ArmChange, labels: list[str] | None, key: str | None, by: str | None) -> ChangedArms:
    """Change the arms of an experiment; everything was checked but the room for another graph."""
    experiment = turn.experiment
    graph = turn.graph_cache.same(identify(change.graph(experiment.graph)))
    turn.graphs[graph.id] = graph.graph
    turn.charge(graph)
    said: dict[str, Any] = {"retired" if change.reveals is None else "added": change.arm, "by": by}
    if labels != experiment.life.labels:
        said["labels"] = labels
    turn.events.append(experiment.change_arms(change, graph, said, turn.moment, key))
    label = None if labels is None else labels[change.arm]
    return ChangedArms(change.arm, label, experiment.own.now, change.reveals is None, duplicate=False)


def _check_bound(experiment: LiveExperiment, bound: float | None) -> None:
    """Refuse a new arm without the bound on its cost that a ceiling needs, or with one that nothing needs."""
    if experiment.ceiling is None:
        if bound is not None:
            raise _invalid("cost_bound is for experiments with a ceiling, and this one has none.", "cost_bound", bound)
        return
    try:
        experiment.ceiling.with_arm(bound)
    except LearnerError as error:
        raise _invalid(str(error).replace("give cost_bound=...", "send cost_bound"), "cost_bound", bound) from error


def _check_size(own: FeedbackGraph, turn: Turn) -> None:
    """Refuse one more arm than there may be. The edges of a graph with a new arm are listed one by one."""
    settings = turn.settings
    for what, count, most in (
        ("arms", own.n_arms, settings.max_arms),
        ("edges", own.n_edges, settings.max_edges),
    ):
        if count >= most:
            text = f"The graph of an experiment has at most {most:,} {what} here, and this one has no room for an arm."
            raise ServiceError(text, status=409, code="full", path="path.name", value=count)


def _check_label(labels: list[str], label: str) -> None:
    """Refuse a label that another arm has, or one more than is kept."""
    if label in labels:
        text = f"Arm {labels.index(label)} has this label already. Labels name arms, and must differ."
        raise _invalid(text, "label", label)
    if len(labels) >= MOST_LABELS:
        raise _invalid(f"At most {MOST_LABELS:,} arms can have labels here.", "label", label)


def _unable(error: LearnerError, experiment: LiveExperiment) -> ServiceError:
    return ServiceError(str(error), status=409, code="fixed_arms", path="path.name", value=experiment.identity.name)
