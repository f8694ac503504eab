"""What every learner of the catalogue must do, whatever its algorithm."""

import ast
import hashlib
import importlib
import json
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import naive
import sidelong as sl
from sidelong.errors import BinaryLossError, GraphError, LearnerError, LossError, ObservabilityError
from sidelong.learners import catalogue
from sidelong.learners.interface import Need

NAMES = sl.learners.names()
ROUNDS = 60

#: Each learner as it comes, and with the options that lead to other code: a name, and what it stands for.
CONFIGURATIONS = {name: (name, {}) for name in NAMES} | {
    "exp3.g++ fixed": ("exp3.g++", {"rate": "fixed"}),
    "exp3.g++ fixed, given": ("exp3.g++", {"rate": "fixed", "strong_independence": 6}),
    "exp3.g++ epochs": ("exp3.g++", {"refresh": "epoch", "growth": 0.2}),
    "exp3.g++ epochs, fixed": ("exp3.g++", {"refresh": "epoch", "rate": "fixed"}),
    "exp3.g adaptive": ("exp3.g", {"rate": "adaptive"}),
    "exp3-set tracking": ("exp3-set", {"track": "unknown"}),
    "exp3-set tracking, given": ("exp3-set", {"track": 3, "horizon": 200}),
    "exp3.g++ guarded": ("exp3.g++", {"late": "guarded"}),
    "exp3-set guarded": ("exp3-set", {"late": "guarded"}),
    "exp3.g++ shifted": ("exp3.g++", {"estimator": "shifted"}),
    "tsallis-inf rv": ("tsallis-inf", {"estimator": "rv"}),
    "tsallis-inf graph": ("tsallis-inf", {"feedback": "graph"}),
    "tsallis-inf rv, graph": ("tsallis-inf", {"estimator": "rv", "feedback": "graph"}),
    "ito-2022, given": ("ito-2022", {"strong_independence": 6}),
    "q-tsallis, given": ("q-tsallis", {"independence": 6}),
    "luo-2023 strong": ("luo-2023", {"observability": "strong", "independence": 6}),
    "luo-2023 weak": ("luo-2023", {"observability": "weak"}),
    "luo-2023 weak, given": ("luo-2023", {"observability": "weak", "independence": 6, "domination": 6}),
    "spm-2024, given": ("spm-2024", {"independence": 6}),
    "spm-2024, one power": ("spm-2024", {"a": 0.4}),
    "tas-fg estimated": ("tas-fg", {"edges": "estimated"}),
}


def fitting_graph(needs):
    """Return a graph of 6 arms that meets the needs, and as few others as possible."""
    if Need.FULL_INFORMATION in needs:
        return sl.graphs.complete(6)
    if Need.UNDIRECTED in needs:
        return sl.graphs.cliques([3, 2, 1])
    if Need.STRONGLY_OBSERVABLE in needs:  # arm 0 does not reveal itself, and all others reveal it
        return sl.FeedbackGraph.from_edges([(i, j) for i in range(6) for j in (i, 0) if i > 0] + [(0, 3), (4, 2)])
    if {Need.OBSERVABLE, Need.GRAPH_BEFORE} <= needs:  # arms 1, 2 and 5 do not reveal themselves
        return sl.FeedbackGraph.from_edges([(0, 0), (0, 1), (0, 2), (3, 3), (3, 5), (4, 4), (1, 0), (5, 2)], 6)
    return sl.FeedbackGraph.from_edges([(0, 2), (2, 5), (5, 0), (1, 4), (3, 0), (3, 5)], self_loops=True)


def module_of(label):
    return catalogue.choose(*CONFIGURATIONS[label])


def needs_of(label):
    return catalogue.needs(module_of(label), CONFIGURATIONS[label][1])


def options_of(label, n_arms=6):
    options = dict(CONFIGURATIONS[label][1])
    for name in {"independence", "strong_independence", "domination"} & options.keys():
        options[name] = n_arms  # always a bound
    return options | ({"horizon": ROUNDS} if Need.HORIZON in needs_of(label) else {})


def having(need=None, *, lacking=None):
    """Return the configurations that have one need and lack another."""
    return [each for each in CONFIGURATIONS if need in {None, *needs_of(each)} and lacking not in needs_of(each)]


def world(n_arms=6):
    return sl.losses.bernoulli([0.5, 0.2, 0.9, 0.4, 0.6, 0.3][:n_arms])


def new_agent(label, graph=None, seed=7):
    graph = fitting_graph(needs_of(label)) if graph is None else graph
    return sl.Agent(CONFIGURATIONS[label][0], graph, seed=seed, **options_of(label, graph.n_arms))


def simulate(label, graph, losses, rounds, **others):
    return sl.simulate(CONFIGURATIONS[label][0], graph, losses, rounds, **others, **options_of(label, graph.n_arms))


def losses_of(decision, t):
    return {int(i): world().loss(7, 0, t, int(i)) for i in decision.reveals}


def play(agent, rounds):
    """Ask and tell; return everything that was decided, and the state after it, as bytes, without what is no state."""
    record = b""
    for _ in range(rounds):
        decision = agent.ask()
        record += bytes([decision.arm]) + decision.probabilities.tobytes()
        agent.tell(decision, losses_of(decision, decision.round))
    scratch = agent._setup.learner.scratch
    return record + b"".join(array.tobytes() for name, array in agent._state._asdict().items() if name not in scratch)


@pytest.mark.parametrize("label", CONFIGURATIONS)
def test_the_agent_keeps_what_was_told_of_each_arm_and_knows_the_cheapest(label):
    agent, told = new_agent(label), [[] for _ in range(6)]
    for t in range(1, ROUNDS + 1):
        decision = agent.ask()
        losses = losses_of(decision, t)
        agent.tell(decision, losses)
        for arm, loss in losses.items():
            told[arm].append(loss)
    known, seen = agent.estimates(), [arm for arm in range(6) if told[arm]]
    assert known.counts.tolist() == [*map(len, told)]
    np.testing.assert_allclose(known.means[seen], [np.mean(told[arm]) for arm in seen], rtol=1e-12, atol=1e-15)
    assert np.isnan(np.delete(known.means, seen)).all()
    assert known.best == min(seen, key=lambda arm: known.means[arm])
    assert 0.0 < known.sure < 1.0


FILES = [
    importlib.import_module(f"{catalogue.__package__}.{each.name}")
    for each in pkgutil.iter_modules(sl.learners.__path__)
]


@pytest.mark.parametrize("file", [file for file in FILES if hasattr(file, "LEARNER")], ids=lambda file: file.__name__)
def test_a_file_of_a_learner_is_in_the_catalogue_and_under_this_contract(file):
    own = file.LEARNER
    with_features = own is catalogue.find(own.name, features=True) and own.name not in NAMES
    assert with_features or own in map(module_of, CONFIGURATIONS)


@pytest.mark.parametrize("name", [name for name in NAMES if catalogue.find(name).about.cite])
def test_the_learner_of_a_paper_is_compared_with_an_oracle(name):
    module = catalogue.find(name).module.rpartition(".")[2]
    files = [Path(__file__).parent / name for name in ("test_oracles.py", f"test_{module}.py")]
    used = re.findall(r"\bnaive\.([A-Z]\w+)", "".join(file.read_text() for file in files if file.exists()))
    assert any(oracle.lower() in module or module in oracle.lower() for oracle in used)
    assert all(hasattr(naive, oracle) for oracle in used)


def test_no_file_but_the_catalogue_lists_learners():
    """A bound stands where the theory is. Elsewhere a name or two may be an example or a default."""
    package = Path(sl.__file__).parent
    for path in sorted(package.rglob("*.py")):
        constants = {node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)}
        if len(constants & {name for name in NAMES if not name.isidentifier()}) > 2:  # hedge may be a function, too
            assert str(path.relative_to(package)) in {"learners/catalogue.py", "theory/promises.py"}


@pytest.mark.parametrize("label", CONFIGURATIONS)
def test_a_learner_says_what_it_is(label):
    learner = module_of(label)
    name, needs = learner.name, learner.needs
    assert name == CONFIGURATIONS[label][0]
    assert needs == catalogue.needs(learner, {})
    assert needs <= set(Need)
    paper, proved, cost, bound, theorem, published, *_ = learner.about  # then comes what `sidelong cite` prints
    assert catalogue.proved(learner, {}) == proved
    assert set(catalogue.proved(learner, CONFIGURATIONS[label][1])) <= set(proved)
    assert set(proved) <= {"adversarial", "stochastic"}
    assert cost.startswith("O(")
    assert bound or not proved
    if published:
        assert theorem or not proved
        assert all(word in learner.doc for word in paper.split(",")[0].split()[:1])  # the docstring cites it


BOTH, ADVERSARIAL, NOTHING = ("adversarial", "stochastic"), ("adversarial",), ()


@pytest.mark.parametrize(
    ("name", "options", "proved"),
    [
        ("exp3.g++", {}, BOTH),
        ("exp3.g++", {"beta": 400, "rate": "fixed", "ties": "practical"}, BOTH),
        ("exp3.g++", {"beta": 256}, ADVERSARIAL),
        ("exp3.g++", {"gamma": 3}, ADVERSARIAL),
        ("exp3.g++", {"estimator": "shifted"}, ADVERSARIAL),
        ("exp3.g++", {"start": "cover"}, ADVERSARIAL),
        ("exp3.g++", {"eta_scale": 2.0}, ADVERSARIAL),
        ("exp3.g++", {"late": "guarded"}, ADVERSARIAL),
        ("exp3.g++", {"refresh": "epoch"}, ADVERSARIAL),
        ("ito-2022", {"horizon": 50}, BOTH),
        ("tsallis-inf", {"estimator": "rv"}, BOTH),
        ("tsallis-inf", {"feedback": "graph"}, ADVERSARIAL),
        ("tsallis-inf", {"feedback": "graph", "estimator": "rv"}, NOTHING),
        ("exp3++", {"beta": 100}, ADVERSARIAL),
        ("ucb-n", {"width": 0.5}, NOTHING),
        ("ts-n", {"prior": 2.0}, NOTHING),
    ],
)
def test_what_is_proved_depends_on_the_options(name, options, proved):
    assert catalogue.proved(catalogue.choose(name, options), options) == proved


@pytest.mark.parametrize("label", having(Need.HORIZON))
def test_past_its_horizon_nothing_is_proved(label):
    learner, options = module_of(label), options_of(label)
    assert catalogue.proved(learner, options, ROUNDS) == catalogue.proved(learner, options) != ()
    assert catalogue.proved(learner, options, ROUNDS + 1) == ()


@pytest.mark.parametrize("label", CONFIGURATIONS)
def test_probabilities_are_probabilities_and_arms_arms(label):
    agent = new_agent(label)
    for t in range(1, ROUNDS + 1):
        decision = agent.ask()
        assert 0 <= decision.arm < 6
        p = decision.probabilities
        if module_of(label).is_sparing or not module_of(label).draws_itself:
            assert p.min() >= 0
            assert p.sum() == pytest.approx(1, abs=1e-12)
            assert decision.probability > 0
        else:
            assert np.isnan(p).all()
            assert np.isnan(decision.observe_probabilities).all()
        agent.tell(decision, losses_of(decision, t))


@pytest.mark.parametrize("label", CONFIGURATIONS)
def test_an_agent_that_was_saved_goes_on_as_if_it_had_not_been(label, tmp_path):
    agent = new_agent(label)
    play(agent, 20)
    late = [agent.ask() for _ in range(3)]
    agent.save(tmp_path / "agent.sidelong")
    resumed = sl.Agent.load(tmp_path / "agent.sidelong")
    for each in (agent, resumed):
        for decision in reversed(late):
            each.tell(decision.id, losses_of(decision, decision.round))
    assert play(agent, 20) == play(resumed, 20)


@pytest.mark.parametrize("label", CONFIGURATIONS)
def test_agent_and_loop_do_the_same(label):
    graph = fitting_graph(needs_of(label))
    result = simulate(label, graph, world(), ROUNDS, seed=7, checkpoints=range(1, ROUNDS + 1))
    agent = new_agent(label)
    arms = []
    for t in range(1, ROUNDS + 1):
        decision = agent.ask()
        agent.tell(decision, losses_of(decision, t))
        arms.append(decision.arm)
    assert result.plays[0].tolist() == np.bincount(arms, minlength=6).tolist()
    suffered = np.cumsum([world().loss(7, 0, t, arm) for t, arm in enumerate(arms, 1)])
    assert result.loss[0].tolist() == suffered.tolist()
    seen = sum(graph.matrix()[arm].astype(int) for arm in arms)
    assert result.observations[0].tolist() == seen.tolist()


@pytest.mark.parametrize("label", CONFIGURATIONS)
def test_feedback_may_be_late_and_out_of_order(label):
    """And then, by luck, changes nothing for those that never look at it; all the others must stay sound."""
    rng = np.random.default_rng(3)
    agent = new_agent(label)
    waiting = []
    for _ in range(ROUNDS):
        waiting.append(agent.ask())
        while len(waiting) > rng.integers(1, 12):
            decision = waiting.pop(int(rng.integers(len(waiting))))
            agent.tell(decision, losses_of(decision, decision.round))
    for array in agent._state:
        assert not np.isnan(array).any()
    assert agent.ask().arm in range(6)


@pytest.mark.parametrize("label", CONFIGURATIONS)
def test_a_single_arm_is_played(label):
    agent = new_agent(label, sl.graphs.complete(1))
    for _ in range(5):
        decision = agent.ask()
        assert (decision.arm, decision.probability) == (0, pytest.approx(1.0))
        agent.tell(decision, {0: 1.0})


@pytest.mark.parametrize("label", CONFIGURATIONS)
def test_an_unknown_option_is_refused_with_the_list_of_options(label):
    with pytest.raises(LearnerError, match=r"has no option 'sped'.*Its options are"):
        sl.Agent(CONFIGURATIONS[label][0], fitting_graph(needs_of(label)), sped=3, **options_of(label))


WITHOUT_LOOP = sl.FeedbackGraph.from_edges([(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1), (1, 1), (2, 2)])
UNSEEN = sl.FeedbackGraph.from_edges([(0, 0), (1, 1), (2, 0)], 3)
WEAK = sl.FeedbackGraph.from_edges([(0, 0), (0, 1), (2, 2)], 3)
LOOPS = sl.graphs.self_loops(3)
THREE = sl.losses.bernoulli([0.5, 0.2, 0.9])

#: For each need, what lacks it: the call, the error, and what the sentence says.
LACKING = {
    Need.SELF_LOOPS: (lambda label: new_agent(label, WITHOUT_LOOP), ObservabilityError, "arm 0 of"),
    Need.OBSERVABLE: (lambda label: new_agent(label, UNSEEN), ObservabilityError, "no arm reveals arm 2"),
    Need.STRONGLY_OBSERVABLE: (lambda label: new_agent(label, WEAK), ObservabilityError, "weakly observable: arm 1"),
    Need.FULL_INFORMATION: (lambda label: new_agent(label, LOOPS), ObservabilityError, "reveals 1 of 3"),
    Need.UNDIRECTED: (lambda label: new_agent(label, sl.graphs.nested(3)), ObservabilityError, "is directed"),
    Need.HORIZON: (lambda label: sl.Agent(CONFIGURATIONS[label][0], LOOPS), LearnerError, "give horizon="),
    Need.FIXED_GRAPH: (
        lambda label: simulate(label, sl.graphs.alternating([LOOPS, sl.graphs.complete(3)]), THREE, rounds=9),
        ObservabilityError,
        "one graph for all rounds",
    ),
    Need.GRAPH_BEFORE: (
        lambda label: simulate(label, sl.graphs.alternating([LOOPS], shown="after"), THREE, rounds=9),
        ObservabilityError,
        "before the draw",
    ),
    Need.BINARY_LOSSES: (
        lambda label: simulate(label, LOOPS, sl.losses.beta([0.5, 0.2, 0.9], 3.0), rounds=9),
        BinaryLossError,
        "losses that are 0 or 1",
    ),
}


@pytest.mark.parametrize(
    ("label", "need"), [(label, need) for label in CONFIGURATIONS for need in Need if need in needs_of(label)]
)
def test_what_is_missing_is_named(label, need):
    call, error, words = LACKING[need]
    with pytest.raises(error, match=words) as refusal:
        call(label)
    assert CONFIGURATIONS[label][0] in str(refusal.value)


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (WITHOUT_LOOP, "Use exp3.g with rate='adaptive', or luo-2023"),
        (WEAK, "Use exp3.g with rate='adaptive', or luo-2023 with observability='weak'"),
        (UNSEEN, "No learner can do well on this graph, which is not observable: no arm reveals arm 2"),
    ],
)
def test_where_an_arm_does_not_reveal_itself_the_learner_to_use_is_named_before_an_edge(graph, words):
    """Who adds an edge to be let in claims feedback that does not exist."""
    with pytest.raises(ObservabilityError, match="needs every arm to reveal itself") as refusal:
        sl.Agent("glance", graph)
    message = str(refusal.value)
    assert 0 < message.index(words) < message.index("is missing: graph.with_self_loops()")
    if words.startswith("Use"):
        for name in {"luo-2023", "exp3.g"} & set(re.findall(r"[\w.-]+[\w]", words)):
            sl.Agent(name, graph, horizon=10)


@pytest.mark.parametrize("label", having(Need.FIXED_GRAPH))
def test_an_agent_with_one_graph_for_all_rounds_refuses_another(label):
    agent = new_agent(label, sl.graphs.complete(6))
    with pytest.raises(GraphError, match=r"one graph for all rounds.* began on .*complete.* has .*self_loops"):
        agent.ask(sl.graphs.self_loops(6))
    assert agent.round == 0


@pytest.mark.parametrize("label", having(Need.FIXED_GRAPH))
@pytest.mark.parametrize(
    "graphs",
    [
        sl.graphs.alternating([sl.graphs.complete(6), sl.graphs.self_loops(6)]),
        sl.graphs.drawn([sl.graphs.complete(6), sl.graphs.self_loops(6)]),
        sl.graphs.resampled(6, 0.4),
        sl.graphs.shadows(6, 3),
    ],
    ids=["alternating", "drawn", "resampled", "shadows"],
)
def test_graphs_that_change_in_any_way_are_refused_by_those_that_need_one(label, graphs):
    with pytest.raises(ObservabilityError, match="one graph for all rounds"):
        simulate(label, graphs, world(), rounds=9)


@pytest.mark.parametrize("label", having(lacking=Need.FIXED_GRAPH))
def test_graphs_that_change_do_for_all_others(label):
    """The same arms as an agent that is given the graph of each round, whatever graph it began with."""
    bank = [sl.graphs.complete(6)]
    if Need.FULL_INFORMATION not in needs_of(label):
        bank += [sl.graphs.self_loops(6), sl.graphs.cliques([2, 4])]
    result = simulate(label, sl.graphs.alternating(bank), world(), ROUNDS, seed=7)
    agent = new_agent(label, bank[0])
    arms = []
    for t in range(1, ROUNDS + 1):
        decision = agent.ask(bank[(t - 1) % len(bank)])
        agent.tell(decision, losses_of(decision, t))
        arms.append(decision.arm)
    assert result.plays[0].tolist() == np.bincount(arms, minlength=6).tolist()


@pytest.mark.parametrize(
    ("label", "option"),
    [
        ("exp3.g++ fixed", "strong_independence"),
        ("ito-2022", "strong_independence"),
        ("q-tsallis", "independence"),
        ("spm-2024", "independence"),
    ],
)
def test_one_that_is_tuned_by_a_number_of_the_graph_says_which_to_give(label, option):
    with pytest.raises(ObservabilityError, match=rf"Give {option}=\.\.\.; the number of arms is always valid"):
        simulate(label, sl.graphs.resampled(6, 0.4), world(), rounds=9)


@pytest.mark.parametrize("label", having(Need.BINARY_LOSSES))
def test_an_agent_that_needs_losses_0_or_1_refuses_others(label):
    agent = new_agent(label, sl.graphs.self_loops(6))
    decision = agent.ask()
    with pytest.raises(LossError, match=rf"must be 0 or 1 for {agent.learner}, not 0\.3"):
        agent.tell(decision, {decision.arm: 0.3})
    assert agent.tell(decision, {decision.arm: 1})


@pytest.mark.parametrize("label", having(lacking=Need.GRAPH_BEFORE))
def test_a_graph_that_is_shown_after_the_draw_does_for_those_that_do_not_ask_before(label):
    graph = fitting_graph(needs_of(label))
    shown = sl.graphs.alternating([graph], shown="after")
    after = simulate(label, shown, world(), rounds=30, seed=2)
    before = simulate(label, graph, world(), rounds=30, seed=2)
    assert after.plays.tolist() == before.plays.tolist()


def digests():
    return {label: hashlib.sha256(play(new_agent(label), ROUNDS)).hexdigest() for label in CONFIGURATIONS}


def test_the_bits_do_not_depend_on_the_jit():
    program = "import json, test_contract\nprint(json.dumps(test_contract.digests()))"
    path = os.pathsep.join([os.path.dirname(__file__), *sys.path])  # noqa: PTH120
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": path},
        check=True,
        capture_output=True,
        text=True,
    )
    assert json.loads(done.stdout) == digests()


@pytest.mark.parametrize("label", [each for each in CONFIGURATIONS if module_of(each).scratch])
def test_no_round_leaves_anything_in_the_scratch_arrays_of_a_learner(label):
    """What is named as scratch never changes, or may be overwritten with anything between any two calls."""
    first, second = new_agent(label), new_agent(label)
    scratch = module_of(label).scratch
    fresh = {name: getattr(first._state, name).copy() for name in scratch}
    play(first, ROUNDS)
    computed_in = [name for name in scratch if not np.array_equal(fresh[name], getattr(first._state, name))]
    first, rng = new_agent(label), np.random.default_rng(3)
    for _ in range(ROUNDS):
        decision = first.ask()
        overwrite(second, computed_in, rng)
        assert decision.probabilities.tobytes() == second.ask().probabilities.tobytes()
        if decision.round % 3:  # the others wait for ever
            first.tell(decision, losses_of(decision, decision.round))
            overwrite(second, computed_in, rng)
            second.tell(decision.id, losses_of(decision, decision.round))
    for name in set(first._state._fields) - set(scratch):
        assert getattr(first._state, name).tobytes() == getattr(second._state, name).tobytes()


def overwrite(agent, names, rng):
    for name in names:
        array = getattr(agent._state, name)
        array[...] = rng.integers(0, 2 if array.dtype == np.bool_ else 5, array.shape)
