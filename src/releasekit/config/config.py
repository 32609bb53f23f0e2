"""Inputs and releasekit.toml joined into what the run is going to work with."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeVar

from releasekit.config.commands import DECIDE, VERIFY
from releasekit.config.file import ConfigFile, read_config
from releasekit.config.locations import (
    FILENAME,
    Locations,
    existing_directory,
    require_path,
    resolved,
)
from releasekit.config.shards import Shard, ShardCounts
from releasekit.config.values import Name, Url
from releasekit.errors import ConfigError, PathError
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from releasekit.config.commands import Command
    from releasekit.config.inputs import Declared, Inputs
    from releasekit.config.levels import Levels
    from releasekit.config.tag_options import AnnounceOptions, TagOptions
    from releasekit.config.values import Directory, Dist, PinMode, StageMode
    from releasekit.host.sandbox import Wanted
    from releasekit.model import PackageId

Own = TypeVar("Own")
_PARTS = ("ecosystem", "packages", "exclude_packages", "shard")


@dataclass(frozen=True, kw_only=True)
class Config:
    """Paths are absolute and resolved. `registries` holds only what is not an ecosystem's own
    default. `ecosystems` is empty for all that are found, `known_ecosystems` are all there are.

    It `is_part` where this run, and not releasekit.toml, leaves a part of the workspace to others.
    `ecosystem_inputs` are the inputs that each of them declares, `ecosystem_tables` its `[pypi]`…
    table as written, for its own `Options`; `extra_dependencies` is the `[dependencies]` table,
    "ecosystem:name" to the same.
    """

    root: Path
    mode: Command
    ecosystems: tuple[str, ...]
    known_ecosystems: tuple[str, ...]
    packages: tuple[str, ...]
    exclude_packages: tuple[str, ...]
    dist: tuple[Dist, ...]
    plan_file: Path | None
    dry_run: bool
    concurrency: int
    build_concurrency: int
    max_retries: int
    retry_base_delay_s: float
    max_wait_s: float
    task_timeout_s: float
    deadline_s: float | None
    failure_policy: Literal["skip-dependents", "stop"]
    gate: Literal["visible", "accepted"]
    stage: StageMode
    wait_for_approval_s: float
    wait_s: float
    shards: ShardCounts
    shard: Shard | None
    results_directory: Path | None
    pin: PinMode
    trusted_publishing: Literal["auto", "always", "never"]
    attestations: Literal["auto", "required", "off"]
    trust_config: Path | None
    tag: bool
    announce: bool
    is_part: bool
    tagging: TagOptions
    announcing: AnnounceOptions
    registries: Mapping[str, Directory | Url | Name]
    insecure_hosts: frozenset[str]
    ecosystem_inputs: tuple[object, ...]
    state_directory: Path
    results_file: Path | None
    format: Literal["table", "json", "mermaid"]
    fix: bool
    run: str
    yes: bool
    summary: bool
    annotations: bool
    verbose: bool
    build_sandbox: Wanted
    build_sandbox_paths: tuple[Path, ...]
    uv_path: str
    index_url: str
    find_links: tuple[str, ...]
    ecosystem_tables: Mapping[str, Mapping[str, object]]
    extra_dependencies: Mapping[str, tuple[str, ...]]
    levels: Levels
    files: tuple[Path | Url, ...] = ()
    repository: str = ""
    workflow: str = ""
    ref: str = ""
    event: str = ""
    bundle: Path | None = None
    subject: tuple[str, ...] = ()
    not_to_publish: frozenset[PackageId] = frozenset()

    def own(self, kind: type[Own]) -> Own:
        """The inputs of one ecosystem, by the class that declares them; defaults if there are none
        of it.
        """
        return next((each for each in self.ecosystem_inputs if isinstance(each, kind)), kind())

    def registry_url(self, ecosystem: str, *, default: str) -> Url:
        """Where its packages go if not into a directory. Nobody has to name the origin of `default`
        for credentials to go there.
        """
        # Brings httpx, which whoever asks for this has imported.
        from releasekit.http.origins import same_origin  # noqa: PLC0415

        goes_to = self.registries.get(ecosystem)
        if not isinstance(goes_to, Url):
            return Url(default)
        return Url(goes_to.text) if same_origin(goes_to.text, default) else goes_to


def load(inputs: Inputs, cwd: Path, declared: Declared) -> Config:
    """Read releasekit.toml, fill in what `inputs` leave open, and check what can be checked here.

    A relative path is relative to `cwd` when a flag or an input gave it, and to the root when
    releasekit.toml did. Raises ConfigError.
    """
    label = inputs.given.get("working_directory", "working-directory")
    root = existing_directory(cwd / inputs.working_directory, label)
    path = None if inputs.mode in VERIFY else _config_path(inputs, root, cwd)
    file = read_config(path, declared) if path else ConfigFile()
    open_to_file = {
        name: text
        for name, text in file.texts.items()
        if declared.inputs[name].attribute not in inputs.given
    }
    labels = {name: f"{path.name if path else FILENAME}: {name}" for name in open_to_file}
    joined = declared.adding(inputs, open_to_file, labels)
    locations = Locations(
        inputs=joined,
        ecosystems=declared.ecosystems,
        in_file=frozenset(joined.given.keys() - inputs.given.keys()),
        root=root,
        cwd=cwd,
    )
    is_part = any(getattr(inputs, each) for each in _PARTS)
    return replace(_config(joined, locations, file), is_part=is_part)


def _config_path(inputs: Inputs, root: Path, cwd: Path) -> Path | None:
    if inputs.config_file:
        label = inputs.given["config_file"]
        path = resolved(cwd / inputs.config_file, label)
        require_path(path, label)
        if not path.is_file():
            raise PathError(f"{label}: {path} is no file; write the path of a {FILENAME}")
        return path
    if not os.path.lexists(root / FILENAME):
        return None
    path = resolved(root / FILENAME, FILENAME)
    if not path.is_relative_to(root):
        raise PathError(
            f"{FILENAME} leads out of the workspace, to {path}",
            hint="Give it as --config-file or as an input if that is meant.",
        )
    require_path(path, FILENAME)
    if not path.is_file():
        raise PathError(f"{FILENAME}: {path} is no file; write one, or remove what is there")
    return path


def _config(inputs: Inputs, locations: Locations, file: ConfigFile) -> Config:
    return Config(
        root=locations.root,
        mode=inputs.mode,
        ecosystems=tuple(dict.fromkeys(inputs.ecosystem)),
        known_ecosystems=tuple(locations.ecosystems),
        packages=inputs.packages,
        exclude_packages=inputs.exclude_packages,
        dist=locations.dist(file.dist) if inputs.mode in {"plan", "publish"} else (),
        plan_file=(
            locations.outlet("plan_file") if inputs.mode == "plan" else locations.path("plan_file")
        ),
        dry_run=inputs.dry_run,
        concurrency=inputs.concurrency,
        build_concurrency=inputs.build_concurrency or cpu_count(),
        max_retries=inputs.max_retries,
        retry_base_delay_s=inputs.retry_base_delay,
        max_wait_s=inputs.max_wait,
        task_timeout_s=inputs.task_timeout,
        deadline_s=inputs.deadline,
        failure_policy=inputs.failure_policy,
        gate=inputs.gate,
        stage=inputs.stage,
        wait_for_approval_s=inputs.wait_for_approval,
        wait_s=inputs.wait,
        shards=ShardCounts.parse(
            inputs.shards, locations.ecosystems, inputs.given.get("shards", "shards")
        ),
        shard=_shard(inputs),
        results_directory=locations.results_directory(),
        pin=inputs.pin,
        trusted_publishing=inputs.trusted_publishing,
        attestations=inputs.attestations,
        trust_config=locations.path("trust_config"),
        tag=inputs.tag,
        announce=inputs.announce,
        is_part=False,
        tagging=file.tagging,
        announcing=file.announcing,
        registries=locations.registries(),
        insecure_hosts=locations.insecure_hosts(),
        ecosystem_inputs=locations.ecosystem_inputs(),
        state_directory=locations.state_directory(),
        results_file=_results_file(inputs, locations),
        format=inputs.format,
        fix=inputs.fix,
        run=inputs.run,
        yes=inputs.yes,
        summary=inputs.summary,
        annotations=inputs.annotations,
        verbose=inputs.verbose,
        build_sandbox=inputs.build_sandbox,
        build_sandbox_paths=locations.build_sandbox_paths(),
        uv_path=locations.uv_path(),
        index_url=locations.index_url(),
        find_links=locations.find_links(),
        ecosystem_tables=file.tables,
        extra_dependencies=file.dependencies,
        levels=replace(file.levels, strict=inputs.strict),
        files=locations.files(),
        repository=inputs.repository,
        workflow=inputs.workflow,
        ref=inputs.ref,
        event=inputs.event,
        bundle=locations.path("bundle"),
        subject=inputs.subject,
    )


def _shard(inputs: Inputs) -> Shard | None:
    if not inputs.shard:
        return None
    label = inputs.given.get("shard", "shard")
    if not inputs.plan_file:
        raise ConfigError(
            f"{label}: {inputs.shard[:60]!r} is a part of a plan, and there is no `plan-file`",
            hint="Give the plan file that `mode: plan` has written with `shards`.",
            problem=Problem.SHARDS,
        )
    return Shard.parse(inputs.shard, label)


def _results_file(inputs: Inputs, locations: Locations) -> Path | None:
    """Where results are written, or, for what is decided about them, read."""
    if inputs.mode in DECIDE:
        return locations.path("results_file")
    return locations.outlet("results_file") if inputs.mode in {"publish", "report"} else None


def cpu_count() -> int:
    """CPUs this process may use; a container's or a batch system's limit is honoured on Linux."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
