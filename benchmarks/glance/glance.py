"""The rule `glance`, clean prototype. The numbers are those of the lines of rule.md.

play(bank, which, losses, score, seed, log) -> (0, total loss): bank (graphs, K, K) bool, which (T,) the graph of each
round, losses (T, K), score (T or 1, K) what a play is charged. log (T, 14), or (0, 14) for none: see COLUMNS.
"""
import math

import numpy as np
from numba import njit

from rules import draw, greedy_cover, weigh

M = 1.6  # scale of the rate
CHARGE = 0.3  # of exploration, in the rate
SHARP = 4.0  # of the bold half
PRIOR = 0.1  # variance
SHARED = 2.0  # observations that the pooled variance counts for
START, GROWTH = 4.0, 2.0  # the budget of the bold half
LEAST, SLOPE = 0.02, 0.002  # share of the cautious half: LEAST + SLOPE x, at most 1/2
MEMORY = (math.inf, 32.0, 4.0)  # of the three levels, in rounds
COLUMNS = "x share Z eps S arm sumC dz y h W J ylead played".split()


@njit(cache=True)
def play(bank, which, losses, score, seed, log, sharp=SHARP, start=START, growth=GROWTH, least_share=LEAST, slope=SLOPE):
    np.random.seed(seed)
    T, K = losses.shape
    n = max(2, int(math.floor(math.log(K) + 0.5)))
    H = n * (math.exp(math.log(K) / n) - 1.0)
    x = math.sqrt(2.0 / H) / (2.0 * M)
    eps = Z = sumC = total = b = 0.0
    y_ = 1.0
    L, q, r, w, D, p, P = np.zeros(K), np.zeros(K), np.zeros(K), np.zeros(K), np.zeros(K), np.zeros(K), np.zeros(K)
    U, u, a, d, v = np.zeros(K), np.zeros(K), np.zeros(K), np.zeros(K), np.zeros(K)
    N, o, V, e = np.zeros(K), np.zeros(K), np.zeros(K), np.zeros(K)
    level, miss = np.zeros(3), np.zeros(3)
    within = within_n = between = between_n = inverse = 0.0
    graph = -1
    for t in range(T):
        A = bank[which[t]]
        arm = -1
        gain = 0
        for j in range(K):  # 1: while an arm was never seen, the arm that reveals most of those
            new = 0
            for i in range(K):
                if A[j, i] and N[i] == 0.0:
                    new += 1
            if new > gain:
                gain = new
                arm = j
        looking = arm >= 0 and t < K
        share = S = dz = h = yy = ylead = W = J = 0.0
        if not looking:
            eta = 1.0 / x
            y_, h = weigh(L, q, r, n, eta, y_)  # 2, 3
            # the bold half
            pooled, freedom, low, lead = PRIOR, 1.0, 1e300, 0
            for i in range(K):
                pooled += V[i]
                freedom += max(0.0, N[i] - 1.0)
                low = min(low, o[i])
                if q[i] > q[lead]:
                    lead = i
            pooled /= freedom
            sum_ = 0.0
            for i in range(K):
                v[i] = (V[i] + PRIOR + SHARED * pooled) / (N[i] + 1.0 + SHARED)  # 4
                D[i] = math.exp(-(N[i] + SHARED) * math.log1p(sharp * N[i] / (N[i] + SHARED) * (o[i] - low) ** 2 / v[i]))  # 5
                sum_ += D[i]
            W = start + growth * sumC
            share = 1.0 - min(0.5, least_share + slope * x)
            share *= min(1.0, max(0.0, 2.0 * (1.0 - Z / W)))  # 6
            for i in range(K):
                D[i] /= sum_
                p[i] = (1.0 - share) * q[i] + share * D[i]
            # exploration
            if which[t] != graph:
                cover = greedy_cover(A)
                U[:] = 0.0
                for k in range(cover.size):
                    U[cover[k]] = 1.0 / cover.size
                for i in range(K):
                    u[i] = 0.0
                    for j in range(K):
                        if A[j, i]:
                            u[i] += U[j]
                graph = which[t]
            first = second = 0.0
            for i in range(K):
                sum_ = 0.0
                for j in range(K):
                    if A[j, i]:
                        sum_ += p[j]
                P[i] = sum_
                w[i] = n / (n - 1.0) * q[i] * r[i]
                g = u[i] - sum_
                inv = 1.0 / (sum_ + eps * g)
                change = 2.0 * (1.0 - share) * eta * v[i] * w[i] * inv * inv * g
                first += change
                second += 2.0 * change * inv * g
            if second > 1e-300:
                eps += (first - 1.0) / second  # 7
            eps = min(0.5, max(0.0, eps))
            limit = 0.0
            for i in range(K):
                if i != lead:
                    limit += 4.0 * eta * w[i] / (P[i] + eps * (u[i] - P[i]))
            if eps > limit:
                eps = 0.5 * limit
            for i in range(K):
                p[i] = (1.0 - eps) * p[i] + eps * U[i]  # 8
                P[i] = (1.0 - eps) * P[i] + eps * u[i]
            arm = draw(p)
            # estimates
            above = below = 0.0
            least = 1e300
            for i in range(K):
                d[i] = min(1.0, max(0.0, b + o[i]))  # 9
                a[i] = min(d[i], 0.45 * P[i] * x / r[i])
                dz += (D[i] - q[i]) * d[i]
                if A[arm, i]:
                    a[i] += (losses[t, i] - a[i]) / P[i]  # 10
                    dz += (D[i] - q[i]) * (losses[t, i] - d[i]) / P[i]
                above += q[i] * r[i] * a[i]
                below += q[i] * r[i]
                least = min(least, a[i] + 0.5 * x / r[i])
                yy += w[i] / P[i]
                if i != lead:
                    ylead += w[i] / P[i]
            c = min(above / below, least)
            for i in range(K):
                s = eta * (a[i] - c) * r[i] / (n - 1.0)
                z = 1.0 / (1.0 + s)
                sum_ = 0.0
                for k in range(1, n):
                    sum_ = sum_ * z + k
                S += q[i] / r[i] * s * s * z * sum_  # 11
                L[i] += a[i]
            S *= x
            J = (1.0 - eps) * share * dz
            Z += J  # 12
            C = S + CHARGE * eps
            sumC += C
            x += min(C / (M * M * max(h, H / (t + 1.0))), x / n)  # 13
        total += score[t % score.shape[0], arm]
        # what is known of arms and of the level
        k = 0
        mean = 0.0
        for i in range(K):
            if A[arm, i]:
                k += 1
                mean += losses[t, i] - o[i]
        mean /= k
        if t == 0:
            b = mean
        surprise = mean - b
        tau = 0.0
        if t > 0:
            noise = (within + (between + PRIOR) / (between_n + 1.0)) / (within_n + 1.0)
            shift = max(0.0, (between - noise * inverse) / max(1.0, between_n))
            if k > 1 and shift > 0.0:
                tau = shift / (shift + noise / (k - 1.0))  # 14
            between += surprise * surprise
            between_n += 1.0
            inverse += 1.0 / k
            within_n += k - 1.0
        for i in range(K):
            if A[arm, i]:
                e[i] = losses[t, i] - b - o[i]
                if t > 0:
                    within += (e[i] - surprise) ** 2
        for i in range(K):
            if A[arm, i]:
                if looking and N[i] == 0.0:
                    L[i] = losses[t, i]
                res = e[i] - tau * (k * surprise - e[i]) / (k - 1.0) if k > 1 else e[i]
                N[i] += 1.0
                o[i] += res / N[i]  # 15
                V[i] += res * res * (1.0 - 1.0 / N[i])
        best = 0
        for j in range(3):  # 16
            if t == 0:
                level[j] = b
            miss[j] += ((mean - level[j]) ** 2 - miss[j]) / min(20.0, t + 2.0)
            level[j] += (mean - level[j]) / min(MEMORY[j], t + 2.0)
            if miss[j] < 0.9 * miss[best]:
                best = j
        b = level[best]
        if log.shape[0] > 0:
            log[t, 0] = x; log[t, 1] = share; log[t, 2] = Z; log[t, 3] = eps; log[t, 4] = S; log[t, 5] = arm; log[t, 6] = sumC
            log[t, 7] = dz; log[t, 8] = yy; log[t, 9] = h; log[t, 10] = W; log[t, 11] = J; log[t, 12] = ylead; log[t, 13] = 0.0 if looking else 1.0
    return 0.0, total
