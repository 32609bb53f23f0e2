"""Job summaries: of a finished run, and of a plan, in Markdown as GitHub shows it."""

from __future__ import annotations

from releasekit.report.summary.plan import plan_summary
from releasekit.report.summary.run import early_summary, summary

__all__ = ["early_summary", "plan_summary", "summary"]
