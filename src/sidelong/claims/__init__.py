"""The paper's numbered statements, and the steps of proofs beyond it, as checks that run: `sidelong verify`.

A claim compares a number that was measured with one that it must not exceed. Statements about single rounds, series and
graphs are checked exactly, or to rounding; statements about chances and means by sampling, with confidence limits that
hold for every sample size. All are checked against a learner's module, so that a wrong learner is found out.
"""

from sidelong.claims.catalogue import CLAIMS, FALSE_ALARM, THOROUGH, Checked, choose, verify
from sidelong.claims.claim import Claim, Outcome, Trial, Verdict

__all__ = [
    "CLAIMS",
    "FALSE_ALARM",
    "THOROUGH",
    "Checked",
    "Claim",
    "Outcome",
    "Trial",
    "Verdict",
    "choose",
    "verify",
]
