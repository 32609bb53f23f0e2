"""What is shown and kept of a run, without secrets: the last look at it, wherever its words are
from.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from releasekit.model import Staged
from releasekit.spent import Delay
from releasekit.text.escape import bare_urls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from releasekit.announced import Announcement, Tag
    from releasekit.attested import ReleaseStatement
    from releasekit.model import Event, PackageWarning, Plan, Report, Result
    from releasekit.spent import Exchange


@dataclass(frozen=True, slots=True)
class Redacted:
    """`redact` takes the secrets out of a text."""

    redact: Callable[[str], str]

    def text(self, text: str) -> str:
        """Also without what may be one in a URL: its user, its query."""
        return self.redact(bare_urls(text))

    def event(self, event: Event) -> Event:
        return replace(event, detail=self.text(event.detail)) if event.detail else event

    def traffic(self, seen: Exchange | Delay) -> Exchange | Delay:
        if isinstance(seen, Delay):
            return replace(seen, what=self.text(seen.what))
        return replace(seen, url=self.text(seen.url), trouble=self.text(seen.trouble))

    def plan(self, plan: Plan) -> Plan:
        packages = tuple(
            replace(
                planned,
                reason=self.text(planned.reason),
                warnings=self._warnings(planned.warnings),
                tag=self._tag(planned.tag),
                announcement=self._announcement(planned.announcement),
            )
            for planned in plan.packages
        )
        return replace(
            plan,
            packages=packages,
            notes=tuple(map(self.text, plan.notes)),
            provenance=self.text(plan.provenance),
            announcing=self.text(plan.announcing),
        )

    def report(self, report: Report) -> Report:
        spent = report.spent and replace(report.spent, advice=self.redact(report.spent.advice))
        return replace(
            report,
            results=tuple(map(self._result, report.results)),
            spent=spent,
            provenance=self.text(report.provenance),
            statement=self._statement(report.statement),
        )

    def _result(self, result: Result) -> Result:
        return replace(
            result,
            reason=self.text(result.reason),
            hint=self.redact(result.hint),  # it may link to a section of a page
            log=tuple(map(self.redact, result.log)),
            url=self.text(result.url),
            staged=self._staged(result.staged),
            tag=self._tag(result.tag),
            announcement=self._announcement(result.announcement),
            warnings=self._warnings(result.warnings),
        )

    def _statement(self, statement: ReleaseStatement | None) -> ReleaseStatement | None:
        if statement is None:
            return None
        return replace(statement, url=self.text(statement.url), note=self.text(statement.note))

    def _staged(self, staged: Staged | None) -> Staged | None:
        if staged is None:
            return None
        # The link is where a person has to go: it stays whole.
        id_, url, tag = map(self.redact, (staged.id, staged.url, staged.tag))
        return Staged(id=id_, url=url, tag=tag)

    def _tag(self, tag: Tag | None) -> Tag | None:
        if tag is None:
            return None
        return replace(
            tag,
            name=self.redact(tag.name),
            url=self.text(tag.url),
            note=self.text(tag.note),
            hint=self.redact(tag.hint),
        )

    def _announcement(self, release: Announcement | None) -> Announcement | None:
        if release is None:
            return None
        return replace(
            release,
            tag=self.redact(release.tag),
            url=self.text(release.url),
            note=self.text(release.note),
            hint=self.redact(release.hint),
        )

    def _warnings(self, warnings: Iterable[PackageWarning]) -> tuple[PackageWarning, ...]:
        return tuple(replace(each, message=self.text(each.message)) for each in warnings)
