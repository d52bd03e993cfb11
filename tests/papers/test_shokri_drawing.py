from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from leakscope.papers.shokri_drawing import Look, Panel, Series, panels


def test_every_data_set_has_a_panel_with_both_labels() -> None:
    line = Series("a", [1, 10], [2.0, 3.0], [1.0, 2.5], [4.0, 3.5])
    figure = panels([Panel("one", [line]), Panel("two", [line, line])], Look("x", "y", xlog=True))
    assert [axes.get_title() for axes in figure.axes] == ["one", "two"]
    assert all((axes.get_xlabel(), axes.get_ylabel()) == ("x", "y") for axes in figure.axes)
    assert all(axes.get_xscale() == "log" for axes in figure.axes)
    assert [axes.get_legend() is not None for axes in figure.axes] == [False, True]


def test_intervals_reach_from_low_to_high() -> None:
    line = Series("a", [1, 10], [2.0, 3.0], [1.0, 2.5], [4.0, 3.5])
    (axes,) = panels([Panel("one", [line])], Look("x", "y")).axes
    bars: Any = axes.containers[0]
    segments = bars.lines[2][0].get_segments()
    np.testing.assert_allclose([part[:, 1] for part in segments], [[1.0, 4.0], [2.5, 3.5]])


@pytest.mark.parametrize("ends", [(), (None, None)])
def test_without_intervals_there_are_points_alone(ends: tuple[None, ...]) -> None:
    (axes,) = panels([Panel("one", [Series("a", [1, 2], [3, 4], ends, ends)])], Look("x", "y")).axes
    points: Any = axes.containers[0]
    assert points.lines[2] == ()


def test_bars_stand_side_by_side_over_their_names() -> None:
    series = [Series(name, [1, 5], [2.0, 3.0]) for name in "ab"]
    (axes,) = panels([Panel("one", series)], Look("x", "y", "bars")).axes
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["1", "5"]
    patches: Any = axes.patches
    centres = [bar.get_x() + bar.get_width() / 2 for bar in patches]
    np.testing.assert_allclose(centres, [-0.2, 0.8, 0.2, 1.2])


def test_histograms_are_steps_that_may_be_logarithmic() -> None:
    look = Look("x", "y", "steps", ylog=True)
    (axes,) = panels([Panel("one", [Series("a", [1, 2, 3], [5, 6, 6])])], look).axes
    assert axes.get_yscale() == "log"
    assert axes.lines[0].get_drawstyle() == "steps-post"
