"""What to do, told once for all packages that it is about."""

from __future__ import annotations

from releasekit.problems import Problem
from releasekit.report.remarks import hint_lines


def test_one_line_for_each_thing_to_do() -> None:
    """R47: hundreds may wait for one that failed."""
    waiting = [(f"npm:p{n}", "Fix what it needs.", Problem.BLOCKED) for n in range(200)]
    assert hint_lines([("npm:core", "Read its log.", None), *waiting]) == [
        "npm:core: Read its log.",
        f"npm:p0, npm:p1, npm:p2 and 197 more: Fix what it needs. {Problem.BLOCKED.url}",
    ]


def test_a_page_is_named_where_there_is_no_hint() -> None:
    names = [("npm:core", "", Problem.REFUSED), ("npm:app", "", None)]
    assert hint_lines(names) == [f"npm:core: {Problem.REFUSED.url}"]
