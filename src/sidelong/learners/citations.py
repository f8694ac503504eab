"""The papers of learners, as BibTeX."""

from __future__ import annotations

import json
import re
import subprocess
from importlib import metadata, resources
from pathlib import Path

from sidelong._version import REPOSITORY, YEAR, __version__
from sidelong.learners import catalogue


def bibtex(*learners: str) -> str:
    """Return the BibTeX entries of the papers that learners come from, and of this package, each once.

    Without a learner, that is the package and the paper on EXP3.G++.

    Example:
        >>> from sidelong.learners.citations import bibtex
        >>> bibtex("ucb-n", "ucb-maxn").count("Leveraging Side Observations")
        1
    """
    keys = [key for name in learners or ("exp3.g++",) for key in catalogue.find(name, features=True).about.cite]
    entries = _entries()
    return "\n\n".join([_software(), *(entries[key] for key in dict.fromkeys(keys))])


def _entries() -> dict[str, str]:
    text = resources.files("sidelong.learners").joinpath("references.bib").read_text("utf-8")
    return {match[2]: match[0] for match in re.finditer(r"^@(\w+)\{(\w+),\n.*?^\}", text, re.MULTILINE | re.DOTALL)}


def _software() -> str:
    fields = {
        "author": "{The sidelong developers}",
        "title": "sidelong: online decisions that learn from what they see on the side",
        "year": YEAR,
        "version": __version__,
        "url": REPOSITORY,
        "note": f"Commit {found}" if (found := commit()) else "",
    }
    lines = [f"  {name:<7} = {{{value}}}," for name, value in fields.items() if value]
    return "\n".join(["@software{sidelong,", *lines, "}"])


def commit() -> str:
    """Return the commit of the sources that run, if they are a clone or were installed from one; else nothing.

    A clone whose sources were changed since is told from the commit itself.
    """
    root = Path(__file__).parents[3]
    if (root / ".git").exists():
        head, changes = (_git(root, *command) for command in (("rev-parse", "HEAD"), ("status", "--porcelain", "src")))
        return f"{head}, with local changes" if head and changes else head
    try:  # pip notes here what it has installed from where
        noted = json.loads(metadata.distribution("sidelong").read_text("direct_url.json") or "{}")
    except metadata.PackageNotFoundError:
        return ""
    return str(noted.get("vcs_info", {}).get("commit_id", ""))


def _git(folder: Path, *command: str) -> str:
    try:
        done = subprocess.run(["git", "-C", folder, *command], capture_output=True, text=True, check=True)  # noqa: S603, S607
    except (OSError, subprocess.CalledProcessError):  # there is no git, or it does not trust the folder
        return ""
    return done.stdout.strip()
