"""Routing among three language models, on the prompts of ParetoBandit (arXiv 2604.00136): python benchmarks/routing.py.

Its package has 1,824 prompts to play and 1,785 to learn from, with the reward and the cost of each model's reply.
Regret is to the best model of each prompt. The router of ParetoBandit plays beside ours, on the same orders of the
prompts, and so do LiteLLM's strategies if `make build/litellm/stamp` was done. ParetoBandit's own embeddings come from
a hub; here prompts are encoded by an SVD of their TF-IDF, fitted on the texts of the prompts to learn from.

What has a setting is chosen by cross-validation on the prompts to learn from: the adviser, which is a regression of
rewards on prompts. Its features are the same SVD, or the word vectors that come with the package wordllama.
`benchmarks/routing_latency.py` measures what a plug-in adds to a request.

    python benchmarks/routing.py choice free outage change drift budgets     # the parts, all if none is named
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from packages import package

import sidelong as sl

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Floats = np.ndarray[Any, np.dtype[np.float64]]

SEEDS, FEW, THEIR_SEEDS = 40, 8, 2  # a game of theirs takes some ten seconds, one of ours a third of a second
VERSION = "0.1.1"
OUTAGE = (1000, 1300)  # of 3,000 requests
FOLDS = 5
#: What the authors publish for an unconstrained game, appendix "Cold-start vs warmup", and their two configurations.
PUBLISHED = {"cold": "87.0 ± 5.6", "warm": "55.0 ± 0.4", "random": "146.5"}
COLD, WARM = {"alpha": 0.05}, {"alpha": 0.01}
#: Rewards that the authors publish under their seven budgets, after the prompts to learn from and 8,374 others.
PUBLISHED_REWARDS = (0.793, 0.813, 0.859, 0.898, 0.917, 0.924, 0.929)
#: Their example with a change: three budgets; in the middle third the dear model costs so much less.
DRIFT = {"tight": 3.0e-4, "moderate": 6.62e-4, "loose": 1.87e-3}
CHEAPER = 0.1 / ((1.25 + 10.0) / 2)
#: What may be spent above the line: a twentieth of the line of all prompts to play. Our agents get a ceiling that is
#: lower by this share, so that the total at the end is within the budget on every path.
SHARE = 0.05
LITELLM = Path(__file__).parent.parent / "build" / "litellm" / "bin" / "python"


class Prompts(NamedTuple):
    """Prompts, and what each model would have brought and cost."""

    texts: list[str]
    rewards: Floats
    costs: Floats

    def of(self, rows: Any) -> Prompts:
        """Return some of them."""
        return Prompts([self.texts[row] for row in rows], self.rewards[rows], self.costs[rows])


class Played(NamedTuple):
    """What a game gave."""

    regret: float
    reward: float
    spent: float  #: per request
    over: float  #: the peak of spending above the line
    seconds: float = 0.0  #: of the processor, for each decision with its feedback


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


# What is known of a prompt.


@cache
def _words(components: int, fit: tuple[str, ...]) -> Any:
    from sklearn.decomposition import TruncatedSVD  # noqa: PLC0415  # slow to load
    from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415

    words = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=2)
    return make_pipeline(words, TruncatedSVD(components, random_state=0)).fit(fit)


@cache
def _encoded(components: int, fit: tuple[str, ...], texts: tuple[str, ...]) -> Floats:
    found = _words(components, fit).transform(texts)
    return np.column_stack([found, np.ones(len(texts))])


def encode(components: int, fit: list[str], *texts: list[str]) -> list[Floats]:
    """Return the features and a constant of prompts, by words and components that are found in the texts of `fit`."""
    return [_encoded(components, tuple(fit), tuple(each)) for each in (fit, *texts)]


@cache
def _vectors() -> tuple[Any, Floats]:
    """Return the tokenizer of wordllama and the vector of each token, from its wheel."""
    sys.path.append(str(package("tokenizers", "0.23.3")))
    from tokenizers import Tokenizer  # type: ignore[import-not-found]  # noqa: PLC0415

    folder = package("wordllama", "0.4.0.post1") / "wordllama"
    raw = (folder / "weights" / "l2_supercat_256.safetensors").read_bytes()
    size = int.from_bytes(raw[:8], "little")
    [about] = (each for name, each in json.loads(raw[8 : 8 + size]).items() if name != "__metadata__")
    first, last = about["data_offsets"]
    table = np.frombuffer(raw[8 + size + first : 8 + size + last], np.float16).reshape(about["shape"])
    return Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json")), table.astype(float)


@cache
def _vector(text: str) -> Floats:
    tokenizer, table = _vectors()
    mean = table[tokenizer.encode(text, add_special_tokens=False).ids[:1024] or [0]].mean(axis=0)
    return np.asarray(mean / np.linalg.norm(mean))


def vectors(texts: list[str]) -> Floats:
    """Return the mean of the vectors of the first 1,024 tokens of each prompt, of length 1."""
    return np.array([_vector(text) for text in texts])


# Advisers.


class Setting(NamedTuple):
    """How an adviser predicts: by ridge regression on components, or by kernel ridge regression on word vectors."""

    components: int  #: 0 for word vectors
    penalty: float
    gamma: float = 0.0  #: of the Gaussian kernel

    def __str__(self) -> str:
        kind = f"kernel {self.gamma:g} on word vectors" if self.gamma else f"{self.components} components"
        return f"{kind}, penalty {self.penalty:g}"


RIDGE = [Setting(components, penalty) for components in (25, 50, 100, 200) for penalty in (0.1, 1.0, 10.0)]
KERNEL = [Setting(0, penalty, gamma) for gamma in (1.0, 3.0, 10.0) for penalty in (0.3, 1.0, 3.0)]


def regression(setting: Setting, train: list[str], values: Floats, texts: list[str]) -> Floats:
    """Return what is predicted for texts, in the columns of `values`, which are known of the texts to learn from."""
    from sklearn.kernel_ridge import KernelRidge  # noqa: PLC0415  # slow to load
    from sklearn.linear_model import Ridge  # noqa: PLC0415

    mean = values.mean(axis=0)
    if setting.gamma:
        x, others = vectors(train), vectors(texts)
        model = KernelRidge(alpha=setting.penalty, kernel="rbf", gamma=setting.gamma)
    else:
        x, others = encode(setting.components, train, texts)
        model = Ridge(alpha=setting.penalty)
    return np.asarray(model.fit(x, values - mean).predict(others) + mean)


def across(settings: Iterable[Setting], values: Floats, texts: list[str]) -> dict[Setting, Floats]:
    """Return what each setting predicts for each text from the other folds; words are found anew in each fold."""
    folds = np.random.default_rng(0).permutation(len(texts)) % FOLDS
    found = {setting: np.empty_like(values) for setting in settings}
    for fold in range(FOLDS):
        inside, outside = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        parts = [[texts[row] for row in rows] for rows in (inside, outside)]
        for setting, predicted in found.items():
            predicted[outside] = regression(setting, parts[0], values[inside], parts[1])
    return found


class Predicted(NamedTuple):
    """What the chosen adviser predicts, of the prompts to learn from by the other folds, and of those to play."""

    settings: tuple[Setting, ...]
    regret: dict[tuple[Setting, ...], float]  #: in cross-validation
    rewards: tuple[Floats, Floats]
    costs: tuple[Floats, Floats]

    def advice(self, part: int, price: float = 0.0, costs: Any = 1.0) -> list[int]:
        """Return the model that it names for each prompt: the best one, where a dollar is worth so much reward."""
        return [int(arm) for arm in (self.rewards[part] - price * self.costs[part] * costs).argmax(axis=1)]

    def price_of(self, ceiling: float, factors: Any = 1.0) -> float:
        """Return the least price at which its advice for the prompts to learn from costs at most the ceiling."""
        rows, prices = np.arange(len(TRAIN.texts)), np.concatenate([[0.0], np.geomspace(1e-1, 1e6, 400)])
        for price in prices.tolist():
            if (TRAIN.costs * factors)[rows, self.advice(0, price, factors)].mean() <= ceiling:
                return price
        return float(prices[-1])


@cache
def chosen() -> Predicted:
    """Choose the setting of least regret in cross-validation on the prompts to learn from.

    It is a regression of each kind, or the mean of the best of both. The prompts to play have no part in it.
    """
    out = across((*RIDGE, *KERNEL), TRAIN.rewards, TRAIN.texts)
    regret = {(setting,): missed(predicted) for setting, predicted in out.items()}
    both = tuple(min(kind, key=lambda each: regret[each,]) for kind in (RIDGE, KERNEL))
    regret[both] = missed(sum(out[each] for each in both))
    best = min(regret, key=regret.__getitem__)
    logs = np.log(TRAIN.costs)
    outside = across(best, logs, TRAIN.texts)
    costs = sum(outside.values()) / len(best)
    scale = TRAIN.costs.mean(axis=0) / np.exp(costs).mean(axis=0)
    new = [
        sum(regression(each, TRAIN.texts, of, TEST.texts) for each in best) / len(best) for of in (TRAIN.rewards, logs)
    ]
    rewards = sum(out[each] for each in best) / len(best)
    return Predicted(best, regret, (rewards, new[0]), (scale * np.exp(costs), scale * np.exp(new[1])))


@cache
def frugal(ceiling: float, factors: tuple[float, ...] = (1.0, 1.0, 1.0)) -> list[int]:
    """Return the adviser's advice for the prompts to play, where it may cost so much, and prices change by factors."""
    price = chosen().price_of(ceiling, np.array(factors))
    return chosen().advice(1, price, np.array(factors))


def missed(predicted: Any) -> float:
    """Return the regret of the model that is predicted to be best, over the prompts to learn from."""
    rows = np.arange(len(TRAIN.texts))
    return float((TRAIN.rewards.max(axis=1) - TRAIN.rewards[rows, predicted.argmax(axis=1)]).sum())


# Games.


def played(prompts: Prompts, arms: Iterable[int], ceiling: float = np.inf, seconds: float = 0.0) -> Played:
    """Return what plays of some models for prompts, in their order, gave."""
    plays = np.fromiter(arms, np.int64)
    rows = np.arange(plays.size)
    rewards, costs = prompts.rewards[rows, plays], prompts.costs[rows, plays]
    line = ceiling * (rows + 1)
    regret = (prompts.rewards.max(axis=1) - rewards).sum()
    return Played(regret, rewards.mean(), costs.mean(), (np.cumsum(costs) - line).max(), seconds / plays.size)


def shuffled(prompts: Prompts, seed: int) -> tuple[Any, Prompts]:
    """Return an order of prompts, and the prompts in that order."""
    order = np.random.default_rng(seed).permutation(len(prompts.texts))
    return order, prompts.of(order)


def play(
    agent: Any,
    prompts: Prompts,
    *,
    x: Any = None,
    advice: Sequence[int] | None = None,
    shadow: Any = None,
    costs: bool = False,
) -> tuple[list[int], float]:
    """Let an agent play prompts in their order; return the models, and the processor time.

    Args:
        agent: an `Agent`, or a `ContextualAgent` if there is `x`.
        prompts: what to play.
        x: the features of each prompt.
        advice: the model that the adviser names for each.
        shadow: for each prompt whether all models reply.
        costs: whether to tell them.
    """
    arms, began = [], time.process_time()
    for row in range(len(prompts.texts)):
        known = () if x is None else (x[row],)
        said = None if advice is None else {"regression": advice[row]}
        decision = agent.ask(*known, ALL if shadow is not None and shadow[row] else None, advice=said)
        arms.append(decision.arm)
        seen = decision.reveals.tolist()
        told = {"costs": dict(zip(seen, prompts.costs[row, seen].tolist(), strict=True))} if costs else {}
        agent.tell(decision, dict(zip(seen, (1 - prompts.rewards[row, seen]).tolist(), strict=True)), **told)
    return arms, time.process_time() - began


def ours(
    seed: int,
    *,
    learner: str = "glance",
    features: bool = False,
    shadow: float = 0.0,
    warm: str = "",
    advised: bool = False,
) -> Played:
    """Play all prompts without a ceiling.

    Args:
        seed: of the order, the coins and the agent.
        learner: its name.
        features: whether it sees 25 components of the prompt, as many as ParetoBandit's authors take.
        shadow: the share of prompts to which all models reply.
        warm: "learn" to begin with the log of the prompts to learn from, "play" to play them first, where each reply
            is seen, with the adviser's advice from the other folds.
        advised: whether there is an adviser.
    """
    order, prompts = shuffled(TEST, seed)
    coins = np.random.default_rng([seed, 1]).random(order.size) < shadow
    agent: Any = (sl.ContextualAgent if features else sl.Agent)(learner, OWN, seed=seed)
    x = encode(25, TRAIN.texts, TEST.texts) if features else [None, None]
    said = [chosen().advice(part) if advised else None for part in (0, 1)]

    def part(of: int, rows: Any) -> dict[str, Any]:
        return {
            "x": None if x[of] is None else x[of][rows],
            "advice": None if said[of] is None else [said[of][k] for k in rows],
        }

    before, others = shuffled(TRAIN, seed)
    if warm == "learn":
        agent.learn(history(others))
    elif warm:
        play(agent, others, **part(0, before), shadow=np.ones(before.size))
    arms, seconds = play(agent, prompts, **part(1, order), shadow=coins)
    return played(prompts, arms, seconds=seconds)


def history(prompts: Prompts) -> dict[str, Any]:
    """Return prompts as a log in which every reply was seen."""
    losses = 1 - prompts.rewards
    n = len(losses)
    shown = {"observed": [[0, 1, 2]] * n, "losses": losses.tolist(), "observe_probabilities": [[1.0] * 3] * n}
    costs = {"costs": prompts.costs.tolist(), "cost": prompts.costs[:, 0]}  # which matter under a ceiling
    return {"action": [0] * n, "loss": losses[:, 0], **shown, **costs}


def bounds(ceiling: float, factors: Any = 1.0) -> dict[str, Any]:
    """Return what each model can cost at most, by the prompts to learn from, and how far the total may be above."""
    most = 1.5 * (TRAIN.costs * factors).max(axis=0)
    return {"cost_bounds": most.tolist(), "overspend": float(SHARE * ceiling * len(TEST.texts))}


def paced(seed: int, ceiling: float, *, advised: bool, hard: bool = True) -> Played:
    """Play all prompts under a ceiling, after learning the log of the others."""
    order, prompts = shuffled(TEST, seed)
    lower = (1 - SHARE) * ceiling
    agent = sl.Agent("glance", OWN, seed=seed, ceiling=lower, **(bounds(ceiling) if hard else {}))
    agent.learn(history(shuffled(TRAIN, seed)[1]))
    said = frugal(lower) if advised else None
    arms, seconds = play(agent, prompts, advice=said and [said[k] for k in order], costs=True)
    return played(prompts, arms, ceiling, seconds)


class Theirs:
    """The router of ParetoBandit, from its wheel."""

    def __init__(self, seed: int, ceiling: float | None = None, alpha: float = 0.01) -> None:
        sys.path += [str(package("paretobandit", VERSION)), str(package("tqdm", "4.67.1"))]
        from pareto_bandit.budget_pacer import BudgetPacer, PacingMode  # type: ignore  # noqa: PGH003, PLC0415
        from pareto_bandit.feature_service import FeatureService  # type: ignore  # noqa: PGH003, PLC0415
        from pareto_bandit.router import BanditRouter  # type: ignore  # noqa: PGH003, PLC0415

        pacer = None if ceiling is None else BudgetPacer(target_avg_spend_usd=ceiling, mode=PacingMode.ADAPTIVE)
        how = {"priors": "none", "cost_penalty": 0.0, "budget_pacer": pacer, "bandit_seed": seed, "alpha": alpha}
        self._x = dict(zip(("train", "test"), encode(25, TRAIN.texts, TEST.texts), strict=True))
        self._encoded: dict[str, Any] = {}
        for texts, x in ((TRAIN.texts, self._x["train"]), (TEST.texts, self._x["test"])):
            self._encoded |= dict(zip(texts, x[:, :-1], strict=True))  # it adds a constant by itself
        encoder = FeatureService(custom_encoder=self._encoded.__getitem__, embedding_dim=25)
        self.router = BanditRouter.create(feature_service=encoder, **how)

    def play(self, prompts: Prompts) -> tuple[list[int], float]:
        """Play prompts in their order; return the models, and the processor time."""
        arms, began = [], time.process_time()
        for row, text in enumerate(prompts.texts):
            model, log = self.router.route(text)
            arms.append(MODELS.index(model))
            log.cost_usd = float(prompts.costs[row, arms[-1]])
            self.router.process_feedback(log.request_id, reward=float(prompts.rewards[row, arms[-1]]))
        return arms, time.process_time() - began


def theirs(seed: int, *, warm: bool, ceiling: float | None = None, alpha: float = 0.01) -> Played:
    """Play all prompts with the router of ParetoBandit: cold, or after a replay of the prompts to learn from."""
    router = Theirs(seed, ceiling, alpha)
    if warm:
        router.play(shuffled(TRAIN, seed)[1])
    prompts = shuffled(TEST, seed)[1]
    arms, seconds = router.play(prompts)
    return played(prompts, arms, np.inf if ceiling is None else ceiling, seconds)


def of_litellm() -> dict[str, list[Played]]:
    """Return what LiteLLM's strategies play, in its own environment; nothing where that was not made."""
    if not LITELLM.exists():
        print("LiteLLM's strategies: not played, since build/litellm is not there (make build/litellm/stamp)")
        return {}
    orders = [shuffled(TEST, seed)[0].tolist() for seed in range(FEW)]
    costs = TRAIN.costs.mean(axis=0).tolist()
    given = {"texts": TEST.texts, "rewards": TEST.rewards.tolist(), "costs": costs, "orders": orders}
    script = Path(__file__).parent / "routing_litellm.py"
    done = subprocess.run([LITELLM, script], input=json.dumps(given), capture_output=True, text=True, check=True)
    games: dict[str, Any] = json.loads(done.stdout.strip().split("\n")[-1])
    return {
        name: [
            played(TEST.of(order), arms, seconds=seconds) for order, (arms, seconds) in zip(orders, found, strict=True)
        ]
        for name, found in games.items()
    }


# What changes.


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
    order, prompts = shuffled(TEST, seed)
    later = np.arange(order.size) >= order.size // 2
    prompts.rewards[later, 2] *= 0.75
    coins = np.random.default_rng([seed, 1]).random(order.size) < shadow
    arms, _ = play(sl.Agent("glance", OWN, seed=seed), prompts, shadow=coins)
    return played(prompts, arms).regret, played(prompts, np.full(order.size, 2)).regret


def drift(seed: int, ceiling: float, router: str) -> list[Played]:
    """Play three thirds, the dear model being cheap in the middle one, and return what each gave.

    It is the example 02_budget_plus_drift of ParetoBandit: the last third has the prompts of the first one.
    """
    order, _ = shuffled(TEST, seed)
    n = order.size // 3
    thirds = order[:n], order[n : 2 * n], np.random.default_rng([seed, 2]).permutation(order[:n])
    factors = [np.array([1.0, 1.0, factor]) for factor in (1.0, CHEAPER, 1.0)]
    parts = [TEST.of(rows) for rows in thirds]
    parts = [part._replace(costs=part.costs * factor) for part, factor in zip(parts, factors, strict=True)]
    others = shuffled(TRAIN, seed)[1]
    arms = []
    if router == "theirs":
        model = Theirs(seed, ceiling)
        model.play(others)
        usual = {"input_cost_per_m": 1.25, "output_cost_per_m": 10.0}
        for part, prices in zip(parts, (usual, dict.fromkeys(usual, 0.1), usual), strict=True):
            model.router.update_model_pricing(MODELS[2], **prices)
            arms += model.play(part)[0]
    else:
        agent = sl.Agent(
            "glance",
            OWN.labelled(["small", "middle", "large"]),
            seed=seed,
            ceiling=(1 - SHARE) * ceiling,
            **bounds(ceiling),
        )
        agent.learn(history(others))
        for number, (part, rows, factor) in enumerate(zip(parts, thirds, factors, strict=True)):
            dear = agent.graph.n_arms - 1
            if number:  # a model whose price changes is another arm, with another bound
                agent.retire(dear)
                dear = agent.add_arm(label=f"large {number}", cost_bound=bounds(ceiling, factor)["cost_bounds"][2])
            said = frugal((1 - SHARE) * ceiling, tuple(factor))
            for row, k in enumerate(rows.tolist()):
                decision = agent.ask(advice={"regression": dear if said[k] == 2 else said[k]})
                arm = min(decision.arm, 2)
                agent.tell(decision, [1 - part.rewards[row, arm]], costs=[part.costs[row, arm]])
                arms.append(arm)
    whole = Prompts([], *(np.concatenate([getattr(part, of) for part in parts]) for of in ("rewards", "costs")))
    thirds_played = [played(part, arms[k * n : (k + 1) * n], ceiling) for k, part in enumerate(parts)]
    return [*thirds_played, played(whole, arms, ceiling)]


# What is printed.


def line(name: str, games: list[Played], published: str = "") -> None:
    """Print a row of the table."""
    regret = np.array([game.regret for game in games])
    error = regret.std(ddof=1) / np.sqrt(len(games)) if len(games) > 1 else 0.0
    reward, spent, seconds = (np.mean([getattr(game, of) for game in games]) for of in ("reward", "spent", "seconds"))
    took = f"{1e6 * seconds:6.0f}" if seconds else "      "
    print(f"{name:46} {regret.mean():7.1f} ± {error:3.1f}  {reward:.4f}  {spent:.2e}  {took}   {published}", flush=True)


def print_choice() -> None:
    """Print how the adviser is chosen."""
    found = chosen()
    print(
        f"{FOLDS}-fold cross-validation on {len(TRAIN.texts):,} other prompts, regret (always the best model: ", end=""
    )
    print(f"{missed(np.tile([0, 0, 1], (len(TRAIN.texts), 1))):.1f})")
    for settings, regret in found.regret.items():
        mark = "   <- chosen" if settings == found.settings else ""
        print(f"  {' and '.join(map(str, settings)):70} {regret:.1f}{mark}")


def print_free() -> None:
    """Print what is reached without a ceiling."""

    def each(seeds: int = SEEDS, **how: Any) -> list[Played]:
        return [ours(seed, **how) for seed in range(seeds)]

    n = len(TEST.texts)
    print(f"\n{n:,} prompts, {SEEDS} orders of them{'':17} regret        reward  $/request   us each  published")
    fixed = {name: played(TEST, np.full(n, arm)) for arm, name in enumerate(("small", "middle", "large"))}
    line("always the best model", [fixed["large"]])
    line("always the cheapest", [fixed["small"]])
    draws = [played(TEST, np.random.default_rng(seed).integers(0, 3, n)) for seed in range(SEEDS)]
    line("random", draws, PUBLISHED["random"])
    line("round robin", [played(TEST, np.arange(n) % 3)])
    for name, games in of_litellm().items():
        line(f"LiteLLM, {name}", games)
    line("the adviser alone", [played(TEST, chosen().advice(1))])
    few = range(THEIR_SEEDS)
    line("ParetoBandit, cold", [theirs(seed, warm=False, **COLD) for seed in few], PUBLISHED["cold"])
    line("ParetoBandit, cold, exploring as when warm", [theirs(seed, warm=False, **WARM) for seed in few])
    line("ParetoBandit, warmed by replay", [theirs(seed, warm=True, **WARM) for seed in few], PUBLISHED["warm"])
    line("ucb-n, cold", each(learner="ucb-n"))
    for shadow in (0.0, 0.05, 0.2):
        line(f"glance, cold, {shadow:.0%} shadow", each(shadow=shadow))
        line(f"glance, cold, features, {shadow:.0%} shadow", each(shadow=shadow, features=True))
    line("glance, warm by learn", each(warm="learn"))
    line("glance, warm by learn, adviser", each(warm="learn", advised=True))
    line("glance, warm by play, adviser", each(warm="play", advised=True))
    line("glance, warm by play, adviser and features", each(warm="play", advised=True, features=True))


def print_outage() -> None:
    """Print what an outage costs."""
    for how in ("available", "failures"):
        costs = [outage(seed, how) for seed in range(SEEDS)]
        error = np.std(costs, ddof=1) / np.sqrt(len(costs))
        print(
            f"outage of the best model, 300 of 3,000, as {how:10} costs {np.mean(costs):5.1f} ± {error:.1f} in regret"
        )


def print_change() -> None:
    """Print what is reached where the best model gets worse."""
    for shadow in (0.0, 0.05, 0.2):
        found = np.array([change(seed, shadow=shadow) for seed in range(FEW)]).mean(axis=0)
        print(
            f"the best model gets worse half-way, {shadow:3.0%} shadow: {found[0]:5.1f}; always the same {found[1]:.1f}"
        )


def print_drift() -> None:
    """Print what is reached where the dear model is cheap for a while, after the prompts to learn from."""
    print(
        "\nthe dear model is cheap in the middle third: reward, and spending over the ceiling, in each third and in all"
    )
    for budget, ceiling in DRIFT.items():
        games: dict[str, list[list[Played]]] = {
            "ParetoBandit, warm": [drift(seed, ceiling, "theirs") for seed in range(THEIR_SEEDS)],
            "glance, warm, adviser": [drift(seed, ceiling, "ours") for seed in range(FEW)],
        }
        for name, each in games.items():
            reward, spent = (
                [np.mean([getattr(g[k], of) for g in each]) for k in range(4)] for of in ("reward", "spent")
            )
            shown = "   ".join(f"{r:.4f} x{s / ceiling:4.2f}" for r, s in zip(reward, spent, strict=True))
            print(f"{budget:9} {ceiling:.2e} {name:22} {shown}   peak {max(g[3].over for g in each):.4f}", flush=True)


def print_budgets() -> None:
    """Print what is reached under each of the seven budgets of ParetoBandit, after the prompts to learn from."""
    print("\nceiling   router                     reward  published  spent / ceiling: mean, most   peak above the line")
    means = np.vstack([TRAIN.costs, TEST.costs]).mean(axis=0)
    for ceiling, said in zip(np.geomspace(means.min(), means.max(), 7).tolist(), PUBLISHED_REWARDS, strict=True):
        few, many = range(THEIR_SEEDS), range(FEW)
        rows = {
            "ParetoBandit, cold": [theirs(seed, warm=False, ceiling=ceiling, **COLD) for seed in few],
            "ParetoBandit, warm": [theirs(seed, warm=True, ceiling=ceiling) for seed in few],
            "glance, warm": [paced(seed, ceiling, advised=False) for seed in many],
            "glance, adviser": [paced(seed, ceiling, advised=True) for seed in many],
            "glance, adviser, no bounds": [paced(seed, ceiling, advised=True, hard=False) for seed in many],
        }
        for name, games in rows.items():
            reward, spent = np.mean([each.reward for each in games]), [each.spent / ceiling for each in games]
            shown = f"{said:.3f}" if name == "ParetoBandit, warm" else "     "
            over, allowed = max(each.over for each in games), bounds(ceiling)["overspend"]
            peak = f"{over:7.4f} of {allowed:.4f}" if name in {"glance, warm", "glance, adviser"} else f"{over:7.4f}"
            print(
                f"{ceiling:.2e}  {name:26} {reward:.4f}  {shown}  {np.mean(spent):.3f} {max(spent):.3f}  {peak}",
                flush=True,
            )


PARTS = {
    "choice": print_choice,
    "free": print_free,
    "outage": print_outage,
    "change": print_change,
    "drift": print_drift,
    "budgets": print_budgets,
}


def main(parts: list[str]) -> None:
    """Print the tables."""
    for part in parts or PARTS:
        PARTS[part]()


if __name__ == "__main__":
    main(sys.argv[1:])
