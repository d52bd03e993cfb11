"""The gate: a report held to limits, decided by the ends of intervals and never by estimates."""

from leakscope.gate.facade import check
from leakscope.gate.result import Check

__all__ = ["Check", "check"]
