"""The environment keeps Gymnasium's rules and plays what `simulate` plays."""

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import sidelong as sl
from sidelong.errors import LossError, SidelongError, SimulationError
from sidelong.graphs.makers import makers
from sidelong.integrations.gymnasium import GraphBandit, play

MEANS = [0.6, 0.3, 0.6, 0.6, 0.6]
WORLD = sl.losses.bernoulli(MEANS)
SEQUENCES = {
    "fixed": sl.graphs.nested(5),
    "before": sl.graphs.alternating([sl.graphs.star(5), sl.graphs.self_loops(5)]),
    "after": sl.graphs.alternating([sl.graphs.star(5), sl.graphs.self_loops(5)], shown="after"),
    "resampled": sl.graphs.resampled(5, 0.4, directed=True),
}


@pytest.mark.parametrize("graph", SEQUENCES.values(), ids=SEQUENCES)
def test_gymnasiums_own_checker_passes_without_a_warning(graph):
    check_env(GraphBandit(graph, WORLD, rounds=20), skip_render_check=True)


FEW = {"banded": (6, 1), "circulant": (6, 2), "cliques": ([2, 4],), "complete_bipartite": (2, 4)}
FEW |= {"directed_circulant": (6, 2), "erdos_renyi": (6, 0.4, 1), "grid": (2, 3), "hypercube": (3,), "petersen": ()}
FEW |= {"rotational_tournament": (7,)}


@pytest.mark.parametrize("family", makers(over_time=False).values(), ids=lambda family: family.name)
def test_the_checker_passes_on_each_family_of_graphs(family):
    graph = family.make(*FEW.get(family.name, (6,)))
    means = [0.5] * graph.n_arms
    check_env(GraphBandit(graph, sl.losses.beta(means, concentration=3), rounds=4), skip_render_check=True)


WORLDS = {
    "beta": sl.losses.beta(MEANS, concentration=2),
    "constrained": sl.losses.constrained(gaps=[0, 0.2, 0.2, 0.2, 0.2]),
    "corrupted": sl.losses.corrupted(MEANS, budget=10),
    "switching": sl.losses.switching([MEANS, MEANS[::-1]], every=3),
    "drifting": sl.losses.drifting([MEANS, MEANS[::-1]], every=3),
    "lower_bound": sl.losses.lower_bound(sl.graphs.self_loops(5), horizon=100),
    "breaker": sl.losses.breaker(sl.graphs.nested(5), rounds=100),
    "table": sl.losses.table(np.eye(5)),
    "function": sl.losses.function(lambda seed, run, t, arm: (seed + run + t + arm) % 5 / 4, n_arms=5),
}


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_the_checker_passes_on_each_world(world):
    check_env(GraphBandit(sl.graphs.nested(5), world, rounds=4), skip_render_check=True)


def test_several_at_once_are_each_what_they_are_alone():
    def make():
        return GraphBandit(sl.graphs.nested(5), WORLDS["beta"], rounds=3)

    several = gymnasium.vector.SyncVectorEnv([make, make])
    several.reset(seed=8)  # the second has seed 9
    together = [several.step(np.array([4, 2]))[1].tolist() for _ in range(8)]
    for number, arm in enumerate((4, 2)):
        env = make()
        env.reset(seed=8 + number)
        alone = []
        for _ in range(2):
            alone += [env.step(arm)[1] for _ in range(3)] + [0.0]  # the step that begins the next episode
            env.reset()
        assert [rewards[number] for rewards in together] == alone


def test_it_is_registered():
    name = "sidelong.integrations.gymnasium:sidelong/GraphBandit-v0"
    env = gymnasium.make(name, graph=sl.graphs.nested(5), world=WORLD, rounds=3)
    env.reset(seed=1)
    ends = [env.step(0)[2:4] for _ in range(3)]
    assert ends == [(False, False), (False, False), (False, True)]


@pytest.mark.parametrize("kind", SEQUENCES)
def test_an_episode_is_a_run_of_simulate_to_the_bit(kind):
    graph, learner = SEQUENCES[kind], "exp3-set"  # which needs no graph before the draw
    first = graph.bank[0] if isinstance(graph, sl.GraphSequence) and graph.bank else sl.graphs.self_loops(5)
    agent = sl.Agent(learner, graph if kind == "fixed" else first, seed=9)
    played = play(GraphBandit(graph, WORLD), agent, rounds=300, seed=9)
    result = sl.simulate(learner, graph, WORLD, rounds=300, seed=9)
    assert np.bincount(played.arms, minlength=5).tolist() == result.plays[0].tolist()
    assert 300 - played.rewards.sum() == result.loss[0, -1]


def test_a_reset_without_a_seed_begins_the_next_run():
    env = GraphBandit(sl.graphs.complete(5), WORLD, rounds=50)
    for run in range(3):
        env.reset(seed=4 if run == 0 else None)
        for t in range(1, 51):
            observation, reward, *_ = env.step(2)
            losses = [WORLD.loss(4, run, t, arm) for arm in range(5)]
            assert observation["losses"].tolist() == losses
            assert reward == 1 - losses[2]


def test_what_is_not_revealed_does_not_show():
    env = GraphBandit(sl.graphs.nested(5), sl.losses.table(np.ones((10, 5))))
    env.reset(seed=0)
    observation, *_, info = env.step(2)
    assert observation["losses"].tolist() == [1, 1, 1, 0, 0]
    assert observation["revealed"].tolist() == [1, 1, 1, 0, 0]
    assert info["revealed"] == {0: 0.0, 1: 0.0, 2: 0.0}


def test_the_graph_comes_before_the_draw_or_after_it_and_never_both():
    for shown in ("before", "after"):
        env = GraphBandit(SEQUENCES[shown], WORLD, rounds=2)
        keys = [set(env.reset(seed=1)[1]), set(env.step(0)[-1]), set(env.step(0)[-1])]
        coming = {"graph"} if shown == "before" else set()
        outcome = {"revealed"} | ({"outcome_graph"} if shown == "after" else set())
        assert keys == [{"round"} | coming, {"round"} | coming | outcome, {"round"} | outcome]


class Slots(gymnasium.Env):
    """Somebody's bandit: episodes of one step, actions from 1, rewards from -10 to 10, a seed of its own."""

    action_space = gymnasium.spaces.Discrete(3, start=1)
    observation_space = gymnasium.spaces.Discrete(1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        return 0, {}

    def step(self, action):
        assert self.action_space.contains(action)
        return 0, float(10 * (-1) ** int(self.np_random.random() < [0.7, 0.2, 0.7][action - 1])), True, False, {}


def test_any_bandit_is_played_and_learned():
    agent = sl.Agent("tsallis-inf", sl.graphs.self_loops(3), seed=2)
    played = play(Slots(), agent, rounds=3000, rewards=(-10, 10), seed=2)
    # With this seed. Tsallis-INF's regret is below 4 sqrt(3 x 3000) in expectation, a sixth of what chance would lose.
    assert np.bincount(played.arms)[1] > 2000
    again = play(Slots(), sl.Agent("tsallis-inf", sl.graphs.self_loops(3), seed=2), 3000, rewards=(-10, 10), seed=2)
    assert (again.arms == played.arms).all()


@pytest.mark.parametrize(
    ("env", "agent", "options", "message"),
    [
        (Slots(), ("exp3", sl.graphs.self_loops(3)), {}, r"from 0 to 1, the ends of its scale, not -?10.0.*rewards="),
        (Slots(), ("exp3", sl.graphs.self_loops(4)), {}, "3 actions and the agent 4 arms"),
        (Slots(), ("exp3.g++", sl.graphs.complete(3)), {"rewards": (-10, 10)}, r"reveals arm 1.*info\[.revealed.\]"),
        (Slots(), ("exp3", sl.graphs.self_loops(3)), {"rewards": (1, 1)}, r"as in \(0, 1\), not \(1, 1\)"),
        (Slots(), ("exp3", sl.graphs.self_loops(3)), {"rewards": 7}, r"as in \(0, 1\), not 7"),
        (Slots(), ("exp3", sl.graphs.self_loops(3)), {"rewards": (-1e308, 1e308)}, r"not \(-1e\+308, 1e\+308\)"),
        (Slots(), ("exp3", sl.graphs.self_loops(3)), {"rounds": -1}, "at least 0, not -1"),
        (Slots(), ("exp3", sl.graphs.self_loops(3)), {"rounds": 1.5}, r"whole number of at least 0, not 1\.5"),
    ],
)
def test_what_cannot_be_played_is_refused(env, agent, options, message):
    name, graph = agent
    with pytest.raises(SidelongError, match=message):
        play(env, sl.Agent(name, graph, seed=1), **{"rounds": 50, "seed": 1, **options})


def test_rewards_are_made_losses_once():
    graph = sl.graphs.self_loops(3)
    scaled = sl.Agent("exp3", graph, scale=sl.outcomes.Scale(best=10, worst=-10))
    for agent in (scaled, "exp3"):
        with pytest.raises(SimulationError, match=r"without a scale.*from -10 to 10.*rewards="):
            play(Slots(), agent, rounds=5, rewards=(-10, 10))


def test_only_discrete_actions_are_arms():
    class Arm(Slots):
        action_space = gymnasium.spaces.Box(0, 1)

    with pytest.raises(SimulationError, match="Discrete"):
        play(Arm(), sl.Agent("exp3", sl.graphs.self_loops(3)), rounds=1)


def test_wrong_environments_and_steps_are_refused():
    graph = sl.graphs.nested(5)
    with pytest.raises(SidelongError, match="5 arms and the world 3"):
        GraphBandit(graph, sl.losses.bernoulli([0.1] * 3))
    with pytest.raises(SidelongError, match="FeedbackGraph"):
        GraphBandit("nested", WORLD)
    with pytest.raises(SidelongError, match=r"sidelong\.losses"):
        GraphBandit(graph, MEANS)
    with pytest.raises(SidelongError, match="at least 1, not 0"):
        GraphBandit(graph, WORLD, rounds=0)
    with pytest.raises(SidelongError, match="10 rounds, and 11"):
        GraphBandit(graph, sl.losses.table(np.ones((10, 5))), rounds=11)
    env = GraphBandit(graph, WORLD, rounds=1)
    with pytest.raises(SimulationError, match="reset"):
        env.step(0)
    env.reset(seed=0)
    with pytest.raises(SimulationError, match="from 0 to 4, not 5"):
        env.step(5)
    env.step(0)
    with pytest.raises(SimulationError, match="ended after 1 rounds"):
        env.step(0)


def test_a_world_that_leaves_its_range_is_named():
    env = GraphBandit(sl.graphs.nested(2), sl.losses.function(lambda *_: float("nan"), n_arms=2))
    env.reset(seed=0)
    with pytest.raises(LossError, match="nan in round 1"):
        env.step(1)


def test_no_seed_still_plays_and_episodes_differ():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = GraphBandit(sl.graphs.complete(5), sl.losses.beta(MEANS, concentration=2))
        seen = []
        for _ in range(2):
            env.reset()
            seen.append(env.step(0)[0]["losses"].tolist())
    assert seen[0] != seen[1]
