"""Defenses side by side: the same records, seeds and attacks for each, and what each buys."""

from leakscope.comparing.facade import compare

__all__ = ["compare"]
