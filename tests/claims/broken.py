"""EXP3.G++ and glance broken in many ways: each a module made from the real one, with one thing wrong.

Run as a program with the JIT off, where a kernel is plain Python and costs no compilation: it prints, as JSON, whether
each of them fails the claim that must find it out, and what the intact learner fails.
"""

import json
import sys
import types
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sidelong import claims
from sidelong._jit import rebind
from sidelong.evaluation import certificates
from sidelong.learners import (
    absent,
    exp3g_adaptive,
    exp3gpp,
    exp3set,
    exp3set_tracking,
    glance,
    glance_cautious,
    squarecb,
)
from sidelong.learners.glance_bold import LEVEL, know
from sidelong.learners.interface import Learner

#: The claims that look at single rounds: the intact learner passes them all.
OF_A_ROUND = (
    "alg-1-sums",
    "alg-1-gaps",
    "alg-1-mix",
    "unbiased",
    "prop-1",
    "eq-2-3",
    "eq-4",
    "thm-2-rate",
    "eq-7",
    "thm-4-rate",
    "lem-6",
    "lem-7",
    "e3",
    "e24",
)


def observe_from_out_neighbours(graph, p, P):
    for i in range(p.size):
        P[i] = p[graph.targets[graph.start[i] : graph.stop[i]]].sum()


def learn_without_weights(state, i, l, _least):
    state.Ltilde[i] += l


def learn_without_itself(params, state, graph, told):
    own = ("Lhat", "O", "mean", "width", "Ltilde")
    before = [getattr(state, name)[told.arm] for name in own]
    exp3gpp.update(params, state, graph, told)
    if told.t > params.initial.size:
        for name, value in zip(own, before, strict=True):
            getattr(state, name)[told.arm] = value


def learn_itself_only(params, state, graph, told):
    arm, first = told.arm, graph.start[told.arm]
    k = int(np.flatnonzero(graph.targets[first : graph.stop[arm]] == arm)[0])
    alone = graph._replace(start=graph.start.copy(), stop=graph.stop.copy())
    alone.start[arm], alone.stop[arm] = first + k, first + k + 1
    exp3gpp.update(params, state, alone, told._replace(losses=told.losses[k:]))


def learn_a_row_without_weights(state, first, losses, _least):
    state.Ltilde[first : first + losses.size] += losses


def learn_from_the_first_round(params, state, graph, told):
    exp3gpp.update(params, state, graph, told._replace(t=max(told.t, params.initial.size + 1)))


def learn_with_a_stale_rate(params, state, graph, told):
    Theta = state.Theta.copy()
    exp3gpp.update(params, state, graph, told)
    state.Theta[:] = Theta


def learn_with_theta_of_a_bandit(params, state, graph, told):
    Theta = state.Theta[0]
    exp3gpp.update(params, state, graph, told)
    if told.t > params.initial.size:
        told.trace[exp3gpp._THETA] = told.p.size
        state.Theta[0] = Theta + told.p.size


def explore(choose):
    def chosen(_params, state, graph, _known):
        state.S[:] = False
        state.S[choose(state.gap, graph)] = True
        state.known[1] = state.S.sum()

    return chosen


def worst_first(gap, graph):
    S, covered = [], set()
    for i in np.argsort(-gap, kind="stable").tolist():
        if i not in covered:
            S.append(i)
            covered |= set(graph.targets[graph.start[i] : graph.stop[i]].tolist())
    return S


def rates_without_a_falling_cap(state, _cap, floor, xi, largest_gap):
    return exp3gpp.set_rates(state, 1 / (2 * state.eps.size), floor, xi, largest_gap)


def rates_without_the_gaps(state, cap, floor, xi, _largest_gap):
    return exp3gpp.set_rates(state, cap, floor, xi, 0.0)


def narrow_extremes(state, radius):
    return exp3gpp.extremes(state, radius / 20)


def narrow_gaps(state, radius, ucb):
    exp3gpp.estimate_gaps(state, radius / 20, ucb)


def mix_without_taking_away(params, state, graph, asked):
    exp3gpp.distribution(params, state, graph, asked)
    if asked.t > params.initial.size:
        asked.p[:] += state.eps
        asked.p[:] /= asked.p.sum()


def grow_the_rate(params, state, graph, asked):
    exp3gpp.distribution(params._replace(eta_scale=float(asked.t)), state, graph, asked)


def ignore_the_budget(_state, _some):
    return 0.998


def leave_no_share(state, some):
    return min(1.0, 1.01 * glance_cautious.boldness(state, some))


def ignore_the_allowance(*_):
    return 0.9


def weigh_without_the_graph(params, state, graph, asked):
    glance.distribution(params, state, graph, asked)
    first = len(glance.TRACES) + 1
    asked.trace[first : first + asked.p.size] = asked.p


def predict_after_the_draw(params, state, graph, told):
    K, first = told.p.size, len(glance.TRACES) + 1
    P, q = told.trace[first : first + K], told.trace[first + K : first + 2 * K]
    knows = type(state)(*(np.copy(array) for array in state))
    know(knows, graph, told, P)
    d = told.trace[first + 2 * K : first + 3 * K]
    d[:] = np.clip(knows.known[LEVEL] + knows.o, 0.0, 1.0)
    told.trace[glance_cautious.PREDICTED] = ((told.p - q) * d).sum()
    glance.update(params, state, graph, told)


def observe_itself_only(_graph, p, P):
    P[:] = p


def count_a_tenth_of_the_cost(params, state, graph, told):
    glance.update(params, state, graph, told)
    told.trace[glance.TRACES.index("stability")] *= 0.1


def charge_the_silent_nothing(state, _mix, J):
    glance_cautious._charge_absent(state, 0.0, J)


def learn_what_is_not_told(W, P, mean, most, _l, added):
    certificates._reveal(W, P, mean, most, 0.5, added)


def settle_with(**changes):
    add = rebind(certificates.add, "add", **changes)
    return {"settle": rebind(certificates.settle, "settle", add=add)}


def charge_nothing(graph, told, eta, P, L):
    """Let an absent arm come back as cheap as it went, when all others have paid."""


def charge_what_was_lost(graph, told, _eta, P, L):
    absent.charge(graph, told, 0.0, P, L)


def weigh_all(_present, L, eta, w):
    return exp3set.exponential(L, eta, w)


def share_nothing(params, state, graph, told):
    exp3set_tracking.update(params._replace(horizon=10**15), state, graph, told)


def learn_less_and_less(params, state, graph, told):
    exp3set_tracking.update(params, state, graph, told._replace(losses=told.losses / told.t))


def grow_the_rate_of_exp3_g(params, state, graph, asked):
    state.b[0] = max(8.0, state.b[0] - 0.5)
    exp3g_adaptive.distribution(params, state, graph, asked)


def count_half_of_the_cost(params, state, graph, told):
    exp3g_adaptive.update(params._replace(log_K=2 * params.log_K), state, graph, told)


def count_thrice_the_cost(params, state, graph, told):
    exp3g_adaptive.update(params._replace(log_K=params.log_K / 3), state, graph, told)


def explore_everywhere(params, state, graph, asked):
    exp3g_adaptive.distribution(params, state, graph, asked)
    asked.p[:] = 0.5 * asked.p + 0.5 / asked.p.size


def derive(original, name, **changes):
    if isinstance(original, Learner):
        return replace(original, **changes)
    module = types.ModuleType(name)
    module.__dict__.update({key: value for key, value in vars(original).items() if not key.startswith("__")})
    module.__dict__.update(changes)
    return module


def with_explorer(choose):
    return {"distribution": rebind(exp3gpp.distribution, "distribution", explore=explore(choose))}


#: What is wrong with each, and the claim that must say so. Others may say so too.
BROKEN = {
    "intact": ({}, None),
    "P_from_out_neighbours": (
        {"update": rebind(exp3gpp.update, "update", observe=observe_from_out_neighbours)},
        "unbiased",
    ),
    "no_importance_weights": ({"update": rebind(exp3gpp.update, "update", _learn=learn_without_weights)}, "unbiased"),
    "no_importance_weights_in_a_row": (
        {"update": rebind(exp3gpp.update, "update", _learn_range=learn_a_row_without_weights)},
        "unbiased",
    ),
    "blind_to_itself": ({"update": learn_without_itself}, "unbiased"),
    "blind_to_the_side": ({"update": learn_itself_only}, "alg-1-sums"),
    "explores_one_arm": (with_explorer(lambda gap, _: [int(gap.argmin())]), "prop-1"),
    "explores_all_arms": (with_explorer(lambda gap, _: list(range(gap.size))), "prop-1"),
    "explores_the_worst_first": (with_explorer(worst_first), "eq-4"),
    "stale_rate": ({"update": learn_with_a_stale_rate}, "thm-4-rate"),
    "growing_rate": ({"distribution": grow_the_rate}, "lem-6"),
    "learns_from_initial_rounds": ({"update": learn_from_the_first_round}, "e24"),
    "theta_of_a_bandit": ({"update": learn_with_theta_of_a_bandit}, "eq-7"),
    "cap_does_not_fall": (
        {"distribution": rebind(exp3gpp.distribution, "distribution", set_rates=rates_without_a_falling_cap)},
        "eq-2-3",
    ),
    "explores_for_ever": (
        {"distribution": rebind(exp3gpp.distribution, "distribution", set_rates=rates_without_the_gaps)},
        "eq-2-3",
    ),
    "narrow_intervals": (
        {
            "distribution": rebind(
                exp3gpp.distribution, "distribution", extremes=narrow_extremes, estimate_gaps=narrow_gaps
            )
        },
        "lem-1-upper",
    ),
    "mixes_without_taking_away": ({"distribution": mix_without_taking_away}, "alg-1-mix"),
}


#: The same for `glance`.
BROKEN_GLANCE = {
    "intact_glance": ({}, None),
    "ignores_its_budget": (
        {"distribution": rebind(glance.distribution, "distribution", boldness=ignore_the_budget)},
        "glance-budget",
    ),
    "leaves_no_share": (
        {"distribution": rebind(glance.distribution, "distribution", boldness=leave_no_share)},
        "glance-share",
    ),
    "ignores_the_allowance": (
        {"distribution": rebind(glance.distribution, "distribution", allowed_boldness=ignore_the_allowance)},
        "glance-incumbent",
    ),
    "predicts_after_the_draw": ({"update": predict_after_the_draw}, "glance-unbiased"),
    "weights_without_the_graph": ({"distribution": weigh_without_the_graph}, "glance-unbiased"),
    "counts_a_tenth_of_its_cost": ({"update": count_a_tenth_of_the_cost}, "glance-ftrl"),
    "charges_the_silent_nothing": (
        {
            "update": rebind(
                glance.update,
                "update",
                learn=rebind(glance_cautious.learn, "learn", _charge_absent=charge_the_silent_nothing),
            )
        },
        "glance-ftrl",
    ),
}

#: The same for the certificate.
BROKEN_CERTIFICATE = {
    "intact_certificate": ({}, None),
    "certifies_without_the_graph": (
        {"settle": rebind(certificates.settle, "settle", observe=observe_itself_only)},
        "certificate-mean",
    ),
    "certifies_without_a_limit": (settle_with(most_of=lambda _: np.inf), "certificate-mean"),
    "certifies_what_is_not_told": (settle_with(_reveal=learn_what_is_not_told), "certificate-lost"),
}


def forget_what_is_outstanding(params, state, graph, asked):
    waiting = state.outstanding[0]
    state.outstanding[0] = 0.0
    exp3gpp.GUARDED.distribution(params, state, graph, asked)
    state.outstanding[0] += waiting


#: The same for late="guarded".
BROKEN_GUARDED = {
    "intact_guarded": ({}, None),
    "forgets_what_is_outstanding": ({"distribution": forget_what_is_outstanding}, "delay-rate"),
}

#: The same for EXP3-SET.
BROKEN_EXP3_SET = {
    "intact_exp3_set": ({}, None),
    "absent_arms_pay_nothing": (
        {"update": rebind(exp3set.update, "update", charge=charge_nothing)},
        "absent-ftrl",
    ),
    "absent_arms_pay_the_loss": (
        {"update": rebind(exp3set.update, "update", charge=charge_what_was_lost)},
        "absent-unbiased",
    ),
    "absent_arms_are_drawn": (
        {"distribution": rebind(exp3set.distribution, "distribution", exponential_of_present=weigh_all)},
        "absent-unbiased",
    ),
}
BROKEN_TRACKING = {
    "intact_tracking": ({}, None),
    "shares_nothing": ({"update": share_nothing}, "track-ftrl"),
    "learns_less_and_less": ({"update": learn_less_and_less}, "track-ftrl"),
}
BROKEN_EXP3_G = {
    "intact_exp3_g": ({}, None),
    "grows_its_rate": ({"distribution": grow_the_rate_of_exp3_g}, "exp3g-ftrl"),
    "counts_half_of_the_cost": ({"update": count_half_of_the_cost}, "exp3g-costs"),
    "explores_everywhere": ({"distribution": explore_everywhere}, "exp3g-costs"),
    "counts_thrice_the_cost": ({"update": count_thrice_the_cost}, "exp3g-rate"),
}

#: The claims of `glance` that look at walks.
OF_A_WALK = ("glance-unbiased", "glance-share", "glance-costs", "glance-ftrl", "glance-budget", "glance-regret")
OF_A_WALK += ("glance-incumbent",)


def cover_the_best_alone(state, graph):
    squarecb._cover(state, graph)
    return 1


def weigh_without_c(state, size, gamma, p):
    squarecb._weigh(state, size, gamma, p)
    members = state.members[:size]
    p[members] = 1.0 / (size + gamma * (state.f[members] - state.f[members[0]]))


def value_half(state, graph, gamma, p):
    return 0.5 * squarecb._value(state, graph, gamma, p)


#: SquareCB.G, and the claim that must find out what is wrong with it.
BROKEN_SQUARECB = {
    "intact_squarecb": ({}, None),
    "squarecb_covers_the_best_alone": (
        {"distribution": rebind(squarecb.distribution, "distribution", _cover=cover_the_best_alone)},
        "squarecb-value",
    ),
    "squarecb_plays_nothing_sometimes": (
        {"distribution": rebind(squarecb.distribution, "distribution", _weigh=weigh_without_c)},
        "squarecb-value",
    ),
    "squarecb_says_half_of_its_value": (
        {"distribution": rebind(squarecb.distribution, "distribution", _value=value_half)},
        "squarecb-regret",
    ),
}


class Kind(NamedTuple):
    """Versions of one learner, and the claims that the intact one passes."""

    original: Learner | types.ModuleType
    versions: dict[str, tuple[dict, str | None]]
    passes: tuple[str, ...]
    effort: float


#: By the name of the learner where claims are verified.
KINDS = {
    "learner": Kind(exp3gpp.LEARNER, BROKEN, OF_A_ROUND, 0.05),
    "glance": Kind(glance.LEARNER, BROKEN_GLANCE, OF_A_WALK, 0.05),
    "certificate": Kind(certificates, BROKEN_CERTIFICATE, ("certificate-mean", "certificate-lost"), 0.5),
    "exp3_set": Kind(exp3set.LEARNER, BROKEN_EXP3_SET, ("absent-unbiased", "absent-ftrl"), 0.05),
    "tracking": Kind(exp3set_tracking.LEARNER, BROKEN_TRACKING, ("track-ftrl",), 0.05),
    "exp3_g": Kind(exp3g_adaptive.LEARNER, BROKEN_EXP3_G, ("exp3g-ftrl", "exp3g-costs", "exp3g-rate"), 0.05),
    "guarded": Kind(exp3gpp.GUARDED, BROKEN_GUARDED, ("delay-rate", "delay-cross", "seen-after"), 0.4),
    "squarecb": Kind(squarecb.LEARNER, BROKEN_SQUARECB, ("squarecb-value", "squarecb-regret"), 0.3),
}


def main():
    """Print what fails for those that are named: of a broken one, only the claim that must find it out is tried."""
    failed = {}
    for kind, (original, versions, passes, effort) in KINDS.items():
        for name in versions.keys() & set(sys.argv[1:]):
            changes, caught_by = versions[name]
            tried = {kind: derive(original, name, **changes)}
            results = claims.verify([caught_by] if caught_by else passes, **tried, seed=0, effort=effort)
            failed[name] = [result.claim.id for result in results if result.verdict is claims.Verdict.FAILS]
    json.dump(failed, sys.stdout)


if __name__ == "__main__":
    main()
