"""What the report says of extractions: records that were read out of explanations.

Plain strings made of numbers and names; the page escapes them like everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from leakscope.report.words import count, number, percent, percent_span, span

Json = Mapping[str, Any]

SELF_REVEAL, TRAVERSAL = "self-reveal", "traversal"
STATIC, RECONSTRUCTION = "static", "reconstruction"
# The size of explanation that is spoken of where several were looked at.
USUAL = 5

# The row under everyone's: people who were not in the training set, asked about like members.
NONMEMBERS = "non-members"

BY_ITSELF = (
    "Intervals are for each group by itself, with no correction for the number of groups; whether "
    "one is exposed more than everyone else is decided for the attack shown, with a correction."
)


def in_words(disclosures: Sequence[Json]) -> list[str]:
    """A sentence for each extraction, and what it was allowed to ask."""
    said = [_sentence(one) for one in disclosures]
    budgets = {one["details"].get("budget") for one in disclosures} - {None}
    limits = [
        f"Each adversary could ask {in_number(most, 'query', 'queries')} at most."
        for most in sorted(budgets)
    ]
    return [sentence for sentence in said if sentence] + limits


def _sentence(one: Json) -> str:
    if not one["groups"]:
        return ""
    tell = {
        SELF_REVEAL: _self_reveal,
        TRAVERSAL: _traversal,
        STATIC: _static,
        RECONSTRUCTION: _reconstruction,
    }.get(one["extraction"])
    return "" if tell is None else tell(one)


def _self_reveal(one: Json) -> str:
    shares = of_everyone(one)
    usual, others = at_usual(shares), of_others(one)
    told = [
        f"An explanation of a person’s own prediction by {_records(usual['k'])} shows a record "
        f"that equals theirs, in every feature the model is given, to "
        f"{_to_whom(usual, others, percent_span)}."
    ]
    if usual["k"] in others:
        told.append(_what_that_tells(others[usual["k"]]["excess"]))
    rest = [share for share in shares if share is not usual]
    if rest:
        each = "; ".join(f"by {_records(one['k'])} to {_to_whom(one, others)}" for one in rest)
        told.append(f"It does {each}.")
    return " ".join(told + _alike(one, shares[-1]))


def _to_whom(
    share: Json, others: Mapping[int, Json], interval: Callable[[Json], str] | None = None
) -> str:
    """Which share of members, and of non-members where they were asked about."""
    sides = [("members", share["share"])]
    if share["k"] in others:
        sides.append((NONMEMBERS, others[share["k"]]["share"]))
    return " and ".join(
        f"{percent(one['value'])} of {name}{f' ({interval(one)})' if interval else ''}"
        for name, one in sides
    )


def _what_that_tells(excess: Json) -> str:
    """Whether members are shown more often than others, beyond what chance gives."""
    points = {end: 100 * excess[end] for end in ("value", "low", "high")}
    difference = f"{number(points['value'], 1)} percentage points ({span(points, 1)})"
    if excess["low"] > 0:
        return (
            f"The difference of {difference} is what asking about a person tells of whether they "
            "were in the training set."
        )
    return (
        f"The difference of {difference} is not surely above 0: being shown does not tell here "
        "who was in the training set."
    )


def _alike(one: Json, largest: Json) -> list[str]:
    """How many members equal another one, and how many records those shown see between them."""
    told = []
    if twins := one["details"].get("twins"):
        told.append(
            f"{count(twins)} of the {count(largest['n'])} members equal another member in all of "
            "these features."
        )
    if one["recovered"] != largest["recovered"]:
        told.append(
            f"{in_number(largest['recovered'], 'member is', 'members are')} shown such a record by "
            f"{_records(largest['k'])}: {in_number(one['recovered'], 'distinct record')} in all."
        )
    return told


def _traversal(one: Json) -> str:
    details = one["details"]
    more = ""
    if "reach_median" in details:
        more += f" From another start it would be {count(details['reach_median'])} in the median."
    if "graph" in details:
        unseen = count(details["graph"]["in_degree_0"])
        more += f" The explanations of members show {unseen} of them nowhere, so no walk does."
    return (
        f"Whoever holds the record of one member, and asks about it and about every record that is "
        f"shown, reads {_read(one)}.{more}"
    )


def _static(one: Json) -> str:
    return f"Whoever asks about people who were not in the training set reads {_read(one)}."


def _reconstruction(one: Json) -> str:
    most = ""
    if one["bound"] is not None:
        most = (
            f" The method itself counts {count(one['recovered'])} of them, where at most "
            f"{count(one['bound'])} can be found by it."
        )
    return (
        f"Whoever holds no record at all, and chooses queries by the answers, reads {_read(one)}."
        f"{most}"
    )


def _read(one: Json) -> str:
    everyone = one["groups"][0]
    share = percent(everyone["share"]["value"])
    return (
        f"{count(one['shown'])} of the {count(everyone['n'])} training records ({share}) in "
        f"{in_number(one['queries'], 'query', 'queries')}, each explained by {_records(one['k'])}"
    )


def _records(k: int) -> str:
    return in_number(k, "record")


def in_number(value: int, singular: str, plural: str = "") -> str:
    """So many of something: 1 query, 2 queries."""
    return f"{count(value)} {singular if value == 1 else plural or singular + 's'}"


def of_everyone(one: Json) -> list[Json]:
    """The shares of all records, at each size of explanation."""
    first = one["groups"][0]
    same = ("group", "value")
    return [share for share in one["groups"] if all(share[key] == first[key] for key in same)]


def of_others(one: Json) -> dict[int, Json]:
    """The shares of non-members by the size of explanation, where they were asked about."""
    return {share["k"]: share for share in one["details"].get("others", ())}


def at_usual(shares: Sequence[Json]) -> Json:
    """The share at the usual size of explanation, or the nearest there is."""
    return min(shares, key=lambda share: abs(share["k"] - USUAL))


def revealed(disclosures: Sequence[Json]) -> Json | None:
    """The entry about members who are shown to themselves, if it has shares."""
    found = (one for one in disclosures if one["extraction"] == SELF_REVEAL and one["groups"])
    return next(found, None)


def by_size(one: Json) -> tuple[list[int], list[tuple[str, list[dict[str, Any]]]]]:
    """The sizes of explanation, and under each group column the values with a share at each.

    Everyone stands first, and below them the non-members.
    """
    sizes = sorted({share["k"] for share in one["groups"]})
    columns: dict[str, dict[str, dict[str, Any]]] = {}
    everyone = one["groups"][0]["group"]
    others = [
        {**share, "group": everyone, "value": NONMEMBERS} for share in of_others(one).values()
    ]
    for share in [*of_everyone(one), *others, *one["groups"]]:
        values = columns.setdefault(share["group"], {})
        row = values.setdefault(
            share["value"], {"value": share["value"], "n": share["n"], "at": dict.fromkeys(sizes)}
        )
        row["at"][share["k"]] = share["share"]
    return sizes, [(name, list(values.values())) for name, values in columns.items()]


def label(one: Json) -> str:
    """An extraction, with the size of the explanations it was given."""
    return f"{one['extraction']}, {_records(one['k'])}"


def in_a_table(disclosures: Sequence[Json]) -> list[tuple[str, str, str, str, str]]:
    """For a terminal: what, how many records, shares of members and non-members, and queries."""
    rows = []
    for one in disclosures:
        seen = count(one["queries"])
        if one is revealed(disclosures):
            others = of_others(one)
            rows += [
                (
                    f"{one['extraction']}, {_records(share['k'])}",
                    count(share["recovered"]),
                    _with_interval(share),
                    _with_interval(others[share["k"]]) if share["k"] in others else "",
                    seen,
                )
                for share in of_everyone(one)
            ]
        else:
            share = percent(one["groups"][0]["share"]["value"]) if one["groups"] else ""
            rows.append((label(one), count(one["shown"]), share, "", seen))
    return rows


def _with_interval(share: Json) -> str:
    return f"{percent(share['share']['value'])}\n{percent_span(share['share'])}"
