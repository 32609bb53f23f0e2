"""Takes the secrets out of all that is shown and kept of a run, as the last step before that."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from releasekit.announced import Announcement, Tag
from releasekit.model import Staged
from releasekit.spent import PauseEvent
from releasekit.text.escape import bare_urls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from releasekit.model import Event, PackageWarning, Plan, Report, Result
    from releasekit.spent import RequestEvent

_Followed = TypeVar("_Followed", Tag, Announcement)


@dataclass(frozen=True, slots=True)
class Redacted:
    """`redact` takes the secrets out of a text."""

    redact: Callable[[str], str]

    def text(self, text: str) -> str:
        """Also without what may be one in a URL: its user, its query."""
        return self.redact(bare_urls(text))

    def event(self, event: Event) -> Event:
        return replace(event, detail=self.text(event.detail)) if event.detail else event

    def traffic(self, seen: RequestEvent | PauseEvent) -> RequestEvent | PauseEvent:
        if isinstance(seen, PauseEvent):
            return replace(seen, what=self.text(seen.what))
        return replace(seen, url=self.text(seen.url), trouble=self.text(seen.trouble))

    def plan(self, plan: Plan) -> Plan:
        packages = tuple(
            replace(
                planned,
                reason=self.text(planned.reason),
                warnings=self._warnings(planned.warnings),
                tag=self._followed(planned.tag),
                announcement=self._followed(planned.announcement),
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
        statement = report.statement
        if statement is not None:
            url, note = self.text(statement.url), self.text(statement.note)
            statement = replace(statement, url=url, note=note)
        return replace(
            report,
            results=tuple(map(self._result, report.results)),
            provenance=self.text(report.provenance),
            statement=statement,
        )

    def _result(self, result: Result) -> Result:
        staged = result.staged
        if staged is not None:
            # The link is where a person has to go: it stays whole.
            id_, url, tag = map(self.redact, (staged.id, staged.url, staged.tag))
            staged = Staged(id=id_, url=url, tag=tag)
        return replace(
            result,
            reason=self.text(result.reason),
            hint=self.redact(result.hint),  # it may link to a section of a page
            log=tuple(map(self.redact, result.log)),
            url=self.text(result.url),
            staged=staged,
            tag=self._followed(result.tag),
            announcement=self._followed(result.announcement),
            warnings=self._warnings(result.warnings),
        )

    def _followed(self, each: _Followed | None) -> _Followed | None:
        if each is None:
            return None
        url, note, hint = self.text(each.url), self.text(each.note), self.redact(each.hint)
        clean = replace(each, url=url, note=note, hint=hint)
        if isinstance(clean, Tag):
            return replace(clean, name=self.redact(clean.name))
        return replace(clean, tag=self.redact(clean.tag))

    def _warnings(self, warnings: Iterable[PackageWarning]) -> tuple[PackageWarning, ...]:
        return tuple(replace(each, message=self.text(each.message)) for each in warnings)
