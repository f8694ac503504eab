"""A slow and obvious oracle of the learner beside this file, typed from its pseudo-code."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[2] / "tests"))

from naive import Advised, AdvisedRound, Spent, exploration_set, observation

# glance. Advice with b = 0, rates that are renewed lazily, another budget and another share of the cautious half:
#
#  1  lines 1 to 11 of advice, without predictions in a and without L in its line 1, which is left out if there are
#     advisers; y in the place of x in lines 2, 7 and 8 and in the entropy;
#     x += C / ln N in line 11 while 1000 lambda / t >= ln N, then min(C / max(h, 1000 lambda / t), x / (2 lambda));
#     y = x as soon as x - y > min(0.03, 1 / (2 lambda)) y, or what C is divided by is above twice its least since then
#  2  W = 4 + 2 G + 2 sqrt(V), V += (sum over i seen of (p_i - q_i) (l_i - d_i) / P_i)^2
#  3  rho = 0.002 + 0.018 (1 - s) K / (K - 1); s follows the share of arms seen, over 50 rounds
#  4  d_i = clip(b + o_i, 0, 1)
#
# The bold half has lines a to h of `bold`, typed again here: see there. Of more than 32 arms D is kept for three
# more rounds, unless another arm leads, the graph is another one, or some arm is absent. With advisers D is mixed as
# `trust` says.


class Glance(Advised):
    """The rule, from all that was ever seen of each arm."""

    def __init__(self, n_arms, advisers=0):
        super().__init__(n_arms, advisers, predicts=False, m=1)
        K = n_arms
        self.V_of_Z = self.s = self.b = self.paid = 0.0
        self.o, self.N, self.V, self.F2 = np.zeros(K), np.zeros(K), np.zeros(K), np.zeros(K)
        self.history = [[] for _ in range(K)]  # of each arm: the weight of each loss, and the loss less what all share
        self.f, self.slow = np.zeros(K), np.zeros(K)
        self.was, self.bad, self.n, self.last = np.zeros(K), np.zeros(K), np.zeros(K), np.zeros(K)
        self.C = self.X2 = self.Y2 = 0.0
        self.squares = self.number = 0.0
        self.paired = self.weighed = self.hid = False
        self.levels, self.errors = [0.0] * 3, [0.0] * 3
        self.told = self.alarms = self.looks_back = 0
        self.kept = (0, None, None)  # for how many rounds D will do, D and its graph
        self.divided = []  # what C was divided by in each round since y = x
        self.H, self.gap = [0.0] * (1 + advisers), 0.0  # what the own D and each adviser would have lost
        self.own = {}  # by round, D without advice

    def renew(self):
        if self.x > self.y and (self.x - self.y > self.lazy * self.y or self.divided[-1] > 2 * min(self.divided)):
            self.y, self.divided = self.x, []

    def step(self, C, h, t):
        lam = 1 + math.log(self.size * t)
        self.lazy = min(0.03, 1 / (2 * lam))
        plain = 1000 * lam / t >= math.log(self.size)
        self.divided.append(math.log(self.size) if plain else max(h, 1000 * lam / t))
        return C / self.divided[-1] if plain else min(C / self.divided[-1], self.x / (2 * lam))

    def share(self):
        return 0.002 + 0.018 * (1 - self.s) * self.K / (self.K - 1) if self.K > 1 else 0.0

    def budget(self):
        return 4 + 2 * self.G + 2 * math.sqrt(self.V_of_Z)

    def charge_first(self, losses):
        """Nothing of line 1 goes into L."""

    def distribution(self, A, advice=None) -> AdvisedRound:
        A = np.array(A, dtype=bool)
        there = np.diag(A)
        if self.K == 1:
            self.unseen = {0}
        elif self.size > self.K:
            self.unseen = set()
        looks = any(there[i] for i in self.unseen)
        D = np.zeros(self.K) if looks else self.bold(A, there)
        self.own[self.t + 1] = D
        if self.size > self.K and not looks:
            advising = {m: E for m, E in (advice or {}).items() if there[np.array(E) > 0].all()}
            D = self.followed(D, A, advising)
        return super().distribution(A, D, np.clip(self.b + self.o, 0, 1), advice)

    def trust(self, experts, more=None):
        """Return T of those who are there, by number from 1 on and 0 for the own D, and -y ln of the sum."""
        y = (self.gap + 1e-6) / math.log(len(self.H))
        lost = {k: self.H[k] + (more or {}).get(k, 0.0) for k in experts}
        least = min(lost.values())
        T = {k: math.exp(max(-700, -(each - least) / y)) for k, each in lost.items()}
        sum_ = math.fsum(T.values())
        return {k: each / sum_ for k, each in T.items()}, least - y * math.log(sum_)

    def followed(self, own, A, advising):
        T, _ = self.trust([0, *(m + 1 for m in advising)])
        D = T[0] * own + sum(T[m + 1] * np.array(E) for m, E in advising.items())
        P = observation(D, A)
        D = D + sum(max(0.0, 0.05 - float(np.array(E) @ P)) * np.array(E) for E in advising.values())
        return D / D.sum()

    def judge_advice(self, told, losses, P):
        l = told.d.copy()
        for i in losses:
            l[i] += (losses[i] - told.d[i]) / P[i]
        advising = {e - self.K + 1: E for e, E in told.experts.items() if e >= self.K}
        c = {0: float(self.own[told.t] @ l)} | {k: float(E @ l) for k, E in advising.items()}
        T, before = self.trust(c)
        mix = self.trust(c, c)[1] - before
        self.gap += max(0.0, sum(T[k] * c[k] for k in c) - mix)
        self.H = [H + c.get(k, mix) for k, H in enumerate(self.H)]

    def add(self):
        super().add()
        self.H.append(min(self.H))

    def new_arm(self, waiting):
        """Let an arm come, the last; there are no advisers. Return the rounds that wait, in which it was absent."""
        super().add()
        self.K += 1
        self.unseen.add(self.K - 1)
        for name in ("o", "N", "V", "F2", "f", "slow", "was", "bad", "n", "last"):
            setattr(self, name, np.append(getattr(self, name), 0.0))
        self.history.append([])
        self.kept = (0, None, None)
        return [
            told._replace(
                A=np.pad(told.A, (0, 1)),
                experts=told.experts and {e: np.append(E, 0.0) for e, E in told.experts.items()},
                **{name: np.append(getattr(told, name), 0.0) for name in "pqDd" if getattr(told, name) is not None},
            )
            for told in waiting
        ]

    def prior(self):
        """Line a."""
        R2 = (self.C + 0.1) ** 2 / ((self.X2 + 0.1) * (self.Y2 + 0.1))
        return 0.05 * max(0.03, 1 - R2) if self.paired else 0.05

    def pooled(self):
        return (self.prior() + self.squares) / (1 + self.number)

    def variances(self):
        """Line b."""
        return (self.V + self.prior() + self.pooled()) / (self.N + 2)

    def leader(self, there=None):
        return min((i for i in range(self.K) if there is None or there[i]), key=lambda i: (self.o[i], i))

    def bold(self, A, there):
        """Lines a to e."""
        t = self.t + 1
        for i in range(self.K):
            if self.n[i] > 0 and i != self.leader() and there[i] and not self.weighed:
                hope = (self.paid - self.was[i]) * (t - self.last[i])
                if hope > 0.25 * self.n[i] * max(self.bad[i] - self.paid, 0.01):
                    self.n[i] += 1
                    self.last[i] = t
                    self.looks_back += 1
                    return np.eye(self.K)[i]  # e
        left, D, graph = self.kept
        if left and there.all() and (graph == A).all():
            self.kept = (left - 1, D, graph)
            return D
        N, v, a = self.N, self.variances(), self.leader(there)
        gap = self.o - self.o[a]
        cover = exploration_set([0] * self.K, A | np.eye(self.K, dtype=bool), "practical")
        cell = [i if i in cover else min(c for c in cover if A[c, i]) for i in range(self.K)]
        wide = np.array([cell.count(i) > 1 for i in range(self.K)])
        sharp = np.where(wide & (not self.weighed), 1 + 3 / (1 + t / 30), 4)
        u = sharp * N * gap**2 / ((N + 2) * v + 2 * N * gap**2 / (N + 2))
        D = np.where(there, np.exp(np.maximum(-700, -2 * (N + 2) * u / (2 + u))), 0)  # c
        D /= math.fsum(D)
        if not self.hid:
            D = self.moved(D, A, a, cell, gap, v, t)
        self.kept = (3 if self.K > 32 and there.all() else 0, D, A)
        return D

    def moved(self, D, A, a, cell, gap, v, t):
        """Line d."""
        own, D = sum(D[A[a]]), np.where(A[a], 0, D)
        D[a] = own
        for i in range(self.K):
            c = cell[i]
            if i not in (c, a) and self.o[c] < self.o[i]:
                D[c] += D[i]
                D[i] = 0.0
        h = cell[a]
        if not A[a, h] and t > 50 and gap[h] ** 2 * self.N[h] < 2 * v[h] * math.log(t / 50):
            D[h] += D[a] / 2
            D[a] /= 2
        return D

    def update(self, told: AdvisedRound, arm, losses, A=None) -> Spent:
        A = told.A if A is None else np.array(A, dtype=bool)
        there = int(np.diag(A).sum())
        self.s += (len(losses) / there - self.s) / min(50, 1 + self.told)
        if told.experts is None:
            if not self.weighed or self.told == 0:
                self.know(told, arm, losses, None)
            return Spent()
        asked, P = observation(told.p, told.A), observation(told.p, A)
        other = np.abs(P - asked) > 1e-9 * asked
        self.weighed |= bool(other.any())
        self.hid |= bool((other & (asked > P)).any())
        self.V_of_Z += math.fsum((told.p[i] - told.q[i]) * (losses[i] - told.d[i]) / P[i] for i in losses) ** 2
        if self.size > self.K:
            self.judge_advice(told, losses, P)
        spent = super().update(told, arm, losses, A)
        self.know(told, arm, losses, P)
        return spent

    def know(self, told, arm, losses, P):
        """Lines f to l."""
        a = self.leader()
        e = {i: losses[i] - self.o[i] for i in losses}
        mean = e[arm] if self.weighed else sum(e.values()) / len(e)
        if self.told == 0:
            self.b, self.levels = mean, [mean] * 3
        b = self.b
        self.paid += (losses[arm] - self.paid) / min(20, 1 + self.told)
        self.watch(told.t, losses, e, b if len(e) == 1 else mean)  # f to h
        r = 0.0
        if a in e and len(e) > 1:
            s = min((i for i in e if i != a), key=lambda i: (self.before[i], i))
            r = min(1, max(0, self.C / (self.X2 + 0.001))) * (e[a] - b)  # i
            self.C += (e[s] - b) * (e[a] - b)
            self.X2 += (e[a] - b) ** 2
            self.Y2 += (e[s] - b) ** 2
        self.paired |= len(e) > 1
        for i in losses:
            error = losses[i] - self.o[i] - b - r
            w = min(20 + told.t / 12, 1 / P[i]) if self.weighed else 1.0
            self.squares += w * error**2 * self.N[i] / (self.N[i] + 1)
            self.number += w * (self.N[i] > 0)
            self.history[i].append((w, losses[i] - b - r))
            self.F2[i] += 0 if self.weighed else 1
        for i in range(self.K):
            self.F2[i] += P[i] * min(20 + told.t / 12, 1 / P[i]) ** 2 if self.weighed and P[i] > 0 else 0
            F = sum(w for w, _ in self.history[i])
            if F > 0 and (i in losses or self.weighed):
                self.o[i] = sum(w * value for w, value in self.history[i]) / F  # j
                self.N[i] = F**2 / self.F2[i]  # k
                self.V[i] = self.N[i] * sum(w * (value - self.o[i]) ** 2 for w, value in self.history[i]) / F
        self.told += 1
        self.follow_level(mean)
        if self.leader() != a:
            self.kept = (0, None, None)

    def watch(self, t, losses, e, common):
        """Lines f to h."""
        self.before = self.o.copy()
        v, pooled, alone, alarm = self.variances(), self.pooled(), len(e) == 1 and not self.weighed, None
        for i in sorted(e):
            self.last[i] = t
            if self.N[i] > 2:
                self.f[i] += (e[i] - common - self.f[i]) / 30
                raised = self.f[i] ** 2 > 0.6 * max(v[i], pooled)
                if alone:
                    self.slow[i] += (e[i] - self.levels[0] - self.slow[i]) / 30
                    raised |= self.slow[i] > 0 and self.slow[i] ** 2 > 0.6 * v[i]
                alarm = i if raised and self.N[i] > 30 else alarm  # f
        if alarm is not None:
            self.alarms += 1
            if self.n[alarm] == 0:
                self.was[alarm], self.bad[alarm], self.n[alarm] = self.o[alarm] + self.levels[0], losses[alarm], 1
            self.levels[0] = self.b if len(e) == 1 else self.levels[0]
            for i in range(self.K):
                self.keep_some(i)  # g
            self.f[:] = self.slow[:] = 0
        elif not self.weighed:
            for i in sorted(e):
                self.judge(i, losses[i])  # h

    def judge(self, i, loss):
        if self.n[i] > 0 and i != self.leader():
            if loss < (self.was[i] + self.bad[i]) / 2:
                self.o[i], self.n[i] = self.was[i] - self.b, 0
                N = self.F2[i] = self.N[i] = min(5, self.N[i])
                self.history[i], self.V[i] = [(N, self.o[i])], 0.0
            else:
                self.bad[i] = loss

    def keep_some(self, i):
        if self.N[i] > 5:
            spread = math.sqrt(self.V[i] / self.N[i])
            self.V[i] *= 5 / self.N[i]
            self.N[i] = self.F2[i] = 5
            self.history[i] = [(2.5, self.o[i] - spread), (2.5, self.o[i] + spread)]

    def follow_level(self, mean):
        """Line l."""
        rounds = self.told + 1
        for j, memory in enumerate((math.inf, 32, 4)):
            self.errors[j] += ((mean - self.levels[j]) ** 2 - self.errors[j]) / min(20, rounds)
            self.levels[j] += (mean - self.levels[j]) / min(memory, rounds)
        best = 0
        for j in range(3):
            if self.errors[j] < 0.9 * self.errors[best]:
                best = j
        self.b = self.levels[best]
