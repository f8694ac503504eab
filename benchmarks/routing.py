"""Routing among three language models, on the prompts of ParetoBandit (arXiv 2604.00136): python benchmarks/routing.py.

Its package has 1,824 prompts to play and 1,785 to learn from, with the reward and the cost of each model's reply.
Regret is to the best model of each prompt. The router of ParetoBandit plays beside ours, on the same orders of the
prompts. Its own embeddings come from a hub; here prompts are encoded by an SVD of their TF-IDF, fitted on the prompts
to learn from, for its router and for our adviser alike. The adviser is a ridge regression, whose setting is chosen by
cross-validation on the prompts to learn from. `benchmarks/routing_latency.py` measures what a plug-in adds.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from packages import package

import sidelong as sl

if TYPE_CHECKING:
    from collections.abc import Iterable

SEEDS, THEIR_SEEDS, FEW = 40, 2, 8  # a game of theirs takes some ten seconds, one of ours a third of a second
VERSION = "0.1.1"
OUTAGE = (1000, 1300)  # of 3,000 requests
#: What the authors publish for an unconstrained game, appendix "Cold-start vs warmup".
PUBLISHED = {"cold": "87.0 ± 5.6", "warm": "55.0", "random": "146.5"}


class Prompts(NamedTuple):
    """Prompts, and what each model would have brought and cost."""

    texts: list[str]
    rewards: np.ndarray
    costs: np.ndarray


class Played(NamedTuple):
    """What a game gave."""

    regret: float
    reward: float
    spent: float
    over: float  #: the peak of spending above the line


def read(name: str) -> Prompts:
    """Return the prompts of one file of the package."""
    path = package("paretobandit", VERSION) / "pareto_bandit" / "data" / "examples" / f"{name}.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").strip().split("\n")]
    arms = list(rows[0]["arms"])
    part = {of: np.array([[row["arms"][arm][of] for arm in arms] for row in rows]) for of in ("reward", "cost")}
    return Prompts([row["prompt"] for row in rows], part["reward"], part["cost"])


TRAIN, TEST = read("val"), read("test_holdout")
MODELS = ("meta-llama/llama-3.1-8b-instruct", "mistralai/mistral-large-2512", "google/gemini-2.5-pro")
OWN, ALL = sl.graphs.self_loops(3), sl.graphs.complete(3)


class Setting(NamedTuple):
    """What the adviser is made with."""

    components: int  #: of the SVD
    alpha: float  #: of the ridge regression


SETTINGS = [Setting(components, alpha) for components in (25, 50, 100, 200) for alpha in (0.1, 1.0, 10.0)]
FOLDS = 5


def encode(components: int, fit: list[str], *others: list[str]) -> list[np.ndarray]:
    """Return the features and a constant of each prompt, of those that the encoder is fitted on and of others."""
    from sklearn.decomposition import TruncatedSVD  # noqa: PLC0415  # slow to load
    from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415

    words = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=2)
    encoder = make_pipeline(words, TruncatedSVD(components, random_state=0))
    encoded = [encoder.fit_transform(fit), *(encoder.transform(texts) for texts in others)]
    return [np.column_stack([each, np.ones(len(each))]) for each in encoded]


def predicted(alpha: float, train: np.ndarray, rewards: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the model that a ridge regression would take for each of the other prompts."""
    from sklearn.linear_model import Ridge  # noqa: PLC0415

    return np.asarray(Ridge(alpha=alpha).fit(train, rewards).predict(others).argmax(axis=1))


def chosen() -> tuple[Setting, dict[Setting, float]]:
    """Return the setting of least regret in cross-validation on the prompts to learn from, and the regret of each.

    The prompts to play have no part in it. Words and components are found anew in each fold, from the other folds.
    """
    folds = np.random.default_rng(0).permutation(len(TRAIN.texts)) % FOLDS
    regret = dict.fromkeys(SETTINGS, 0.0)
    for fold in range(FOLDS):
        inside, outside = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        texts = [[TRAIN.texts[row] for row in rows] for rows in (inside, outside)]
        for components in dict.fromkeys(setting.components for setting in SETTINGS):
            train, others = encode(components, *texts)
            for setting in SETTINGS:
                if setting.components == components:
                    arms = predicted(setting.alpha, train, TRAIN.rewards[inside], others)
                    regret[setting] += played(TRAIN, outside, arms).regret
    return min(SETTINGS, key=regret.__getitem__), regret


def advised(setting: Setting) -> np.ndarray:
    """Return the model that the adviser names for each prompt to play, fitted on all prompts to learn from."""
    train, test = encode(setting.components, TRAIN.texts, TEST.texts)
    return predicted(setting.alpha, train, TRAIN.rewards, test)


def played(prompts: Prompts, order: Iterable[int], arms: Iterable[int], ceiling: float = np.inf) -> Played:
    """Return what plays of some models for some prompts gave."""
    rows, plays = np.fromiter(order, np.int64), np.fromiter(arms, np.int64)
    rewards, costs = prompts.rewards[rows, plays], prompts.costs[rows, plays]
    line = ceiling * np.arange(1, rows.size + 1)
    regret = (prompts.rewards[rows].max(axis=1) - rewards).sum()
    return Played(regret, rewards.mean(), costs.mean(), max(0.0, (np.cumsum(costs) - line).max()))


def ours(
    seed: int,
    *,
    learner: str = "glance",
    shadow: float = 0.0,
    warm: bool = False,
    advice: np.ndarray | None = None,
    ceiling: float | None = None,
) -> Played:
    """Play all prompts with an agent."""
    rng = np.random.default_rng(seed)
    order, coins = rng.permutation(len(TEST.texts)), rng.random(len(TEST.texts))
    hard = {} if ceiling is None else {"ceiling": ceiling, **bounds(ceiling)}
    agent = sl.Agent(learner, OWN, seed=seed, **hard)
    if warm:
        agent.learn(history(rng))
    arms = []
    for row, coin in zip(order.tolist(), coins.tolist(), strict=True):
        said = None if advice is None else {"ridge": int(advice[row])}
        decision = agent.ask(ALL if coin < shadow else None, advice=said)
        arms.append(decision.arm)
        losses = {int(arm): 1 - TEST.rewards[row, arm] for arm in decision.reveals}
        told = {} if ceiling is None else {"costs": {arm: TEST.costs[row, arm] for arm in losses}}
        agent.tell(decision, losses, **told)
    return played(TEST, order, arms, np.inf if ceiling is None else ceiling)


def bounds(ceiling: float) -> dict[str, Any]:
    """Return what each model can cost at most, and how far the total may be above the line: ten dearest replies."""
    most = np.vstack([TRAIN.costs, TEST.costs]).max(axis=0)
    return {"cost_bounds": most.tolist(), "overspend": float(max(10 * most.max(), 10 * ceiling))}


def history(rng: np.random.Generator) -> dict[str, Any]:
    """Return the prompts to learn from as a log in which every reply was seen."""
    losses = 1 - TRAIN.rewards[rng.permutation(len(TRAIN.texts))]
    n = len(losses)
    shown = {"observed": [[0, 1, 2]] * n, "losses": losses.tolist(), "observe_probabilities": [[1.0] * 3] * n}
    return {"action": [0] * n, "loss": losses[:, 0], **shown}


def theirs(seed: int, features: list[np.ndarray], *, warm: bool, ceiling: float | None = None) -> Played:
    """Play all prompts with the router of ParetoBandit: cold, or after a replay of the prompts to learn from."""
    sys.path.append(str(package("paretobandit", VERSION)))
    sys.path.append(str(package("tqdm", "4.67.1")))
    from pareto_bandit.budget_pacer import BudgetPacer, PacingMode  # noqa: PLC0415  # from its wheel
    from pareto_bandit.feature_service import FeatureService  # noqa: PLC0415
    from pareto_bandit.router import BanditRouter  # noqa: PLC0415

    rng = np.random.default_rng(seed)
    order = rng.permutation(len(TEST.texts))
    pacer = None if ceiling is None else BudgetPacer(target_avg_spend_usd=ceiling, mode=PacingMode.ADAPTIVE)
    service = FeatureService.for_precomputed(features[0].shape[1])
    how = {"priors": "none", "cost_penalty": 0.0, "budget_pacer": pacer, "bandit_seed": seed}
    router = BanditRouter.create(feature_service=service, **how)

    def play(prompts: Prompts, encoded: np.ndarray, rows: np.ndarray) -> list[int]:
        arms = []
        for row in rows.tolist():
            model, log = router.route(encoded[row])
            arms.append(MODELS.index(model))
            log.cost_usd = float(prompts.costs[row, arms[-1]])
            router.process_feedback(log.request_id, reward=float(prompts.rewards[row, arms[-1]]))
        return arms

    if warm:
        play(TRAIN, features[0], rng.permutation(len(TRAIN.texts)))
    return played(TEST, order, play(TEST, features[1], order), np.inf if ceiling is None else ceiling)


def outage(seed: int, how: str) -> float:
    """Return what an outage of the best model costs in regret, over 3,000 prompts: beside the same game without one."""
    rng = np.random.default_rng(seed)
    order = rng.choice(len(TEST.texts), 3000)
    regrets = []
    for is_out in (False, True):
        agent, regret = sl.Agent("glance", OWN, seed=seed), 0.0
        for k, row in enumerate(order.tolist()):
            away = is_out and OUTAGE[0] <= k < OUTAGE[1]
            decision = agent.ask(available=[0, 1] if away and how == "available" else None)
            losses = 1 - TEST.rewards[row]
            failed = away and decision.arm == 2
            loss = 1.0 if failed else losses[decision.arm]
            best = losses[:2].min() if away else losses.min()
            regret += loss - best
            agent.tell(decision, [loss])
        regrets.append(regret)
    return regrets[1] - regrets[0]


def change(seed: int, *, shadow: float) -> tuple[float, float]:
    """Return our regret, and that of always the same model, where the rewards of the best one fall half-way."""
    rng = np.random.default_rng(seed)
    order, coins = rng.permutation(len(TEST.texts)), rng.random(len(TEST.texts))
    agent, regret, stayed = sl.Agent("glance", OWN, seed=seed), 0.0, 0.0
    for k, row in enumerate(order.tolist()):
        rewards = TEST.rewards[row].copy()
        if k >= len(order) // 2:
            rewards[2] *= 0.75
        decision = agent.ask(ALL if coins[k] < shadow else None)
        regret += rewards.max() - rewards[decision.arm]
        stayed += rewards.max() - rewards[2]
        agent.tell(decision, {int(arm): 1 - rewards[arm] for arm in decision.reveals})
    return regret, stayed


def line(name: str, games: list[Played], published: str = "") -> None:
    """Print a row of the table."""
    regret = np.array([game.regret for game in games])
    error = regret.std(ddof=1) / np.sqrt(len(games)) if len(games) > 1 else 0.0
    reward, spent = np.mean([game.reward for game in games]), np.mean([game.spent for game in games])
    print(f"{name:44} {regret.mean():7.1f} ± {error:4.1f}   {reward:.4f}   {spent:.2e}   {published}", flush=True)


def main() -> None:
    """Print the tables."""
    features = encode(25, TRAIN.texts, TEST.texts)  # as many as its authors take
    setting, regret = chosen()
    print(
        f"{FOLDS}-fold cross-validation on {len(TRAIN.texts):,} other prompts, regret of each adviser; least: {setting}"
    )
    for each_setting, found in regret.items():
        print(f"  {each_setting.components:3} components, alpha {each_setting.alpha:4}: {found:.1f}")
    advice = advised(setting)
    order = np.arange(len(TEST.texts))
    seeds = range(SEEDS)

    def each(**how: Any) -> list[Played]:
        return [ours(seed, **how) for seed in seeds]

    print(f"{len(order):,} prompts, {SEEDS} orders of them{'':14} regret          reward   $ per request   published")
    fixed = {
        name: played(TEST, order, np.full(order.size, arm)) for arm, name in enumerate(("small", "middle", "large"))
    }
    line("always the best model", [fixed["large"]])
    line("always the cheapest (LiteLLM: lowest cost)", [fixed["small"]])
    draws = [played(TEST, order, np.random.default_rng(seed).integers(0, 3, order.size)) for seed in seeds]
    line("random (LiteLLM: simple shuffle)", draws, PUBLISHED["random"])
    line("round robin", [played(TEST, order, order % 3)])
    line("the adviser alone (ridge on prompts)", [played(TEST, order, advice)])
    line("ParetoBandit, cold", [theirs(seed, features, warm=False) for seed in range(THEIR_SEEDS)], PUBLISHED["cold"])
    line(
        "ParetoBandit, warmed by replay",
        [theirs(seed, features, warm=True) for seed in range(THEIR_SEEDS)],
        PUBLISHED["warm"],
    )
    line("ucb-n, cold", each(learner="ucb-n"))
    for shadow in (0.0, 0.05, 0.2):
        line(f"glance, cold, {shadow:.0%} shadow", each(shadow=shadow))
    line("glance, cold, with the adviser", each(advice=advice))
    line("glance, warm", each(warm=True))
    line("glance, warm, with the adviser", each(warm=True, advice=advice))
    for how in ("available", "failures"):
        costs = [outage(seed, how) for seed in range(FEW)]
        error = np.std(costs, ddof=1) / np.sqrt(len(costs))
        print(
            f"outage of the best model, 300 of 3,000, as {how:10} costs {np.mean(costs):5.1f} ± {error:.1f} in regret"
        )
    for shadow in (0.0, 0.05):
        found = np.array([change(seed, shadow=shadow) for seed in range(FEW)]).mean(axis=0)
        print(
            f"the best model gets worse half-way, {shadow:.0%} shadow: {found[0]:.1f}; always the same {found[1]:.1f}"
        )
    if "ceiling" in sl.Agent.__init__.__kwdefaults__:
        budgets(features, advice)


def budgets(features: list[np.ndarray], advice: np.ndarray) -> None:
    """Print what is reached under each of the seven budgets of ParetoBandit's demo."""
    print(f"{'ceiling':>9} {'router':28} reward    $ per request    most above the line (allowed)")
    means = np.vstack([TRAIN.costs, TEST.costs]).mean(axis=0)
    for ceiling in np.geomspace(means.min(), means.max(), 7)[1:]:
        for name, games in (
            (
                "ParetoBandit, cold",
                [theirs(0, features, warm=False, ceiling=ceiling)],
            ),
            ("glance", [ours(seed, ceiling=ceiling) for seed in range(FEW)]),
            ("glance with the adviser", [ours(seed, ceiling=ceiling, advice=advice) for seed in range(FEW)]),
        ):
            reward, spent = np.mean([game.reward for game in games]), np.mean([game.spent for game in games])
            over = max(game.over for game in games)
            allowed = "" if name.startswith("P") else f"({bounds(ceiling)['overspend']:.3f})"
            print(f"{ceiling:9.2e} {name:28} {reward:.4f}    {spent:.2e}    {over:.4f} {allowed}", flush=True)


if __name__ == "__main__":
    main()
