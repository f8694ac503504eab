"""Experiments in requests and replies."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Discriminator, Field, Tag

from sidelong.service.http.graphs import GraphMessage, GraphSummary  # noqa: TC001  # pydantic reads the annotations
from sidelong.service.http.messages import Arm, Body, Loss, Name, Offset, Timestamp
from sidelong.service.http.messages.decisions import ProductKey  # noqa: TC001  # pydantic reads the annotations
from sidelong.service.store.counters import MINUTES
from sidelong.service.store.lifecycle import State  # noqa: TC001  # pydantic reads the annotations
from sidelong.service.store.spec import (
    MOST_LABELS,
    ArmName,
    Belief,
    HoldoutSpec,
    Label,
    Origin,
    RequestedSpec,
    ScaleSpec,
    Seconds,
    Seed,
    StickySpec,
    Whole,
)

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Sort = Literal["arm", "probability", "mean", "plays"]
#: A sum of probabilities that is 1 may be more by rounding.
Probability = Annotated[float, Field(gt=0, le=1 + 1e-9)]
Sequence = Annotated[int, Field(ge=0, lt=10**18, description="the number of an event, to go on behind it")]


class LogMessage(Body):
    """Rounds that somebody else has played, in columns.

    They have `loss` and `pscore`, or else the columns of the same names of an exported log: `observed`, `losses` and
    `observe_probabilities`.
    """

    action: list[Whole] = Field(min_length=1, description="the arm of each round")
    loss: list[Loss] | None = Field(None, description="what it lost, in the scale of feedback")
    pscore: list[Probability] | None = Field(None, description="the probability that it was drawn with")
    observed: list[list[Whole]] | None = Field(None, description="the arms that each round revealed")
    losses: list[list[Loss]] | None = Field(
        None, description="what these lost, from 0 to 1 whatever the scale of feedback is"
    )
    observe_probabilities: list[list[Probability]] | None = Field(
        None, description="the probability that each of them would be revealed"
    )
    cost: list[Loss] | None = Field(None, description="under a ceiling, what the arm of each round cost")
    costs: list[list[Loss]] | None = Field(None, description="under a ceiling, what the revealed arms cost, as losses")
    key: list[ProductKey] | None = Field(None, description="the key of each round, if the experiment has keys")


class CreateExperiment(RequestedSpec):
    """What an experiment is. Some of it can be changed later."""

    name: Name  #: what to call it: 1 to 64 letters, digits, dots, dashes and underscores
    graph: GraphMessage  #: what playing each arm reveals
    log: LogMessage | None = Field(
        None, description="rounds to learn from before the first decision; the learner is glance or exp3-set"
    )


#: An arm, or the probability of each arm: in their order, or by number, and 0 for those that are not named.
Play = Annotated[
    Annotated[Whole, Tag("[number]")]
    | Annotated[str, Tag("[label]")]
    | Annotated[list[Share], Tag("[in order]")]
    | Annotated[dict[Arm, Share], Tag("[by arm]")],
    Discriminator(lambda value: _PLAYS.get(type(value), "[number]")),
]
_PLAYS = {str: "[label]", list: "[in order]", dict: "[by arm]"}


class ChangeExperiment(Body):
    """What is to become of an experiment. What is not named stays as it is."""

    state: State | None = Field(None, description="running, frozen, stopped or archived")
    play: Play | None = Field(None, description="what a frozen one plays: an arm, or the probability of each arm")
    fallback: ArmName | None = Field(None, description="the arm that a stopped one answers with; null: none")
    name: Name | None = Field(None, description="what it is called from now on")
    description: str | None = Field(None, max_length=2000)  #: for people; shown in the list and on the dashboard
    labels: list[Label] | None = Field(None, max_length=MOST_LABELS, description="null: none")
    expire_after: Seconds | None = Field(None, description="also for decisions that wait; null: never")


class DeleteQuery(BaseModel):
    """The confirmation."""

    name: Annotated[str, Field(max_length=64, description="the name of the experiment, once more")] = ""


class DeletedExperiment(BaseModel):
    """What is left of an experiment that was deleted."""

    name: str  #: what it was called
    at: Timestamp  #: when it was deleted
    by: str | None  #: the name of the token; null where none is needed


class ListQuery(BaseModel):
    """Which experiments to list."""

    offset: Offset = 0  #: how many to leave out
    limit: Annotated[int, Field(ge=1, le=1000)] = 100  #: how many to return


class StateQuery(BaseModel):
    """What to show."""

    key: Annotated[str, Field(max_length=200)] | None = None  #: of an experiment with keys: what this one knows
    offset: Offset = 0  #: how many arms to leave out
    limit: Annotated[int, Field(ge=1, le=1000)] = 50  #: how many arms to return
    sort: Sort = "arm"  #: in which order arms come; what is not known comes last
    digest: bool = False  #: takes longer than all the rest, and decisions wait for it


class DrawingQuery(BaseModel):
    """How many arms to draw."""

    limit: Annotated[int, Field(ge=1, le=500)] = 200  #: how many arms to draw at most, the most played ones


class RatesQuery(BaseModel):
    """How far to look back."""

    minutes: Annotated[int, Field(ge=1, le=MINUTES)] = 60  #: how many minutes to return


class Counts(BaseModel):
    """What became of decisions; decided = told + outstanding + expired + cancelled.

    All other numbers of an experiment are of what its learner has decided.
    """

    decided: int  #: all decisions
    told: int  #: how many were told their losses
    outstanding: int  #: how many wait for feedback
    expired: int  #: how many waited too long
    cancelled: int  #: how many were cancelled
    late: int  #: of the expired, how many were told after all, too late
    frozen: int  #: of the decided, how many were made while it was frozen
    held: int  #: how many by the holdout
    defaulted: int  #: of the told, how many expired and were told the default loss
    fallback: int  #: and how many by the fallback arm, while it was stopped
    overridden: int  #: of the decided, how many were carried out with another arm


class ExperimentSummary(BaseModel):
    """An experiment in a list."""

    name: str  #: what it is called
    learner: str  #: who decides
    n_arms: int  #: how many arms it has, with those that are retired
    description: str  #: for people
    state: State  #: who decides now: the learner, if it is running
    created_at: Timestamp  #: when it was made
    counts: Counts  #: what became of its decisions
    keys: int | None  #: how many it has; null if it is not for keys
    alarms: list[str]  #: what is wrong, and needs somebody to look after it


class RefusedExperiment(BaseModel):
    """One that is kept, and whose log can be exported, but that cannot go on."""

    name: str  #: what it is called
    why: str  #: what is wrong with it, and what to do


class LoadingExperiment(BaseModel):
    """One that is being brought into memory."""

    name: str  #: what it is called
    done: int  #: events of its journal that are replayed
    events: int | None  #: how many there are; null if it has not begun


class ArchivedExperiment(BaseModel):
    """One that is kept, and in nobody's way."""

    name: str  #: what it is called
    at: Timestamp  #: when it was archived
    by: str | None  #: the name of the token; null where none is needed


class ExperimentList(BaseModel):
    """Some of the experiments, by name."""

    total: int  #: how many there are, on all pages
    items: list[ExperimentSummary]  #: the experiments of this page
    loading: list[LoadingExperiment]  #: in the place of their items
    refused: list[RefusedExperiment]  #: in the place of their items
    archived: list[ArchivedExperiment]  #: all of them, by name; they are not in `total`
    deleted: list[DeletedExperiment]  #: all that ever were, oldest first


class ArmState(BaseModel):
    """What is known about an arm."""

    arm: int  #: its number
    label: str | None  #: what the arm is called now; null if it has no label
    retired: bool  #: whether it is neither played nor revealed any more
    probability: float | None  #: that the next decision would play it
    observe_probability: float | None  #: that it would reveal it
    plays: int  #: in how many told rounds the learner played it
    observations: int  #: in how many told rounds its loss was revealed
    mean: float | None  #: what it would have cost per round since it came: see `sidelong.evaluation.weighing`
    low: float | None  #: the lower end of the 95% interval of `mean`
    high: float | None  #: of the 95% interval
    rejected: bool  #: whether its limits cross: then an assumption of the interval is false, at the level of 5%
    observed_count: int  #: how many losses count in the next two: see `sidelong.agent.observers`
    observed_mean: float | None  #: the mean of these losses; null if there are none
    observed_spread: float | None  #: their standard deviation


class Arms(BaseModel):
    """Some of the arms."""

    total: int  #: how many arms there are, with those that are retired
    offset: int  #: how many come before the first of these
    limit: int  #: how many were asked for
    sort: Sort  #: in which order they come
    items: list[ArmState]  #: the arms


class CheapestArm(BaseModel):
    """The arm with the least mean of what was seen."""

    arm: int  #: its number
    label: str | None  #: what the arm is called now; null if it has no label
    mean: float  #: the mean of its losses that were seen
    chance: float  #: that it is the cheapest of all arms, if losses go on as they were


class ArmDelayState(BaseModel):
    """Whether some arms report later than others, by a test that may be looked at after every decision."""

    p_value: float | None  #: the smallest level at which the test finds a difference; null if it cannot tell
    ok: bool  #: whether that is not below `level`
    level: float  #: the chance that it is ever not ok though delays do not depend on the arm
    unknown: str | None  #: why there is no p_value, if there is none


class DelayState(BaseModel):
    """How late feedback was; the initial rounds of a learner are not counted."""

    late: int  #: how many decisions were told after a later one was drawn
    mean: float  #: how many others were outstanding when one was drawn, in the mean
    most: int  #: and at most
    by_arm: ArmDelayState  #: whether some arms report later than others


class Guarantee(BaseModel):
    """Whether the theorems of the learner hold for what happened. Where they do not, nothing need be wrong."""

    holds: bool  #: whether any half does
    proved: list[Literal["adversarial", "stochastic"]]  #: the halves that hold
    reasons: list[str]  #: why a half does not hold, or none does
    notes: list[str]  #: what the halves that hold take for granted, and what they count
    bound: float | None  #: on the regret so far, against any adversary, made of what happened; in the mean
    random: float  #: what drawing arms at random loses at most in as many rounds
    worth_from: int | None  #: the round from which on the theorem promises less than that, with prompt feedback
    delay: DelayState  #: how late feedback was


class SampleRatio(BaseModel):
    """Whether the arms of the told decisions came as often as their probabilities say."""

    p_value: float | None  #: small if arms came more or less often; null if it cannot be told
    ok: bool  #: whether it is not below 0.001
    told: int  #: how many decisions it is about
    unknown: str | None  #: why there is no p_value, if there is none


class AdviserState(BaseModel):
    """What the advice of somebody would have lost, per round, and what was paid: see `sidelong.Agent.advisers`."""

    name: str  #: what advice calls it
    rounds: int  #: with its advice
    trust: float  #: the share of the learner's own choice that follows it now
    loss: float | None  #: null before anything was told
    low: float  #: it would have lost that much at least, with a confidence of 95 % at every moment at once,
    high: float  #: and that much at most
    paid: float | None  #: what was lost per round while it advised; null before anything was told
    verdict: str  #: what its interval says beside what was paid, in words


class SpendingState(BaseModel):
    """What decisions have cost, beside what the ceiling allows, in the unit that costs are told in."""

    ceiling: float  #: what a decision may cost on average
    over: Literal["key", "all"]  #: whether each key has a line of its own
    decisions: int  #: that were told what they cost; with bounds, also those that are lost, which count as theirs
    spent: float  #: by these
    line: float  #: the ceiling times these decisions
    mean: float | None  #: what one of them cost
    reserved: float  #: what pending decisions may cost above the ceiling; 0 without bounds
    overspend: float | None  #: by how much each line may ever be exceeded; null without bounds
    price: float | None  #: the share of cost in what the learner is told; null for all keys where each has its own
    aside_decisions: int  #: that the learner did not make, and are under no ceiling; of all keys
    aside_spent: float  #: by these


class CertificateState(BaseModel):
    """At most `bound` was lost beyond any fixed arm: see `sidelong.evaluation.certificates`."""

    bound: float  #: at most so much was lost beyond any fixed arm
    arm: int  #: against which that is most
    label: str | None  #: what that arm is called now; null if it has no label
    confidence: float  #: at every moment at once
    paid: float  #: what was lost in all
    rounds: int  #: how many decisions it is about
    silent: int  #: rounds without feedback, which count as the worst they can be
    why: str  #: why it says little, if it does


class WorldState(BaseModel):
    """Whether the world has turned: see `sidelong.evaluation.turning`."""

    turned: bool  #: whether there is proof of it
    arm: int | None  #: whose loss has changed; null if none has
    above: float | None  #: what the arm cost at least in one window of rounds
    below: float | None  #: and at most in another
    level: float  #: the chance that it is ever true though no loss has changed
    said: str  #: the same in words


class LiftState(BaseModel):
    """What the learner saves per round beside the holdout: see `sidelong.evaluation.lift`."""

    arm: int  #: that the holdout follows
    label: str | None  #: what that arm is called now; null if it has no label
    share: float  #: of the rounds, in the mean
    estimate: float | None  #: the loss of the arm less the learner's, per round; null before anything was told
    low: float | None  #: the lower end of the 95% interval of `estimate`
    high: float | None  #: of the 95% interval, which holds at every moment at once
    held: int  #: told rounds of the holdout
    learned: int  #: and of the learner
    held_cost: float | None  #: their mean loss
    learner_cost: float | None  #: the mean loss of these


class Amount(BaseModel):
    """An estimate in the unit of an experiment's scale, with its interval."""

    estimate: float  #: the most likely value
    low: float | None  #: the lower end of its 95% interval; null if there is none
    high: float | None  #: the upper end; null if there is none


class Amounts(BaseModel):
    """What the learner's rounds came to, in the unit of the experiment's scale."""

    rounds: int  #: those that were told, and in which the arm that was played revealed its own cost
    total: float  #: what they cost, or scored, in all
    per_round: float | None  #: null before anything was told
    saved: Amount | None  #: beside the holdout in the learner's rounds; null without a holdout, or before it was told
    saved_per_round: Amount | None  #: the same, for one of the learner's rounds
    regret: Amount | None  #: what was paid beyond the best arm; null where it cannot be estimated


class RegretState(BaseModel):
    """Loss beyond the best arm's, estimated from what was told; the interval holds whichever arm that is."""

    estimate: float | None  #: null if nothing can be said
    low: float | None  #: the lower end of its 95% interval; null where limits cross
    high: float | None  #: the upper end; null where limits cross
    own_loss: float | None  #: what the learner's rounds lost in all, with an estimate for those without feedback
    best_arm: int | None  #: the arm with the lowest upper confidence limit
    best_loss: float | None  #: what that arm would have lost in the same rounds
    rounds: int  #: all that were not cancelled; those without feedback count as much as the others
    rejected: bool  #: whether the limits of some arm cross, at the level of 5% for all arms together


class CloneExperiment(Body):
    """What a clone is to be. What is not named is as in the original."""

    name: Name  #: what to call the clone
    learned: bool = Field(default=True, strict=True, description="whether it begins with what was learned")
    seed: Seed | None = Field(
        None, description="drawn if not given; only without what was learned, which goes on with its own"
    )
    description: str = Field("", max_length=2000, description="as in the original if not given")
    holdout: HoldoutSpec | None = None  #: another holdout; if left out, that of the original


class ChangeState(BaseModel):
    """Who changed what."""

    at: Timestamp  #: when
    by: str | None  #: the name of the token; null where none is needed
    change: dict[str, Any]  #: what it is now, such as its state; "added" and "retired" name an arm


class ChangeList(BaseModel):
    """What was made of an experiment, oldest first."""

    items: list[ChangeState]  #: the changes


class ExperimentState(BaseModel):
    """All about an experiment."""

    name: str  #: what it is called
    learner: str  #: who decides
    learner_version: int  #: a server that has another version of the learner refuses the experiment
    options: dict[str, Any]  #: options of the learner, by name
    seed: int  #: equal seeds and equal feedback give equal decisions
    description: str  #: for people
    features: list[str] | None  #: the names in a context that the learner sees; null if it sees none
    state: State  #: who decides now: the learner, if it is running
    play: dict[str, float] | None  #: of a frozen one: the probability of each arm that is played
    fallback: int | None  #: of a stopped one: the arm that is played
    labels: list[str] | None  #: what each arm is called now; null if arms have no labels
    expire_after: float | None  #: seconds until a decision without feedback expires; null: never
    sticky: StickySpec | None  #: as it was made; `expire_after` is how long decisions last now
    scale: ScaleSpec | None  #: of what feedback tells; all losses here are from 0 to 1
    default_loss: float | None  #: that an expired decision is told
    prior: list[Belief] | None  #: what was believed of arms, by number
    logged: int | None  #: how many rounds of a log it learned before its first one; null if it had none
    origin: Origin | None  #: what it is a clone of
    created_at: Timestamp  #: when it was made
    graph: GraphSummary  #: what playing each arm reveals
    keys: int | None  #: how many it has; null if it is not for keys
    round: int  #: how many decisions were made
    sequence: int  #: the number of its last event
    digest: str | None  #: equal states have equal digests, as a replay of the journal must; null unless asked for
    counts: Counts  #: what became of its decisions
    best: CheapestArm | None  #: null before anything was told; of a key, if one was named
    arms: Arms  #: some of its arms
    guarantee: Guarantee | None  #: null for an experiment with keys, unless a key was named: each has its own
    sample_ratio: SampleRatio | None  #: whether arms were played as often as their probabilities say
    amounts: Amounts | None  #: null without a scale
    lift: LiftState | None  #: null if there is no holdout
    regret: RegretState  #: with keys, against the best arm that is the same for all of them
    certificate: CertificateState | None  #: null if none is kept; of a key, if one was named
    advisers: list[AdviserState] | None  #: of a key, if one was named; null for all keys together
    spending: SpendingState | None  #: of a key, if one was named; null without a ceiling
    incumbent: str | None  #: the adviser who decides today; null if there is none
    allowance: float | None  #: in the scale of feedback
    allowance_left: float | None  #: the same; null without an incumbent, and for all keys together
    world: WorldState | None  #: of a key, if one was named and there is a certificate; null for all keys together
    alarms: list[str]  #: what is wrong, and needs somebody to look after it; theorems that do not apply are none


class PredictionRequest(Body):
    """What is known before a decision."""

    context: dict[str, Any]  #: what a decision would be given; the learner sees the experiment's features in it
    key: ProductKey | None = Field(None, description="which key it is for, if the experiment has keys")
    limit: Annotated[int, Field(ge=1, le=1000)] = Field(50, description="how many arms to return, the cheapest first")


class Prediction(BaseModel):
    """What an arm is predicted to cost."""

    arm: int  #: its number
    label: str | None  #: what the arm is called now; null if it has no label
    loss: float  #: from 0 to 1; 0 before anything was learned of the arm


class Predictions(BaseModel):
    """What arms are predicted to cost, the cheapest first; 0 before anything was learned of an arm."""

    round: int  #: how many decisions were made
    total: int  #: how many arms there are
    items: list[Prediction]  #: the arms that are predicted to be cheapest


class Rates(BaseModel):
    """What happened in each of the last minutes, oldest first."""

    minutes: list[Timestamp]  #: when each begins
    decided: list[int]  #: how many decisions were made
    told: list[int]  #: how many were told
    expired: list[int]  #: how many expired
    late: list[int]  #: how many were told too late
    cost: list[float | None]  #: the mean loss of the learner's rounds that were told in each minute
    held_cost: list[float | None]  #: and of those of the holdout
    #: By adviser, the share of the learner's own choice that followed it at the end of each minute in which something
    #: was told; with keys, the mean of the keys that were told last in that minute.
    trust: dict[str, list[float | None]]
