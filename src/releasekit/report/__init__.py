"""A finished run or a plan, as text: results file, outputs, job summary, tables, graphs.

Everything here is a pure function of a `Report` or a `Plan`; writing is the caller's.
"""

from __future__ import annotations

from releasekit.report.joined import join
from releasekit.report.junit import junit
from releasekit.report.outputs import (
    checksums,
    job_links,
    notices,
    outputs,
    plan_outputs,
    scalars,
)
from releasekit.report.plans import plan_headline, plan_json, plan_mermaid, plan_table
from releasekit.report.remarks import warning_annotations
from releasekit.report.results import load_all, load_results, results_json
from releasekit.report.summary import plan_summary, summary
from releasekit.report.tables import results_table
from releasekit.report.view import Verdict, exit_code, headline, verdict_of

__all__ = [
    "Verdict",
    "checksums",
    "exit_code",
    "headline",
    "job_links",
    "join",
    "junit",
    "load_all",
    "load_results",
    "notices",
    "outputs",
    "plan_headline",
    "plan_json",
    "plan_mermaid",
    "plan_outputs",
    "plan_summary",
    "plan_table",
    "results_json",
    "results_table",
    "scalars",
    "summary",
    "verdict_of",
    "warning_annotations",
]
