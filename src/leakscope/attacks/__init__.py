"""Attacks: evidence in, a membership score per record out, each registered where it stands."""
