"""The report: JSON first; the HTML page, the terminal summary and the plots are views of it.

Nothing here imports matplotlib or jinja2 before a page is asked for.
"""

from __future__ import annotations

from leakscope.report.build import Report, Verdict, load_schema
from leakscope.report.records import RecordTable

__all__ = ["RecordTable", "Report", "Verdict", "load_schema"]
