"""The command trust: which packages let the workflow of this repository publish without a token,
and what a person does about the others.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from releasekit.aio import gather_all
from releasekit.cli.commands.trust import TrustInputs
from releasekit.cli.request_log import say_busy
from releasekit.cli.session import open_command, open_targets, open_workspace, refuse_foreign
from releasekit.cli.terminal import Terminal
from releasekit.config.values import WORKFLOW
from releasekit.ecosystems.preflight import Publisher, TrustState
from releasekit.errors import ConfigError, PackageError
from releasekit.fields import replace
from releasekit.git.remote import Remote
from releasekit.host.files import find_top
from releasekit.host.forges import SERVER, ForgePlace
from releasekit.plan.make import collect_packages
from releasekit.plan.publishers import WORKFLOWS, list_own_jobs, read_workflows
from releasekit.problems import DOCS, Problem
from releasekit.report.screen import fit_lines
from releasekit.report.text import columns, few, packages, without_name
from releasekit.text.commands import spell
from releasekit.text.escape import clip, log_line, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.cli.session import Session
    from releasekit.config.config import Config
    from releasekit.ecosystems.interface import Registry, Target
    from releasekit.ecosystems.preflight import Trust
    from releasekit.git.settings import GitSettings
    from releasekit.model import Package

# Of an environment.
# https://docs.github.com/actions/reference/workflows-and-actions/deployments-and-environments
_MAX_NAME: Final = 255
_NONE: Final = "-"


class TrustRow(Struct, frozen=True):
    """A package and whom it trusts. `refusal` is why its registry does not let `job` be added."""

    package: Package
    trust: Trust
    job: Publisher
    state: TrustState
    refusal: str = ""

    @property
    def is_trusting(self) -> bool:
        return any(each.admits(self.job) for each in self.state.publishers)

    @property
    def is_missing(self) -> bool:
        return not (self.is_trusting or self.state.hidden)

    @property
    def is_to_be_added(self) -> bool:
        return not (self.is_trusting or self.state.unknown or self.state.is_new)

    @property
    def verdict(self) -> str:
        state = self.state
        if self.is_trusting:
            return "yes"
        if self.refusal or state.publishers:
            return f"no: {self.refusal or f'it trusts {few(list(map(str, state.publishers)))}'}"
        return ("not known" if state.unknown else "no") + (": it is new" if state.is_new else "")


async def run(config: Config, session: Session) -> int:
    """Show what registries tell; with `write`, have them trust the workflow first."""
    inputs = config.own(TrustInputs)
    if inputs.check and inputs.write:
        raise _make_error("--check writes nothing: leave out --write, or --check")
    if inputs.write:
        refuse_foreign(config, session)
    async with open_command(config, session) as group:
        config, survey, services = await open_workspace(group, config, session)
        about = config.package_filter
        # Found before anything is built that could change it.
        top = find_top(config.root)
        job, lacking = await _find_job(top, inputs, config.tagging.remote, session, services.git)
        is_here = (top / WORKFLOWS / job.workflow).is_file()
        targets = await open_targets(group, config, session, services, survey.tree)
        beside = survey.describe_beside(config, targets)
        found = collect_packages(targets, config.root, about, beside)
        chosen = about.select({each.id: each for each in found if not each.unpublishable})
        say_busy("asking registries", session)
        rows = await gather_all(
            _find(each, trust, targets[each.id.ecosystem].registry, job)
            for each in sorted(chosen, key=lambda each: each.id)
            if (trust := targets[each.id.ecosystem].preflight.trust)
        )
        if inputs.write and await _may_add(rows, job, lacking, session):
            rows = await gather_all(map(_add, rows))
    heading = f"the workflow: {job}{'' if is_here else '; its file is not in this checkout'}"
    used = {each.id.ecosystem: targets[each.id.ecosystem] for each in chosen}
    table = _list_lines([each for each in rows if each.is_missing or not inputs.check])
    _print((heading, "", *table, *_sum_up(rows, used, is_check=inputs.check)), session)
    return int(any(each.refusal or (inputs.check and each.is_missing) for each in rows))


def _print(lines: Iterable[str], session: Session) -> None:
    environment = session.credentials.environment
    for line in lines:
        told = log_line(session.credentials.redact(line))
        # What is indented is to be copied, so no line break goes in.
        fitting = told if line.startswith(" ") else fit_lines(told, session.out, environment)
        print(fitting, file=session.out)


async def _find(package: Package, trust: Trust, registry: Registry, job: Publisher) -> TrustRow:
    try:
        await registry.lookup(package)
        return TrustRow(package, trust, job, await trust.find_trust(package))
    except PackageError as error:
        unknown = without_name(str(error), package)
        return TrustRow(package, trust, job, TrustState(unknown=unknown))


async def _may_add(
    rows: Sequence[TrustRow], job: Publisher, lacking: Sequence[str], session: Session
) -> bool:
    """Whether a person, where flags and the job are `lacking` a part of it, says that it is right:
    builds can write the files that do. Raises ConfigError where there is nobody to ask.
    """
    added = [visible(str(each.package.id)) for each in rows if each.is_to_be_added]
    if not (added and lacking):
        return True
    terminal = Terminal.at(session.out, session.credentials.environment)
    if terminal is None:
        raise ConfigError(
            f"only files of this checkout, which builds can write, name {visible(str(job))}; no "
            "registry was changed",
            hint=f"Add {', '.join(lacking)} to --write, or confirm it in a terminal.",
            problem=Problem.COMMAND_LINE,
        )
    # A build can write manifests, too.
    print(f"to be added: {log_line(', '.join(added))}", file=session.out)
    return await terminal.confirm(f"Let {packages(len(added))} trust {visible(str(job))}?")


async def _add(row: TrustRow) -> TrustRow:
    """As it is where nothing is missing, or where that is not known."""
    if not row.is_to_be_added:
        return row
    try:
        is_added = await row.trust.add_trust(row.package, row.job)
    except PackageError as error:
        return replace(row, refusal=without_name(str(error), row.package))
    return replace(row, state=TrustState(publishers=(row.job,))) if is_added else row


def _list_lines(rows: Sequence[TrustRow]) -> Iterator[str]:
    """A table, and what a person does: once for all packages alike, and where for each."""
    if rows:
        table = [(str(each.package.id), each.verdict) for each in rows]
        yield from (*columns([("package", "trusts it"), *table]), "")
    places: dict[str, list[str]] = {}
    for row in rows:
        if not row.is_trusting:
            words, place = row.trust.explain_trust(row.package, row.job, is_new=row.state.is_new)
            why = f"{row.state.unknown}; " if row.state.unknown else ""
            words = f"{row.package.id.ecosystem}: {why}{words}"
            places.setdefault(words, []).append(f"  {place}")
    for words, own in places.items():
        yield from (words, *own, "")


def _sum_up(
    rows: Sequence[TrustRow], targets: Mapping[str, Target], *, is_check: bool
) -> Iterator[str]:
    if rows:
        count = sum(each.is_trusting for each in rows)
        yield f"trusted by {count} of {packages(len(rows))}"
    hidden = [str(each.package.id) for each in rows if each.state.hidden and not each.is_trusting]
    if is_check and hidden:
        yield f"not checked, since their registries tell no program: {few(hidden)}"
    others = [it for it in sorted(targets) if targets[it].preflight.trust is None]
    if others:
        places = "; ".join(f"{name}: {targets[name].registry.url}" for name in others)
        yield f"without trusted publishing: {places}"


async def _find_job(
    top: Path, inputs: TrustInputs, remote: str, session: Session, git: GitSettings
) -> tuple[Publisher, list[str]]:
    """What flags say, else the repository of this job, else the git remote, and the only workflow
    that publishes with ReleaseKit; and the flags of what only files of the checkout tell.

    Raises ConfigError where that cannot be told.
    """
    url = await Remote(remote, git).find_url()
    own = session.ci.forge if session.ci.kind == "github" else None
    repository = inputs.repository or _name_repository(own, ForgePlace.of_remote(url), remote)
    if "://" in repository or "/" in inputs.workflow:
        raise ConfigError(
            "trust knows only repositories of github.com",
            hint=f"{DOCS}/gitlab.md#id-tokens says what to enter for one of GitLab.",
            problem=Problem.COMMAND_LINE,
        )
    if not repository:
        leads = f"trust knows only repositories of github.com, and git remote {remote} is elsewhere"
        said = leads if url else f"git shows no remote {remote} here"
        raise _make_error(f"{said}: write --repository OWNER/NAME")
    workflow, environment = _choose_workflow(top, inputs)
    lacking = [] if inputs.repository or own else ["--repository OWNER/NAME"]
    lacking += [] if inputs.workflow else ["--workflow FILE"]
    # A grant without one is to any job of the workflow.
    lacking += [] if inputs.environment else [f"--environment {'NAME' if environment else _NONE}"]
    return Publisher(repository, workflow, environment), lacking


def _name_repository(own: ForgePlace | None, place: ForgePlace | None, remote: str) -> str:
    """That of this job, or else of the git remote; of another forge, its address."""
    if own and place and own.page.casefold() != place.page.casefold():
        raise _make_error(
            f"this is a job of {own.page}, but the git remote {remote} leads to {place.page}: add "
            "--repository OWNER/NAME"
        )
    place = own or place
    if place is None:
        return ""
    is_known = place.kind == "github" and place.server == SERVER
    return place.repository if is_known else place.page


def _choose_workflow(top: Path, inputs: TrustInputs) -> tuple[str, str]:
    """The file, and the environment of its job."""
    found = _find_workflows(top, inputs.workflow)
    if not inputs.workflow and len(found) != 1:
        told = f"{few(list(found))} publish" if found else "no workflow publishes"
        way = "write --workflow FILE" + ("" if found else f", or let {spell('init')} write one")
        raise _make_error(f"{WORKFLOWS}: {told} with ReleaseKit: {way}")
    workflow = inputs.workflow or next(iter(found))
    told = inputs.environment
    environments = {"" if told == _NONE else told} if told else found.get(workflow, {""})
    environment = next(iter(environments))
    if len(environments) > 1 or not _is_shown(environment):
        names = few([clip(visible(each), 100) or "none" for each in sorted(environments)])
        said = f"{WORKFLOWS}/{workflow}: the environment of its job is {names}"
        raise _make_error(f"{said}: write --environment NAME")
    return workflow, environment


def _make_error(said: str) -> ConfigError:
    return ConfigError(said, problem=Problem.COMMAND_LINE)


def _is_shown(environment: str) -> bool:
    """Whether people see what a registry is to trust: no expression, and nothing invisible."""
    return (
        len(environment) <= _MAX_NAME
        and environment.isprintable()
        and not re.search(r"\$\{\{|`", environment)
    )


def _find_workflows(top: Path, given: str) -> dict[str, set[str]]:
    """Of the workflow `given`, or of all, those with jobs that publish, by the name of the file:
    the environments of these jobs, empty for none.
    """
    found: dict[str, set[str]] = {}
    for path, workflow in read_workflows(top, "releasekit"):
        name = path.removeprefix(f"{WORKFLOWS}/")
        if not WORKFLOW.fullmatch(name) or (given and name != given):
            continue
        if isinstance(workflow, ConfigError):
            raise workflow
        if environments := set(_list_environments(workflow)):
            found[name] = environments
    return found


def _list_environments(workflow: object) -> Iterator[str]:
    for _, job in list_own_jobs(workflow):
        place = job.get("environment")
        named = place.get("name") if isinstance(place, dict) else place
        if named is None or isinstance(named, str):
            yield named or ""
        else:
            # To GitHub 3 and true are names, too. In backticks it is none: a flag has to say it.
            # By aliases, a list may be longer than memory.
            yield f"`{'a list' if isinstance(named, Collection) else named}`"
