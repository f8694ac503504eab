"""A learner of one's own is checked: by `learners.check` in words, and by agents and simulations in each round."""

import inspect
import re
from dataclasses import replace

import numba
import numpy as np
import pytest

import sidelong as sl
from sidelong.errors import CodeError, LearnerError
from sidelong.learners import kernel, tsn, uniform
from simulation import round_robin

pytestmark = [pytest.mark.interpreted, pytest.mark.compiled]

GRAPH = sl.graphs.nested(4)
WORLD = sl.losses.bernoulli([0.5, 0.2, 0.9, 0.4])


def forgets_to_normalise(params, state, graph, asked):
    round_robin.distribution(params, state, graph, asked)
    asked.p[0] += 0.0 if asked.t < 5 else -0.1


def counts_thrice(params, state, graph, asked):
    round_robin.distribution(params, state, graph, asked)
    for i in range(asked.p.size):
        asked.p[i] *= 1.0 if asked.t < 5 else 3.0


def divides_by_zero(params, state, graph, asked):
    round_robin.distribution(params, state, graph, asked)
    asked.p[2] = asked.p[2] if asked.t < 5 else np.nan


def owes(params, state, graph, asked):
    round_robin.distribution(params, state, graph, asked)
    asked.p[1] += 0.0 if asked.t < 5 else -0.5
    asked.p[3] += 0.0 if asked.t < 5 else 0.5


#: What is wrong with the probabilities from round 5 on, where round-robin plays arm 0.
BROKEN = {
    forgets_to_normalise: ("the probabilities sum to 0.9, and not to 1", -1, "sum to 0.9, and not to 1"),
    counts_thrice: ("the probabilities sum to 3, and not to 1", -1, "sum to 3, and not to 1"),
    divides_by_zero: ("its probability is nan", 2, "gave arm 2 the probability nan"),
    owes: ("its probability is -0.5", 1, "gave arm 1 the probability -0.5"),
}


def with_(**kernels):
    return replace(round_robin.LEARNER, name="mine", **{name: kernel(each) for name, each in kernels.items()})


@pytest.mark.parametrize("broken", BROKEN)
def test_what_is_no_distribution_is_named_with_round_and_arm(broken):
    said, arm, _ = BROKEN[broken]
    report = sl.learners.check(with_(distribution=broken), GRAPH, rounds=20)
    assert not report.holds
    (found,) = report.violations
    assert (found.rule, found.round, found.arm, found.said) == ("probabilities", 5, arm, said)
    place = f"round 5, arm {arm}" if arm >= 0 else "round 5"
    assert str(report).splitlines()[:2] == [
        "mine breaks the contract, in 20 rounds:",
        f"  probabilities: {place}: {said}",
    ]


@pytest.mark.parametrize("broken", BROKEN)
def test_what_is_no_distribution_is_refused_in_the_round_where_it_appears(broken):
    own, message = with_(distribution=broken), rf"learner mine decided nothing in round 5: .*{BROKEN[broken][2]}"
    with pytest.raises(LearnerError, match=message):
        sl.simulate(own, GRAPH, WORLD, rounds=20)
    with pytest.raises(LearnerError, match=message):
        sl.simulate(own, GRAPH, WORLD, rounds=20, delay=3)
    assert sl.simulate(own, GRAPH, WORLD, rounds=4).plays.sum() == 4
    agent, family = sl.Agent(own, GRAPH), sl.Family(own, GRAPH)
    for _ in range(4):
        agent.ask()
        family.ask(["key"])
    with pytest.raises(LearnerError, match=message):
        agent.ask()
    assert agent.round == len(agent.pending) == 4
    with pytest.raises(LearnerError, match=message):
        family.ask(["key"])


def test_a_batch_that_fails_for_one_key_changes_nothing():
    family = sl.Family(with_(distribution=next(iter(BROKEN))), GRAPH)
    for _ in range(4):
        plan = family.ask(["key"])
        family.tell(plan, np.full(plan.reveals.size, 0.5))
    waits = family.ask(["other"])
    with pytest.raises(LearnerError, match="decided nothing in round 5"):
        family.ask(["new", "key", "other"])
    assert family.pending == waits.ids  # nobody knows the others
    assert repr(family).endswith("3 keys, 1 pending>")
    assert family["key"].round == 4
    plan = family.ask(["other", "new"])
    assert plan.rounds.tolist() == [2, 1]  # no round of another key was played
    assert family.tell(plan, np.full(plan.reveals.size, 0.5)) == 2


def test_no_decision_stays_pending_of_a_batch_whose_second_draw_for_a_key_fails():
    family = sl.Family(with_(distribution=next(iter(BROKEN))), GRAPH)
    for _ in range(3):
        family.cancel(family.ask(["key"]))
    with pytest.raises(LearnerError, match="decided nothing in round 5"):
        family.ask(["new", "key", "key"])
    assert family.pending == []
    assert family["key"].round == 4
    assert family.ask(["new"]).rounds.tolist() == [2]  # that one was drawn, and cancelled


def draws_too_far(params, state, graph, asked):
    return tsn.draw(params, state, graph, asked) if asked.t < 5 else np.int64(asked.p.size)


def test_an_arm_that_is_none_is_refused():
    own, message = replace(tsn.LEARNER, name="far", draw=kernel(draws_too_far)), r"round 5: its `draw` returned 4, and"
    (found,) = sl.learners.check(own, GRAPH, rounds=20).violations
    assert (found.round, found.said) == (5, "draw returned 4, and the arms are 0 to 3")
    with pytest.raises(LearnerError, match=message):
        sl.simulate(own, GRAPH, WORLD, rounds=20)
    agent = sl.Agent(own, GRAPH)
    for _ in range(4):
        agent.ask()
    with pytest.raises(LearnerError, match=message):
        agent.ask()


def writes_a_trace_too_many(params, state, graph, asked):
    round_robin.distribution(params, state, graph, asked)
    asked.trace[2] = 1.0


def learns_too_much(_params, state, _graph, told):
    for i in range(told.p.size):
        state.seen[0] += told.losses[i]


def rewrites_what_was_drawn(_params, _state, _graph, told):
    told.p[told.arm] = 1.0


def rewrites_what_was_told(_params, _state, _graph, told):
    told.losses[0] = 0.0


def cuts_an_edge(_params, _state, graph, told):
    graph.stop[told.arm] = graph.start[told.arm]


@pytest.mark.parametrize(
    ("broken", "arm", "said"),
    [
        (writes_a_trace_too_many, -1, "`distribution` writes trace[2], which has 2 numbers"),
        (learns_too_much, 0, "`update` reads told.losses[1], which has 1 numbers"),
        (rewrites_what_was_drawn, 0, "`update` writes told.p[0]: assignment destination is read-only"),
        (rewrites_what_was_told, 0, "`update` writes told.losses[0]: assignment destination is read-only"),
        (cuts_an_edge, 0, "`update` writes graph.stop[0]: assignment destination is read-only"),
    ],
)
def test_what_lies_beyond_an_array_is_named_with_its_line(broken, arm, said):
    which = "distribution" if arm < 0 else "update"
    (found,) = sl.learners.check(with_(**{which: broken}), GRAPH, rounds=20).violations
    assert (found.rule, found.round, found.arm, found.said) == ("bounds of arrays", 1, arm, said)
    code = inspect.getsource(broken).splitlines()[-1].strip()
    line = broken.__code__.co_firstlineno + len(inspect.getsource(broken).splitlines()) - 1
    assert found.line == f"test_check.py, line {line}: {code}"


def has_a_typo(params, state, graph, asked):
    round_robin.distribution(params, state, graph, asked)
    asked.p[0] += shaer * 0.0  # noqa: F821


TYPO = f"test_check.py, line {has_a_typo.__code__.co_firstlineno + 2}: asked.p[0] += shaer * 0.0"


def test_a_typo_in_a_kernel_is_shown_with_its_line():
    report = sl.learners.check(with_(distribution=has_a_typo), GRAPH, rounds=20)
    (found,) = report.violations
    assert (found.rule, found.round) == ("kernels raise no error", 1)
    assert found.said == "`distribution` raises NameError: name 'shaer' is not defined"
    assert found.line.startswith(TYPO)
    assert str(report).splitlines()[2].startswith(f"    {TYPO}")
    assert "probabilities" in report.unchecked
    assert "not checked, because of the above: probabilities, " in str(report)


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
@pytest.mark.parametrize(
    "play",
    [
        lambda own: sl.simulate(own, GRAPH, WORLD, rounds=4),
        lambda own: sl.Agent(own, GRAPH).ask(),
    ],
)
def test_no_trace_of_numba_ends_in_our_loop(play):
    with pytest.raises(CodeError, match=rf"^A kernel cannot be compiled: NameError: .*{re.escape(TYPO)}") as caught:
        play(with_(distribution=has_a_typo))
    assert caught.value.__suppress_context__  # or Python prints Numba's own trace above it


def sorts_text(params, state, graph, asked):
    round_robin.distribution(params, state, graph, asked)
    asked.p[0] += len(sorted(str(asked.t), key=len)) * 0.0


def makes_an_array(params, state, graph, asked):
    round_robin.distribution(params, state, graph, asked)
    asked.p[0] += np.zeros(2)[0]


def makes_a_list(params, state, graph, asked):
    round_robin.distribution(params, state, graph, asked)
    asked.p[0] += sum([0.0 for _ in range(asked.t)])


def makes_a_dict(params, state, graph, asked):
    round_robin.distribution(params, state, graph, asked)
    asked.p[0] += {1: 0.0}[1]


def copies(params, state, graph, asked):
    round_robin.distribution(params, state, graph, asked)
    asked.p[0] += 0.0 * asked.p.copy()[0]


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
@pytest.mark.parametrize("wrong", [sorts_text, makes_an_array, makes_a_list, makes_a_dict, copies])
def test_what_plain_python_can_do_and_machine_code_cannot_is_shown_with_its_line(wrong):
    report = sl.learners.check(with_(distribution=wrong), GRAPH, rounds=5)
    (found,) = report.violations
    number, code = wrong.__code__.co_firstlineno + 2, inspect.getsource(wrong).splitlines()[2].strip()
    reason = "It makes a new array, list, dict or text, and a kernel has only the arrays that it is given."
    said = f"A kernel cannot be compiled: {reason} At test_check.py, line {number}: {code}"
    assert (found.rule, found.said) == ("kernels compile", said)


def divides(graph, *, share=1):
    return round_robin.Params(graph.n_arms // share)


def test_configure_that_fails_is_named_and_an_unknown_option_is_refused():
    own = replace(round_robin.LEARNER, name="mine", configure=divides)
    (found,) = sl.learners.check(own, GRAPH, rounds=20, share=0).violations
    assert (found.rule, found.said) == ("configure and init", "ZeroDivisionError: integer division or modulo by zero")
    assert found.line.startswith("test_check.py, line ")
    with pytest.raises(LearnerError, match=r"no option .shaer.\. Did you mean .share."):
        sl.learners.check(own, GRAPH, rounds=20, shaer=0)


def test_an_absent_arm_that_is_played_is_named():
    own = replace(uniform.LEARNER, name="deaf", sleeps=True)
    (found,) = sl.learners.check(own, GRAPH, rounds=20).violations
    assert (found.rule, found.round, found.arm) == ("absent arms are not played", 1, 1)
    assert found.said == "it is absent, and has the probability 0.25"


@pytest.mark.parametrize("name", ["uniform", "exp3-set", "ts-n", "hedge"])
def test_those_of_the_package_keep_the_contract(name):
    report = sl.learners.check(name, rounds=60)
    assert report.holds, str(report)
    assert str(report).startswith(f"{name} keeps the contract, in 60 rounds:")


@pytest.mark.parametrize("options", [{"refresh": "epoch"}, {"late": "guarded"}])
def test_options_are_passed_on(options):
    report = sl.learners.check("exp3.g++", rounds=60, **options)
    assert report.holds, str(report)
    assert report.learner.startswith("exp3.g++ with")
