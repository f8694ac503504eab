"""Figures in a notebook and in a paper."""

import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from sidelong.display.curves import NamedCurve, band, chart
from sidelong.display.pgf import pgf

ROUNDS = np.array([1, 10, 100])
CURVES = [
    NamedCurve("a_b & <c>", ROUNDS, np.array([[1.0, 2.0, 4.0], [1.0, 3.0, 6.0]])),
    NamedCurve("d", ROUNDS, np.ones((1, 3))),
]


def test_a_band_holds_the_mean_and_is_a_point_for_equal_runs():
    low, high = band(CURVES[0].values)
    mean = CURVES[0].values.mean(axis=0)
    assert (low <= mean).all()
    assert (mean <= high).all()
    assert low[0] == high[0] == 1.0
    assert low[-1] < high[-1]


@pytest.mark.parametrize("logarithmic", [False, True])
def test_a_notebook_shows_a_figure_in_the_colours_of_its_page(logarithmic):
    shown = chart(CURVES, "regret", "a <title>", logarithmic=logarithmic)._repr_html_()
    ET.fromstring(shown)  # noqa: S314  # it is well formed
    assert "currentColor" in shown
    assert not re.search(r"#(1c2024|3c4148|ffffff)", shown)  # neither dark ink nor white paper of its own
    assert "a_b &amp; &lt;c&gt;" in shown
    assert shown == chart(CURVES, "regret", "a <title>", logarithmic=logarithmic)._repr_html_()


def test_two_figures_on_one_page_do_not_share_names():
    one, other = (
        set(re.findall(r' id="([^"]+)"', chart(each, "regret")._repr_html_())) for each in (CURVES, CURVES[:1])
    )
    assert one
    assert not one & other


@pytest.mark.parametrize("least", [1e-4, 1.0])
def test_long_numbers_do_not_push_the_label_of_the_axis_out_of_the_figure(least):
    figure = chart([NamedCurve("a", ROUNDS, np.array([[least, 0.1, 1.0]]))], "regret", logarithmic=True)
    FigureCanvasAgg(figure).draw()
    (axes,) = figure.axes
    assert axes.yaxis.label.get_window_extent().x0 >= 0


def test_curves_can_be_drawn_into_axes_of_ones_own():
    figure = chart(CURVES[:1], "regret")
    axes = figure.add_axes((0, 0, 1, 1))
    assert chart(CURVES, "loss", axes=axes) is figure
    assert [each.get_text() for each in axes.get_legend().get_texts()] == ["a_b & <c>", "d"]
    assert axes.get_ylabel() == "loss"


def test_pgf_needs_no_latex_and_its_text_is_escaped(monkeypatch):
    monkeypatch.setenv("PATH", "")  # no LaTeX to ask
    made = pgf(chart(CURVES, "√T", "θ ± 1"))
    assert made.count(r"\begin{pgfpicture}") == made.count(r"\end{pgfpicture}") == 1
    assert made.count(r"\begin{pgfscope}") == made.count(r"\end{pgfscope}")
    assert r"a\_b \& \ensuremath{<}c\ensuremath{>}" in made
    assert made.isascii()
