"""Fast prototypes. Each rule: play(bank, which, losses, prm, seed) -> total loss of the plays at each checkpoint (T/2, T)."""
import math
import numpy as np
from numba import njit

OPT = dict(cache=True, fastmath=False)

@njit(**OPT)
def greedy_cover(A):
    K = A.shape[0]
    done = np.zeros(K, np.bool_); out = np.zeros(K, np.int64); n = 0
    while True:
        best = -1; gain = 0
        for j in range(K):
            g = 0
            for i in range(K):
                if A[j, i] and not done[i]: g += 1
            if g > gain: gain = g; best = j
        if best < 0: break
        out[n] = best; n += 1
        for i in range(K):
            if A[best, i]: done[i] = True
    return out[:n]

@njit(**OPT)
def draw(p):
    u = np.random.random(); c = 0.0
    for i in range(p.size):
        c += p[i]
        if u < c: return i
    j = p.size - 1
    while j > 0 and p[j] <= 0: j -= 1
    return j

# kinds of simple rules
FTM, EPS, BERN, ROOT, GTS, MAIL, UCBN, TSN, UNI = range(9)

@njit(**OPT)
def simple(bank, which, losses, score, kind, c, v0, vs, seed):
    np.random.seed(seed)
    T, K = losses.shape
    O = np.zeros(K); M = np.zeros(K); SS = np.zeros(K); p = np.zeros(K)
    tot = 0.0; half = 0.0
    cover = greedy_cover(bank[which[0]])
    for t in range(T):
        A = bank[which[t]]
        arm = -1
        if kind == UNI: arm = np.random.randint(K)
        elif kind == UCBN or kind == TSN:
            least = 1e9
            for i in range(K):
                if kind == UCBN: x = M[i] - math.sqrt(2 * math.log(t + 1.0) / O[i]) if O[i] > 0 else -1e6
                else: x = np.random.beta(1 + M[i] * O[i], 1 + (1 - M[i]) * O[i])
                if x < least: least = x; arm = i
        else:
            unseen = False
            for i in range(K):
                if O[i] == 0: unseen = True
            if unseen:  # the arm that reveals most of what was never seen
                g0 = 0
                for j in range(K):
                    g = 0
                    for i in range(K):
                        if A[j, i] and O[i] == 0: g += 1
                    if g > g0: g0 = g; arm = j
            elif kind == EPS and np.random.random() < min(1.0, c / math.sqrt(t + 1.0)):
                arm = cover[np.random.randint(cover.size)]
            elif kind == MAIL:
                low = M.min(); s = 0.0; pool = (SS.sum() + v0) / (O.sum() + 1)
                for i in range(K):
                    v = (SS[i] + v0 + vs * pool) / (O[i] + 1 + vs)
                    p[i] = math.exp(-c * O[i] * (M[i] - low) ** 2 / v); s += p[i]
                for i in range(K): p[i] /= s
                arm = draw(p)
            else:
                least = 1e9
                for i in range(K):
                    v = (SS[i] + v0) / (O[i] + 1)
                    if kind == FTM or kind == EPS: x = M[i]
                    elif kind == BERN:
                        z = c * math.log(t + 1.0); x = M[i] - math.sqrt(2 * v * z / O[i]) - z / O[i]
                    elif kind == ROOT: x = M[i] - c / math.sqrt(O[i])
                    else: x = M[i] + math.sqrt(v * c / O[i]) * np.random.randn()
                    x += 1e-9 * np.random.random()
                    if x < least: least = x; arm = i
        tot += score[t % score.shape[0], arm]
        for i in range(K):
            if A[arm, i]:
                l = losses[t, i]; O[i] += 1; d = l - M[i]; M[i] += d / O[i]; SS[i] += d * (l - M[i])
        if t + 1 == T // 2: half = tot
    return half, tot

@njit(**OPT)
def exp3set(bank, which, losses, score, seed):
    np.random.seed(seed)
    T, K = losses.shape
    L = np.zeros(K); p = np.zeros(K); tot = 0.0; half = 0.0; sumth = 0.0
    for t in range(T):
        A = bank[which[t]]
        eta = math.sqrt(math.log(K) / (2.0 * (K + sumth)))
        low = L.min(); s = 0.0
        for i in range(K): p[i] = math.exp(-eta * (L[i] - low)); s += p[i]
        for i in range(K): p[i] /= s
        arm = draw(p); tot += score[t % score.shape[0], arm]
        for i in range(K):
            P = 0.0
            for j in range(K):
                if A[j, i]: P += p[j]
            if P > 0: sumth += p[i] / P
            if A[arm, i]: L[i] += losses[t, i] / P
        if t + 1 == T // 2: half = tot
    return half, tot

NPRM = 32
# indices of the parameters of glance
(M_, CHARGE, OFFS, SECOND, START, WEXP, THEORY, XS, BCAP, BC, BV0, BUD, BUD0, FLOOR, LEVEL, RESET, LIFT, BMEM, XCAP, MIXC, WIN, SHARE, BVSHARE, RHO, RHOX) = range(25)
#: today's preset
def today():
    p = np.zeros(NPRM); p[M_] = 2; p[CHARGE] = .1; p[WEXP] = 4; p[XS] = 1; p[BMEM] = 20; return p
def two():
    p = today(); p[OFFS] = 1; p[SECOND] = 1; p[WEXP] = 4; return p
def rule_a(lift=0.0):
    p = two(); p[M_] = 1.6; p[CHARGE] = .3; p[START] = 1; p[THEORY] = 1; p[XS] = .5; p[WEXP] = 2; p[LIFT] = lift; return p

@njit(**OPT)
def weigh(L, q, r, n, eta, y):
    K = q.size; least = L.min(); slope = eta / (n - 1.0)
    s = 0.0
    for _ in range(60):
        s = 0.0; sw = 0.0
        for i in range(K):
            ri = 1.0 / (slope * (L[i] - least) + y); r[i] = ri
            qi = ri * ri
            for _k in range(2, n): qi *= ri
            q[i] = qi; s += qi; sw += qi * ri
        if abs(s - 1.0) <= 1e-12: break
        y = max(1.0, y + s * (math.exp(math.log(s) / n) - 1.0) / sw)
    h = 0.0
    for i in range(K):
        q[i] /= s; h += q[i] / r[i]
    return y, n * (h - 1.0)

@njit(**OPT)
def glance(bank, which, losses, score, prm, seed, log):
    np.random.seed(seed)
    T, K = losses.shape
    n = max(2, int(math.floor(math.log(K) + 0.5)))
    H = n * (math.exp(math.log(K) / n) - 1.0)
    m = prm[M_]; x = math.sqrt(2.0 / H) / m * prm[XS]; eps = 0.0; b = 0.5; y = 1.0
    L = np.zeros(K); o = np.zeros(K); s2 = np.zeros(K); N = np.zeros(K)
    q = np.zeros(K); r = np.zeros(K); w = np.zeros(K); D = np.zeros(K); P = np.zeros(K); Pq = np.zeros(K); u = np.zeros(K); a = np.zeros(K); p = np.zeros(K)
    O = np.zeros(K); M = np.zeros(K); SS = np.zeros(K); bb = np.zeros(K); dd = np.zeros(K); f = np.ones(K); B = np.zeros(K)
    cov = np.zeros(K); lastg = -1
    tot = 0.0; half = 0.0; Z = 0.0; share = 0.0; sumC = 0.0; size = 1
    init = greedy_cover(bank[which[0]])
    for t in range(T):
        A = bank[which[t]]
        if t < init.size:
            arm = init[t]; tot += score[t % score.shape[0], arm]
            for i in range(K):
                if A[arm, i]:
                    l = losses[t, i]; O[i] += 1; d = l - M[i]; M[i] += d / O[i]; SS[i] += d * (l - M[i])
                    f[i] = min(f[i], l)
                    if prm[START] > 0 and O[i] == 1: L[i] = l
                    if prm[START] > 1:
                        N[i] += 1
                        s2[i] += (l - b - o[i]) ** 2
                        o[i] += (l - b - o[i]) / (N[i] + 1)
            if t + 1 == T // 2: half = tot
            continue
        eta = 1.0 / x
        y, h = weigh(L, q, r, n, eta, y)
        if which[t] != lastg:
            c_ = greedy_cover(A); size = c_.size
            cov[:] = 0
            for k in range(c_.size): cov[c_[k]] = 1.0 / c_.size
            for i in range(K):
                u[i] = 0.0
                for j in range(K):
                    if A[j, i]: u[i] += cov[j]
            lastg = which[t]
        lead = 0
        for i in range(K):
            if q[i] > q[lead]: lead = i
        # the bold part
        share = 0.0
        if prm[BCAP] > 0:
            budget = prm[BUD0] + prm[BUD] * H * x
            top = 1.0 - min(0.4, prm[RHO] + prm[RHOX] * x)
            share = top * min(1.0, max(0.0, (1.0 - Z / budget) * 2)) if Z > 0 else top
            pool = 0.0; cnt = 0.0; low = 1e9
            for i in range(K):
                pool += SS[i]; cnt += O[i]
                if O[i] > 0 and M[i] < low: low = M[i]
            pool = (pool + prm[BV0]) / (cnt + 1)
            s = 0.0
            for i in range(K):
                v = (SS[i] + prm[BVSHARE] * pool + prm[BV0]) / (O[i] + prm[BVSHARE] + 1)
                bb[i] = math.exp(-prm[BC] * O[i] * (M[i] - low) ** 2 / v) if O[i] > 0 else 1.0
                s += bb[i]
            for i in range(K): bb[i] /= s
        for i in range(K): B[i] = (1 - share) * q[i] + share * bb[i]
        for i in range(K):
            s = 0.0; sq = 0.0
            for j in range(K):
                if A[j, i]: s += B[j]
            Pq[i] = s
        # exploration
        first = 0.0; second = 0.0
        for i in range(K):
            w[i] = n / (n - 1.0) * q[i] * r[i]
            v = (0.25 + s2[i]) / (1 + N[i]) if prm[SECOND] > 0 else 1.0
            g = u[i] - Pq[i]; inv = 1.0 / (Pq[i] + eps * g)
            ch = prm[WEXP] * (1 - share) ** prm[MIXC] * eta * v * w[i] * inv * inv * g
            first += ch; second += 2 * ch * inv * g
        if second > 1e-300: eps += (first - 1.0) / second
        eps = min(0.6, max(0.0, eps)); bound = 0.0
        for i in range(K):
            if prm[THEORY] == 0 or i != lead: bound += 4 * eta * w[i] / (Pq[i] + eps * (u[i] - Pq[i]))
        eps = min(eps, bound)
        for i in range(K):
            p[i] = (1 - eps) * B[i] + eps * cov[i]
            P[i] = (1 - eps) * Pq[i] + eps * u[i]
        arm = draw(p); tot += score[t % score.shape[0], arm]
        # estimates
        for i in range(K):
            lim = P[i] / (2 * eta * r[i]) * (0.9 if prm[THEORY] > 0 else 1.0)
            if prm[OFFS] > 0:
                dd[i] = min(1.0, max(0.0, b + o[i]))
            else: dd[i] = b
            fi = 0.0
            if prm[LIFT] > 0 and P[i] >= 0.3 / math.sqrt(t + 1.0): fi = f[i]
            a[i] = min(dd[i], fi + lim)
            if A[arm, i]:
                a[i] += (losses[t, i] - a[i]) / P[i]
                a[i] = max(a[i], -1.0 / (2 * eta * r[i]))
        # stability
        above = 0.0; below = 0.0; least = 1e300
        for i in range(K):
            z = q[i] * r[i]; above += z * a[i]; below += z
            least = min(least, a[i] + 0.5 * x / r[i])
        c = min(above / below, least); S = 0.0
        for i in range(K):
            s = eta * (a[i] - c) * r[i] / (n - 1.0); uu = 1 / (1 + s); sm = 0.0
            for k in range(1, n): sm = sm * uu + k
            S += q[i] / r[i] * s * s * uu * sm
        S *= x
        if prm[BCAP] > 0:
            dz = 0.0
            for i in range(K):
                dz += (bb[i] - q[i]) * dd[i]
                if A[arm, i]: dz += (bb[i] - q[i]) * (losses[t, i] - dd[i]) / P[i]
            Z += (1 - eps) * share * dz
            Z = max(Z, -prm[FLOOR] * (prm[BUD0] + prm[BUD] * H * x))
        for i in range(K): L[i] += a[i]
        C = S + prm[CHARGE] * eps
        if prm[THEORY] > 0: x += min(C / (m * m * max(h, H / (t + 1.0))), x / n)
        else: x += C / (m * m * max(h, H / 4))
        # predictions and bold statistics
        lev = 0.0; k = 0
        for i in range(K):
            if A[arm, i]:
                l = losses[t, i]; k += 1; lev += l - (o[i] if prm[OFFS] > 0 else 0.0)
                N[i] += 1; s2[i] += (l - dd[i]) ** 2
                if prm[OFFS] > 0: o[i] += (l - b - o[i]) / (N[i] + 1)
                f[i] = min(f[i], l)
                if prm[LEVEL] > 0: l -= b
                O[i] += 1; d = l - M[i]; M[i] += d / O[i]; SS[i] += d * (l - M[i])
        b += (lev / k - b) / prm[BMEM]
        if log.shape[0] > 0:
            log[t, 0] = x; log[t, 1] = share; log[t, 2] = Z; log[t, 3] = eps; log[t, 4] = S; log[t, 5] = arm; log[t, 6] = q[lead]
        if t + 1 == T // 2: half = tot
    return half, tot
