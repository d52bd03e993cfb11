from __future__ import annotations

import numpy as np

from leakscope.papers.drawing import as_svg
from leakscope.papers.shokri_pictures import Bars, Cloud, Curve, Sweep, curve, picture


def a_curve(name: str = "loss") -> Curve:
    rows = [{"gap": gap, "a": 0.5 + gap, "low": 0.4, "high": 0.9} for gap in (0.0, 0.1)]
    return curve(rows, name, "gap", "a", ("low", "high"))


def test_a_curve_is_made_of_columns() -> None:
    assert a_curve() == Curve("loss", [0.0, 0.1], [0.5, 0.6], [0.4, 0.4], [0.9, 0.9])


def test_panels_of_the_same_curves_share_a_legend() -> None:
    sweeps = [
        Sweep(title, [a_curve(), a_curve("label")], "gap", "accuracy", level=0.5)
        for title in ("one", "two")
    ]
    figure = picture(sweeps)
    assert [axes.get_title() for axes in figure.axes] == ["one", "two"]
    assert [axes.get_xlabel() for axes in figure.axes] == ["gap", "gap"]
    assert all(axes.get_ylabel() == "accuracy" for axes in figure.axes)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["loss", "label"]
    assert as_svg(figure, "a") == as_svg(picture(sweeps), "a")


def test_a_sweep_may_be_logarithmic_and_without_a_level() -> None:
    swept = Curve("base", [1, 100], [0.0, 0.1], [0.0, 0.1], [0.0, 0.1])
    (axes,) = picture([Sweep("a", [swept], "n", "r", xlog=True)]).axes
    assert axes.get_xscale() == "log"
    assert len(axes.get_lines()) == 3  # the curve and the caps of its intervals


def test_a_cloud_has_every_record_at_every_tick() -> None:
    values = np.arange(1.0, 13.0).reshape(4, 3)
    membership = np.array([True, True, True, False])
    cloud = Cloud("a", [0, 1, 5], values, membership, "samples", "1-norm")
    figure = picture([cloud, Sweep("b", [a_curve()], "gap", "accuracy")])
    axes = figure.axes[0]
    members, others = axes.get_lines()
    np.testing.assert_array_equal(members.get_ydata(), values[:3].ravel())
    np.testing.assert_array_equal(others.get_ydata(), values[3])
    assert (np.asarray(members.get_xdata()) - np.tile([0, 1, 2], 3) < 0).all()
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0", "1", "5"]
    # Panels of different things have legends of their own.
    assert not figure.legends
    assert axes.get_legend() is not None


def test_bars_stand_in_groups() -> None:
    values = np.array([[0.5, 0.6], [0.7, 0.8], [0.9, 1.0]])
    bars = Bars("a", ["x", "y", "z"], ["p", "q"], values, values - 0.1, values + 0.1, "y", 0.5)
    (axes,) = picture([bars]).axes
    drawn = [one.lines[0] for one in axes.containers]
    np.testing.assert_array_equal([line.get_ydata() for line in drawn], values.T)
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["x", "y", "z"]
