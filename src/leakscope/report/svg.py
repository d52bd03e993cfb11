"""From a matplotlib figure to a piece of SVG that can stand in a page beside others.

What a figure shows is drawn in plots.py; here it gets a text alternative, names that do not clash
with those of other figures, and colours that follow the page into the dark.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from leakscope.report.words import clean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Blue and vermilion of Okabe and Ito's palette: told apart with every common colour blindness.
MEMBER, NONMEMBER = "#0072b2", "#d55e00"
INK, SOFT, LINE, SHADE = "#22252b", "#5d636e", "#b9bdc6", "#eceef1"

# The page defines these variables for light, dark and print; alone, a figure has its own colours.
_VARIABLES = {
    MEMBER: "--member",
    NONMEMBER: "--nonmember",
    INK: "--ink",
    SOFT: "--soft",
    LINE: "--line",
    SHADE: "--shade",
}
_FONT = "DejaVu Sans"  # comes with matplotlib; wider than what a page uses, so nothing overflows
_SVG, _XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text: it can be searched, copied and read aloud
    "svg.hashsalt": "leakscope",  # the same input gives the same bytes
    "text.parse_math": False,  # a dollar sign in a label is a dollar sign
    "font.family": [_FONT],
    "font.size": 11,
    "text.color": INK,
    "axes.edgecolor": LINE,
    "axes.labelcolor": SOFT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": SOFT,
    "ytick.labelcolor": SOFT,
    "legend.frameon": False,
}


@contextmanager
def _own_style() -> Iterator[None]:
    """Draw in our style whatever style the caller's matplotlib has, and leave that as it was."""
    import matplotlib

    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        # Only matplotlib's measure of the text suffers: the browser has the glyph.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


@contextmanager
def canvas(
    width: int, height: int, left: int, bottom: int, right: int = 12, top: int = 12
) -> Iterator[tuple[Figure, Axes]]:
    """A figure of this size with one pair of axes inside these margins, all in CSS pixels."""
    from matplotlib.figure import Figure

    with _own_style():
        figure = Figure(figsize=(width / 72, height / 72), dpi=72)
        figure.patch.set_visible(False)
        inner = (width - left - right) / width, (height - bottom - top) / height
        axes = figure.add_axes((left / width, bottom / height, *inner))
        axes.patch.set_visible(False)
        yield figure, axes


def finish(figure: Figure, name: str, alternative: str) -> str:
    """The figure as an <svg> element; name is unique in the page, alternative says what it shows.

    Call it inside ``canvas``, whose style matplotlib still reads while it writes.
    """
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    buffer = io.BytesIO()
    FigureCanvasSVG(figure).print_figure(buffer, format="svg", metadata={"Date": None})
    root = ElementTree.fromstring(buffer.getvalue())
    for part in ("metadata", "defs"):  # who wrote it, and a style that would reach the whole page
        for child in [one for one in root.findall(_SVG + part) if _is_preamble(one)]:
            root.remove(child)
    _rename(root, name)
    width, height = (str(round(float(size))) for size in root.attrib["viewBox"].split()[2:])
    root.attrib = {
        "xmlns": _SVG.strip("{}"),
        "viewBox": root.attrib["viewBox"],
        "width": width,
        "height": height,
        "role": "img",
        "aria-labelledby": f"{name}-title",
        "stroke-linejoin": "round",
    }
    title = ElementTree.Element("title", {"id": f"{name}-title"})
    title.text = clean(alternative)
    root.insert(0, title)
    return ElementTree.tostring(root, encoding="unicode")


def _is_preamble(element: ElementTree.Element) -> bool:
    return element.tag == _SVG + "metadata" or element.find(_SVG + "style") is not None


def _rename(root: ElementTree.Element, name: str) -> None:
    """Drop the namespaces, keep only names that are used, and put the figure's own before them."""
    used = set(re.findall(r"#([\w.-]+)", " ".join(_references(root))))
    for element in root.iter():
        element.tag = element.tag.removeprefix(_SVG)
        attributes = {key.removeprefix(_XLINK): value for key, value in element.attrib.items()}
        if attributes.pop("id", None) in used:
            attributes["id"] = f"{name}-{element.attrib['id']}"
        if attributes.get("transform", "").startswith("rotate(-0 "):
            del attributes["transform"]
        if "href" in attributes:
            attributes["href"] = attributes["href"].replace("#", f"#{name}-")
        if "clip-path" in attributes:
            attributes["clip-path"] = attributes["clip-path"].replace("#", f"#{name}-")
        if "style" in attributes:
            attributes["style"] = _themed(attributes["style"])
        if "d" in attributes:
            attributes["d"] = " ".join(attributes["d"].split())
        element.attrib = attributes
        if element.tag != "text":
            element.text = None  # indentation
        element.tail = None


def _references(root: ElementTree.Element) -> Iterator[str]:
    for element in root.iter():
        yield element.get(_XLINK + "href", "")
        yield element.get("clip-path", "")


def _themed(style: str) -> str:
    for colour, variable in _VARIABLES.items():
        style = style.replace(colour, f"var({variable}, {colour})")
    return style.replace(f"'{_FONT}'", "var(--sans, sans-serif)")
