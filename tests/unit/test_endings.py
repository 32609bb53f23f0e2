"""What to do, told once for all packages that it is about."""

from __future__ import annotations

from releasekit.report.endings import hint_lines


def test_one_line_for_each_thing_to_do() -> None:
    """R47: hundreds may wait for one that failed."""
    waiting = [(f"npm:p{number}", "Fix what it needs.") for number in range(200)]
    assert hint_lines([("npm:core", "Read its log."), *waiting]) == [
        "npm:core: Read its log.",
        "npm:p0, npm:p1, npm:p2 and 197 more: Fix what it needs.",
    ]
