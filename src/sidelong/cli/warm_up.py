"""`sidelong warm-up`: machine code ahead of time."""

from __future__ import annotations

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
    """Compile what agents and simulations of learners need, on all cores, and keep it.

    For an image or a CI job, where the first call is to be as fast as all others. What is kept already is not compiled
    again. The folder is that of the user's caches, or the one that SIDELONG_CACHE_DIR names; an edit of the package, or
    another version of Numba, needs code of its own.
    """
    from sidelong._cache import cache_folder  # noqa: PLC0415
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
    folder = cache_folder()
    if jit_is_off() or folder is None:
        why = "NUMBA_DISABLE_JIT is set" if jit_is_off() else "no folder for it can be written: set SIDELONG_CACHE_DIR"
        raise typer.BadParameter(f"Nothing can be compiled and kept, since {why}.")
    os.environ["SIDELONG_BACKGROUND"] = "0"  # for the processes below: they are the ones that compile
    with multiprocessing.get_context("spawn").Pool(min(cores(), len(names))) as pool:
        for name, seconds in pool.imap_unordered(_compile, names):
            typer.echo(f"{name:<12} {seconds:5.1f} s")
    typer.echo(f"The machine code of {len(names)} learners is in {folder}")


def _compile(name: str) -> tuple[str, float]:
    """Do all that has kernels with one learner: whatever the graph and the world, these are the same."""
    import sidelong as sl  # noqa: PLC0415
    from sidelong.errors import LearnerError  # noqa: PLC0415
    from sidelong.learners import catalogue  # noqa: PLC0415
    from sidelong.learners.interface import Need  # noqa: PLC0415

    begun = time.monotonic()
    module, graph = catalogue.find(name), sl.graphs.complete(2)
    options: dict[str, Any] = {"horizon": 2} if Need.HORIZON in module.NEEDS else {}
    try:
        catalogue.check_certifiable(module)
        agent = sl.Agent(name, graph, certificate=True, **options)
    except LearnerError:
        agent = sl.Agent(name, graph, **options)
    decision = agent.ask()
    agent.tell(decision, dict.fromkeys(decision.reveals.tolist(), 1.0))
    graph.observe_probabilities([0.5, 0.5])
    agent.health()
    sl.simulate(name, graph, sl.losses.bernoulli([0.5, 0.5]), rounds=2, progress=False, **options)
    return name, time.monotonic() - begun
