"""A ceiling on costs: the price, the limit that holds on every path, and what is refused."""

import copy
import itertools
import math
import random

import numpy as np
import pytest

import naive
import sidelong as sl
from sidelong.agent.ceiling import FIRST, HIGHEST, SQUARES, Ceiling, spend
from sidelong.errors import ConflictError, CostError, FamilyError, LearnerError, StateFileError

GRAPH = sl.graphs.nested(3)
BOUNDS = [0.5, 1.5, 6.0]


def play(agent, oracle, twin, rounds, seed=0):
    """Play an agent with a ceiling, and the same without one, which is told what the oracle says."""
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        decision, other = agent.ask(), twin.ask()
        assert decision.arm == other.arm
        losses, costs = rng.random(decision.reveals.size), rng.random(decision.reveals.size) * BOUNDS[decision.arm]
        twin.tell(other, oracle.told(losses, costs))
        agent.tell(decision, losses, costs=costs)
        oracle.pay(costs[-1])
        assert agent.spending().price == pytest.approx(oracle.price, abs=1e-12)
        assert agent.spending().spent == pytest.approx(sum(oracle.costs))


@pytest.mark.interpreted
@pytest.mark.parametrize("learner", ["glance", "exp3.g++", "ucb-n"])
def test_a_learner_is_told_what_the_pseudo_code_says(learner):
    play(sl.Agent(learner, GRAPH, seed=3, ceiling=1.0), naive.Ceiling(1.0), sl.Agent(learner, GRAPH, seed=3), 40)


@pytest.mark.interpreted
def test_losses_are_shown_as_they_were_told():
    agent = sl.Agent("glance", sl.graphs.self_loops(2), seed=1, ceiling=0.1, certificate=True)
    for _ in range(20):
        decision = agent.ask()
        agent.tell(decision, [0.25], costs={decision.arm: 5.0})
    assert agent.estimates().means.tolist() == [0.25, 0.25]
    assert agent.certificate().paid == pytest.approx(5.0)
    assert agent.spending().price == HIGHEST


@pytest.mark.interpreted
def test_the_price_has_the_regret_that_the_proof_needs():
    # Step 3 of the proof, on paths that an adversary chooses: it plays against the price of the moment.
    for seed, most in itertools.product(range(30), (0.05, 0.4, 1.0, 3.0)):
        rng, account, prices, x = random.Random(seed), Ceiling(1.0, 10.0).spending(), [], []
        for _ in range(200):
            prices.append(account[5])
            cost = rng.choice([0.0, 10.0 * most, 10.0 * most if account[5] < 0.3 else 0.0, 1.0 + rng.random()])
            spend(account, cost)
            x.append((cost - 1.0) / 10.0)
        G, Q = max(map(abs, x)), account[SQUARES]
        assert pytest.approx(Q) == sum(each**2 for each in x)
        D = (1 / 8 + math.sqrt(1 + G**2)) * math.sqrt(1 + Q)
        for m in (0.0, FIRST, HIGHEST):
            assert sum((m - price) * each for price, each in zip(prices, x, strict=True)) <= D


def world(losses, costs, noise=0.1):
    """Return a function that draws losses and costs of all arms."""
    return lambda rng: (
        np.clip(np.array(losses) + noise * rng.normal(size=len(losses)), 0, 1),
        np.array(costs) * rng.uniform(0.5, 1.5, size=len(costs)),
    )


def spend_under(agent, draw, rounds, seed=0):
    rng, lost, most = np.random.default_rng(seed), 0.0, -math.inf
    for _ in range(rounds):
        decision = agent.ask()
        losses, costs = draw(rng)
        seen = decision.reveals
        agent.tell(decision, losses[seen], costs=costs[seen])
        lost += losses[decision.arm]
        spent = agent.spending()
        most = max(most, spent.spent - spent.line)
    return spent.spent / rounds, lost / rounds, most


@pytest.mark.parametrize("learner", ["glance", "exp3-set"])
def test_dear_models_are_used_as_far_as_the_money_goes(learner):
    # 0.1 of loss for 0.9 of cost: the best mix below a mean cost of 0.55 plays both models equally, and loses 0.35.
    draw = world([0.4, 0.3], [0.1, 1.0])
    spent, lost, _ = spend_under(sl.Agent(learner, sl.graphs.self_loops(2), seed=1, ceiling=0.55), draw, 4000)
    assert 0.4 < spent < 0.62
    assert lost < 0.385
    free, least, _ = spend_under(sl.Agent(learner, sl.graphs.self_loops(2), seed=1, ceiling=5.0), draw, 2000)
    assert free > 0.8
    assert least < 0.33


def test_bids():
    # A bid wins if it is above the best other one, and then costs that one; all bids below it are revealed.
    bids = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    agent = sl.Agent("glance", sl.graphs.nested(5), seed=2, ceiling=0.15, cost_bounds=bids, overspend=5.0)
    rng = np.random.default_rng(3)
    for _ in range(600):
        decision, other = agent.ask(), rng.random()
        wins = bids[decision.reveals] > other
        agent.tell(decision, np.where(wins, 0.1, 0.6), costs=np.where(wins, other, 0.0))
        spent = agent.spending()
        assert spent.spent <= spent.line + 5.0 + 1e-9
    assert spent.spent / 600 > 0.08


def test_staff_hours():
    # Hours of a second person at the counter: each shop has its own hours, and all of them have a limit together.
    hours = np.array([0.0, 4.0, 8.0])
    shops = sl.Family(
        "glance",
        sl.graphs.complete(3),
        seed=4,
        ceiling=3.0,
        cost_bounds=hours + 0.5,
        overspend=40.0,
        ceiling_over="all",
    )
    rng, keys = np.random.default_rng(5), [f"shop {k}" for k in range(6)]
    for _ in range(150):
        plan = shops.ask(keys)
        queue = np.repeat(rng.uniform(0.2, 1.0, size=6), np.diff(plan.offsets))
        losses, costs = queue * np.array([0.9, 0.4, 0.2])[plan.reveals], hours[plan.reveals] + 0.5 * queue
        shops.tell(plan, losses, costs=costs)
        spent = shops.spending()
        assert spent.spent <= spent.line + 40.0 + 1e-9
    assert spent.decisions == 900
    assert 2.0 < spent.spent / 900 < 3.05


class Chaos:
    """Ask, tell, tell late, cancel, lose and kill, as an adversary who knows all costs would."""

    def __init__(self, seed, tmp_path):
        self.rng, self.path = random.Random(seed), tmp_path / "state"
        self.overspend = self.rng.choice([0.0, 1.0, 20.0])

    def cost(self, arm):
        return BOUNDS[arm] * self.rng.choice([0.0, 0.5, 1.0, 1.0])


@pytest.mark.parametrize("seed", range(12))
def test_the_limit_holds_on_every_path(seed, tmp_path):
    chaos = Chaos(seed, tmp_path)
    rng = chaos.rng
    agent = sl.Agent(
        "glance", GRAPH, seed=seed, ceiling=1.0, cost_bounds=dict(enumerate(BOUNDS)), overspend=chaos.overspend
    )
    oracle, waiting, total, told, dear = naive.Ceiling(1.0, BOUNDS, chaos.overspend), [], 0.0, 0, 0
    for _ in range(250):
        fits = oracle.fits([arm for _, arm in waiting])
        decision = agent.ask()
        assert fits[decision.arm]
        assert [bool(p) for p in decision.probabilities > 0] <= fits
        waiting.append((decision.id, decision.arm))
        dear += decision.arm == 2
        for _ in range(rng.choice([0, 0, 1, 1, 3])):
            if not waiting:
                break
            name, arm = waiting.pop(rng.randrange(len(waiting)))
            what = rng.random()
            if what < 0.15:
                agent.cancel(name)
                continue
            cost = BOUNDS[arm] if what < 0.3 else chaos.cost(arm)
            if what < 0.3:
                agent.cancel(name, lost=True)
            else:
                costs = [min(cost, bound) for bound in BOUNDS[: arm + 1]]
                agent.tell(name, [rng.random() if arm < 2 else 0.0] * (arm + 1), costs=costs)
            oracle.pay(cost)
            total, told = total + cost, told + 1
            assert total <= 1.0 * told + chaos.overspend + 1e-9
        if rng.random() < 0.1:  # a kill: what was saved is all there is
            agent.save(chaos.path)
            agent = sl.Agent.load(chaos.path)
        spent = agent.spending()
        assert (spent.decisions, pytest.approx(spent.spent)) == (told, total)
        assert spent.reserved == pytest.approx(sum(max(0.0, BOUNDS[arm] - 1.0) for _, arm in waiting))
        assert spent.spent - spent.line + spent.reserved <= chaos.overspend + 1e-9
    assert dear > 0 or chaos.overspend < 5.0


@pytest.mark.parametrize("over", ["key", "all"])
def test_the_limit_holds_for_families_on_every_path(over, tmp_path):
    rng, keys = random.Random(over), list("abcd")
    family = sl.Family(
        "glance", GRAPH, seed=1, ceiling=1.0, cost_bounds=BOUNDS, overspend=12.0, ceiling_over=over, threads=1
    )
    total, told, waiting = dict.fromkeys(keys, 0.0), dict.fromkeys(keys, 0), []
    for _ in range(120):
        plan = family.ask([rng.choice(keys) for _ in range(rng.randrange(1, 6))])
        waiting += zip(plan.ids, plan.keys, plan.arms.tolist(), strict=True)
        rng.shuffle(waiting)
        some, waiting = waiting[:4], waiting[4:]
        costs = [[rng.choice([0.5, 1.0]) * BOUNDS[arm] for _ in range(arm + 1)] for _, _, arm in some]
        costs = [[min(c, BOUNDS[i]) for i, c in enumerate(each)] for each in costs]
        losses = [0.1 if arm == 2 else 0.6 for _, _, arm in some for _ in range(arm + 1)]
        family.tell([name for name, _, _ in some], losses, costs=list(itertools.chain(*costs)))
        for (_, key, arm), each in zip(some, costs, strict=True):
            total[key], told[key] = total[key] + each[arm], told[key] + 1
        if over == "key":
            assert all(total[key] <= told[key] + 12.0 + 1e-9 for key in keys)
        assert sum(total.values()) <= sum(told.values()) + 12.0 * (1 if over == "all" else 4) + 1e-9
        if rng.random() < 0.15:
            family.save(tmp_path / "family")
            family = sl.Family.load(tmp_path / "family")
    assert family.spending().spent == pytest.approx(sum(total.values()))
    assert family["a"].spending().decisions == told["a"]


def test_a_key_with_a_line_of_its_own_is_its_agent_to_the_bit():
    options = {"ceiling": 1.0, "cost_bounds": BOUNDS, "overspend": 4.0}
    family, rng = sl.Family("glance", GRAPH, seed=5, **options), np.random.default_rng(6)
    agents = {key: sl.Agent("glance", GRAPH, seed=family.seed_of(key), **options) for key in "xy"}
    for _ in range(60):
        plan = family.ask(["x", "y"])
        made = {key: agent.ask() for key, agent in agents.items()}
        assert plan.arms.tolist() == [each.arm for each in made.values()]
        losses, costs = rng.random(plan.reveals.size), rng.random(plan.reveals.size) * np.array(BOUNDS)[plan.reveals]
        table = {"decision": np.repeat(plan.ids, np.diff(plan.offsets)), "arm": plan.reveals, "loss": losses}
        family.tell(table | {"cost": costs})
        for k, (key, decision) in enumerate(made.items()):
            part = slice(plan.offsets[k], plan.offsets[k + 1])
            agents[key].tell(
                decision, losses[part], costs=dict(zip(decision.reveals.tolist(), costs[part], strict=True))
            )
        assert [family[key].spending() for key in "xy"] == [agent.spending() for agent in agents.values()]
    again = copy.deepcopy(agents["x"])
    assert [again.ask().arm for _ in range(5)] == [agents["x"].ask().arm for _ in range(5)]


def test_keys_with_one_line_depend_on_no_thread_and_go_on_from_a_file(tmp_path):
    def run(threads, saved):
        family = sl.Family("glance", GRAPH, seed=5, ceiling=1.0, ceiling_over="all", threads=threads)
        rng = np.random.default_rng(6)
        for t in range(6):
            plan = family.ask(range(600))
            costs = rng.random(plan.reveals.size) * np.array(BOUNDS)[plan.reveals]
            family.tell(plan, rng.random(plan.reveals.size), costs=costs)
            if saved and t == 3:
                family.save(tmp_path / "family")
                family = sl.Family.load(tmp_path / "family")
        return family.spending(), family.outlook(range(600)).tolist()

    first = run(1, saved=False)
    assert run(2, saved=True) == first
    with pytest.raises(FamilyError, match="have one line, so that it cannot be split"):
        sl.Family("glance", GRAPH, ceiling=1.0, ceiling_over="all").split(2)


def test_repetitions_are_recognised_by_their_costs():
    agent = sl.Agent("glance", sl.graphs.self_loops(2), seed=1, ceiling=1.0)
    decision = agent.ask()
    assert agent.tell(decision, [0.5], costs=[2.0])
    assert not agent.tell(decision, [0.5], costs={decision.arm: 2.0})
    with pytest.raises(ConflictError):
        agent.tell(decision, [0.5], costs=[1.0])
    assert agent.spending()[:3] == (1, 2.0, 1.0)


def test_arms_come_and_go_with_their_bounds():
    agent = sl.Agent("glance", GRAPH, seed=1, ceiling=1.0, cost_bounds=BOUNDS, overspend=0.0)
    with pytest.raises(LearnerError, match="gives every arm a bound: give cost_bound"):
        agent.add_arm()
    assert agent.add_arm(cost_bound=0.9) == 3
    assert agent.ask().arm in {0, 3}
    agent.retire(0)
    assert agent.ask().arm == 3
    with pytest.raises(CostError, match="No arm that is there fits"):
        agent.ask(available=[1, 2])
    assert len(agent.pending) == 2
    decision = agent.pending[1]
    agent.tell(decision, [0.5], costs=[0.2])  # what is saved may be spent
    assert agent.ask(available=[1, 2]).arm == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ceiling": 0}, "ceiling must be .* above 0"),
        ({"ceiling": -1.0}, "ceiling must be .* above 0"),
        ({"ceiling": math.nan}, "ceiling"),
        ({"ceiling": "much"}, "ceiling"),
        ({"overspend": 1.0}, "go with a ceiling, and none is given"),
        ({"ceiling": 1.0, "overspend": 1.0}, "go together, and cost_bounds is not given"),
        ({"ceiling": 1.0, "cost_bounds": BOUNDS}, "go together, and overspend is not given"),
        ({"ceiling": 1.0, "cost_bounds": [1.0], "overspend": 1.0}, "the most that each of the 3 arms can cost"),
        ({"ceiling": 1.0, "cost_bounds": {0: 1.0}, "overspend": 1.0}, "the most that each of the 3 arms can cost"),
        ({"ceiling": 1.0, "cost_bounds": {9: 1.0}, "overspend": 1.0}, "cost_bounds must name arms from 0 to 2"),
        ({"ceiling": 1.0, "cost_bounds": [1.0, -1.0, 1.0], "overspend": 1.0}, "A bound of cost_bounds must be"),
        ({"ceiling": 1.0, "cost_bounds": [2.0, 3.0, 4.0], "overspend": 1.0}, "The least bound is 2, of arm 0"),
        ({"ceiling": 1.0, "cost_bounds": BOUNDS, "overspend": -1.0}, "overspend must be"),
        ({"ceiling": 1.0, "incumbent": "a", "allowance": 1.0}, "An incumbent and a ceiling do not go together"),
    ],
)
def test_a_ceiling_that_is_none_is_refused(options, message):
    with pytest.raises(LearnerError, match=message):
        sl.Agent("glance", GRAPH, **options)


def test_a_ceiling_of_learners_and_families_that_cannot_have_it_is_refused():
    with pytest.raises(LearnerError, match="takes losses 0 or 1 alone"):
        sl.Agent("ts-n", GRAPH, ceiling=1.0)
    with pytest.raises(LearnerError, match="cost_bounds"):
        sl.Agent("ucb-n", GRAPH, ceiling=1.0, cost_bounds=BOUNDS, overspend=1.0)
    with pytest.raises(LearnerError, match="ceiling_over is 'key'"):
        sl.Family("glance", GRAPH, ceiling=1.0, ceiling_over="both")


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        (None, "tell what the revealed arms cost"),
        ([], "one for each of the 3 revealed arms; 0 were given"),
        ([0.1, 0.1], "one for each of the 3 revealed arms; 2 were given"),
        (0.1, "costs must be given by arm, or a list"),
        ({0: 0.1, 1: 0.1}, "Of arm 2 one cost is needed"),
        ({0: 0.1, 1: 0.1, 2: 0.1, 3: 0.1}, "Arm 3 was not revealed, and a cost was told for it"),
        ([0.1, 0.1, -0.1], "The cost of arm 2 must be a number from 0 on, not -0.1"),
        ([0.1, 0.1, math.nan], "The cost of arm 2 must be a number from 0 on"),
        ([0.6, 0.1, 0.1], "The cost of arm 0 must be at most its bound, 0.5, not 0.6"),
    ],
)
def test_costs_that_are_none_are_refused_and_nothing_changes(costs, message):
    agent = sl.Agent("glance", GRAPH, seed=1, ceiling=1.0, cost_bounds=BOUNDS, overspend=9.0)
    decision = agent.ask()
    assert decision.reveals.size == 3
    before = agent.contents()[1]
    with pytest.raises(CostError, match=message):
        agent.tell(decision, [0.5] * 3, costs=costs)
    after = agent.contents()[1]
    assert all(np.array_equal(before[name], after[name], equal_nan=True) for name in before)
    assert agent.tell(decision, [0.5] * 3, costs=[0.1] * 3)


def test_costs_without_a_ceiling_are_refused():
    agent = sl.Agent("glance", GRAPH, seed=1)
    with pytest.raises(CostError, match="Make the agent or the family with ceiling"):
        agent.tell(agent.ask(), [0.5] * 3, costs=[0.1] * 3)
    with pytest.raises(CostError, match="without a ceiling"):
        agent.spending()


def test_a_file_with_a_ceiling_that_is_none_is_refused():
    agent = sl.Agent("glance", GRAPH, seed=1, ceiling=1.0, cost_bounds=BOUNDS, overspend=9.0)
    header, arrays = agent.contents()
    for wrong in (
        [1.0],
        [1.0, 6.0, [1.0], 9.0, False],
        [-1.0, 6.0, BOUNDS, 9.0, False],
        [1.0, 6.0, BOUNDS, None, False],
    ):
        with pytest.raises(StateFileError, match="has the ceiling"):
            sl.Agent.from_contents(header | {"ceiling": wrong}, arrays, "it")
    spending = arrays["observers.spending"].copy()
    spending[0, 5] = 2.0
    with pytest.raises(StateFileError, match="do not fit together"):
        sl.Agent.from_contents(header, arrays | {"observers.spending": spending}, "it")
