"""Ten-line rules that say how much to order, from past sales alone: the built-in advisers of `Newsvendor`.

Each returns an order for each product, NaN where it knows too little. `level` is the share of days on which nothing
should run out, shortage / (holding + shortage): to order that quantile of demand is best if demand is as it was.

Sales of a day that sold out are less than what was wanted. A rule either raises them by a tenth, and by one unit at
least, or takes them as censored, as the estimator of Kaplan and Meier (1958) does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from sidelong.agent.sales_history import SalesHistory, Window

#: How many days, or same weekdays, each rule looks at.
_DAYS, _WEEKDAYS = 28, 12
_KM_DAYS, _KM_WEEKDAYS = 56, 16
_SHARE_WEEKS, _LEVEL_DAYS, RATIO_DAYS = 15, 28, 56
#: So many ratios, and so many same weekdays, the rule of ratios needs.
_LEAST_RATIOS, _LEAST_WEEKDAYS = 6, 2


def advise(history: SalesHistory, rows: np.ndarray, day: int, level: np.ndarray) -> dict[str, np.ndarray]:
    """Return what each rule would order of some products on a day, and "base", what it expects to be sold."""
    last, recent = history.last(rows, day, _KM_DAYS), history.last(rows, day, _DAYS)
    made = {"quantile": quantile(_raised(recent), level), "Kaplan-Meier": kaplan_meier(last, level)}
    base = _mean(_raised(recent))
    if history.cycle > 1:
        weekdays = history.same_weekday(rows, day, _KM_WEEKDAYS)
        some = (~np.isnan(weekdays.sold)).sum(axis=1) > 0
        of_weekday = quantile(_raised(weekdays)[:, :_WEEKDAYS], level)
        made["quantile by weekday"] = np.where(some, of_weekday, made["quantile"])
        made["Kaplan-Meier by weekday"] = np.where(some, kaplan_meier(weekdays, level), made["Kaplan-Meier"])
        base = by_weekday(history, rows, day)
    made["ratio"] = ratio(history.last(rows, day, RATIO_DAYS), base, level)
    return made | {"base": base}


def names(cycle: int) -> list[str]:
    """Return the names of the rules."""
    by_weekday = ["quantile by weekday", "Kaplan-Meier by weekday"] if cycle > 1 else []
    return ["quantile", "Kaplan-Meier", *by_weekday, "ratio"]


def raised(sold: np.ndarray, ran_out: np.ndarray) -> np.ndarray:
    """Return sales, with those of sold-out days raised by a tenth, and by one unit at least."""
    return np.where(ran_out, np.maximum(np.float32(1.1) * sold, sold + 1), sold)


def _raised(window: Window) -> np.ndarray:
    return raised(window.sold, window.ran_out)


def _mean(values: np.ndarray) -> np.ndarray:
    """Return the mean of each row; NaN of one without numbers."""
    known = ~np.isnan(values)
    n = known.sum(axis=1)
    return np.where(n > 0, np.where(known, values, 0.0).sum(axis=1) / np.maximum(n, 1), np.nan)


def quantile(values: np.ndarray, level: np.ndarray) -> np.ndarray:
    """Return a quantile of the numbers of each row, between two of them if it is there; NaN of a row without any."""
    n = (~np.isnan(values)).sum(axis=1)
    ordered = np.sort(values, axis=1)  # NaN comes last
    place = level * np.maximum(n - 1, 0)
    low = np.floor(place).astype(np.int64)
    high = np.minimum(low + 1, np.maximum(n - 1, 0))
    row = np.arange(len(values))
    below, above = ordered[row, low], ordered[row, high]
    return np.asarray(below + (place - low) * (above - below), np.float64)


def kaplan_meier(window: Window, level: np.ndarray) -> np.ndarray:
    """Return the quantile of demand by Kaplan and Meier; where so much was never seen, the most that sold, raised."""
    sold, known = window.sold, ~np.isnan(window.sold)
    censored = window.ran_out & known
    order = np.argsort(np.where(known, sold, np.inf) + np.float32(0.5) * censored, axis=1)  # of equals, censored last
    ordered = np.take_along_axis(sold, order, axis=1)
    event = np.take_along_axis(known & ~censored, order, axis=1)
    n = known.sum(axis=1)
    at_risk = np.maximum(n[:, None] - np.arange(sold.shape[1]), 1)
    survival = np.cumprod(np.where(event, 1.0 - 1.0 / at_risk, 1.0), axis=1)
    enough = event & (survival <= 1.0 - level[:, None] + 1e-9)
    found = ordered[np.arange(len(sold)), enough.argmax(axis=1)]
    most = np.where(known, sold, 0).max(axis=1)
    beyond = raised(most, np.ones_like(most, np.bool_))
    return np.where(n > 0, np.where(enough.any(axis=1), found, beyond), np.nan)


def by_weekday(history: SalesHistory, rows: np.ndarray, day: int) -> np.ndarray:
    """Return what is sold on such a weekday on average: the level of the last weeks times the share of the weekday."""
    cycle = history.cycle
    weeks = min(_SHARE_WEEKS, history.days // cycle)
    sold = _raised(history.last(rows, day, cycle * weeks))
    by_day = sold.reshape(len(rows), weeks, cycle)  # the last of a cycle is the weekday of today
    known = ~np.isnan(by_day)
    n = known.sum(axis=1)
    overall = _mean(sold)[:, None]
    mean = np.where(known, by_day, 0.0).sum(axis=1)
    share = (mean + overall) / (n + 1) / np.maximum(overall, 1e-9)  # one more day as all are
    share = np.where(np.isnan(share), 1.0, np.maximum(share, 0.05))
    level = sold[:, :_LEVEL_DAYS] / np.tile(share, -(-_LEVEL_DAYS // cycle))[:, : min(_LEVEL_DAYS, sold.shape[1])]
    enough = n[:, -1] >= _LEAST_WEEKDAYS
    return np.where(enough, _mean(level) * share[:, -1], np.nan)


def ratio(window: Window, expected: np.ndarray, level: np.ndarray) -> np.ndarray:
    """Return what is expected to be sold times a quantile of the ratios of past sales to what was expected of them."""
    ratios = np.where(window.expected > 0, window.sold / np.maximum(window.expected, np.float32(1e-6)), np.nan)
    ratios = np.where(window.ran_out, np.float32(1.1) * ratios, ratios)
    enough = (~np.isnan(ratios)).sum(axis=1) >= _LEAST_RATIOS
    return np.where(enough, expected * quantile(ratios, level), np.nan)
