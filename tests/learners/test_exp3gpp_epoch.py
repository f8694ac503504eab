"""EXP3.G++ in epochs: its oracle, the exact schedule at growth 0, its draws, and that it spares the other arms."""

import inspect
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import naive
import sidelong as sl
from learners.epoch_games import EARLY, EVERY_ROUND, GRAPHS, every_graph, losses_of, new_agent, play, world
from learners.stepping import follow, random_digraph
from sidelong import theory
from sidelong._jit import compiled
from sidelong.errors import LearnerError
from sidelong.graphs.sequences import fixed
from sidelong.learners import catalogue, exp3gpp, exp3gpp_epoch
from sidelong.learners.interface import Asked
from sidelong.numerics import DRAWS, uniform
from sidelong.simulation.loop import loop_for, new_tally

# The algorithm


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("late", [False, True])
def test_agrees_with_the_oracle_in_every_round(seed, late):
    """Random digraphs of 2 to 9 arms; graphs, rates, ties, constants and starts take turns."""
    rng = np.random.default_rng(seed)
    K = int(rng.integers(2, 10))
    bank = [random_digraph(rng, K) for _ in range(2 if seed % 3 == 0 else 1)]
    options = {"growth": [0.1, 0.0, 0.3, 1.0][seed % 4], "ties": ["paper", "practical"][seed // 2 % 2]}
    options |= EARLY if seed % 2 else {}
    if seed % 5 == 0:
        options |= {"rate": "fixed", "strong_independence": K}
    start = [{"start": "all"}, {"start": "none"}][seed // 4 % 2]
    agent = sl.Agent("exp3.g++", sl.FeedbackGraph.from_matrix(bank[0]), seed=seed, refresh="epoch", **options, **start)
    oracle = naive.Exp3GppEpoch(
        K,
        uniform_arm=lambda t: int(uniform(np.uint64(seed), DRAWS, 0, t, 1) * K),
        start=None if start["start"] == "all" else [],
        **options,
    )
    follow(agent, oracle, bank, rounds=300, late=late, seed=seed)
    assert len(oracle.begun) > (250 if options["growth"] == 0 else 5)
    assert len(bank) > 1 or options["growth"] == 0 or len(oracle.begun) < 200


@every_graph
def test_with_growth_0_it_is_the_exact_schedule(name):
    """The same arms and, to 1e-12, the same distributions in every round.

    An arm of tiny P multiplies the rounding errors of both when it is seen, and so does each further one. So that this
    does not hide anything, the small difference that one round makes is checked and taken out.
    """
    exact, epochs = (sl.Agent("exp3.g++", GRAPHS[name], seed=3, **EARLY, **each) for each in ({}, EVERY_ROUND))
    for _ in range(400):
        one, two = exact.ask(), epochs.ask()
        assert one.arm == two.arm
        assert two.probability == two.probabilities[two.arm]
        np.testing.assert_allclose(two.probabilities, one.probabilities, rtol=1e-12)
        P = one.observe_probabilities
        np.testing.assert_allclose(two.observe_probabilities, P, rtol=1e-12)
        np.testing.assert_allclose(two.drawn.p, P[one.reveals], rtol=1e-12)  # what `update` will divide by
        exact.tell(one, losses_of(one))
        epochs.tell(two, losses_of(two))
        for field in ("Ltilde", "Theta"):
            ours, theirs = getattr(epochs._state, field), getattr(exact._state, field)
            np.testing.assert_allclose(ours, theirs, rtol=1e-12)
            theirs[:] = ours


def test_on_self_loops_it_can_be_exp3pp():
    """With the options that docs/epoch.md gives, and growth 0."""
    K = 12
    graph = sl.graphs.self_loops(K)
    options = {"rate": "fixed", "strong_independence": K, "eta_scale": 0.5**0.5, "gamma": 3, "beta": 256}
    exact, epochs = sl.Agent("exp3++", graph, seed=3), sl.Agent("exp3.g++", graph, seed=3, **EVERY_ROUND, **options)
    for _ in range(400):
        one, two = exact.ask(), epochs.ask()
        assert one.arm == two.arm
        np.testing.assert_allclose(two.probabilities, one.probabilities, rtol=1e-12)
        exact.tell(one, losses_of(one))
        epochs.tell(two, losses_of(two))


@every_graph
def test_with_growth_0_nothing_drifts_apart(name):
    """The same, where each goes its own way for 300 rounds: no probability differs by 1e-12."""
    graph = GRAPHS[name]
    exact, epochs = (sl.Agent("exp3.g++", graph, seed=3, **each) for each in ({}, EVERY_ROUND))
    for _ in range(300):
        one, two = exact.ask(), epochs.ask()
        assert one.arm == two.arm
        np.testing.assert_allclose(two.probabilities, one.probabilities, rtol=0, atol=1e-12)
        exact.tell(one, losses_of(one))
        epochs.tell(two, losses_of(two))


@pytest.mark.interpreted
@every_graph
def test_probabilities_are_exact_within_an_epoch_too(name):
    """p is the formula's for the Ltilde of this round and the rates of the epoch, and P the sum of it."""
    graph, refreshed = GRAPHS[name], 0
    agent = new_agent(graph, growth=0.5, start="none", **EARLY)
    for _ in range(400):
        decision = agent.ask()
        state = agent._state
        q = naive.softmax(-state.rates[0] * state.Ltilde)
        p = (1 - state.eps.sum()) * q + state.eps
        np.testing.assert_allclose(decision.probabilities, p, rtol=1e-11)
        np.testing.assert_allclose(decision.drawn.p, naive.observation(p, graph.matrix())[decision.reveals], rtol=1e-11)
        cap = naive.exploration_cap(graph.n_arms, decision.round, 1.0)
        assert state.eps.max() <= cap * (1 + 1e-15)  # the two may round a square root differently
        refreshed += decision.drawn.trace[exp3gpp_epoch.TRACES.index("refreshed")]
        agent.tell(decision, losses_of(decision))
    assert refreshed < 60


@every_graph
@pytest.mark.parametrize("within", [False, True])
def test_draws_follow_p_and_the_estimate_of_theta_has_the_mean_theta(name, within):
    """20,000 draws of one round, which begins an epoch or lies within one.

    A right learner fails the chi-square test with a chance of 1e-4, and that of the mean, at 5 standard errors, of
    1e-6: over all cases once in 700 choices of the seed.
    """
    graph = GRAPHS[name]
    agent = new_agent(graph, growth=0.2, start="none", **EARLY)
    begins = exp3gpp_epoch.TRACES.index("refreshed")
    while True:
        decision = agent.ask()
        agent.tell(decision, losses_of(decision))
        last = decision.round == agent._state.epoch[0]  # so that the next one begins another
        if decision.round > 100 and (not decision.drawn.trace[begins] if within else last):
            break
    state = type(agent._state)(*(array.copy() for array in agent._state))
    p, trace = np.zeros(graph.n_arms), np.zeros(len(exp3gpp_epoch.TRACES))
    known = (agent._setup.params, state, graph.arrays)
    asked = Asked.new(decision.round + 1, p, trace, seed=5)
    draw = compiled(exp3gpp_epoch.draw, *known, asked)
    arms, theta = [], []
    for run in range(20_000):
        arms.append(draw(*known, asked._replace(run=run)))
        theta.append(trace[0])
    p = agent.ask().probabilities
    kept = p * len(arms) >= 5  # rarer ones are counted together
    seen = np.bincount(arms, minlength=p.size)
    counts = np.append(seen[kept], seen[~kept].sum())
    expected = np.append(p[kept], p[~kept].sum()) * len(arms)
    chance = stats.chisquare(counts[expected > 0], expected[expected > 0]).pvalue
    assert chance > 1e-4
    exact = naive.theta(p, graph.matrix())
    # Only the first draw of an epoch knows theta.
    assert theta[0] == pytest.approx(exact, rel=1e-9) or within
    error = np.std(theta) / math.sqrt(len(theta))
    assert np.mean(theta) == pytest.approx(exact, abs=5 * error + 1e-9)
    assert max(theta) <= 2 * graph.n_arms


@pytest.mark.parametrize("name", ["intervals in a row", "arcs", "other intervals"])
def test_draws_follow_p_over_refreshes(name):
    """1,500 rounds, each with its own p, some of which begin epochs.

    With V uniform, p(arms below I) + V p(I) is uniform if I follows p: a chi-square test over 20 equal parts, which a
    right learner fails with a chance of 1e-4.
    """
    graph, agent = GRAPHS[name], new_agent(GRAPHS[name], growth=0.1, start="none", **EARLY)
    rng, falls, refreshed = np.random.default_rng(5), [], 0
    for _ in range(1500):
        decision = agent.ask()
        p = decision.probabilities
        falls.append(p[: decision.arm].sum() + rng.random() * p[decision.arm])
        refreshed += decision.drawn.trace[exp3gpp_epoch.TRACES.index("refreshed")]
        agent.tell(decision, losses_of(decision))
    assert stats.chisquare(np.histogram(falls, 20, (0, 1))[0]).pvalue > 1e-4
    assert 40 < refreshed < 400
    assert graph.n_arms > 5


# What it spares


@pytest.mark.parametrize("name", [each for each in GRAPHS if each != "other intervals"])
def test_a_round_within_an_epoch_looks_at_no_other_arms(name):
    """What was computed for all arms is put out of sight, and all that is played and learned is the same."""
    graph = GRAPHS[name]
    one, other = (new_agent(graph, growth=1, start="none", **EARLY) for _ in range(2))
    for _ in range(300):
        assert play(one, 1) == play(other, 1)
        if other.round < other._state.epoch[0]:
            for array in (
                other._state.width,
                other._state.p,
                other._state.P,
                other._state.eps,
            ):
                array[:] = np.nan


def test_other_intervals_and_their_arcs_are_played_alike():
    graph = GRAPHS["other intervals"]
    one, two = new_agent(graph, **EARLY), new_agent(graph.as_arcs(), **EARLY)
    for _ in range(300):
        each = one.ask(), two.ask()
        assert each[0].arm == each[1].arm
        np.testing.assert_allclose(each[0].probabilities, each[1].probabilities, rtol=1e-9)
        one.tell(each[0], losses_of(each[0]))
        two.tell(each[1], losses_of(each[1]))


@pytest.mark.parametrize("arcs_first", [False, True])
def test_arcs_and_intervals_of_one_graph_may_take_turns(arcs_first):
    """They are the same graph and have the same key, but P is found in another way."""
    intervals = GRAPHS["other intervals"]
    turns = [intervals.as_arcs(), intervals] if arcs_first else [intervals, intervals.as_arcs()]
    agent = new_agent(turns[0], growth=1, start="none", **EARLY)
    for t in range(100):
        decision = agent.ask(turns[t // 3 % 2])
        P = naive.observation(decision.probabilities, intervals.matrix())
        np.testing.assert_allclose(decision.revealed_probabilities, P[decision.reveals], rtol=1e-11)
        agent.tell(decision, losses_of(decision))


# Numbers over many rounds


def play_in_the_loop(graph, losses, rounds, **options):
    """Return the state after so many rounds."""
    params = exp3gpp.configure(graph, refresh="epoch", **options)
    state = exp3gpp_epoch.init(params, graph)
    tally = new_tally(exp3gpp_epoch.LEARNER, graph.n_arms)
    loop = loop_for(exp3gpp_epoch.LEARNER, losses, anew=False)
    assert loop(params, state, fixed(graph).arrays, losses.arrays, np.uint64(1), 0, 1, rounds, tally) == 0
    return state


@pytest.mark.parametrize(
    ("graph", "losses", "options"),
    [
        (sl.graphs.complete(3), sl.losses.bernoulli([1.0] * 3), {"growth": 1}),
        (sl.graphs.circulant(200, 2), world(200), {}),
        (sl.graphs.nested(300), sl.losses.bernoulli([0.0] + [1.0] * 299), {"start": "none"}),
    ],
    ids=["all weights fall", "ring", "one good arm"],
)
def test_sums_stay_exact_over_many_rounds(graph, losses, options):
    """The trees hold the weights of Ltilde to 13 digits.

    Where all losses are 1, all weights fall by a factor of exp(-700) within an epoch, and would underflow.
    """
    state = play_in_the_loop(graph, losses, 3_000_000 if graph.n_arms == 3 else 300_000, **options)
    w = [math.exp(-state.rates[0] * (L - state.rates[1])) for L in state.Ltilde]
    assert state.w[0] == pytest.approx(math.fsum(w), rel=1e-13, abs=0)
    assert state.w[0] > 1e-101
    assert state.e[0] == pytest.approx(math.fsum(state.eps), rel=1e-13, abs=0)
    assert all(np.isfinite(array).all() for array in state)


def test_a_billion_rounds_later_probabilities_are_as_exact():
    """From round 10^9 on, with the sums that so many rounds leave: p is right to 1e-12, by exact arithmetic."""
    K, t = 200, 10**9
    graph = sl.graphs.banded(K, 2)
    params = exp3gpp.configure(graph, refresh="epoch")
    state, rng = exp3gpp_epoch.init(params, graph), np.random.default_rng(0)
    state.Theta[0] = 40.0 * t
    state.Ltilde[:] = 5e8 + rng.exponential(2e5, K)
    state.O[:] = 2e7
    state.Lhat[:] = 1e7 + rng.normal(0, 1e4, K)
    state.mean[:] = state.Lhat / state.O
    losses, tally = world(K), new_tally(exp3gpp_epoch.LEARNER, K)
    loop = loop_for(exp3gpp_epoch.LEARNER, losses, anew=False)
    bank = fixed(graph).arrays
    for first in (t, t + 50_000):  # the first half begins an epoch, the second is within it
        assert loop(params, state, bank, losses.arrays, np.uint64(1), 0, first, first + 49_999, tally) == 0
        eta = Fraction(float(state.rates[0]))
        w = [math.exp(float(-eta * (Fraction(float(L)) - Fraction(float(state.Ltilde.min()))))) for L in state.Ltilde]
        p = (1 - math.fsum(state.eps)) * np.array(w) / math.fsum(w) + state.eps
        asked = Asked.new(first + 50_000, np.zeros(K), np.zeros(len(exp3gpp_epoch.TRACES)))
        ours = [exp3gpp_epoch.probability(params, state, graph.arrays, asked, arm) for arm in range(K)]
        np.testing.assert_allclose(ours, p, rtol=1e-12)
        assert math.fsum(ours) == pytest.approx(1, abs=1e-13)
    assert tally.traces[exp3gpp_epoch.TRACES.index("refreshed")] == 1


@pytest.mark.parametrize("adversarial", [False, True])
def test_regret_is_that_of_the_exact_schedule(adversarial):
    """The mean difference over three graphs, in 24 paired runs, is below 3 %, in either world.

    The limit is 3 % and 4 standard errors, so that a right learner fails with a chance below 1e-4, and those are small.
    """
    graphs = [sl.graphs.circulant(50, 2), sl.graphs.nested(20), sl.graphs.self_loops(10)]
    shares = []
    for graph in graphs:
        K = graph.n_arms
        gaps = np.where(np.arange(K) == K // 3, 0.0, 0.2)
        losses = sl.losses.constrained(gaps) if adversarial else sl.losses.bernoulli(0.4 + gaps)
        options = {"rounds": 20_000, "runs": 24, "seed": 5, "checkpoints": 1}
        exact, epochs = (
            sl.simulate("exp3.g++", graph, losses, refresh=each, **options).regret[:, 0] for each in ("round", "epoch")
        )
        shares.append((epochs - exact) / exact.mean())
    share = np.mean(shares, axis=0)
    error = share.std(ddof=1) / math.sqrt(share.size)
    assert abs(share.mean()) < 0.03 + 4 * error
    assert error < 0.015


@pytest.mark.parametrize("start", ["all", "cover", "none"])
@pytest.mark.parametrize("family", ["self_loops", "star", "nested", "directed_cycle"])
def test_regret_stays_below_the_bound(family, start):
    """The constrained adversary, 8 runs, at every checkpoint, with the theta that was measured."""
    graph = getattr(sl.graphs, family)(12)
    losses = sl.losses.constrained(gaps=0.3, n_arms=12, best=7)
    options = {"refresh": "epoch", "growth": 0.2, "start": start}
    initial = exp3gpp.configure(graph, **options).initial.size
    result = sl.simulate("exp3.g++", graph, losses, rounds=20_000, runs=8, seed=1, **options)
    lengths = np.diff(result.rounds, prepend=0)
    theta = (result.traces["theta"] * lengths).mean(axis=0).cumsum() - np.minimum(result.rounds, initial)
    for T, regret, total in zip(result.rounds, result.regret.mean(axis=0), theta, strict=True):
        most = min(max(0.0, total), 12 * int(T))  # a mean of estimates of theta, which is at most 12
        bound = theory.theorem_4_epochs(K=12, T=int(T), theta_sum=most, growth=0.2, initial=initial)
        assert regret <= bound


def test_the_estimate_of_theta_changes_the_rate_by_little():
    """Theta after 30,000 rounds on a star is that of the exact schedule within 10 %, in each of 8 runs."""
    graph, losses = sl.graphs.star(20), world(20)
    options = {"rounds": 30_000, "runs": 8, "seed": 2, "checkpoints": 1}
    exact, epochs = (sl.simulate("exp3.g++", graph, losses, **options, refresh=each) for each in ("round", "epoch"))
    assert epochs.traces["theta"][:, 0] == pytest.approx(exact.traces["theta"][:, 0], rel=0.1)


# Options


def test_the_schedule_is_chosen_by_its_name():
    graph = sl.graphs.star(5)
    assert catalogue.choose("exp3.g++", {"refresh": "round"}) is exp3gpp.LEARNER
    assert catalogue.choose("exp3.g++", {"refresh": "epoch"}) is exp3gpp_epoch.LEARNER
    with pytest.raises(LearnerError, match="refresh must be 'round' or 'epoch', not 'epochs'"):
        sl.Agent("exp3.g++", graph, refresh="epochs")
    with pytest.raises(LearnerError, match="refresh='epoch' needs estimator='plain', and estimator is 'shifted'"):
        new_agent(graph, estimator="shifted")


def test_a_growth_without_epochs_is_refused():
    with pytest.raises(
        LearnerError, match=r"growth is that of epochs: give refresh='epoch' too, or leave growth=0\.1 out"
    ):
        sl.Agent("exp3.g++", sl.graphs.star(5), growth=0.1)


def test_the_default_growth_is_that_of_the_bound():
    functions = (theory.theorem_4_epochs, exp3gpp.configure)
    assert len({inspect.signature(function).parameters["growth"].default for function in functions}) == 1
