"""What each package of a run and the whole run spent, put together for the report."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from releasekit.fields import replace
from releasekit.http.traffic import Counters
from releasekit.release.timesheet import timesheet
from releasekit.spent import Spent, added

# An entry of the public log takes a second, however many are under way. It publishes no limit; one
# that answers that there were too many gets them one after the other.
# https://github.com/sigstore/sigstore-java/issues/228
ATTEST_SLOTS: Final = 20

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from releasekit.http.traffic import Metrics
    from releasekit.model import Node, PackageId, Report
    from releasekit.release.events import Events
    from releasekit.release.timesheet import Timesheet
    from releasekit.scheduler import Task
    from releasekit.spent import Wait, Work


class Spending(Struct, frozen=True):
    packages: Mapping[PackageId, Spent]
    run: Spent

    def told_in(self, report: Report) -> Report:
        results = (
            replace(each, spent=self.packages.get(each.package.id)) for each in report.results
        )
        return replace(report, results=tuple(results), spent=self.run)


def lanes_of(builds: int | None, uploads: int) -> dict[str, int | None]:
    """How many tasks of each phase there may be at a time."""
    return {
        "wait": None,
        "build": builds,
        "attest": ATTEST_SLOTS,
        "hold": None,
        "upload": uploads,
        "confirm": None,
        "approval": None,
        # One at a time: what they do to the workspace, or to git, they do alone.
        "follow-up": 1,
    }


def spending(
    events: Events,
    book: Metrics,
    tasks: Iterable[Task[Node]],
    batches: Mapping[Node, Collection[PackageId]],
) -> Spending:
    """Of a run as far as it has come."""
    sheet = timesheet(
        tasks,
        events.moments,
        batches=batches,
        end_s=events.now_s(),
        pauses=events.pauses(),
    )
    # Those of reads are in the book.
    retries = Counter(
        moment.node.package for moment in events.moments if moment.kind == "paused" and moment.asked
    )
    accounts = {package: Counters() for package in sheet.chains} | book.packages
    packages = {
        package: _of_package(sheet, package, account, retries[package])
        for package, account in accounts.items()
    }
    total = added([*packages.values(), _traffic(book.rest)])
    for what, ms in sheet.count_shared().items():
        lasted_s = round(total.seconds[what] - ms / 1000, 3)
        total = replace(total, seconds={**total.seconds, what: lasted_s})
    return Spending(packages, total)


def _of_package(sheet: Timesheet, package: PackageId, account: Counters, retries: int) -> Spent:
    spent = replace(_traffic(account), retries=account.retries + retries)
    if package not in sheet.chains:
        return spent
    waited = sheet.waited_for(package)
    longest = min(waited, key=lambda on: (-waited[on], on), default=None)
    lasted_ms: dict[Wait | Work, int] = defaultdict(int)
    for piece in sheet.pieces(package):
        lasted_ms[piece.what] += piece.lasts
    return replace(
        spent,
        seconds={what: ms / 1000 for what, ms in lasted_ms.items()},
        waited_for="" if longest is None else str(longest),
        longest_s=0.0 if longest is None else waited[longest] / 1000,
    )


def _traffic(account: Counters) -> Spent:
    return Spent(
        requests=account.requests,
        sent_bytes=account.sent_bytes,
        received_bytes=account.received_bytes,
        retries=account.retries,
    )
