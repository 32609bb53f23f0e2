"""The command check: what a release from here needs, and what earlier runs left behind.

It asks no registry: whether this machine could publish does not depend on what is published, and
an answer that takes no network is there at once, and also on a train. `plan` asks them.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from msgspec import Struct

from releasekit.aio import Group
from releasekit.announce.post_release import require_token
from releasekit.cli.commands.check import CheckInputs
from releasekit.cli.interruption import Interruption
from releasekit.cli.session import (
    find_seal,
    name_bad_paths,
    open_ecosystem,
    open_workspace,
    refuse_elsewhere,
)
from releasekit.config.locations import FILENAME
from releasekit.config.values import Directory
from releasekit.ecosystems.prebuilt import with_prebuilt
from releasekit.ecosystems.shared.documents import table_in, text_in
from releasekit.errors import (
    CommandFailed,
    ConfigError,
    PlanError,
    ReleasekitError,
    StateError,
    told_of,
)
from releasekit.git.commits import Commits
from releasekit.git.remote import HINT, NO_REMOTE_HINT, Remote
from releasekit.host.files import find_closed, find_top, repository_of
from releasekit.http.identity import open_tokens
from releasekit.plan.absent import check_absent
from releasekit.plan.holdings import Holdings
from releasekit.plan.make import collect_packages, join_targets
from releasekit.plan.provenance import refuse_unattested
from releasekit.plan.publishers import list_own_jobs, read_workflows
from releasekit.plan.source import read_checkout
from releasekit.plan.unlisted_packages import mark_unread
from releasekit.problems import Problem, mark
from releasekit.provenance.conditions import NO_JOB, obstacle_here
from releasekit.report.screen import fit_lines
from releasekit.report.text import count_of, few, packages
from releasekit.state import leftovers
from releasekit.state.seals import Seal
from releasekit.text.commands import spell
from releasekit.text.escape import log_line, redact_urls, visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from releasekit.cli.session import Session
    from releasekit.config.config import Config, PlanConfig
    from releasekit.config.package_filter import PackageFilter
    from releasekit.ecosystems.interface import Registry, Services, Target
    from releasekit.host.process import Processes
    from releasekit.model import Package
    from releasekit.plan.make import Survey

# What GitLab and its runner put beside them has other names.
_OWN_VARIABLE: Final = re.compile(r"(?!CI_SERVER_|gitlab_runner)[A-Za-z_][A-Za-z0-9_]*")
_INDENT: Final = 7  # the word before each row, and a gap


class CheckRow(Struct, frozen=True, kw_only=True):
    """One thing that was looked at. `code` is the exit code that it causes, 0 for what is there;
    that may have a `hint` too.
    """

    said: str
    hint: str = ""
    problem: Problem | None = None
    code: int = 0

    @classmethod
    def of_sentence(cls, sentence: str) -> Self:
        said, _, hint = sentence.partition("; ")
        return cls(said=said, hint=hint)

    @property
    def lines(self) -> list[str]:
        word = "to do" if self.code else "note" if self.hint else "ok"
        url = self.problem.url if self.code and self.problem else ""
        below = [f"{'':<{_INDENT}}{line}" for line in (self.hint, url) if line]
        return [f"{word:<{_INDENT}}{self.said}{mark(self.problem)}", *below]


async def run(config: Config, session: Session) -> int:
    """Say what is there, then what is to be done; repair what earlier runs left where `fix` asks
    for that.
    """
    if config.own(CheckInputs).fix:
        seal = find_seal(session, make=False) or Seal.for_one_run()
        fixed = await asyncio.to_thread(
            leftovers.fix, config.state_directory, root=config.root, seal=seal
        )
        for finding in fixed:
            told = session.credentials.redact(f"fixed: {finding.message}")
            print(log_line(told), file=session.out)
    found = await asyncio.to_thread(leftovers.examine, config.state_directory, root=config.root)
    rows: list[CheckRow] = []
    # What links in the state directory lead to may be anything, so nothing else starts then.
    if all(finding.kind != "link" for finding in found):
        with Interruption("cancelled"):
            await _examine_workspace(config, session, rows)
    rows += [
        CheckRow(said=f"{finding.kind}: {finding.message}", hint=finding.hint, code=1)
        for finding in found
    ]
    if not found:
        rows.append(CheckRow(said=f"{config.state_directory}: nothing was left behind"))
    to_do = [row for row in rows if row.code]
    shown = [row for row in rows if not row.code] + to_do
    for line in (line for row in shown for line in row.lines):
        told = log_line(session.credentials.redact(line))
        environment = session.credentials.environment
        print(fit_lines(told, session.out, environment, indent=_INDENT), file=session.out)
    verdict = f"{count_of(len(to_do), 'thing', 'things')} to do" if to_do else "nothing missing"
    print(verdict, file=session.out)
    return to_do[0].code if to_do else 0


@contextmanager
def _collecting(rows: list[CheckRow]) -> Iterator[None]:
    """What the block raises becomes rows, and is no end."""
    try:
        yield
    except ReleasekitError as error:
        rows += [
            CheckRow(
                said=redact_urls(str(each)),
                hint=each.hint,
                problem=each.problem,
                code=each.exit_code,
            )
            for each in told_of(error)
        ]


async def _examine_workspace(config: Config, session: Session, rows: list[CheckRow]) -> None:
    if (config.root / FILENAME).exists() or config.config_file:
        rows.append(CheckRow(said=f"{config.config_file or FILENAME} can be read"))
    if closed := find_closed(config.state_directory):
        rows.append(
            CheckRow(
                said=f"{config.state_directory} cannot be written: this user may not write to "
                f"{closed}",
                hint="Correct the permissions, or name another directory as `state-directory`.",
                problem=StateError.general,
                code=StateError.exit_code,
            )
        )
    with _collecting(rows):
        await asyncio.to_thread(refuse_elsewhere, config.root, config.package_filter, session)
        session.runner.watch_files()  # build backends may have to tell versions
        try:
            async with Group() as group:
                config, survey, services = await open_workspace(group, config, session)
                await _examine_git(config.root, services.processes, rows)
                await _examine_forge(config, services, rows)
                _examine_job(config, services, rows)
                await _examine_packages(group, config, session, survey, services, rows)
        finally:
            session.runner.restore_files(for_good=True)


async def _examine_packages(
    group: Group,
    config: PlanConfig,
    session: Session,
    survey: Survey,
    services: Services,
    rows: list[CheckRow],
) -> None:
    """The tool and the login of each ecosystem; of one that cannot be discovered, too."""
    about = config.package_filter
    registries: dict[str, Registry] = {}
    targets: dict[str, Target] = {}
    present = [name for name in about.ecosystems if name not in config.absent]
    for name in present:
        with _collecting(rows), name_bad_paths(config.root):
            discovery = await open_ecosystem(name, group, config, session, services)
            registries[name] = discovery.registry
            targets[name] = await discovery.discover(config.root)
    chosen = [p for one in targets.values() for p in one.workspace.packages if not p.unpublishable]
    if len(targets) == len(present):
        with _collecting(rows), name_bad_paths(config.root):
            targets = join_targets(targets)
            targets = await with_prebuilt(targets, config.dist, about, session.ecosystems)
            chosen = _choose_packages(config, survey, targets, rows)
            holdings = Holdings(targets, config.root, survey.tree, chosen)
            built = [package for package in chosen if not package.prebuilt]
            note = await check_absent(built, targets, holdings, config.root, services.processes)
            if note:
                rows.append(CheckRow.of_sentence(note))
    for name, registry in registries.items():
        target, own = targets.get(name), [p for p in chosen if p.id.ecosystem == name]
        if target is not None and not own:
            there = target.workspace.packages
            # Where nothing else is published, somebody wants these to be.
            untold = [p for p in there if not chosen and target.versioning.suggest_version(p, ())]
            if there:
                first, *_ = untold or there
                rows.append(_explain_nothing(first, about, is_to_do=bool(untold)))
            if not untold:
                continue
        if target is not None and own:
            with _collecting(rows):
                tool = await target.find_tool(own)
                how = f"packed by {tool}" if tool else "built elsewhere"
                rows.append(CheckRow(said=f"{name}: {packages(len(own))}, {how}"))
        with _collecting(rows):
            login = registry.check_credentials()
            rows.append(CheckRow(said=f"{name}: goes to {registry.url}; login: {login}"))
            in_directory = isinstance(config.registries.get(name), Directory)
            if target is not None and target.builds_from_commit and not in_directory:
                remote = str(config.ecosystem_tables.get(name, {}).get("remote", "origin"))
                rows.append(await _examine_push(name, remote, services))
                rows += await asyncio.to_thread(_examine_workflows, name, config.root)


def _choose_packages(
    config: PlanConfig, survey: Survey, targets: Mapping[str, Target], rows: list[CheckRow]
) -> list[Package]:
    about = config.package_filter
    unlisted = survey.describe_unlisted(config, targets)
    unread = survey.describe_unread(about)
    rows += map(CheckRow.of_sentence, (*unlisted, *map(mark_unread, unread)))
    found = collect_packages(targets, config.root, about, [*unlisted, *unread])
    if foreign := survey.describe_foreign(config, targets):
        rows.append(CheckRow.of_sentence(foreign))
    return about.select({p.id: p for p in found if not p.unpublishable})


def _explain_nothing(package: Package, about: PackageFilter, *, is_to_do: bool) -> CheckRow:
    leaving = "exclude-packages" if about.is_excluded(package.id) else "packages"
    why = package.unpublishable or f"`{leaving}` leaves it out"
    ways = f"; {spell('init')} writes those of its tags" if is_to_do else ""
    return CheckRow(
        said=f"{package.id.ecosystem}: nothing to publish",
        hint=f"{package.id}: {why}{ways}",
        code=ConfigError.exit_code if is_to_do else 0,
    )


def _examine_workflows(what: str, root: Path) -> list[CheckRow]:
    """Of the jobs that publish with ReleaseKit, those whose token may certainly not push tags."""
    rows = []
    for file, workflow in read_workflows(find_top(root), "releasekit"):
        for name, job in list_own_jobs(workflow):
            steps = job["steps"]
            given = [table_in(step, "with") for step in steps if _is_checkout(step)]
            # By aliases, thousands of steps may have one long script.
            scripts = {text_in(step, "run") for step in steps}
            if any({"token", "ssh-key"} & each.keys() for each in given) or any(
                re.search(r"\bgit\s+(?:config|remote)\b", script) for script in scripts
            ):
                continue  # it pushes as somebody else
            # https://docs.github.com/actions/reference/workflows-and-actions/workflow-syntax#permissions
            of_all = workflow.get("permissions") if isinstance(workflow, dict) else None
            granted = job.get("permissions", of_all)
            # Where nothing is written, the settings of the repository decide.
            may_push = granted in (None, "write-all") or text_in(granted, "contents") == "write"
            keeps = not any(each.get("persist-credentials") in (False, "false") for each in given)
            lacking = [] if may_push else ["`contents: write` below its permissions"]
            lacking += [] if keeps else ["`persist-credentials: true` at actions/checkout"]
            if lacking:
                rows.append(
                    CheckRow(
                        said=f"{what}: the job {visible(str(name))} of {file} may not push tags",
                        hint=f"Write {' and '.join(lacking)}.",
                        problem=Problem.TAG_REFUSED,
                        code=PlanError.exit_code,
                    )
                )
    return rows


def _is_checkout(step: object) -> bool:
    return text_in(step, "uses").startswith("actions/checkout@")


async def _examine_git(root: Path, processes: Processes, rows: list[CheckRow]) -> None:
    top = repository_of(root)
    if top is None:
        hint = "Tags and notes are made of commits: run it in a clone of the repository."
        rows.append(CheckRow(said=f"git: {root} is in no repository", hint=hint))
        return
    commits = Commits(top, processes)
    try:
        head, tags, shallow = (
            await commits.read_head(),
            await commits.list_tags(),
            await commits.is_shallow(),
        )
    except CommandFailed as error:
        said = error if processes.which("git") else "it is not on PATH"
        hint = "Without git, versions are not tagged, and changes since the last one are unknown."
        rows.append(CheckRow(said=f"git: {said}", hint=hint))
        return
    said = f"git: commit {head[:12] or '(none yet)'}, {count_of(len(tags), 'tag', 'tags')}"
    if shallow:
        said += ", and the clone is shallow"
    hint = (
        "Older tags and commits are missing: `git fetch --unshallow --tags`, or `fetch-depth: 0` "
        "at actions/checkout, `GIT_DEPTH: 0` at GitLab."
    )
    rows.append(CheckRow(said=said, hint=hint if shallow else ""))
    names = (await read_checkout(root, processes)).uncommitted
    if names:
        rows.append(
            CheckRow(
                said=f"git: {count_of(len(names), 'file is', 'files are')} not committed: "
                f"{few(names)}",
                hint="What is packed of them goes out all the same, but not in a Go module, and a "
                "step of releasekit.toml runs what is committed. Commit them, unless an earlier "
                "step of the job wrote them.",
                problem=Problem.UNCOMMITTED,
            )
        )


async def _examine_forge(config: PlanConfig, services: Services, rows: list[CheckRow]) -> None:
    """What tags and releases take, as far as it shows without asking the forge."""
    if config.tag or config.announce:
        rows.append(await _examine_push("tag", config.tagging.remote, services))
    if config.announce:
        with _collecting(rows):
            remote = Remote(config.tagging.remote, services.git)
            place = services.ci.forge_of(await remote.find_url()) or services.ci.forge
            require_token(services.credentials, services.ci, place, asked="announce")
            known = place.name if place else "GitHub"
            rows.append(CheckRow(said=f"announce: there is a token for {known}"))


async def _examine_push(what: str, remote: str, services: Services) -> CheckRow:
    """Whether it is permitted, only the server knows."""
    if not await Remote(remote, services.git).find_url():
        return CheckRow(
            said=f"{what}: there is no git remote {remote} to push tags to",
            hint=NO_REMOTE_HINT,
            problem=Problem.TAG_REFUSED,
            code=PlanError.exit_code,
        )
    return CheckRow(
        said=f"{what}: `check` does not test whether git may push tags to {remote}",
        hint=f"`publish` tests it before the first upload. {HINT}",
    )


def _examine_job(config: PlanConfig, services: Services, rows: list[CheckRow]) -> None:
    """What attestations take, and what builds could read."""
    if services.ci.kind == "gitlab":
        # https://docs.gitlab.com/ci/variables/#use-file-type-cicd-variables
        names: list[str] = []
        with suppress(OSError):
            beside = Path(f"{services.ci.checkout}.tmp")
            names = sorted(each.name for each in beside.iterdir())
        if files := [name for name in names if _OWN_VARIABLE.fullmatch(name)]:
            said = f"job: builds can read the variables of the type File: {few(files)}"
            hint = "Make them masked variables, or let this job have none of them."
            rows.append(CheckRow(said=said, hint=hint))
    obstacle = obstacle_here(
        services.ci,
        open_tokens(services.ci, services.credentials, services.http),
        public=config.trust_config is None,
    )
    if obstacle is None:
        rows.append(CheckRow(said="job: it may ask for an ID token, so files can be attested"))
    elif config.attestations == "required":
        with _collecting(rows):
            refuse_unattested({obstacle: []})
    elif obstacle != NO_JOB and config.attestations == "auto":
        rows.append(
            CheckRow(said=f"job: nothing is attested: {obstacle.condition}", hint=obstacle.cure)
        )
