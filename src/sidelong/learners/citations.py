"""The papers of learners, as BibTeX."""

from __future__ import annotations

import re
from importlib import resources

from sidelong._version import __version__
from sidelong.learners import catalogue

_SOFTWARE = f"""\
@software{{sidelong,
  author  = {{{{The sidelong developers}}}},
  title   = {{sidelong: online decisions that learn from what they see on the side}},
  version = {{{__version__}}},
}}"""


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
    return "\n\n".join([_SOFTWARE, *(entries[key] for key in dict.fromkeys(keys))])


def _entries() -> dict[str, str]:
    text = resources.files("sidelong.learners").joinpath("references.bib").read_text("utf-8")
    return {match[2]: match[0] for match in re.finditer(r"^@(\w+)\{(\w+),\n.*?^\}", text, re.MULTILINE | re.DOTALL)}
