"""The claims hold for EXP3.G++ and glance, and fail for learners that are not them."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import sidelong as sl
from claims.broken import KINDS
from sidelong import claims
from sidelong.claims.claim import Outcome, Trial, Verdict
from sidelong.claims.games import Contest
from sidelong.errors import TheoryError
from sidelong.learners import exp3gpp, glance, uniform


@pytest.fixture(scope="module")
def results():
    """All claims with a tenth of the usual sample sizes: one chance in a million that a true one fails, at any size."""
    return {result.claim.id: result for result in claims.verify(effort=0.1)}


@pytest.mark.parametrize("claim", claims.CLAIMS, ids=lambda claim: claim.id)
def test_it_holds(claim, results):
    result = results[claim.id]
    printed_is_right = result.outcome.printed is None
    assert result.verdict is (Verdict.HOLDS if printed_is_right else Verdict.CORRECTED), result.outcome
    assert result.outcome.shown
    assert result.outcome.allowed


def test_every_claim_that_samples_says_from_where_on_it_would_fail(results):
    for claim in claims.CLAIMS:
        assert (results[claim.id].outcome.fails_from > 1) == claim.random, claim.id


@pytest.mark.parametrize("name", ["thm-3", "thm-4-adv", "thm-4-sto", "delay-regret"])
def test_what_could_not_fail_is_marked(name, results):
    outcome = results[name].outcome
    assert (outcome.fails_from, outcome.says_little, outcome.remark) == (float("inf"), True, "it could not fail")


def test_a_sample_that_is_too_small_is_marked(results):
    assert results["lem-9"].outcome.remark.startswith("too few runs to fail below ")
    assert not results["certificate-holds"].outcome.says_little
    assert results["certificate-holds"].outcome.remark == ""


def test_the_largest_regret_is_that_of_the_worst_arm():
    graph = sl.graphs.self_loops(3)
    for world in (sl.losses.constrained(0.3, 3, 1), sl.losses.bernoulli([0.5, 0.2, 0.4])):
        assert Contest("", graph, world, 1_000, 1.0).most == pytest.approx(300)
    assert Contest("", graph, sl.losses.table(np.full((1_000, 3), 0.5)), 1_000, 1.0).most == 1_000


def test_every_claim_says_what_it_is():
    ids = [claim.id for claim in claims.CLAIMS]
    assert len(set(ids)) == len(ids)
    for claim in claims.CLAIMS:
        assert claim.title
        assert claim.where
        assert claim.statement.endswith("."), claim.id
        assert len(claim.statement) > 40, claim.id


def test_the_same_seed_measures_the_same_and_another_does_not():
    def measure(seed):
        return [result.outcome for result in claims.verify(["lem-4", "lem-6", "lem-1-upper"], seed=seed, effort=0.1)]

    assert measure(3) == measure(3) != measure(4)


def test_a_claim_measures_the_same_alone_and_among_others(results):
    for name in ("lem-6", "lem-7", "thm-4-sto"):
        (alone,) = claims.verify([name], effort=0.1)
        assert alone.outcome == results[name].outcome


def test_an_unknown_claim_is_refused_with_the_list():
    with pytest.raises(TheoryError, match=r"no claim 'prop-9'.*prop-1, "):
        claims.choose(["prop-1", "prop-9"])


def test_chosen_claims_come_in_the_order_of_the_paper():
    assert [claim.id for claim in claims.choose(["e7", "prop-1", "lem-2"])] == ["prop-1", "lem-2", "e7"]


@pytest.mark.parametrize(
    ("outcome", "verdict"),
    [
        (Outcome(1.0, 1.0, "", ""), Verdict.HOLDS),
        (Outcome(1.1, 1.0, "", ""), Verdict.FAILS),
        (Outcome(float("nan"), 1.0, "", ""), Verdict.FAILS),
        (Outcome(1.0, float("nan"), "", ""), Verdict.FAILS),
        (Outcome(1.0, 1.0, "", "", (2.0, 1.0)), Verdict.CORRECTED),
        (Outcome(1.0, 1.0, "", "", (1.0, 1.0)), Verdict.FAILS),  # nothing is wrong with what is printed
        (Outcome(1.1, 1.0, "", "", (2.0, 1.0)), Verdict.FAILS),
    ],
)
def test_the_verdict_follows_from_the_numbers(outcome, verdict):
    assert outcome.verdict is verdict


def test_risk_is_shared_by_all_claims_that_sample():
    sampled = [result for result in claims.verify(["lem-9", "lem-2"], effort=0.1) if result.confidence < 1]
    assert [result.claim.id for result in sampled] == ["lem-9"]
    random = sum(claim.random for claim in claims.CLAIMS)
    assert 1 - sampled[0].confidence == pytest.approx(claims.FALSE_ALARM / random, rel=1e-6)


# A claim can fail.


VERSIONS = [(name, by) for kind in KINDS.values() for name, (_, by) in kind.versions.items()]
INTACT = [name for name, by in VERSIONS if not by]


@pytest.fixture(scope="module")
def failed(request):
    """What the learners that are asked for fail, in a process of its own with the JIT off, so that none is compiled."""
    program = Path(__file__).with_name("broken.py")
    own = [each for each in request.session.items if each.path == request.path and "failed" in each.fixturenames]
    asked = {each.callspec.params["name"] for each in own}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(program), *asked],  # a broken learner may divide by 0
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.nightly
@pytest.mark.parametrize("name", INTACT)
def test_the_intact_learner_passes_where_broken_ones_fail(name, failed):
    assert not failed[name]


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "claim"),
    [
        pytest.param(name, by, marks=pytest.mark.nightly if place % 4 else ())
        for place, (name, by) in enumerate((name, by) for name, by in VERSIONS if by)
    ],
)
def test_a_broken_learner_is_found_out(name, claim, failed):
    assert claim in failed[name]


def lazy():
    """Return a learner that plays at random."""
    return replace(uniform.LEARNER, name="lazy", configure=lambda graph, **_: uniform.configure(graph))


def test_a_learner_that_does_not_learn_breaks_theorem_2():
    """Playing at random in full information, the regret is 0.26 a round; after 30,000 rounds, eight times the bound."""
    (result,) = claims.verify(["thm-2"], learner=lazy())
    assert result.verdict is Verdict.FAILS, result.outcome


def test_a_learner_that_does_not_learn_breaks_the_bound_of_glance():
    """What it counts stays at 0.3 ln 3 = 0.33 in all of the 72 games, and in one of them the regret is 1.3."""
    (result,) = claims.verify(["glance-regret"], glance=replace(glance.LEARNER, update=lambda *_: None))
    assert result.verdict is Verdict.FAILS, result.outcome


def test_a_learner_that_cannot_be_measured_fails():
    def refuse(*_arguments, **_options):
        raise ZeroDivisionError("gap of 0")

    (result,) = claims.verify(["e4"], learner=replace(exp3gpp.LEARNER, distribution=refuse))
    assert result.verdict is Verdict.FAILS
    assert "gap of 0" in result.outcome.shown


def test_nan_does_not_hide():
    trial = Trial()
    assert trial.size(100) == 100
    from sidelong.claims.algorithm import apart, compared  # noqa: PLC0415

    nan = float("nan")
    assert compared([0.0, nan, 0.0]).verdict is Verdict.FAILS
    assert compared([apart([1.0, nan], [1.0, nan]), 0.0]).verdict is Verdict.FAILS
