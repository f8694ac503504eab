"""What is left for `make nightly`."""

import pytest


def share(values, by_day):
    """Return parameters of which the first so many run in `make test`, and all in `make nightly`."""
    return [
        pytest.param(value, marks=() if place < by_day else pytest.mark.nightly) for place, value in enumerate(values)
    ]
