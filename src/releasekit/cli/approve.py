"""`releasekit approve` and `reject`, which need only results.json and the registries."""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from msgspec import Struct

from releasekit.aio import Group, gather_all
from releasekit.approval.decide import (
    STOPPED,
    ApprovalPolicy,
    ApprovalResult,
    ApprovalRun,
    Codes,
    NoCode,
    reject,
)
from releasekit.approval.review import AT_ONCE, Examined, Held, build_review, examine
from releasekit.cli.commands.approve import ApproveInputs
from releasekit.cli.interruption import Interruption
from releasekit.cli.request_log import request_logger
from releasekit.cli.result_files import load_recorded
from releasekit.cli.session import refuse_foreign, start_processes
from releasekit.cli.terminal import Terminal
from releasekit.ecosystems import folders
from releasekit.ecosystems.interface import Services
from releasekit.errors import INTERRUPTED, ConfigError, Rejected
from releasekit.fields import replace
from releasekit.host.scratch import scratch
from releasekit.http.client import http_client
from releasekit.http.traffic import collect
from releasekit.problems import Problem
from releasekit.report.review import show_review
from releasekit.report.tables import approval_table
from releasekit.report.text import describe_pages, few, package_url, packages
from releasekit.scheduler.retries import Retry, WaitBudget
from releasekit.state import run_logs
from releasekit.state.run_logs import Logs
from releasekit.text.escape import log_line

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from releasekit.cli.session import Session
    from releasekit.config.config import Config, PlanConfig
    from releasekit.config.declaration import EcosystemDeclaration
    from releasekit.ecosystems.approval import Approval
    from releasekit.model import PackageId, Report


_UNDECIDED = ApprovalResult(
    state="waiting",
    reason="not decided",
    hint="Run the same command again: it goes on with what still waits.",
)


async def run(config: Config, session: Session) -> int:
    """Review what waits, ask once, and do it; without a yes nothing changes."""
    refuse_foreign(config, session)
    interruption = Interruption("cancelled; run it again: it goes on with what still waits")
    with interruption, collect(request_logger(session, verbose=config.verbose, mode=config.mode)):
        report, where, run = await load_recorded(config.own(ApproveInputs), config, session)
        held = Held.of(report, where, config.package_filter.has_ecosystem)
        pages = _describe_pages(held, config, session)
        if pages:
            print(log_line(pages), file=session.out)
        elif not held.recorded:
            what = ", ".join(config.ecosystem) or "this run"
            print(f"{log_line(where)}: nothing of {what} waits for approval", file=session.out)
        if not held.recorded:
            return 1 if pages else 0
        declaration = next(each for each in session.ecosystems.values() if each.approves)
        for package in held.recorded:
            if package.ecosystem != declaration.name:
                raise ConfigError(
                    f"{package.ecosystem}: nothing of this ecosystem can be approved from here",
                    problem=Problem.APPROVAL,
                )
        code = session.credentials.get(f"RELEASEKIT_{declaration.name.upper()}_OTP")
        async with Group() as group:
            folder = run_logs.name_of("decide", datetime.now(UTC))
            services = Services.of(
                config,
                await group.enter(http_client(pool_size=2 * AT_ONCE)),
                await start_processes(group, config, session, ()),
                session.credentials,
                session.ci,
                Logs(config.state_directory, folder, session.credentials.redact),
                WaitBudget.from_now(max_wait_s=config.max_wait, deadline_s=None),
            )
            approval = _open_approval(declaration, report, config, services)
            into = await group.enter(scratch(session.credentials.environment))
            decision = _Decision(config, session, report, run, held, approval, into, pages)
            return await decision.decide(code.reveal() if code else "")


def _describe_pages(held: Held, config: PlanConfig, session: Session) -> str:
    """What a person has to do elsewhere, or nothing. Raises ConfigError for a page that is not of
    the registry here: anybody may have written the results.
    """
    for each in held.paged:
        declaration = session.ecosystems[each.package.id.ecosystem]
        option = declaration.registry.name
        registry = config.registry_url(declaration.name, default=declaration.default_registry)
        page = package_url(each)
        if page and not page.startswith(f"{registry.text.rstrip('/')}/"):
            raise ConfigError(
                f"{each.package.id} waits at {page}, and {option} is {registry}",
                hint=f"Add --{option} and the registry of that page if that is where it waits.",
                problem=Problem.APPROVAL,
            )
    pages = describe_pages(held.paged, len(held.paged))
    return pages and f"{pages}: `{config.mode}` leaves that to you."


def _open_approval(
    declaration: EcosystemDeclaration, report: Report, config: PlanConfig, services: Services
) -> Approval:
    """Raises ConfigError for credentials that are missing, and for a registry that the user has not
    named: credentials go only where the user says, never where results.json says.
    """
    approval = folders.approval(declaration, config, services)
    option, url = declaration.registry.name, approval.url
    staged_at = report.registries.get(declaration.name, "")
    if staged_at and staged_at.rstrip("/") != url.rstrip("/"):
        raise ConfigError(
            f"the run has staged at {staged_at}, and {option} is {url}",
            hint=f"Add --{option} {staged_at} if that is where you want to approve.",
            problem=Problem.APPROVAL,
        )
    approval.check_credentials()
    return approval


class _Decision(Struct, frozen=True):
    """One decision about one release."""

    config: Config
    session: Session
    report: Report
    run: Mapping[str, str]
    held: Held
    approval: Approval
    into: Path
    # What is left to do on a page; nothing here has a part in it.
    pages: str

    @property
    def approving(self) -> bool:
        return self.config.mode == "approve"

    async def decide(self, code: str) -> int:
        """`code` is the first one-time code, or empty."""
        session = self.session
        terminal = Terminal.at(session.out, session.credentials.environment)
        examined = await self._examine_all()
        waiting = [each for each in examined.values() if each.waiting and not each.refusal]
        review = await build_review(
            self.report, self.held, examined, self.approval, compare=self.approving
        )
        show_review(replace(review, run=self.run), session.out, session.credentials.environment)
        if waiting and not await self._ask(len(waiting), terminal):
            print("Nothing was decided.", file=session.out)
            return 1
        codes = Codes(self.approval, code, terminal)
        if self.approving:
            endings, interrupted = await self._approve(examined, codes)
        else:
            endings, interrupted = await self._reject(examined, codes)
        return self._tell(endings, interrupted=interrupted)

    async def _examine_all(self) -> dict[PackageId, Examined]:
        turn = asyncio.Semaphore(AT_ONCE)

        async def one(number: int, name: PackageId) -> Examined:
            place = self.into / str(number)
            place.mkdir()
            async with turn:
                found = await examine(
                    self.held.recorded[name],
                    self.approval,
                    place,
                    compare=self.approving,
                )
            lacks = self.held.lacks.get(name) if self.approving and found.waiting else None
            if not lacks:
                return found
            missing = few([*map(str, sorted(lacks))], 3)
            refusal = Rejected(
                f"{name}: needs {missing}, which was neither published nor staged",
                hint="Run the release again, and approve with the results of that run.",
                problem=Problem.CANNOT_APPROVE,
            )
            return replace(found, refusal=refusal)

        names = list(self.held.recorded)
        if self.approving:
            self._say(f"Comparing {packages(len(names))} with what was built")
        found = await gather_all(one(number, name) for number, name in enumerate(names))
        return dict(zip(names, found, strict=True))

    async def _ask(self, count: int, terminal: Terminal | None) -> bool:
        if self.config.own(ApproveInputs).yes:
            return True
        verb = "Approve" if self.approving else "Reject"
        if terminal is None:
            raise ConfigError(
                f"no terminal to ask whether to {verb.lower()} {packages(count)}",
                hint="Run it in a terminal, or add --yes once you have read this.",
                problem=Problem.APPROVAL,
            )
        return await terminal.confirm(f"{verb} {packages(count)}?")

    async def _approve(
        self, examined: Mapping[PackageId, Examined], codes: Codes
    ) -> tuple[dict[PackageId, ApprovalResult], bool]:
        run = ApprovalRun(
            examined,
            self.held.needs,
            self.approval,
            codes,
            terms=ApprovalPolicy(
                visible=self.config.gate == "visible",
                max_wait_s=self.config.max_wait,
                retry=Retry(self.config.max_retries, self.config.retry_base_delay),
            ),
            say=self._say,
            rng=random.Random(),  # noqa: S311 (spreads requests, guards nothing)
        )
        try:
            await run.run()
        except asyncio.CancelledError:
            _clear_cancellation()
            return run.endings, True
        except NoCode as error:
            self._say(str(error))
        return run.endings, False

    async def _reject(
        self, examined: Mapping[PackageId, Examined], codes: Codes
    ) -> tuple[dict[PackageId, ApprovalResult], bool]:
        endings: dict[PackageId, ApprovalResult] = {}
        try:
            # Dependencies go last, so that what is left can still be approved at any time.
            for name, each in reversed([*examined.items()]):
                endings[name] = STOPPED
                endings[name] = await reject(
                    each, self.approval, codes, max_retries=self.config.max_retries
                )
                self._say(f"{name}: {endings[name].state}")
        except asyncio.CancelledError:
            _clear_cancellation()
            return endings, True
        except NoCode as error:
            endings = {name: each for name, each in endings.items() if each is not STOPPED}
            self._say(str(error))
        return endings, False

    def _say(self, line: str) -> None:
        print(log_line(self.session.redacted.text(line)), file=self.session.out, flush=True)

    def _tell(self, endings: Mapping[PackageId, ApprovalResult], *, interrupted: bool) -> int:
        rows = [
            (str(name), recorded.package.version, endings.get(name, _UNDECIDED))
            for name, recorded in self.held.recorded.items()
        ]
        out = self.session.out
        redact = self.session.redacted.text
        table = [(name, version, each.state, redact(each.reason)) for name, version, each in rows]
        hints = [(name, redact(each.hint), each.problem) for name, _, each in rows]
        print(approval_table(table, hints), file=out)
        wanted = {"approved", "published"} if self.approving else {"rejected"}
        done = all(each.state in wanted for _, _, each in rows)
        print(log_line(self._next_step(done=done)), file=out, flush=True)
        if self.pages:
            print(log_line(self.pages), file=out, flush=True)
        if interrupted:
            return INTERRUPTED
        return 0 if done and not self.pages else 1

    def _next_step(self, *, done: bool) -> str:
        if not done:
            return "Not all of it is done. Run the same command again once that is settled."
        if not self.approving:
            return (
                "Rejected. Bump the versions before the next release: a run that has the state of "
                "this one refuses them, and one without it stages them again."
            )
        behind = [str(name) for name in self.held.behind]
        if behind:
            verb = "waits" if len(behind) == 1 else "wait"
            return (
                f"Approved. {few(behind)} {verb} for this elsewhere: run `releasekit publish`, or "
                "the workflow that releases, once more."
            )
        if self.pages or self.config.ecosystem:
            return "Approved."
        return "Approved. There is nothing left to do for this release."


def _clear_cancellation() -> None:
    """Clear the cancellation, so that what was done so far can be reported."""
    cast("asyncio.Task[object]", asyncio.current_task()).uncancel()
