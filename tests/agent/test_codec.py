"""What a state file must hold: whatever else stands in it is refused by a sentence, and never reaches a kernel."""

import contextlib
import hashlib
import itertools
import json
import random
import warnings

import numpy as np
import pytest

import sidelong as sl
from sidelong.agent import state_file
from sidelong.errors import SidelongError, StateFileError
from sidelong.learners import catalogue

pytestmark = pytest.mark.interpreted

GRAPH = sl.graphs.nested(4)


def an_agent(learner="glance", **options):
    agent = sl.Agent(learner, GRAPH, seed=3, **options)
    for t in range(6):
        decision = agent.ask()
        if t % 2:
            agent.tell(decision, [0.25] * decision.reveals.size)
    return agent


def a_family():
    family = sl.Family("glance", GRAPH, seed=3, certificate=True, health=True)
    plan = family.ask(["a", "b", "c"])
    family.tell(plan[:2], np.full(plan[:2].reveals.size, 0.5))
    return family


def a_contextual_agent():
    agent = sl.ContextualAgent("squarecb.g", GRAPH, seed=3, certificate=True)
    for t in range(4):
        decision = agent.ask([0.5, t / 4])
        if t % 2:
            agent.tell(decision, [0.25] * decision.reveals.size)
    return agent


MADE = {
    "agent": (an_agent, sl.Agent),
    "sparing": (lambda: an_agent("exp3.g++", refresh="epoch"), sl.Agent),
    "family": (a_family, sl.Family),
    "contextual": (a_contextual_agent, sl.ContextualAgent),
}


def an_agent_of(name, options):
    """Return one of a learner of the package on four arms that all show each other."""
    kind = sl.ContextualAgent if name in catalogue.names_with_features() else sl.Agent
    try:
        return kind(name, sl.graphs.complete(4), **options)
    except sl.errors.LearnerError:
        return kind(name, sl.graphs.complete(4), **options, horizon=100)


def all_learners():
    for name in catalogue.names():
        for options in ({}, *catalogue.find(name).variants):
            yield pytest.param(name, dict(options), id=f"{name} {options}")


@pytest.mark.parametrize(("name", "options"), list(all_learners()))
def test_every_whole_number_of_a_state_and_of_constants_has_a_stated_range(name, options):
    setup = an_agent_of(name, options)._rounds.setup
    arrays = setup.params._asdict() | setup.state._asdict()
    whole = {each for each, array in arrays.items() if np.asarray(array).dtype.kind in "iu"}
    assert whole - set(setup.learner.scratch) <= set(setup.learner.ranges)


@pytest.mark.parametrize(("name", "options"), list(all_learners()))
def test_no_learner_goes_on_from_a_constant_of_0_unless_that_is_stated(name, options):
    agent = an_agent_of(name, options)
    header, arrays = agent.contents()
    type(agent).from_contents(header, arrays, "the file")
    for each in [each for each, array in arrays.items() if each.startswith("params.") and array.dtype.kind == "f"]:
        if each[7:] not in agent._rounds.setup.learner.ranges:
            changed = arrays | {each: np.zeros_like(arrays[each])}
            with pytest.raises(StateFileError, match=f"a constant {each[7:]} that no learner"):
                type(agent).from_contents(header, changed, "the file")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("state.cell", 10**9),
        ("state.cell", -1),
        ("pending.arm", 4),
        ("pending.graph", 1),
        ("pending.round", 7),
        ("pending.carried", -2),
        ("rows.round", -1),
        ("observers.window", -5),
        ("observers.counts", -1),
        ("params.x_1", np.inf),
        ("state.F", -1.0),
        ("state.o", np.nan),
        ("state.L", np.inf),
        ("pending.p", 1e300),
        ("pending.p", np.nan),
        ("pending.p", 0.0),
        ("observers.means", np.nan),
        ("observers.sure", 2**40),
        ("observers.pairs", 2**40),
        ("observers.differences", -2.0),
        ("observers.delays", np.inf),
        ("observers.delays", np.nan),
    ],
)
def test_a_number_out_of_its_range_is_refused(name, value, tmp_path):
    header, arrays = an_agent().contents()
    arrays[name] = np.full_like(arrays[name], value)
    state_file.write(tmp_path / "agent", header, arrays)  # with the right checksum
    with pytest.raises(StateFileError, match=r"agent (holds|was saved)"):
        sl.Agent.load(tmp_path / "agent")


@pytest.mark.parametrize(
    ("learner", "name", "place", "value"),
    [
        ("glance", "state.marks", 3, 10**12),  # the leader
        ("glance", "state.marks", 3, -1),
        ("exp3-dom", "state.known", 1, 2**31),  # the size of a set of arms
        ("exp3.g++", "state.known", 1, 5),
    ],
)
def test_one_number_of_an_array_out_of_its_own_range_is_refused(learner, name, place, value):
    header, arrays = an_agent(learner).contents()
    arrays[name] = arrays[name].copy()
    arrays[name][0, place] = value
    with pytest.raises(StateFileError, match=rf"the file holds {name} outside its range, from 0 to [34]\."):
        sl.Agent.from_contents(header, arrays, "the file")


@pytest.mark.parametrize(
    ("learner", "options"),
    [("exp3.g++", {}), ("exp3.g++", {"refresh": "epoch"}), ("exp3-set", {}), ("exp3-set", {"track": "unknown"})],
)
def test_a_rate_of_a_negative_sum_is_refused(learner, options):
    header, arrays = an_agent(learner, **options).contents()
    arrays["state.Theta"] = np.full_like(arrays["state.Theta"], -0.5)
    with pytest.raises(StateFileError, match=r"the file holds state\.Theta outside its range, from 0"):
        sl.Agent.from_contents(header, arrays, "the file")


@pytest.mark.parametrize(
    ("kind", "said"), [("", "features of the kind '', which"), (0, "features of the kind 0, which")]
)
def test_features_of_no_kind_are_refused_where_something_was_learned(kind, said):
    header, arrays = a_contextual_agent().contents()
    header["regressor"]["kind"] = kind
    with pytest.raises(StateFileError, match=said):
        sl.ContextualAgent.from_contents(header, arrays, "the file")
    rest = {name: array for name, array in arrays.items() if not name.startswith("regressor.") and name != "pending.x"}
    header["regressor"]["kind"] = ""
    with pytest.raises(StateFileError, match="pending decisions without the features that they were made by"):
        sl.ContextualAgent.from_contents(header, rest, "the file")


@pytest.mark.parametrize("size", [5.0, 2.0**40, np.inf, np.nan])
def test_a_size_of_a_pending_decision_that_cannot_be_is_refused(size):
    header, arrays = an_agent("exp3-dom").contents()
    arrays["pending.trace"] = arrays["pending.trace"].copy()
    arrays["pending.trace"][:, 1] = size  # chooses the row that `update` writes into
    with pytest.raises(StateFileError, match=r"pending\.trace of exploration_set outside its range, from 0 to 4"):
        sl.Agent.from_contents(header, arrays, "the file")


@pytest.mark.parametrize(("name", "options"), list(all_learners()))
def test_pending_decisions_of_all_learners_are_saved_and_read(name, options):
    agent = an_agent_of(name, options)
    for t in range(12):
        features = ([0.5],) if isinstance(agent, sl.ContextualAgent) else ()
        decision = agent.ask(*features)
        if t % 3 == 0:
            agent.tell(decision, [1.0] * decision.reveals.size)
    assert len(type(agent).from_contents(*agent.contents(), "the file").pending) == 8


def test_huge_effects_of_arms_are_no_way_out_of_an_array():
    header, arrays = an_agent("glance").contents()
    arrays["state.o"] = np.full_like(arrays["state.o"], 1e308)
    agent = sl.Agent.from_contents(header, arrays, "the file")
    with np.errstate(all="ignore"):
        for _ in range(3):
            decision = agent.ask()
            agent.tell(decision, [0.5] * decision.reveals.size)


def test_a_constant_that_names_an_arm_that_is_not_there_is_refused():
    header, arrays = an_agent("exp3.g++").contents()
    arrays["params.initial"] = np.full_like(arrays["params.initial"], 4)
    with pytest.raises(StateFileError, match="holds a constant initial that no learner on 4 arms has"):
        sl.Agent.from_contents(header, arrays, "the file")


@pytest.mark.parametrize(("name", "options"), list(all_learners()))
def test_a_constant_of_another_type_than_kernels_are_compiled_for_is_refused(name, options):
    agent = an_agent_of(name, options)
    header, arrays = agent.contents()
    for each in [each for each in arrays if each.startswith("params.")]:
        sizes = [(4, 2), (4, 0), (5,)] if arrays[each].ndim else [(4,), (1,), (4, 2)]
        others = [np.full(size, 1, arrays[each].dtype) for size in sizes]
        if arrays[each].dtype.kind in "biu":
            others.append(arrays[each].astype(np.float64))
        for other in others:
            with pytest.raises(StateFileError, match=f"a constant {each[7:]} that no learner"):
                type(agent).from_contents(header, arrays | {each: other}, "the file")


def test_what_is_infinite_in_the_last_round_of_ucb_lp_is_read():
    agent = sl.Agent("ucb-lp", sl.graphs.self_loops(2), horizon=100)
    for _ in range(150):
        agent.tell(agent.ask(), [0.5])  # two arms that are alike
    assert np.isinf(agent._state.clock).any()
    assert sl.Agent.from_contents(*agent.contents(), "the file").ask() == agent.ask()


@pytest.mark.parametrize("size", [0, 4])
def test_a_group_of_models_with_more_or_less_than_it_has_is_refused(size):
    """If the sizes of its groups are wrong, more groups come of it than its arrays can hold."""
    header, arrays = a_contextual_agent().contents()
    arrays["regressor.size"] = np.full_like(arrays["regressor.size"], size)
    with pytest.raises(StateFileError, match="a regression whose models are in groups that it does not have"):
        sl.ContextualAgent.from_contents(header, arrays, "the file")


@pytest.mark.parametrize("learner", ["ucb-n", "ts-n", "exp3-set", "exp3++"])
def test_no_learner_of_the_package_goes_on_from_nan_or_negative_constants(learner, tmp_path):
    header, arrays = sl.Agent(learner, GRAPH).contents()
    reals = [name for name, array in arrays.items() if name.startswith("state.") and array.dtype.kind == "f"]
    for name in reals:
        state_file.write(tmp_path / "agent", header, arrays | {name: np.full_like(arrays[name], np.nan)})
        with pytest.raises(StateFileError, match=rf"agent holds {name} outside its range"):
            sl.Agent.load(tmp_path / "agent")
    for name in [name for name, array in arrays.items() if name.startswith("params.") and array.dtype.kind == "f"]:
        if name != "params.unseen":  # which is -inf where there is none
            state_file.write(tmp_path / "agent", header, arrays | {name: -1.0 - arrays[name]})
            with pytest.raises(StateFileError, match=f"a constant {name[7:]} that no learner"):
                sl.Agent.load(tmp_path / "agent")


@pytest.mark.parametrize("value", [2.5, np.inf])
def test_a_scale_of_a_key_without_width_is_refused(value):
    family = sl.Family("glance", GRAPH)
    family.add(["a"], scale=sl.outcomes.Scale(best=0, worst=10))
    header, arrays = family.contents()
    arrays["rows.scale"] = np.full_like(arrays["rows.scale"], value)
    with np.errstate(invalid="ignore"), pytest.raises(StateFileError, match="scale without ends"):
        sl.Family.from_contents(header, arrays, "the file")


@pytest.mark.parametrize(("made", "decision"), [("agent", [1]), ("family", 1)])
def test_a_name_for_what_is_no_decision_is_refused(made, decision):
    make, kind = MADE[made]
    header, arrays = make().contents()
    with pytest.raises(StateFileError, match="has the name 'order-1' for"):
        kind.from_contents(header | {"names": {"order-1": decision}}, arrays, "the file")


@pytest.mark.parametrize("made", MADE)
def test_a_file_with_the_right_checksum_that_cannot_be_read_is_refused_by_a_sentence(made, tmp_path):
    make, kind = MADE[made]
    content = state_file.pack(*make().contents())[:-32]
    rng = random.Random(1)
    for trial in range(150):
        body = bytearray(content)
        if trial % 2:
            body[rng.randrange(16, 2000)] ^= 1 << rng.randrange(8)
        else:
            del body[rng.randrange(16, len(body)) :]
        (tmp_path / "file").write_bytes(bytes(body) + hashlib.sha256(body).digest())
        with contextlib.suppress(StateFileError):
            kind.load(tmp_path / "file")


ODD = [None, True, -1, 0, 1, 2**70, 1e308, "", "x", [], [1], [None], {}, {"a": 1}, [[]], "glance", "family"]


@pytest.mark.parametrize("made", MADE)
def test_whatever_stands_in_a_header_is_read_or_refused_by_a_sentence(made):
    make, kind = MADE[made]
    header, arrays = make().contents()
    rng = random.Random(1)
    paths = [(name,) for name in header] + [("regressor", name) for name in header.get("regressor", ())]
    for trial in range(300):
        other = json.loads(json.dumps(header))
        *outer, name = rng.choice(paths)
        place = other[outer[0]] if outer else other
        if trial % 5:
            place[name] = rng.choice(ODD)
        else:
            del place[name]
        play_or_refuse(kind, other, arrays)


@pytest.mark.parametrize("made", MADE)
def test_whatever_stands_in_an_array_is_read_or_refused_by_a_sentence(made):
    make, kind = MADE[made]
    header, arrays = make().contents()
    rng = np.random.default_rng(1)
    for _ in range(300):
        name = rng.choice(list(arrays))
        array = arrays[name].copy()
        how = rng.integers(4)
        if how == 0:
            with np.errstate(invalid="ignore"):
                array = array.astype(rng.choice(["<f4", "<i8", "<u4", "<f8", "|b1"]))
        elif how == 1:
            array = array[..., None] if rng.integers(2) else array.reshape(-1)[:-1]
        elif array.size:
            flat = array.reshape(-1)
            odd = [0, 1, 5, 2**31, np.finfo(array.dtype).max] if array.dtype.kind == "f" else [0, 1, 5, 2**30]
            odd += [-1, np.nan] if array.dtype.kind == "f" else [-1] if array.dtype.kind == "i" else []
            value = rng.choice(odd)
            flat[rng.integers(flat.size)] = min(value, 255) if array.dtype.itemsize == 1 else value
        play_or_refuse(kind, header, {**arrays, name: array})


def play_or_refuse(kind, header, arrays):
    """Go on from a file with this in it, if it can be; no kernel leaves its arrays then, whatever numbers come out."""
    packed = state_file.pack(header, arrays)
    try:
        made = kind.from_contents(*state_file.unpack(packed, "the file"), "the file")
    except StateFileError:
        return
    with warnings.catch_warnings(), contextlib.suppress(ArithmeticError, SidelongError):
        warnings.simplefilter("ignore")
        try:
            made.estimates()
            play(made)
        except ValueError as error:
            if "math domain" not in str(error):  # as of a root of what is negative
                raise


def play(made):
    """Tell what is pending, and ask and tell twice."""
    if isinstance(made, sl.Family):
        for told in (made.pending, made.ask(["a", "d"]), made.ask(["a"])):
            made.tell(told, np.full(made.observe_probabilities(told).size, 0.5))
        return
    x = [[0.5, 0.25]] if isinstance(made, sl.ContextualAgent) else []
    for decision in (*made.pending, made.ask(*x), made.ask(*x)):
        made.tell(decision, [0.5] * decision.reveals.size)


@pytest.mark.parametrize("learner", ["glance", "ucb-n", "ts-n"])
def test_a_state_of_nan_ends_in_no_endless_search(learner):
    """Whatever brings NaN into a state: a search that NaN never ends would leave its array."""
    for name, value in itertools.product(sl.Agent(learner, GRAPH)._state._fields, [np.nan, -1.0]):
        agent = sl.Agent(learner, GRAPH, seed=3)
        for _ in range(6):
            decision = agent.ask()
            agent.tell(decision, [1.0] * decision.reveals.size)
        array = getattr(agent._state, name)
        if array.dtype.kind == "f":
            array[...] = value
            with warnings.catch_warnings(), contextlib.suppress(sl.errors.LearnerError, ArithmeticError, ValueError):
                warnings.simplefilter("ignore")
                assert 0 <= agent.ask().arm < 4


def test_no_arm_behind_the_last_is_drawn_whatever_a_tree_of_shares_holds():
    header, arrays = sl.Agent("exp3.g++", GRAPH, seed=3, refresh="epoch").contents()
    agent = sl.Agent.from_contents(header, arrays, "the file")
    for _ in range(6):
        decision = agent.ask()
        agent.tell(decision, [0.5] * decision.reveals.size)
    header, arrays = agent.contents()
    arrays["state.w"][..., -1] = 1e300  # of 8 leaves, 4 are arms
    agent = sl.Agent.from_contents(header, arrays, "the file")
    assert all(0 <= agent.ask().arm < 4 for _ in range(5))
