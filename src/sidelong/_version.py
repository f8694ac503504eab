"""The version of the package, its year and where its sources are, each in one place (see docs/release.md)."""

__version__ = "0.1.0"
#: The year of this version, as in CITATION.cff.
YEAR = 2026
#: Where the sources are published. The build copies it into both packages, and scripts/citation.py into CITATION.cff.
REPOSITORY = "https://github.com/sidelong/sidelong"
