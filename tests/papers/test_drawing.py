from __future__ import annotations

import matplotlib
import numpy as np
import pytest

from leakscope.papers.drawing import Line, as_svg, boxes_and_lines

BOXES = [np.array([-0.5, 0.1, 0.2, 0.3]), np.array([0.0, 0.0, 0.1, 0.1])]
LINE = Line("ρ", [4.0, 0.5], [3.0, None], [5.0, 0.6])


def test_boxes_stand_on_the_left_axis_and_leakage_on_the_right_one() -> None:
    left, right = boxes_and_lines(["10", "30"], BOXES, [LINE], "n").axes
    assert left.yaxis.get_label_position() == "left"
    assert right.yaxis.get_label_position() == "right"
    assert "advantage" in left.get_ylabel()
    assert "leakage" in right.get_ylabel()
    assert (left.get_yscale(), right.get_yscale()) == ("linear", "log")
    assert left.get_xlabel() == "n"
    assert [tick.get_text() for tick in left.get_xticklabels()] == ["10", "30"]
    # A box's own line is closed: its height is from the first to the third quarter of |advantage|.
    box = left.get_lines()[0].get_ydata()
    assert (min(box), max(box)) == pytest.approx(
        tuple(np.quantile([0.5, 0.1, 0.2, 0.3], [0.25, 0.75]))
    )
    assert list(right.get_lines()[0].get_ydata()) == [4.0, 0.5]
    assert right.get_legend() is None


def test_what_has_no_logarithm_is_left_out() -> None:
    dashed = Line("none", [0.0, None], [None, None], [None, None], dashed=True)
    _, right = boxes_and_lines(["1", "2"], BOXES, [LINE, dashed], "n").axes
    drawn = [line for line in right.get_lines() if line.get_linestyle() == "--"]
    assert np.isnan(drawn[0].get_ydata()).all()
    assert [text.get_text() for text in right.get_legend().get_texts()] == [
        "ρ",
        "none (0 where it ends)",
    ]


def test_an_interval_that_ends_below_zero_stays_on_the_axis() -> None:
    wide = Line("ρ", [1.0, 2.0], [-1.0, 1.0], [3.0, 1.5])
    _, right = boxes_and_lines(["1", "2"], BOXES, [wide], "n").axes
    (bars,) = right.collections
    ends = [sorted(segment[:, 1]) for segment in bars.get_segments()]
    assert ends == [pytest.approx([0.01, 3.0]), pytest.approx([1.0, 2.0])]


def test_the_same_numbers_give_the_same_bytes_whatever_the_callers_style() -> None:
    def drawn() -> str:
        return as_svg(boxes_and_lines(["10", "30"], BOXES, [LINE], "λ"), "a title")

    one = drawn()
    with matplotlib.rc_context({"font.size": 30, "svg.fonttype": "none", "svg.hashsalt": None}):
        assert drawn() == one
        assert matplotlib.rcParams["font.size"] == 30
    assert "<dc:date>" not in one
    assert "a title" in one
    assert "<text" not in one  # letters are paths: no font is needed to show them


def test_labels_are_plain_and_stand_apart() -> None:
    ticks = [f"{10.0**power:g}" for power in range(-9, 0)]
    boxes = [np.zeros(3)] * len(ticks)
    values = [10.0**power for power in range(-4, 5)]
    line = Line("ρ", values, values, values)
    figure = boxes_and_lines(ticks, boxes, [line], "λ")
    figure.canvas.draw()
    left, right = figure.axes
    said = [label.get_text() for label in right.get_yticklabels()]
    assert "0.01" in said
    assert not any("$" in text for text in said)
    assert {label.get_rotation() for label in left.get_xticklabels()} == {45.0}
