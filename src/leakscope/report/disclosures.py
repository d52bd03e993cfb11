"""What the report says of extractions: records that were read out of explanations.

Plain strings made of numbers and names; the page escapes them like everything else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leakscope.report.words import count, percent, percent_span

Json = Mapping[str, Any]

SELF_REVEAL, TRAVERSAL = "self-reveal", "traversal"
STATIC, RECONSTRUCTION = "static", "reconstruction"
# The size of explanation that is spoken of where several were looked at.
USUAL = 5

BY_ITSELF = (
    "Intervals are for each group by itself, with no correction for the number of groups; whether "
    "one is exposed more than everyone else is decided for the attack shown, with a correction."
)


def in_words(disclosures: Sequence[Json]) -> list[str]:
    """A sentence for each extraction, and what it was allowed to ask."""
    said = [_sentence(one) for one in disclosures]
    budgets = {one["details"].get("budget") for one in disclosures} - {None}
    limits = [
        f"Each adversary could ask {count(most)} queries at most." for most in sorted(budgets)
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
    usual = at_usual(shares)
    others = ", ".join(
        f"by {_records(share['k'])} for {percent(share['share']['value'])}"
        for share in shares
        if share is not usual
    )
    return (
        f"An explanation of a member’s own prediction by {_records(usual['k'])} shows that very "
        f"record for {percent(usual['share']['value'])} of members "
        f"({percent_span(usual['share'])}): asking about a person tells that they were in the "
        f"training set.{f' It does {others}.' if others else ''}"
    )


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
    return (
        f"Whoever holds no record at all, and chooses queries by the answers, reads {_read(one)}."
    )


def _read(one: Json) -> str:
    everyone = one["groups"][0]
    share = percent(everyone["share"]["value"])
    return (
        f"{count(one['shown'])} of the {count(everyone['n'])} training records ({share}) in "
        f"{count(one['queries'])} queries, each explained by {_records(one['k'])}"
    )


def _records(k: int) -> str:
    return "1 record" if k == 1 else f"{k} records"


def of_everyone(one: Json) -> list[Json]:
    """The shares of all records, at each size of explanation."""
    first = one["groups"][0]
    same = ("group", "value")
    return [share for share in one["groups"] if all(share[key] == first[key] for key in same)]


def at_usual(shares: Sequence[Json]) -> Json:
    """The share at the usual size of explanation, or the nearest there is."""
    return min(shares, key=lambda share: abs(share["k"] - USUAL))


def revealed(disclosures: Sequence[Json]) -> Json | None:
    """The entry about members who are shown to themselves, if it has shares."""
    found = (one for one in disclosures if one["extraction"] == SELF_REVEAL and one["groups"])
    return next(found, None)


def by_size(one: Json) -> tuple[list[int], list[tuple[str, list[dict[str, Any]]]]]:
    """The sizes of explanation, and under each group column the values with a share at each."""
    sizes = sorted({share["k"] for share in one["groups"]})
    columns: dict[str, dict[str, dict[str, Any]]] = {}
    for share in one["groups"]:
        values = columns.setdefault(share["group"], {})
        row = values.setdefault(
            share["value"], {"value": share["value"], "n": share["n"], "at": dict.fromkeys(sizes)}
        )
        row["at"][share["k"]] = share["share"]
    return sizes, [(name, list(values.values())) for name, values in columns.items()]


def label(one: Json) -> str:
    """An extraction, with the size of the explanations it was given."""
    return f"{one['extraction']}, {_records(one['k'])}"


def in_a_table(disclosures: Sequence[Json]) -> list[tuple[str, str, str, str]]:
    """What, how many records, which share of the training set, and queries; for a terminal."""
    rows = []
    for one in disclosures:
        seen = count(one["queries"])
        if one is revealed(disclosures):
            rows += [
                (
                    f"{one['extraction']}, {_records(share['k'])}",
                    count(share["recovered"]),
                    f"{percent(share['share']['value'])}\n{percent_span(share['share'])}",
                    seen,
                )
                for share in of_everyone(one)
            ]
        else:
            share = percent(one["groups"][0]["share"]["value"]) if one["groups"] else ""
            rows.append((label(one), count(one["shown"]), share, seen))
    return rows
