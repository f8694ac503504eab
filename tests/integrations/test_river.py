"""Learners behind river's policies decide as agents do."""

import copy
import pickle

import gymnasium
import pytest
from river import bandit

import sidelong as sl
from sidelong.errors import SidelongError
from sidelong.integrations.gymnasium import GraphBandit
from sidelong.integrations.river import Policy

ARMS = ["red", "green", "blue"]
REWARDS = {"red": 1.0, "green": 5.0, "blue": 3.0}


def test_a_policy_decides_as_an_agent_that_is_told_the_same():
    graph = sl.graphs.nested(3)
    policy = Policy("exp3.g++", graph, seed=3, rewards=(1, 5))
    agent = sl.Agent("exp3.g++", graph, seed=3)
    for _ in range(200):
        arm = policy.pull(ARMS)
        decision = agent.ask()
        assert arm == ARMS[decision.arm]
        others = {ARMS[k]: REWARDS[ARMS[k]] for k in decision.reveals if ARMS[k] != arm}
        policy.update(arm, REWARDS[arm], revealed=others)
        agent.tell(decision, {int(k): (5 - REWARDS[ARMS[k]]) / 4 for k in decision.reveals})
    assert policy.ranking[0] == "green"
    assert "green" in repr(policy)


def test_rivers_own_evaluation_runs_it():
    env = GraphBandit(sl.graphs.self_loops(4), sl.losses.bernoulli([0.9, 0.1, 0.9, 0.9]), rounds=150)
    policies = [
        Policy("tsallis-inf", seed=1),
        Policy("glance"),
        bandit.EpsilonGreedy(0.1, seed=1),
    ]
    steps = list(bandit.evaluate(policies, env, n_episodes=2, seed=1))
    assert len(steps) == 3 * 2 * 150
    total = [sum(step["reward"] for step in steps if step["policy_idx"] == k) for k in range(3)]
    assert min(total[:2]) > 1.5 * 300 * 0.3  # the mean reward of a random arm is 0.3; with these seeds


def test_a_replay_of_a_log_forgets_the_pulls_that_nobody_made():
    history = [(ARMS, {}, ARMS[t % 3], REWARDS[ARMS[t % 3]] / 5) for t in range(60)]
    policy = Policy(seed=1)
    _, used = bandit.evaluate_offline(policy, history)
    assert 0 < used < 60
    assert len(policy._agent.pending) <= 1


def test_late_rewards_are_learned_with_the_probabilities_of_their_own_pull():
    policy, agent = Policy(seed=5, late=True), sl.Agent("glance", sl.graphs.self_loops(3), seed=5)
    for _ in range(20):
        arms = [policy.pull(ARMS) for _ in range(7)]
        decisions = [agent.ask() for _ in range(7)]
        for arm, decision in reversed(list(zip(arms, decisions, strict=True))):
            first = next(each for each in decisions if each.arm == decision.arm and each in agent.pending)
            policy.update(arm, REWARDS[arm] / 5)
            agent.tell(first, [1 - REWARDS[arm] / 5])
    assert policy._agent.estimates().weights.tolist() == agent.estimates().weights.tolist()


def test_a_clone_has_learned_nothing_and_has_the_same_options():
    policy = Policy("exp3.g++", sl.graphs.star(3), seed=8, beta=100.0, rewards=(0, 5))
    first = [policy.pull(ARMS)]
    copy = policy.clone()
    assert [copy.pull(ARMS)] == first
    assert copy._agent.options == {"beta": 100.0}
    assert copy.rewards == (0, 5)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda policy: pickle.loads(pickle.dumps(policy))])  # noqa: S301
@pytest.mark.parametrize("late", [False, True])
def test_a_pickle_goes_on_where_it_was_and_apart(copied, late):
    policy = Policy("exp3.g++", sl.graphs.nested(3), seed=4, late=late)

    def game(player, rounds):
        arms = []
        for _ in range(rounds):
            arms.append(player.pull(ARMS))
            others = {name: REWARDS[name] / 5 for name in ARMS[: ARMS.index(arms[-1])]}
            player.update(arms[-1], REWARDS[arms[-1]] / 5, revealed=others)
        return arms

    game(policy, 50)
    policy.pull(ARMS)  # and no reward yet
    other = copied(policy)
    first, second = game(policy, 50), game(other, 50)
    assert first == second
    assert len(set(first)) > 1
    assert repr(policy) == repr(other)


def test_what_has_no_reward_yet_can_be_shown():
    assert repr(Policy("exp3")) == "<Policy exp3: no reward yet>"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learner": "exp33"}, "no learner named 'exp33'"),
        ({"scale": sl.outcomes.Scale(best=5, worst=0)}, "rewards="),
        ({"rewards": (-1e308, 1e308)}, "smallest and the largest"),
        ({"rewards": "01"}, "smallest and the largest"),
    ],
)
def test_what_no_policy_can_have_is_refused_when_it_is_made(options, message):
    with pytest.raises(SidelongError, match=message):
        Policy(**options)


@pytest.mark.parametrize(
    ("calls", "message"),
    [
        (lambda policy: policy.pull(["red", "green"]), "graph has 3 arms"),
        (lambda policy: policy.pull(["red", "green", "red"]), "all different"),
        (lambda policy: (policy.pull(ARMS), policy.pull(ARMS[::-1])), "first pull: 'red', 'green', 'blue'"),
        (lambda policy: policy.update("red", 1.0), "No pull of arm 'red' waits"),
        (
            lambda policy: policy.update(policy.pull(ARMS), 1.5),
            r"value of arm \w+ must be .* from 0 to 1, .* not 1.5.*rewards=",
        ),
        (lambda policy: policy.update(policy.pull(ARMS), None), "not None"),
        (lambda policy: policy.update(policy.pull(ARMS), 1.0, revealed={"grey": 1.0}), "no arm 'grey'"),
        (lambda policy: policy.update(policy.pull(ARMS), 1.0, revealed={"blue": 1.0}), "was not revealed"),
    ],
)
def test_misuse_is_refused_and_changes_nothing(calls, message):
    policy = Policy("exp3.g++", graph=sl.graphs.nested(3), seed=1)
    with pytest.raises(SidelongError, match=message):
        calls(policy)
    assert policy._n == 0
    assert not policy._rewards
    assert not any(policy._agent.estimates().counts)


def test_no_arms_at_all():
    with pytest.raises(SidelongError, match="at least one arm"):
        Policy().pull([])


def test_an_environment_of_rivers_own():
    env = gymnasium.make("river_bandits/CandyCaneContest-v0", max_episode_steps=30)
    steps = list(bandit.evaluate([Policy("exp3", seed=1)], env, n_episodes=1, seed=1))
    assert len(steps) == 30
