"""A report on a study: one page that needs no network, and its figures as files for a paper.

Every figure has a sentence above it that says what it shows, and the numbers decide what that is: `headlines` has the
rules. The way is results, `reading`, sections (`scores`, `parameters`, `instances`, `pictures`, `origin`), `page`.
"""

from sidelong.studies.report.page import write

__all__ = ["write"]
