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
    """Compile in advance what agents and simulations need, on all cores, and keep it.

    Use it for an image or a CI job, so that the first call is as fast as all others. What is kept already is not
    compiled again. The folder is in the user's cache folder, or is the one that SIDELONG_CACHE_DIR names. Compile again
    after an edit of the package or a change of Numba.
    """
    from sidelong._cache import cache_folder, can_keep  # noqa: PLC0415
    from sidelong._kernel import jit_is_off  # noqa: PLC0415
    from sidelong.errors import LearnerError  # noqa: PLC0415
    from sidelong.learners import catalogue  # noqa: PLC0415
    from sidelong.machine import cores  # noqa: PLC0415

    names = list(dict.fromkeys(learner or catalogue.names()))
    try:
        for name in names:
            catalogue.find(name)
    except LearnerError as error:
        raise typer.BadParameter(str(error), param_hint="LEARNER") from None
    if jit_is_off() or not can_keep():
        why = "NUMBA_DISABLE_JIT is set" if jit_is_off() else "no folder for it can be written: set SIDELONG_CACHE_DIR"
        raise typer.BadParameter(f"Nothing can be compiled and kept, since {why}.")
    os.environ["SIDELONG_BACKGROUND"] = "0"  # for the processes below: they are the ones that compile
    with multiprocessing.get_context("spawn").Pool(min(cores(), len(names))) as pool:
        for name, seconds in pool.imap_unordered(_compile, names):
            typer.echo(f"{name:<12} {seconds:5.1f} s")
    typer.echo(f"The machine code of {len(names)} learners is in {cache_folder()}")


def _compile(name: str) -> tuple[str, float]:
    """Do all that has kernels with one learner.

    Graphs that stay, graphs that are drawn anew and feedback that comes late have a loop each. All worlds share them.
    """
    import sidelong as sl  # noqa: PLC0415
    from sidelong.errors import LearnerError, SidelongError  # noqa: PLC0415
    from sidelong.learners import catalogue  # noqa: PLC0415
    from sidelong.learners.interface import Need  # noqa: PLC0415

    begun = time.monotonic()
    module, graph = catalogue.find(name), sl.graphs.complete(2)
    options: dict[str, Any] = {"horizon": 2} if Need.HORIZON in module.needs else {}
    try:
        catalogue.check_certifiable(module)
        agent = sl.Agent(name, graph, certificate=True, **options)
    except LearnerError:
        agent = sl.Agent(name, graph, **options)
    decision = agent.ask()
    agent.tell(decision, dict.fromkeys(decision.reveals.tolist(), 1.0))
    graph.observe_probabilities([0.5, 0.5])
    agent.health()
    sl.losses.beta([0.5, 0.5], 4)  # to make one needs kernels
    world = sl.losses.switching([0.0, 1.0], at=2)
    sl.simulate(name, graph, world, rounds=2, progress=False, **options)
    sl.simulate(name, graph, world, rounds=2, delay=1, progress=False, **options)
    with contextlib.suppress(SidelongError):  # not every learner plays on graphs that change
        sl.simulate(name, sl.graphs.resampled(2, 0.5), world, rounds=2, progress=False, **options)
    return name, time.monotonic() - begun
