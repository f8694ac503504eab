"""`sidelong bounds`: what it prints, its JSON, and what it refuses."""

import json
from functools import partial

import pytest

from sidelong import theory


@pytest.fixture
def run(sidelong):
    return partial(sidelong, "bounds")


def test_it_says_what_each_promises_which_least_and_how_far_away_the_stochastic_bound_is(run):
    done = run("nested:24", "--gaps", "0.2", "--best", "3", "--rounds", "1e6")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert lines[0] == "nested(24): after 1,000,000 rounds the regret is at most"
    row = next(line.split() for line in lines if line.startswith("exp3.g++ fixed"))
    want = theory.theorem_2(K=24, T=1e6, strong_independence=24)
    assert row[2] == f"{want:,.0f}"
    assert row[-3:] == ["Theorems", "2,", "3"]
    text = " ".join(done.stdout.split())
    assert "is far away: it is below the adversarial one only from T = 2.90e19 on" in text
    assert "takes 8.24 years" in text
    assert "bound of glance is below what random play can lose from T = 3.26e8 on" in text
    assert "Least against any adversary: tsallis-inf rv, 14,456." in text
    assert "Cannot play on this graph: hedge, q-tsallis, spm-2024." in text
    assert "c* = " in text


def test_what_nineteen_of_twenty_runs_stay_below_has_a_column(run):
    done = run("star:4", "--rounds", "1e6")
    row = next(line.split() for line in done.stdout.splitlines() if line.startswith("luo-2023"))
    want = theory.rivals.luo_2023(K=4, T=1e6, independence=3, failure=0.05)
    mean = theory.rivals.luo_2023(K=4, T=1e6, independence=3, failure=1e-6) + 1
    assert row == ["luo-2023", f"{mean:,.0f}", f"{want:,.0f}", "derived"]
    assert "at most one run of twenty loses more" in " ".join(done.stdout.split())
    short = json.loads(run("star:4", "--rounds", "1000", "--json").stdout)
    likely = {each["learner"]: each["adversarial_with_95_percent"] for each in short["promises"]}
    assert likely["luo-2023"] == theory.rivals.luo_2023(K=4, T=1000, independence=3, failure=0.05)
    assert likely["exp3-set"] is None


def test_json_has_the_numbers_of_the_theorems(run):
    done = run("cliques:3x2", "--gaps", "0,0.1,0.2,0.3,0.4,0.5", "--json", "--rounds", "500", "--as-printed")
    found = json.loads(done.stdout)
    assert found["graph"] == "cliques([2] * 3)"
    assert found["numbers"] == {
        "independence": 3,
        "acyclic": 3,
        "strong_independence": 3,
        "inverse_gap_sum": pytest.approx(10 + 5 + 2.5),
    }
    fixed = next(each for each in found["promises"] if each["options"] == {"rate": "fixed"})
    assert fixed["adversarial"] == theory.theorem_2(K=6, T=500, strong_independence=3)
    assert fixed["stochastic"] == pytest.approx(
        theory.theorem_3(T=500, gaps=found["gaps"], strong_independence=3, inverse_gap_sum=17.5, as_printed=True),
        rel=1e-6,
    )
    assert fixed["stochastic_smaller_from"] > 1e12
    glance = next(each for each in found["promises"] if each["learner"] == "glance")
    assert glance["adversarial"] == theory.glance.adversarial(K=6, T=500, acyclic=3, revealed=2, first=6)
    assert glance["stochastic"] == theory.glance.stochastic(K=6, T=500, gap=0.1, acyclic=3, revealed=2, first=6)
    assert 1e7 < glance["below_random_from"] < 1e8
    assert found["least"]["stochastic"]["bound"] <= found["least"]["adversarial"]["bound"]
    assert found["intervals"] == {}


def test_an_interval_is_said_to_be_one(run):
    done = run("erdos_renyi:60,0.2,seed=1,directed=true", "--budget", "0")
    assert done.returncode == 0
    assert "Only known to lie from" in done.stdout
    assert "Bounds use" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nest:24"], "Did you mean 'nested'?"),
        (["star:x"], "n of star must be a whole number from 1 to 2,147,483,647, not 'x'"),
        (["star:3,4,5"], "The arguments are star:n,hub=0."),
        (["cliques:4xx"], "The arguments are cliques:sizes."),
        (["missing.txt"], "missing.txt: cannot be read"),
        (["self_loops:1"], "with one arm there is nothing to regret"),
        (["star:5", "--gaps", "0,0.1"], "one for each of the 5 arms, not 2"),
        (["star:5", "--gaps", "much"], "--gaps takes a number"),
        (["star:5", "--gaps", "0.1", "--best", "5"], "--best is one of the arms 0 to 4, not 5"),
        (["star:5", "--gaps", "0.5", "--best-loss", "0.8"], "--best-loss is 0.8, and the largest gap 0.5"),
        (["star:5", "--rounds", "0"], "--rounds"),
        (["star:5", "--rounds", "1e300"], "T must be a number from 1 to 1e+100"),
    ],
)
def test_a_wrong_argument_gives_one_message_and_code_2(run, arguments, says):
    done = run(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert says in done.stderr
