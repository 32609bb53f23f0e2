"""Job summaries: of a finished run, and of a plan, in Markdown as GitHub shows it.

What is to be done comes first, what went well last and folded; each section is a module, a pure
function from a part of a report to lines.
"""

from __future__ import annotations

from releasekit.report.summary.planned import plan_summary
from releasekit.report.summary.run import summary

__all__ = ["plan_summary", "summary"]
