"""Forecasts of models as advice: of the order itself, or of sales on average."""

from __future__ import annotations

from typing import Any

import numpy as np

from sidelong.checks import check_one_of, short
from sidelong.errors import AdviceError


class Forecast:
    """The prediction of a regressor, of scikit-learn, LightGBM or any other, for the products of a day.

    Args:
        model: a fitted model with ``predict``, of which a negative prediction counts as 0, or a column of numbers that
            it has predicted.
        x: the features of the products, a row for each, in the order in which they are ordered; None for a column.
        kind: "quantile" if it predicts how much to order, as a quantile regression does; "mean" if it predicts average
            sales. A mean is multiplied by a quantile of past ratios of sales to predictions, once there are six.

    Example:
        >>> import sidelong as sl
        >>> shop = sl.Newsvendor(holding=1, shortage=3, seed=7)
        >>> shop.order("2026-11-18", ["bread", "rolls"], advice={"mean": sl.Forecast([12.4, 30.1], kind="mean")})
        array([12, 30])
    """

    def __init__(self, model: Any, x: Any = None, *, kind: str = "quantile") -> None:
        self.kind = check_one_of(AdviceError, "kind", kind, ("quantile", "mean"))
        if hasattr(model, "predict") != (x is not None):
            raise AdviceError(
                f"A forecast is a fitted model with its features x, or a column of numbers without; not {short(model)} "
                f"{'without' if x is None else 'with'} x."
            )
        self.values = model if x is None else np.maximum(model.predict(x), 0.0)  #: a number for each product
