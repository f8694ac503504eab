"""The reference of the learners: a section for each file, in the order of the catalogue, and none left out."""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING, Any

from sidelong import learners

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_PLACE = "```{learners}\n```\n"
_SECTION = """\
## {title}

```{{eval-rst}}
.. automodule:: {name}
   :no-members:
{configure}```
"""
#: A variant of a learner has the options of that learner, which are described there.
_CONFIGURE = """
.. autofunction:: {name}.configure
"""


def _read(_app: Sphinx, page: str, source: list[str]) -> None:
    if page != "api/learners":
        return
    files = [
        importlib.import_module(f"{learners.__name__}.{each.name}") for each in pkgutil.iter_modules(learners.__path__)
    ]
    found = [module.LEARNER for module in files if hasattr(module, "LEARNER")]
    names = [*learners.names(), "squarecb.g"]  # which an agent with features plays
    found.sort(key=lambda learner: (names.index(learner.name), learner.chosen_by != ""))
    sections = []
    for each in found:
        own = hasattr(importlib.import_module(each.module), "configure")
        configure = _CONFIGURE.format(name=each.module) if own else ""
        sections.append(_SECTION.format(title=each.title, name=each.module, configure=configure))
    source[0] = source[0].replace(_PLACE, "\n".join(sections))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("source-read", _read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
