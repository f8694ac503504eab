"""NP-hard numbers of known networks, beside HiGHS on textbook programs and networkx: the parts of graph_numbers.py."""

from __future__ import annotations

from typing import Any

NETWORKS = (
    "karate club",
    "Les Miserables",
    "Davis women",
    "Florentine families",
    "Petersen",
    "karate club, directed",
    "Les Miserables, directed",
    "Davis women, directed",
)
BUDGET = 10.0


def play() -> dict[str, Any]:
    """Return each number that we find, HiGHS finds and networkx finds, and whether our certificate holds."""
    import graph_numbers  # noqa: PLC0415  # changes how the process compiles

    found: dict[str, Any] = {}
    for title, graph in graph_numbers.graphs().items():
        if title not in NETWORKS:
            continue
        for name, program in graph_numbers.PROGRAMS.items():
            if graph.is_undirected and name in {"acyclic", "strong_independence"}:
                continue  # equal to independence
            ours, theirs = getattr(graph.numbers(BUDGET), name), program(graph, BUDGET)
            others = [str(theirs)]
            if name == "independence":
                others.append(str(graph_numbers.by_networkx(graph)))
            found[f"{title}: {name}"] = {"ours": str(ours), "theirs": others, "holds": ours.holds_for(graph)}
    return found


def rows(found: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Return the row of the table."""
    numbers = found.values()
    alike = sum(set(each["theirs"]) == {each["ours"]} for each in numbers)
    checks = sum(len(each["theirs"]) - 1 for each in numbers)
    holds = sum(each["holds"] for each in numbers)
    setting = f"{len(found)} NP-hard numbers of {len(NETWORKS)} known networks"
    theirs = f"all found by HiGHS on textbook programs, {checks} of them also by networkx"
    return [("HiGHS, networkx", setting, theirs, f"{alike} are equal, and {holds} certificates hold")]
