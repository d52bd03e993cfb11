"""A report that can be passed on: what tells of single records, or of a few, is taken out.

An audit says who was in a training set, which may be what had to be kept secret. A redacted report
keeps what is true of everyone (the verdict, each attack's figures, controls) and of groups that
are large enough, so that it can be read and gated like any other.

A small group is not hidden by leaving it out alone: what is known of everyone less what is shown of
the other groups would give it back. So more groups of the column are withheld, the smallest first,
until those withheld are at least two and together as large as one that may be shown (secondary
suppression: Hundepool et al. 2012, Statistical Disclosure Control, chapter 4). Each column is
looked at by itself, and a value is withheld everywhere or nowhere. Classes are treated like the
values of a column: the label of two people is withheld as their town would be.
"""

from __future__ import annotations

import copy
import csv
import io
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from leakscope.errors import InputError

Json = Mapping[str, Any]
Sizes = dict[str, tuple[int, int]]  # of each value of a column: members and non-members

FEWEST = 10
EVERYONE = "all"  # under which disclosures tell of everyone

# Files of an audit that is not redacted; none of them may lie beside one that is.
TELLING = ("records.csv", "trials")

# What repr puts between quotes; an apostrophe within a word begins nothing.
_QUOTED = re.compile(r"""(?<!\w)(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")(?!\w)""")
_PLACE = re.compile(r"\b(row|record|line) \d+")
# Folders may hold blanks, commas and more: a path reaches to the last slash of its clause.
_PATH = re.compile(r"(?<![\w.])(?:[A-Za-z]:|~|\.{1,2})?[/\\](?=\S)(?:(?:(?![;:.] ).)*[/\\])?")
_ADDRESS = re.compile(r"\w+://\S*[^\s.,;:)'\"]")
# The classes in a call in Python, whatever they are.
_CLASSES = re.compile(r"""\bclasses=\[(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\]'"])*\]""")
_HIDDEN = "…"
CLASSES = "classes"  # under which the report says how many of them are withheld


def redact(report: Json, fewest: int = FEWEST) -> dict[str, Any]:
    """The report without groups of fewer members or non-members, single scores, values and paths.

    report: the dictionary of report.json, which is left as it is.
    """
    if type(fewest) is not int or fewest < 2:  # True is an int of another type
        raise InputError(
            f"The smallest group to be shown is {fewest!r}; choose a whole number from 2 on"
        )
    data = copy.deepcopy(dict(report))
    withheld = {column: _withheld(sizes, fewest) for column, sizes in _columns(data).items()}
    for place in _with_groups(data):
        place["groups"] = [
            one for one in place["groups"] if one["value"] not in withheld.get(one["group"], ())
        ]
    withheld[CLASSES] = _hide_classes(data["target"], fewest)
    for outcome in data["outcomes"]:
        _hide_scores(outcome, data["target"], fewest)
    _hide_words(data)
    data.pop("records_sha256", None)  # of a file that is not passed on
    data["redacted"] = _said(data.get("redacted"), withheld, fewest)
    return data


def in_words(report: Json) -> str:
    """What a redacted report says of itself; nothing where it is not."""
    told = report.get("redacted")
    if not told:
        return ""
    return (
        "This report is redacted so that it can be passed on: it tells nothing of single records, "
        f"and groups with fewer than {told['fewest']} members or non-members are withheld, with "
        "others of the same column where those could be had by subtraction."
    )


def refuse_telling_files(folder: str | Path) -> None:
    """Refuse a folder in which an audit that is not redacted has left its files."""
    for name in TELLING:
        if (Path(folder) / name).exists():
            raise InputError(
                f"The folder {str(folder)!r} holds {name} of an audit that was not redacted, which "
                "tells of every record; choose another folder, or remove it"
            )


def _with_groups(data: Json) -> Iterator[dict[str, Any]]:
    """Every part of a report that tells of groups."""
    for part in ("outcomes", "disclosures", "leakage"):
        yield from data[part]


def _columns(data: Json) -> dict[str, Sizes]:
    """How many members and non-members each value of each column has, where it has fewest."""
    columns: dict[str, Sizes] = {}
    for place in _with_groups(data):
        for one in place["groups"]:
            # Disclosures count members alone, and leakage both sides together.
            found = one.get("members", one["n"]), one.get("nonmembers", one["n"])
            sizes = columns.setdefault(one["group"], {})
            known = sizes.get(one["value"], found)
            sizes[one["value"]] = min(known[0], found[0]), min(known[1], found[1])
    columns.pop(EVERYONE, None)
    return columns


def _withheld(sizes: Sizes, fewest: int) -> set[str]:
    """The values of one column that are not shown."""
    smallest_first = sorted(sizes, key=lambda value: (min(sizes[value]), sum(sizes[value]), value))
    hidden: list[str] = []
    for value in smallest_first:
        members, nonmembers = (sum(sizes[one][side] for one in hidden) for side in (0, 1))
        covered = len(hidden) > 1 and min(members, nonmembers) >= fewest
        if min(sizes[value]) >= fewest and (covered or not hidden):
            break
        hidden.append(value)
    return {*hidden}


def _hide_classes(target: dict[str, Any], fewest: int) -> set[str]:
    """Take out the names of rare classes, and of all where nobody knows how rare they are."""
    names = target.get("classes") or []
    sizes = target.get("class_sizes") or {}
    nobody = [None] * len(names)
    counts = list(
        zip(*(sizes.get(side, nobody) for side in ("members", "nonmembers")), strict=True)
    )
    # By place: labels of several types may read alike.
    known = {str(place): pair for place, pair in enumerate(counts) if None not in pair}
    hidden = _withheld(known, fewest)
    hidden |= {
        str(place)
        for place, name in enumerate(names)
        if str(place) not in known and name != _HIDDEN
    }
    for place in map(int, hidden):
        names[place] = _HIDDEN
        for side in sizes.values():
            side[place] = None
    return hidden


def _hide_scores(outcome: dict[str, Any], target: Json, fewest: int) -> None:
    """Take out scores, each of which is some record's, and steps of a curve that few records make.

    The rates at few false alarms, which a curve would be read for, stay as they are.
    """
    outcome["threshold"]["value"] = None
    for group in outcome["groups"]:
        group["tails"] = []  # counts of a few records; those of everyone stay, for the gate
    outcome["histogram"] = {"edges": [], "members": [], "nonmembers": []}
    curve = outcome["curve"]
    points = list(zip(curve["fpr"], curve["tpr"], strict=True))

    # An attack that learns its threshold on some of the records is judged on the others.
    own, others = (
        min(target[side], outcome["rates"][side] or target[side])
        for side in ("members", "nonmembers")
    )

    def large(start: tuple[float, float], end: tuple[float, float]) -> bool:
        return bool((end[0] - start[0]) * others + (end[1] - start[1]) * own >= fewest)

    kept = points[:1]
    for point in points[1:-1]:
        if large(kept[-1], point):
            kept.append(point)
    while len(kept) > 1 and not large(kept[-1], points[-1]):  # the last step is one as well
        kept.pop()
    kept += points[1:][-1:]
    curve["fpr"], curve["tpr"] = [x for x, _ in kept], [y for _, y in kept]


def _hide_words(data: dict[str, Any]) -> None:
    """Take values of records, their places and paths out of what the report says in words."""
    known = {one[key] for one in data["outcomes"] for key in ("attack", "channel")}
    known |= {one["group"] for place in _with_groups(data) for one in place["groups"]}
    if data["target"].get("fingerprint"):
        # Anyone who knows all records of a side but one could test the last.
        data["target"]["fingerprint"] |= {"members": None, "nonmembers": None}
    data["command"] = without_paths(data["command"])
    data["target"]["model"] = _ADDRESS.sub(_HIDDEN, data["target"]["model"])
    if data["target"]["dataset"] is not None:
        data["target"]["dataset"] = _base(data["target"]["dataset"])
    if data["target"].get("preparation"):
        told = data["target"]["preparation"]
        data["target"]["preparation"] = [_without_values(one, known) for one in told]
    for control in data["controls"]:
        control["detail"] = _without_values(control["detail"], known)
    for one in data["not_run"]:
        one["reason"] = _without_values(one["reason"], known)
    for key in ("headline", "reason"):
        data["verdict"][key] = _without_values(data["verdict"][key], known)


def _without_values(text: str, known: set[str]) -> str:
    """A sentence without what it quotes, but for names that the report has anyway."""

    def hidden(found: re.Match[str]) -> str:
        quoted = found[0]
        return quoted if quoted[1:-1] in known else quoted[0] + _HIDDEN + quoted[0]

    text = _PLACE.sub(rf"\1 {_HIDDEN}", _QUOTED.sub(hidden, text))
    return _PATH.sub("", _ADDRESS.sub(_HIDDEN, text))


def without_paths(command: str) -> str:
    """A command line, or a call in Python, whose paths are reduced to their last part."""
    if not command.startswith("leakscope "):
        command = _CLASSES.sub(f"classes={_HIDDEN}", command)
        return _QUOTED.sub(lambda found: found[0][0] + _base(found[0][1:-1]) + found[0][0], command)
    try:
        typed = shlex.split(command)
    except ValueError:  # not as a shell would take it
        typed = command.split()
    words, before = [], ""
    for word in typed:
        option, equals, value = word.partition("=")
        if not re.fullmatch(r"--?[\w-]+", option) or not equals:
            option, equals, value = "", "", word
        several = (option or before).endswith("-options")
        words.append(option + equals + (_bases(value) if several else _base(value)))
        before = word
    return shlex.join(words).replace(shlex.quote(_HIDDEN), _HIDDEN)


def _bases(text: str) -> str:
    """Several NAME=VALUE, separated by commas, each value reduced to the last part of its path."""
    try:
        pairs = next(csv.reader([text], skipinitialspace=True, strict=True), [])
    except csv.Error:
        return _HIDDEN
    parted = (pair.partition("=") for pair in pairs)
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(
        [name + equals + _base(value) if equals else _base(name) for name, equals, value in parted]
    )
    return line.getvalue()


def _base(path: str) -> str:
    """The last part of a path; nothing of an address."""
    if "://" in path:
        return _HIDDEN
    parts = [part for part in re.split(r"[/\\]", path) if part]
    return parts[-1] if parts else path


def _said(before: Json | None, withheld: Mapping[str, set[str]], fewest: int) -> dict[str, Any]:
    """What the report says of its redaction; of a second one, both together."""
    counts = {one["group"]: one["values"] for one in (before or {}).get("withheld", [])}
    for column, values in withheld.items():
        counts[column] = counts.get(column, 0) + len(values)
    return {
        "fewest": max(fewest, (before or {}).get("fewest", fewest)),
        "withheld": [
            {"group": column, "values": number} for column, number in counts.items() if number
        ],
    }
