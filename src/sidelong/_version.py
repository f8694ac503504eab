"""The version of the package, its year and where its sources are, each in one place."""

__version__ = "0.1.0.dev0"
#: The year of this version, as in CITATION.cff.
YEAR = 2026
#: Where the sources are published, as in CITATION.cff.
REPOSITORY = "https://github.com/sidelong/sidelong"
