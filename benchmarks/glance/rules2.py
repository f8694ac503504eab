"""glance, second prototype: one set of statistics for predictions, exploration and the bold half."""
import math
import numpy as np
from numba import njit
from rules import greedy_cover, draw, weigh
OPT = dict(cache=True)
NAMES = "M CHARGE WEXP XS BC V0 VS BUD BUD0 FLOOR RHO RHOX LIFT BMEM MIXC FORGET LEVEL CREM PWIN SLOPE LIMW PAIR WGT DOF STUD".split()
(M_, CHARGE, WEXP, XS, BC, V0, VS, BUD, BUD0, FLOOR, RHO, RHOX, LIFT, BMEM, MIXC, FORGET, LEVEL, CREM, PWIN, SLOPE, LIMW, PAIR, WGT, DOF, STUD) = range(len(NAMES))
def default(**k):
    p = np.zeros(len(NAMES))
    d = dict(M=1.6, CHARGE=.3, WEXP=2, XS=.5, BC=3, V0=.1, VS=2, BUD=4, BUD0=2, FLOOR=1e9, RHO=.02, RHOX=.002, LIFT=0, BMEM=20, MIXC=1, FORGET=0, LEVEL=3, CREM=.9, PWIN=20, SLOPE=2, LIMW=.9, PAIR=1, WGT=0, DOF=1, STUD=0)
    d.update(k)
    for n, v in d.items(): p[NAMES.index(n)] = v
    return p

@njit(**OPT)
def glance(bank, which, losses, score, prm, seed, log):
    np.random.seed(seed)
    T, K = losses.shape
    n = max(2, int(math.floor(math.log(K) + 0.5)))
    H = n * (math.exp(math.log(K) / n) - 1.0)
    m = prm[M_]; x = math.sqrt(2.0 / H) / m * prm[XS]; eps = 0.0; b = 0.5; y = 1.0
    L = np.zeros(K); q = np.zeros(K); r = np.zeros(K); w = np.zeros(K); cov = np.zeros(K); u = np.zeros(K)
    P = np.zeros(K); a = np.zeros(K); p = np.zeros(K); O = np.zeros(K); o = np.zeros(K); SS = np.zeros(K); D = np.zeros(K); d = np.zeros(K); v = np.zeros(K); f = np.ones(K)
    SW = 0.0; DW = 0.0; SC = 0.0; DC = 0.0; SK = 0.0
    bs = np.zeros(3); es = np.zeros(3); mem = np.array([64.0, 16.0, 3.0]) if prm[LEVEL] == 2 else np.array([1e9, 32.0, 4.0])
    lastg = -1; tot = 0.0; Z = 0.0; sumC = 0.0; nb = 0; trips = 0
    for t in range(T):
        g = which[t]; A = bank[g]
        unseen = 0
        for i in range(K):
            if O[i] == 0: unseen += 1
        h = 0.0; share = 0.0; S = 0.0; dz = 0.0
        first_look = unseen > 0 and nb < K
        if first_look:  # 1: the arm that reveals most of what was never seen
            arm = 0; g0 = 0
            for j in range(K):
                k = 0
                for i in range(K):
                    if A[j, i] and O[i] == 0: k += 1
                if k > g0: g0 = k; arm = j
        else:
            eta = 1.0 / x
            y, h = weigh(L, q, r, n, eta, y)  # 2, 3
            if g != lastg:
                c_ = greedy_cover(A)
                cov[:] = 0
                for k in range(c_.size): cov[c_[k]] = 1.0 / c_.size
                for i in range(K):
                    u[i] = 0.0
                    for j in range(K):
                        if A[j, i]: u[i] += cov[j]
                lastg = g
            lead = 0; low = 1e9; pool = prm[V0]; cnt = 1.0
            for i in range(K):
                if q[i] > q[lead]: lead = i
                if o[i] < low: low = o[i]
                pool += SS[i]; cnt += max(0.0, O[i] - prm[DOF])
            pool /= cnt
            # the bold half: Maillard sampling
            s = 0.0
            for i in range(K):
                v[i] = (SS[i] + prm[V0] + prm[VS] * pool) / (O[i] + 1 + prm[VS])
                if prm[STUD] > 0:
                    nu = prm[STUD] * (O[i] + prm[VS])
                    D[i] = math.exp(-0.5 * nu * math.log(1 + 2 * prm[BC] * O[i] * (o[i] - low) ** 2 / (v[i] * nu)))
                else: D[i] = math.exp(-prm[BC] * O[i] * (o[i] - low) ** 2 / v[i])
                s += D[i]
            budget = prm[BUD0] + prm[BUD] * sumC
            share = 1.0 - min(0.5, prm[RHO] + prm[RHOX] * x)
            if Z > 0: share *= min(1.0, max(0.0, (1.0 - Z / budget) * prm[SLOPE]))
            for i in range(K): D[i] /= s
            for i in range(K): p[i] = (1 - share) * q[i] + share * D[i]
            first = 0.0; second = 0.0
            for i in range(K):
                s = 0.0
                for j in range(K):
                    if A[j, i]: s += p[j]
                P[i] = s
                w[i] = n / (n - 1.0) * q[i] * r[i]
                gg = u[i] - s; inv = 1.0 / (s + eps * gg)
                ch = prm[WEXP] * (1 - share) ** prm[MIXC] * eta * v[i] * w[i] * inv * inv * gg
                first += ch; second += 2 * ch * inv * gg
            if second > 1e-300: eps += (first - 1.0) / second
            eps = min(0.5, max(0.0, eps)); bound = 0.0
            for i in range(K):
                if i != lead: bound += 4 * eta * w[i] / (P[i] + eps * (u[i] - P[i]))
            eps = min(eps, bound)
            for i in range(K):
                p[i] = (1 - eps) * p[i] + eps * cov[i]
                P[i] = (1 - eps) * P[i] + eps * u[i]
            arm = draw(p)
            above = 0.0; below = 0.0; least = 1e300
            for i in range(K):
                d[i] = min(1.0, max(0.0, b + o[i]))
                dz += (D[i] - q[i]) * d[i]
                lim = prm[LIMW] * P[i] / (2 * eta * r[i])
                if prm[LIFT] > 0 and P[i] >= prm[LIFT] / math.sqrt(t + 1.0): lim += f[i]
                a[i] = min(d[i], lim)
                if A[arm, i]:
                    dz += (D[i] - q[i]) * (losses[t, i] - d[i]) / P[i]
                    a[i] = max(a[i] + (losses[t, i] - a[i]) / P[i], -1.0 / (2 * eta * r[i]))
                z = q[i] * r[i]; above += z * a[i]; below += z
                least = min(least, a[i] + 0.5 * x / r[i])
            c = min(above / below, least)
            for i in range(K):
                s = eta * (a[i] - c) * r[i] / (n - 1.0); uu = 1 / (1 + s); sm = 0.0
                for k in range(1, n): sm = sm * uu + k
                S += q[i] / r[i] * s * s * uu * sm
                L[i] += a[i]
            S *= x
            Z = max(Z + (1 - eps) * share * dz, -prm[FLOOR] * budget)
            C = S + prm[CHARGE] * eps; sumC += C
            x += min(C / (m * m * max(h, H / (t + 1.0))), x / n)
            if prm[FORGET] > 0 and Z > prm[FORGET] * budget and trips < 1000000:
                trips += 1
                for i in range(K): SS[i] *= .98; O[i] = O[i] * .98
        tot += score[t % score.shape[0], arm]
        lev = 0.0; k = 0
        for i in range(K):
            if A[arm, i]: k += 1; lev += losses[t, i] - o[i]
        lev /= k
        if t == 0: b = lev  # no offset is known yet
        if prm[LEVEL] == 0: b = 0.0
        ebar = lev - b; tau = 0.0; wt = 1.0
        if prm[PAIR] > 0 and nb > 0:
            se = (SW + (SC + prm[V0]) / (DC + 1.0)) / (DW + 1.0)
            sc = max(0.0, SC / max(1.0, DC) - se * SK / max(1.0, DC))
            if k > 1: tau = prm[PAIR] * sc / (sc + se / (k - 1.0))
            if prm[WGT] > 0:
                wt = se / (se + sc * (1 - tau))
                wt = max(wt, 0.02)
            SC += ebar * ebar; DC += 1; SK += 1.0 / k
            for i in range(K):
                if A[arm, i]: SW += (losses[t, i] - o[i] - b - ebar) ** 2
            DW += k - 1
            if SC > 1e18: SC = 0.0
        for i in range(K):
            if A[arm, i]:
                l = losses[t, i]
                f[i] = min(f[i], l)
                if first_look and O[i] == 0: L[i] = l
                e = l - b - o[i]
                if tau > 0: e -= tau * (k * ebar - e) / (k - 1)
                O[i] += wt; d[i] = e; SS[i] += wt * e * e * (1 - wt / O[i])
        for i in range(K):
            if A[arm, i]: o[i] += wt * d[i] / O[i]
        nb += 1
        if prm[LEVEL] == 1: b += (lev - b) / min(prm[BMEM], nb + 1.0)
        elif prm[LEVEL] > 1:
            pick = 0
            for k in range(3):
                if t == 0: bs[k] = b
                es[k] += ((lev - bs[k]) ** 2 - es[k]) / min(prm[PWIN], nb + 1.0)
                bs[k] += (lev - bs[k]) / min(mem[k], nb + 1.0)
                if es[k] < es[pick] * prm[CREM]: pick = k
            b = bs[pick]
        if log.shape[0] > 0:
            log[t, 0] = x; log[t, 1] = share; log[t, 2] = Z; log[t, 3] = eps; log[t, 4] = S; log[t, 5] = arm; log[t, 6] = sumC; log[t, 7] = dz
    return 0.0, tot
