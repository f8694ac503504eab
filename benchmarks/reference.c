/* EXP3.G++, adaptive rate, paper's constants, no initial rounds, Bernoulli losses: what sidelong is measured against.
 *
 * Written the way one writes C for speed: -O3 -march=native -ffast-math, the C library's exp, flat arrays. What sidelong
 * leaves out in a round, since nothing has changed or no gap is known, is left out here too.
 *
 * GENERATOR says where random numbers come from:
 *   PAIRS  as in sidelong, so that the same arms are played until rounding parts them: Philox4x32-7, and the losses of
 *          the arms 2n and 2n + 1 are the two halves of one block. `tests/simulation/test_reference.py` compares.
 *   TEN    as in sidelong before: Philox4x32-10, a block for each loss. This form is as old as that ratio, and leaves out
 *          nothing but the sort.
 *   CHEAP  SplitMix64 as a hash of seed, round and arm: what one writes who needs neither streams nor a margin.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PAIRS 0
#define TEN 1
#define CHEAP 2
#ifndef GENERATOR
#define GENERATOR PAIRS
#endif
#define EAGER (GENERATOR == TEN)

typedef struct {
    uint64_t seed, t;
    uint32_t run;
} place;

typedef struct {
    uint32_t word[4];
} block;

static inline block philox(int rounds, place at, uint32_t stream, uint32_t c0) {
    uint32_t c1 = (uint32_t)at.t, c2 = ((uint32_t)(at.t >> 32) & 0xFFFF) | (stream << 16), c3 = at.run;
    uint32_t k0 = (uint32_t)at.seed, k1 = (uint32_t)(at.seed >> 32);
    for (int round = 0; round < rounds; round++) {
        uint64_t a = (uint64_t)0xD2511F53 * c0, b = (uint64_t)0xCD9E8D57 * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
    }
    return (block){{c0, c1, c2, c3}};
}

static inline double half(block b, int which) {
    uint32_t high = which ? b.word[2] : b.word[0], low = which ? b.word[3] : b.word[1];
    return ((high >> 5) * 67108864.0 + (low >> 6)) * (1.0 / 9007199254740992.0);
}

static inline double splitmix(place at, uint64_t number) {
    uint64_t z = at.seed ^ (at.t << 24) ^ number;
    z = (z + 1) * 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return (double)((z ^ (z >> 31)) >> 11) * (1.0 / 9007199254740992.0);
}

static inline double draw(place at) {
    return GENERATOR == CHEAP ? splitmix(at, 0) : half(philox(GENERATOR == TEN ? 10 : 7, at, 0, 0), 0);
}

static inline double of_arm(place at, uint32_t arm) {
    if (GENERATOR == CHEAP) return splitmix(at, arm + 1);
    return GENERATOR == TEN ? half(philox(10, at, 1, arm), 0) : half(philox(7, at, 1, arm / 2), arm % 2);
}

/* Write the random numbers of the arms from first to before last, by pairs, into u[1], u[2], ...; u[0] and the end are room. */
static inline void of_range(place at, uint32_t first, uint32_t last, double *u) {
    double *number = u + 1 - first % 2;
    for (uint32_t n = 0; n < (last + 1) / 2 - first / 2; n++) {
        block b = philox(7, at, 1, first / 2 + n);
        number[2 * n] = half(b, 0);
        number[2 * n + 1] = half(b, 1);
    }
}

typedef struct {
    int64_t K, contiguous;
    const int64_t *start, *stop, *in_start, *in_stop;
    const int32_t *targets, *sources;
} graph;

static int64_t explore(const graph *g, const int32_t *order, uint8_t *chosen, int32_t *next) {
    int64_t size = 0;
    memset(chosen, 0, (size_t)g->K);
    for (int64_t i = 0; i <= g->K; i++) next[i] = i;
    for (int64_t k = 0; k < g->K; k++) {
        int32_t i = order[k];
        if (next[i] != i) continue;
        chosen[i] = 1, size++;
        if (!g->contiguous) {
            for (int64_t e = g->start[i]; e < g->stop[i]; e++) next[g->targets[e]] = g->targets[e] + 1;
            continue;
        }
        int32_t j = g->start[i];
        for (;;) {
            while (next[j] != j) j = next[j] = next[next[j]];
            if (j >= g->stop[i]) break;
            next[j] = j + 1;
        }
    }
    return size;
}

double exp3gpp(int64_t K, int64_t contiguous, const int64_t *start, const int64_t *stop, const int32_t *targets,
               const int64_t *in_start, const int64_t *in_stop, const int32_t *sources, const double *means,
               int64_t rounds, uint64_t seed, uint32_t run, int64_t *plays) {
    if (K < 1) return 0.0;
    graph g = {K, contiguous, start, stop, in_start, in_stop, targets, sources};
    const double gamma = 4.0, beta = 320.0, lambda = 1.0, log_K = log((double)K);
    double *room = calloc(11 * (K + 1) + 1, sizeof(double));
    double *L = room, *Lhat = L + K + 1, *O = Lhat + K + 1, *mean = O + K + 1, *width = mean + K + 1,
           *gap = width + K + 1, *eps = gap + K + 1, *p = eps + K + 1, *P = p + K + 1, *prefix = P + K + 1,
           *u = prefix + K + 1;
    int32_t *order = malloc(K * sizeof *order), *next = malloc((K + 1) * sizeof *next);
    uint8_t *chosen = malloc((size_t)K);
    double Theta = 1.0, expected = 0.0;
    for (int64_t i = 0; i < K; i++) order[i] = i, width[i] = 1e300;
    int64_t fresh = 0, sorted = 0, size = 0;
    for (int64_t t = 1; t <= rounds; t++) {
        double log_t = log((double)t), radius = sqrt((gamma * log_t + log_K) / 2), ucb = 1.0, lcb = 0.0;
        for (int64_t i = 0; i < K; i++) {
            ucb = fmin(ucb, mean[i] + radius * width[i]);
            lcb = fmax(lcb, mean[i] - radius * width[i]);
        }
        int known = lcb > ucb, moved = 0;
        if (EAGER || known || sorted)  /* else all gaps are 0, as they were */
            for (int64_t i = 0; i < K; i++) gap[i] = fmax(0.0, mean[i] - radius * width[i] - ucb);
        if (known || sorted) {
            for (int64_t k = 1; k < K; k++) {
                int32_t a = order[k];
                int64_t j = k;
                while (j > 0 && (gap[a] < gap[order[j - 1]] || (gap[a] == gap[order[j - 1]] && a < order[j - 1])))
                    order[j] = order[j - 1], j--, moved = 1;
                order[j] = a;
            }
            sorted = known;
        }
        if (moved || !fresh) size = explore(&g, order, chosen, next), fresh = 1;
        double cap = fmin(1.0 / (2 * K), sqrt(lambda * log_K / t) / (2 * K)), largest = fmax(lcb - ucb, 0.0);
        double least = fmin(cap, 4.0 / ((double)t * t)), xi = beta * log_t / t, mass = 0.0;
        if (!EAGER && largest * largest * cap <= xi) {  /* no xi is below the cap: two values, and no division */
            for (int64_t i = 0; i < K; i++) eps[i] = chosen[i] ? cap : least;
            mass = size * cap + (K - size) * least;
        } else {
            for (int64_t i = 0; i < K; i++) {
                double square = gap[i] * gap[i], e = square * cap > xi ? xi / square : cap;
                eps[i] = chosen[i] ? fmax(e, least) : least;
                mass += eps[i];
            }
        }
        double eta = sqrt(log_K / (2 * Theta)), lowest = L[0], total = 0.0;
        for (int64_t i = 1; i < K; i++) lowest = fmin(lowest, L[i]);
        for (int64_t i = 0; i < K; i++) p[i] = exp(-eta * (L[i] - lowest));
        for (int64_t i = 0; i < K; i++) total += p[i];
        double scale = (1 - mass) / total;
        for (int64_t i = 0; i < K; i++) p[i] = scale * p[i] + eps[i];
        place at = {seed, (uint64_t)t, run};
        double chance = draw(at), below = 0.0;
        int64_t arm = 0;
        for (; arm < K - 1; arm++)
            if ((below += p[arm]) > chance) break;
        plays[arm]++;
        expected += means[arm];
        double theta = 0.0;
        if (contiguous) {
            prefix[0] = 0.0;
            for (int64_t i = 0; i < K; i++) prefix[i + 1] = prefix[i] + p[i];
            for (int64_t i = 0; i < K; i++) P[i] = fmax(prefix[in_stop[i]] - prefix[in_start[i]], p[i]);
        } else {
            for (int64_t i = 0; i < K; i++) {
                double s = 0.0;
                for (int64_t e = in_start[i]; e < in_stop[i]; e++) s += p[sources[e]];
                P[i] = s;
            }
        }
        for (int64_t i = 0; i < K; i++) theta += p[i] / P[i];
        Theta += theta;
        int in_pairs = GENERATOR == PAIRS && contiguous;
        if (in_pairs) of_range(at, start[arm], stop[arm], u);
        for (int64_t e = start[arm]; e < stop[arm]; e++) {
            int32_t i = targets[e];
            double l = (in_pairs ? u[1 + e - start[arm]] : of_arm(at, i)) < means[i];
            Lhat[i] += l;
            O[i] += 1.0;
            mean[i] = Lhat[i] / O[i];
            width[i] = 1.0 / sqrt(O[i]);
            L[i] += l / P[i];
        }
    }
    free(room), free(order), free(next), free(chosen);
    return expected;
}
