"""What the help of each command shows to type, and the least that a study file says."""

from __future__ import annotations

__all__ = ["EXAMPLES", "STUDY"]

EXAMPLES = {
    "demo": ("sidelong demo --rounds 10000 --runs 4",),
    "learners": ("sidelong learners", "sidelong learners exp3.g++"),
    "cite": ("sidelong cite exp3.g++ ucb-n > references.bib",),
    "graph": ("sidelong graph star:10,hub=3 --svg star.svg", "sidelong graph edges.txt --self-loops"),
    "bounds": ("sidelong bounds nested:24 --gaps 0.2 --rounds 1e6",),
    "verify": ("sidelong verify", "sidelong verify --only prop-1,thm-2"),
    "run": ("sidelong run study.toml --dry-run", "sidelong run study.toml --workers 4"),
    "report": ("sidelong report results/study",),
    "reproduce": ("sidelong reproduce nested --quick",),
    "serve": ("sidelong serve --database sqlite:///decisions.db",),
    "evaluate": (
        "sidelong evaluate log.parquet --arms 5",
        "sidelong evaluate http://localhost:8431/v1/experiments/NAME",
    ),
}

STUDY = (
    "rounds = 10_000",
    'learner = [{ name = ["exp3.g++", "ucb-n"] }]',
    'graph = [{ name = ["nested", "star"], n = 10 }]',
    'world = [{ name = "bernoulli", means = { gap = 0.2 } }]',
)
