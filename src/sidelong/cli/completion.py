"""What a shell offers when Tab is pressed, beyond the names of commands and options."""

from __future__ import annotations


def learner_names(incomplete: str) -> list[str]:
    """Return the learners that begin so."""
    from sidelong.learners import names  # noqa: PLC0415  # the compiler takes half a second to load

    return [name for name in names() if name.startswith(incomplete)]


def graph_names(incomplete: str) -> list[str]:
    """Return the families of graphs that begin so, with hyphens for one who types them."""
    from sidelong.graphs.makers import makers  # noqa: PLC0415

    names = [name.replace("_", "-") if "-" in incomplete else name for name in makers(over_time=False)]
    return [f"{name}:" for name in names if name.startswith(incomplete)]


def study_names(incomplete: str) -> list[str]:
    """Return the reference studies that begin so; none where the packages of studies are missing."""
    try:
        from sidelong.studies import reference  # noqa: PLC0415
    except ModuleNotFoundError:
        return []
    return [name for name in reference.names() if name.startswith(incomplete)]
