"""Owners' problems and worlds that turn, as tables of losses. An instance: name, family, half, K, T, graphs (bank, K, K) bool,
which (runs, T) -> index in the bank, losses (runs, T, K)."""
import numpy as np
from typing import NamedTuple

RUNS = 8  #: set by `suite`: more where there are few rounds
HORIZONS = (52, 200, 365, 1000, 3000, 5000)

class Instance(NamedTuple):
    name: str
    family: str
    half: int
    K: int
    T: int
    bank: np.ndarray
    which: np.ndarray
    losses: np.ndarray
    binary: bool

def nested(K):  # j reveals i <= j
    return np.tril(np.ones((K, K), bool))
def upwards(K):
    return np.triu(np.ones((K, K), bool))
def loops(K):
    return np.eye(K, dtype=bool)
def complete(K):
    return np.ones((K, K), bool)
def star(K, hub=0):
    A = np.eye(K, dtype=bool); A[hub] = True; A[:, hub] = True; return A
def outstar(K, hub=0):
    A = np.eye(K, dtype=bool); A[hub] = True; return A
def banded(K, w):
    i = np.arange(K); return abs(i[:, None] - i[None]) <= w
def randg(K, p, rng):
    return (rng.random((K, K)) < p) | np.eye(K, dtype=bool)

def order_losses(D, K, h, b):
    Q = K - 1
    q = np.arange(K)
    s = np.minimum(q, D[..., None])
    return (h * (q - s) - b * s + b * Q) / ((h + b) * Q)

def demand(kind, rng, T, K):
    lam = rng.uniform(.25, .65) * K
    size = (RUNS, T)
    if kind == "poisson": return rng.poisson(lam, size)
    if kind == "negbin":
        r = rng.uniform(1, 5); return rng.negative_binomial(r, r / (r + lam), size)
    if kind == "seasonal":
        week = 1 + rng.uniform(.2, .5) * np.sin(2 * np.pi * np.arange(T) / 7)
        year = 1 + rng.uniform(.2, .5) * np.sin(2 * np.pi * (np.arange(T) / 365 + rng.random()))
        return rng.poisson(lam * week * year * np.ones(size))
    if kind == "mixed":
        promo = rng.random(size) < rng.uniform(.05, .25)
        return rng.poisson(np.where(promo, rng.uniform(1.5, 3) * lam, lam * .8))
    if kind == "heavy":
        return np.floor(lam * .6 * np.exp(rng.uniform(.6, 1.2) * rng.standard_normal(size)))
    if kind == "bursty":  # zero-inflated
        return np.where(rng.random(size) < rng.uniform(.3, .6), 0, rng.poisson(lam * 1.5, size))
    raise ValueError(kind)

def stock(kind):
    def make(rng, T):
        K = int(rng.integers(8, 51)); b = rng.choice([1.5, 2, 3, 5, 9])
        return nested(K)[None], None, order_losses(demand(kind, rng, T, K), K, 1.0, b), False, f"{kind} K={K} b={b}"
    return make

def exits(rng, T):
    K = int(rng.integers(3, 13)); return exits_with(rng, T, K)
def exits_with(rng, T, K):
    acc = rng.uniform(.4, .7) + (rng.uniform(.15, .35)) * (1 - np.exp(-np.arange(1, K + 1) / (K * rng.uniform(.15, .6))))
    u = rng.random((RUNS, T, 1)); flip = rng.random((RUNS, T, K)) < rng.uniform(.01, .06)
    wrong = (u > acc) ^ flip
    price = rng.uniform(.1, .35)
    return nested(K)[None], None, (1 - price) * wrong + price * np.arange(1, K + 1) / K, False, f"K={K}"

def training(rng, T):
    K = int(rng.integers(8, 31)); e = np.arange(1, K + 1)
    err = rng.uniform(.05, .3) + rng.uniform(.2, .5) * np.exp(-e / (K * rng.uniform(.08, .4))) + rng.uniform(0, .1) * (e / K) ** 2
    noise = rng.normal(0, rng.uniform(.01, .06), (RUNS, T, 1)) + rng.normal(0, rng.uniform(.005, .03), (RUNS, T, K))
    return nested(K)[None], None, np.clip(.8 * (err + noise) + .2 * e / K, 0, 1), False, f"K={K}"

def bid_losses(rng, T, K):
    s = np.linspace(0.05, 1, K) if rng.random() < .5 else (np.arange(1, K + 1) / (K + 1))
    v = np.clip(rng.beta(4, rng.uniform(2, 5), (RUNS, T)), 0, 1)
    m = np.exp(rng.normal(np.log(rng.uniform(.1, .4)), rng.uniform(.3, .8), (RUNS, T)))
    win = s * v[..., None] >= m[..., None]
    return 1 - v[..., None] * (1 - s) * win
def bids(rng, T):
    K = int(rng.integers(10, 31))
    return upwards(K)[None], None, bid_losses(rng, T, K), False, f"K={K}"
def bids_shown(rng, T):
    K = int(rng.integers(10, 31)); p = rng.uniform(.2, .8)
    which = (rng.random((RUNS, T)) < p).astype(np.int64)
    return np.stack([upwards(K), complete(K)]), which, bid_losses(rng, T, K), False, f"K={K} shown {p:.1f}"

def clicks(rng, T):
    K = int(rng.integers(2, 7)); rate = rng.uniform(.02, .1, K)
    return loops(K)[None], None, 1.0 - (rng.random((RUNS, T, K)) < rate), True, f"K={K} rates {rate.min():.3f}..{rate.max():.3f}"
def errors(rng, T):  # rare losses
    K = int(rng.integers(2, 9)); rate = rng.uniform(.02, .15, K)
    return loops(K)[None], None, 1.0 * (rng.random((RUNS, T, K)) < rate), True, f"K={K} rates {rate.min():.3f}..{rate.max():.3f}"
def prices(rng, T):
    K = int(rng.integers(5, 13)); price = np.linspace(.2, 1, K)
    val = rng.beta(rng.uniform(1.5, 4), rng.uniform(1.5, 4), (RUNS, T, 1))
    A = loops(K) if rng.random() < .5 else banded(K, 1)
    return A[None], None, 1 - price * (val >= price), False, f"K={K} {'loops' if A.sum() == K else 'banded'}"
def pages(rng, T):  # conversion 2..30 %, with a clique or two
    K = int(rng.integers(3, 7)); rate = rng.uniform(.05, .3, K)
    A = loops(K); A[:2, :2] = True
    return A[None], None, 1.0 - (rng.random((RUNS, T, K)) < rate), True, f"K={K}"

def model_losses(rng, T, K):
    quality = rng.uniform(.5, .9, K); cost = np.sort(rng.uniform(0, 1, K)); w = rng.uniform(.5, .9)
    hard = rng.normal(0, .12, (RUNS, T, 1))
    if rng.random() < .5: judge = np.clip(quality + hard + rng.normal(0, .1, (RUNS, T, K)), 0, 1)
    else: judge = 1.0 * (rng.random((RUNS, T, K)) < quality)
    return w * (1 - judge) + (1 - w) * cost
def routing(rng, T):
    K = int(rng.integers(3, 11)); p = rng.uniform(.1, .6)
    bank = np.stack([randg(K, p * rng.random() * 1.5, rng) for _ in range(40)])
    return bank, rng.integers(0, 40, (RUNS, T)), model_losses(rng, T, K), False, f"K={K} p={p:.1f}"
def hub(rng, T):
    K = int(rng.integers(3, 13)); l = model_losses(rng, T, K)
    order = np.argsort(l.mean((0, 1))); place = rng.random()
    # the hub, arm 0, is best, second best, middling or worst
    pos = 0 if place < .35 else 1 if place < .5 else K // 2 if place < .75 else K - 1
    rest = [i for i in order if i != order[pos]]; rng.shuffle(rest)
    l = l[..., [order[pos], *rest]]
    A = outstar(K) if rng.random() < .5 else star(K)
    return A[None], None, l, False, f"K={K} hub's place {pos}"
def cascade(rng, T):
    return exits_with(rng, T, int(rng.integers(3, 6)))
def beta_graph(rng, T):
    K = int(rng.integers(5, 25)); mu = rng.uniform(.2, .8, K); mu = .5 + (mu - .5) * rng.uniform(.2, 1)
    c = rng.choice([5, 20, 100]); A = [randg(K, .2, rng), banded(K, 2), star(K, K // 2), loops(K)][rng.integers(4)]
    return A[None], None, rng.beta(mu * c, (1 - mu) * c, (RUNS, T, K)), False, f"K={K} c={c}"

OWNERS = dict(
    **{f"stock {k}": stock(k) for k in ("poisson", "negbin", "seasonal", "mixed", "heavy", "bursty")},
    exits=exits, cascade=cascade, training=training, bids=bids, bids_shown=bids_shown, clicks=clicks, errors=errors, prices=prices, pages=pages,
    routing=routing, hub=hub, beta_graph=beta_graph)

# ---- worlds that turn
def glue(make, part):  # the same shape with other numbers from `part` of the rounds on
    def turned(rng, T):
        seed = int(rng.integers(2**40)); a = make(np.random.default_rng(seed), T)
        K = a[0].shape[1]
        for k in range(1000):
            b = make(np.random.default_rng(seed + 1 + k), T)
            if b[0].shape[1] == K: break
        at = int(part * T); l = a[2].copy(); l[:, at:] = b[2][:, at:]
        return a[0], a[1], l, a[3], a[4] + f" turns at {at}"
    return turned
def stock_turn(rng, T):
    K = int(rng.integers(8, 51)); b = rng.choice([2, 3, 5.]); lo, hi = sorted(rng.uniform(.15, .8, 2) * K)
    if rng.random() < .5: lo, hi = hi, lo
    lam = np.where(np.arange(T) < T // 2, lo, hi)
    return nested(K)[None], None, order_losses(rng.poisson(lam * np.ones((RUNS, T))), K, 1., b), False, f"K={K} lambda {lo:.0f} then {hi:.0f}"
def some_graph(rng, K):
    return [loops(K), nested(K), star(K), star(K, K - 1), randg(K, .3, rng), upwards(K)][rng.integers(6)]
def constrained(rng, T):
    K = int(rng.integers(2, 13)); gap = rng.choice([.05, .1, .2, .3]); g = np.full(K, gap); g[rng.integers(K)] = 0
    m = np.zeros((T, 1)); end = 0; length = 1; ph = 0
    while end < T:
        m[end:end + length] = (1 - gap) * (ph % 2); end += length; length = -(-8 * length // 5); ph += 1
    return some_graph(rng, K)[None], None, 1.0 * (rng.random((RUNS, T, K)) < m + g), True, f"K={K} gap {gap} best {g.argmin()}"
def corrupted(rng, T):
    K = int(rng.integers(2, 13)); gap = rng.choice([.05, .1, .2, .3]); g = np.full(K, gap); best = rng.integers(K); g[best] = 0
    l = 1.0 * (rng.random((RUNS, T, K)) < rng.uniform(.1, .6) + g); n = int(rng.choice([np.sqrt(T), T / 10])); 
    l[:, :n] = 1 - l[:, :n]
    return some_graph(rng, K)[None], None, l, True, f"K={K} gap {gap} corrupted {n}"
def switching(rng, T):
    K = int(rng.integers(2, 13)); gap = rng.choice([.05, .1, .2, .3]); 
    i, j = rng.choice(K, 2, replace=False); a = np.full(K, gap); b = a.copy(); a[i] = 0; b[j] = -rng.choice([0, gap]); 
    at = int(T * rng.choice([.1, .3, .5])); m = np.where((np.arange(T) < at)[:, None], a, b) + rng.uniform(.31, .6)
    return some_graph(rng, K)[None], None, 1.0 * (rng.random((RUNS, T, K)) < m), True, f"K={K} gap {gap} at {at}"
def drift(rng, T):
    K = int(rng.integers(3, 13)); f = rng.uniform(.5, 2); ph = rng.random(K); 
    m = .5 + .25 * np.sin(2 * np.pi * (f * np.arange(T)[:, None] / T + ph))
    return some_graph(rng, K)[None], None, np.clip(m + rng.normal(0, .1, (RUNS, T, K)), 0, 1), False, f"K={K}"
TURNING = dict(stock_turn=stock_turn, exits_turn=glue(exits, .5), routing_turn=glue(routing, .5), bids_turn=glue(bids, .5),
               training_turn=glue(training, .5), constrained=constrained, corrupted=corrupted, switching=switching, drift=drift)

def suite(kinds, per_family=12, base=0, horizons=HORIZONS):
    out = []
    for f, (name, make) in enumerate(kinds.items()):
        for j in range(per_family):
            T = horizons[(j // 2) % len(horizons)]
            global RUNS
            RUNS = 48 if T <= 365 else 24 if T <= 1000 else 8
            rng = np.random.default_rng([base, f, j])
            while True:
                bank, which, losses, binary, text = make(rng, T)
                m = losses.sum(1)
                lost = m.mean(1) - m[:, m.mean(0).argmin()]
                # random play must lose clearly more than the best arm: otherwise a share is noise
                if kinds is not OWNERS or lost.mean() > max(4 * losses.std(2).mean() * np.sqrt(T / RUNS), 1.0): break
            if which is None: which = np.zeros((RUNS, T), np.int64)
            out.append(Instance(f"{name}, {text}, T={T}", name, j % 2, bank.shape[1], T, np.ascontiguousarray(bank), which, np.ascontiguousarray(losses, dtype=np.float64), binary))
    return out
if __name__ == "__main__":
    import time; t0 = time.time(); s = suite(OWNERS); u = suite(TURNING)
    print(len(s), len(u), time.time() - t0, sum(i.losses.nbytes for i in s + u) / 1e6)
    for i in s: assert i.losses.min() >= 0 and i.losses.max() <= 1, i.name
    for i in u: assert i.losses.min() >= 0 and i.losses.max() <= 1, i.name
