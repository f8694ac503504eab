"""`sidelong warm-up`: machine code ahead of time."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import time
from typing import Annotated, Any

import typer

from sidelong.cli.completion import learner_names

EXAMPLES = ("sidelong warm-up", "sidelong warm-up exp3.g++ glance")


def warm_up(
    learner: Annotated[
        list[str] | None,
        typer.Argument(
            help="The learners to compile.", metavar="LEARNER", show_default="all", autocompletion=learner_names
        ),
    ] = None,
) -> None:
    """Compile in advance what agents, families and simulations need, on all cores, and keep it.

    Use it for an image or a CI job, so that the first call is as fast as all others. Each learner is compiled with all
    options that have code of their own. What is in the cache already is not compiled again. The cache is in the user's
    cache folder, or in the folder that SIDELONG_CACHE_DIR names. Compile again after an edit of a kernel or a change of
    Numba.
    """
    from sidelong._cache import cache_folder, is_writable  # noqa: PLC0415
    from sidelong._jit import jit_is_off  # noqa: PLC0415
    from sidelong.errors import LearnerError  # noqa: PLC0415
    from sidelong.learners import catalogue  # noqa: PLC0415
    from sidelong.machine import cores  # noqa: PLC0415

    names = list(dict.fromkeys(learner or [*catalogue.names(), *catalogue.names_with_features()]))
    try:
        for name in names:
            catalogue.find(name, features=True)
    except LearnerError as error:
        raise typer.BadParameter(str(error), param_hint="LEARNER") from None
    if jit_is_off() or not is_writable():
        why = "NUMBA_DISABLE_JIT is set" if jit_is_off() else "no folder for it can be written: set SIDELONG_CACHE_DIR"
        raise typer.BadParameter(f"Nothing can be compiled and kept, since {why}.")
    os.environ["SIDELONG_BACKGROUND"] = "0"  # for the processes below: they are the ones that compile
    with multiprocessing.get_context("spawn").Pool(min(cores(), len(names))) as pool:
        for name, seconds in pool.imap_unordered(_compile, names):
            typer.echo(f"{name:<12} {seconds:5.1f} s")
    typer.echo(f"The machine code of {len(names)} learners is in {cache_folder()}")


def _compile(name: str) -> tuple[str, float]:
    """Do all that has kernels with one learner and its variants; return its name and the seconds it took."""
    from sidelong.learners import catalogue  # noqa: PLC0415
    from sidelong.learners.interface import Need  # noqa: PLC0415

    begun = time.monotonic()
    if name in catalogue.names_seeing_features():
        _play_with_features(name)
    if name in catalogue.names_with_features():
        return name, time.monotonic() - begun
    for variant in ({}, *catalogue.find(name).variants):
        needed = catalogue.needs(catalogue.choose(name, variant), variant)
        _play(name, {**variant, **({"horizon": 2} if Need.HORIZON in needed else {})})
    return name, time.monotonic() - begun


def _play(name: str, options: dict[str, Any]) -> None:
    """Play a learner with these options in all ways.

    Graphs that stay, graphs that are drawn anew and feedback that comes late have a loop each. All worlds share them.
    """
    import sidelong as sl  # noqa: PLC0415
    from sidelong.errors import LearnerError, SidelongError  # noqa: PLC0415

    graph = sl.graphs.complete(2)
    try:
        agent = sl.Agent(name, graph, certificate=True, **options)
    except LearnerError:  # not every learner has one
        agent = sl.Agent(name, graph, **options)
    agent.cancel(agent.ask())
    decision = agent.ask()
    decision.observe_probabilities  # noqa: B018  # it is computed when it is first asked for
    agent.tell(decision, dict.fromkeys(decision.reveals.tolist(), 1.0))
    graph.observe_probabilities([0.5, 0.5])
    agent.tell(decision, dict.fromkeys(decision.reveals.tolist(), 1.0))  # a repetition is recognised
    agent.health()
    with contextlib.suppress(SidelongError):  # if it has one
        agent.certificate()
    with contextlib.suppress(SidelongError):  # nor do all learn logs
        agent.learn({"action": [0, 1], "loss": [1.0, 1.0], "pscore": [0.5, 0.5]})
    with contextlib.suppress(SidelongError):  # nor take new arms
        agent.add_arm()
        agent.ask()
    with contextlib.suppress(SidelongError):  # nor do all play for many keys
        family = sl.Family(name, graph, seed=0, **options)
        family.cancel(family.ask([0]).ids)
        batch = family.ask([0, 1])
        family.observe_probabilities(batch)
        family.tell(batch, [1.0] * len(batch.reveals))
        family.estimates()
    with contextlib.suppress(SidelongError):  # nor do keys of all learn together whom to trust
        family = sl.Family(name, graph, pooled=True, **options)
        batch = family.ask([0, 1], advice=[0, 1])
        family.tell(batch, [1.0] * len(batch.reveals))
        family.advisers()
    sl.losses.beta([0.5, 0.5], 4)  # to make one needs kernels
    world = sl.losses.switching([0.0, 1.0], at=2)
    sl.simulate(name, graph, world, rounds=2, progress=False, **options)
    sl.simulate(name, graph, world, rounds=2, delay=1, progress=False, **options)
    with contextlib.suppress(SidelongError):  # or on graphs that change
        sl.simulate(name, sl.graphs.resampled(2, 0.5), world, rounds=2, progress=False, **options)


def _play_with_features(name: str) -> None:
    """Play with features, for which the regressor has kernels too: those of all arms, or a row for each."""
    import sidelong as sl  # noqa: PLC0415

    for x in ([1.0], [[1.0], [0.5]]):
        agent = sl.ContextualAgent(name, sl.graphs.complete(2), certificate=True)
        agent.cancel(agent.ask(x))
        decision = agent.ask(x)
        agent.tell(decision, [1.0, 1.0])
        agent.predict(x)
    family = sl.Family(name, sl.graphs.complete(2), regressor="ridge")
    family.cancel(family.ask([0], x=[[1.0]]))
    batch = family.ask([0, 1], x=[[1.0], [0.5]])
    family.observe_probabilities(batch)
    family.tell(batch, [1.0] * len(batch.reveals))
