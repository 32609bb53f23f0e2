"""A run as JUnit, which GitLab, Jenkins, CircleCI, Buildkite and Azure show: packages as cases."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from releasekit.model import Outcome
from releasekit.report.outputs import result_annotation
from releasekit.report.remarks import lack_annotations
from releasekit.report.view import View
from releasekit.text.escape import visible

if TYPE_CHECKING:
    from releasekit.model import Report, Result

_FAILED = frozenset({Outcome.FAILED, Outcome.UNKNOWN})
_NOT_ATTEMPTED = frozenset({Outcome.BLOCKED, Outcome.CANCELLED, Outcome.REMOVED})


def junit(report: Report) -> str:
    """Failed is what makes the run fail, tags and releases too; skipped is what was not attempted.

    https://docs.gitlab.com/ci/testing/unit_test_reports/
    """
    cases = [_package_case(result) for result in report.results]
    wrong = lack_annotations(lack for lack in View(report).lacks if lack.is_wrong)
    cases += [_case("tags and releases", title, 0, "failure", title, text) for title, text in wrong]
    failures = sum("<failure " in case for case in cases)
    skipped = sum("<skipped " in case for case in cases)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuites>\n<testsuite name="ReleaseKit" tests="{len(cases)}" failures="{failures}" '
        f'errors="0" skipped="{skipped}" time="{report.duration_s:.3f}" '
        f"timestamp={_attribute(report.started_at)}>\n"
        + "".join(cases)
        + "</testsuite>\n</testsuites>\n"
    )


def _package_case(result: Result) -> str:
    kind = ""
    if result.outcome in _FAILED:
        kind = "failure"
    elif result.outcome in _NOT_ATTEMPTED:
        kind = "skipped"
    package = result.package
    title, text = result_annotation(result)
    name = f"{package.id.name} {package.version}".rstrip()
    return _case(package.id.ecosystem, name, result.duration_s, kind, title, text)


def _case(group: str, name: str, duration_s: float, kind: str, title: str, text: str) -> str:
    """`kind` is the element that says what is wrong, or empty."""
    wrong = ""
    if kind:
        lines = "\n".join(map(_text, text.split("\n")))
        wrong = f"<{kind} message={_attribute(title)}>{lines}</{kind}>"
    return (
        f"<testcase classname={_attribute(group)} name={_attribute(name)} "
        f'time="{duration_s:.3f}">{wrong}</testcase>\n'
    )


def _text(line: str) -> str:
    """Without what XML has no way to write: control characters and lone surrogates."""
    return escape(visible(line))


def _attribute(value: str) -> str:
    return quoteattr(visible(value))
