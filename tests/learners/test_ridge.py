import numpy as np
import pytest

import naive
from sidelong.learners import ridge

pytestmark = pytest.mark.interpreted

ARM, ONE = np.zeros(1, np.int32), np.ones(1)


def learned(X, y, penalty=1.0, rho=1.0, weights=None):
    state = ridge.init(1, X.shape[1], penalty)
    scratch = ridge.new_scratch(state)
    for x, l, w in zip(X, y, np.ones(len(X)) if weights is None else weights, strict=True):
        ridge.learn(state, scratch, x[None], ARM, np.array([l]), np.array([w]), rho)
    return state


def data(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.clip(0.5 + 0.2 * X @ rng.normal(size=d) / np.sqrt(d) + 0.1 * rng.normal(size=n), 0, 1)


@pytest.mark.parametrize("penalty", [0.01, 1.0, 30.0])
def test_it_is_ridge_regression(penalty):
    X, y = data(60, 5)
    state = learned(X, y, penalty)
    assert state.w[:, 0] == pytest.approx(naive.ridge_weights(X, y, penalty), rel=1e-9)
    assert np.array_equal(state.B[0], state.B[0].T)


def test_a_loss_of_weight_three_counts_as_three():
    X, y = data(30, 4)
    often = np.random.default_rng(1).integers(1, 4, 30)
    state = learned(X, y, 0.5, weights=often.astype(float))
    three = naive.ridge_weights(np.repeat(X, often, axis=0), np.repeat(y, often), 0.5)
    assert state.w[:, 0] == pytest.approx(three, rel=1e-9)


def test_what_is_forgotten_counts_less():
    X, y = data(60, 3)
    state = learned(X, y, 0.01, rho=0.97)
    assert state.w[:, 0] == pytest.approx(naive.ridge_weights(X, y, 0.01, 0.97), rel=1e-8)
    assert abs(state.w[:, 0] - naive.ridge_weights(X, y, 0.01)).max() > 1e-3


def test_a_direction_that_is_never_seen_again_stays_as_it_was():
    X = np.zeros((3000, 2))
    X[:, 0] = 1.0
    state = learned(X, np.full(3000, 0.5), 1.0, rho=0.9)
    assert np.isfinite(state.B).all()
    assert np.trace(state.B[0]) <= 2.0 + 1e-9
    assert state.w[0, 0] == pytest.approx(0.5, abs=0.06)


def test_what_is_seldom_seen_is_forgotten_only_when_it_is_seen():
    # A Saturday after forty other days, which forget what was learned before of their own kind alone.
    X = np.vstack([np.tile([0.0, 1.0], (30, 1)), np.tile([1.0, 0.0], (40, 1)), [[0.0, 1.0]]])
    y = np.concatenate([np.full(30, 0.9), np.full(40, 0.2), [0.4]])
    state = learned(X, y, 0.01, rho=0.9)
    assert state.w[1, 0] == pytest.approx(0.9 * 0.9 + 0.1 * 0.4, abs=0.02)
    assert learned(X[:30], y[:30], 0.01, rho=0.9).w[1, 0] == learned(X[:-1], y[:-1], 0.01, rho=0.9).w[1, 0]


def test_many_steps_do_not_drift():
    X, y = data(2000 if hasattr(ridge.learn, "py_func") else 300, 8, seed=3)
    X[:, 0] *= 1e3
    assert learned(X, y).w[:, 0] == pytest.approx(naive.ridge_weights(X, y, 1.0), rel=1e-6, abs=1e-9)


def test_arms_have_models_of_their_own_or_share_one():
    rng = np.random.default_rng(4)
    table, losses, arms = rng.normal(size=(4, 3)), rng.random(2), np.array([1, 3], np.int32)
    apart, shared, f = ridge.init(4, 3, 1.0), ridge.init(1, 3, 1.0), np.empty(4)
    ridge.learn(apart, ridge.new_scratch(apart), table[:1], arms, losses, np.ones(2), 1.0)
    assert not apart.w[:, [0, 2]].any()
    assert apart.w[:, 3] == pytest.approx(naive.ridge_weights(table[:1], losses[1:], 1.0))
    ridge.predict(apart, table[:1], f)
    assert f == pytest.approx(np.clip(table[0] @ apart.w, 0, 1))
    ridge.learn(shared, ridge.new_scratch(shared), table, arms, losses, np.ones(2), 1.0)
    assert shared.w[:, 0] == pytest.approx(naive.ridge_weights(table[[1, 3]], losses, 1.0))
    ridge.predict(shared, table, f)
    assert f == pytest.approx(np.clip(table @ shared.w[:, 0], 0, 1))


def test_arms_that_learned_together_share_a_matrix_and_part_when_they_do_not():
    rng, M, d = np.random.default_rng(6), 7, 3
    state = ridge.init(M, d, 0.5)
    scratch, alone = ridge.new_scratch(state), [ridge.init(1, d, 0.5) for _ in range(M)]
    sets = [np.arange(M)] * 3 + [np.arange(rng.integers(1, M + 1)) for _ in range(9)]  # as on a nested graph
    sets += [np.sort(rng.choice(M, rng.integers(1, M + 1), replace=False)) for _ in range(20)]
    groups = []
    for arms in sets:
        x, losses = rng.normal(size=(1, d)), rng.random(arms.size)
        ridge.learn(state, scratch, x, arms.astype(np.int32), losses, np.ones(arms.size), 0.95)
        for arm, l in zip(arms, losses, strict=True):
            ridge.learn(alone[arm], ridge.new_scratch(alone[arm]), x, ARM, np.array([l]), ONE, 0.95)
        groups.append(int(state.groups[0]))
        assert [state.w[:, arm].tolist() for arm in range(M)] == [each.w[:, 0].tolist() for each in alone]
        assert [state.B[state.group[arm]].tolist() for arm in range(M)] == [each.B[0].tolist() for each in alone]
        assert np.bincount(state.group, minlength=M).tolist() == state.size.tolist()
    assert groups[2] == 1
    assert groups[11] == len({arms.size for arms in sets[:12]})
    assert groups[-1] <= M


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e6])
def test_large_features_leave_numbers(scale):
    rng = np.random.default_rng(7)
    state = learned(rng.normal(size=(300, 4)) * scale ** rng.random((300, 4)), rng.random(300))
    assert np.isfinite(state.w).all()
    assert np.isfinite(state.B[0]).all()
