"""Inputs and releasekit.toml joined into what the run is going to work with."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from releasekit.config.command import Command, CommandInputs
from releasekit.config.file import ConfigFile, read_config
from releasekit.config.inputs import (
    DecisionInputs,
    IdentityInputs,
    Inputs,
    JobInputs,
    MachineInputs,
    PaceInputs,
    ReleaseInputs,
    SelectionInputs,
    WorkspaceInputs,
)
from releasekit.config.levels import Levels
from releasekit.config.locations import (
    FILENAME,
    Locations,
    existing_directory,
    require_path,
    resolved,
)
from releasekit.config.package_filter import PackageFilter
from releasekit.config.shards import Shard, ShardCounts
from releasekit.config.tag_options import AnnounceOptions, TagOptions
from releasekit.config.values import Url
from releasekit.config.version_options import VersionOptions
from releasekit.errors import ConfigError, PathError
from releasekit.fields import replace
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from releasekit.config.inputs import Declared
    from releasekit.config.values import Directory, Name
    from releasekit.decided import Edge
    from releasekit.model import PackageId

Own = TypeVar("Own")
# A Config has these in another form: its command, and an object for each class of inputs.
_OF_INPUTS = frozenset({"mode", "further"})
_PARTS = ("ecosystem", "packages", "exclude_packages", "shard")


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class WorkspaceConfig(WorkspaceInputs):
    """Where the workspace is, and the state directory, as resolved paths."""

    root: Path
    command: Command

    @property
    def mode(self) -> str:
        return self.command.name


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class BuildConfig(WorkspaceConfig, MachineInputs):
    """What every process that may build something is started with."""


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class ReportConfig(WorkspaceConfig, JobInputs):
    """What a run leaves behind, and for whom."""


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class PlanConfig(BuildConfig, SelectionInputs, ReleaseInputs, PaceInputs, IdentityInputs):
    """What a plan is made by, and what an ecosystem goes by.

    `registries` holds only what is not an ecosystem's own default. `ecosystem` is empty for all
    that are found, `known_ecosystems` are all there are. It `is_part` where this run, and not
    releasekit.toml, leaves a part of the workspace to others. `own_inputs` are those of the
    `command` alone, `ecosystem_inputs` those that each ecosystem declares, `ecosystem_tables` its
    `[pypi]`… table as written, for its own options; `extra_edges` are those of the
    `[dependencies]` table. `absent` are chosen ecosystems without a package here.
    """

    build_concurrency: int
    own_inputs: CommandInputs = field(default_factory=CommandInputs)
    known_ecosystems: tuple[str, ...]
    is_part: bool = False
    tagging: TagOptions = field(default_factory=TagOptions)
    announcing: AnnounceOptions = field(default_factory=AnnounceOptions)
    levels: Levels = field(default_factory=Levels)
    registries: Mapping[str, Directory | Url | Name] = field(default_factory=dict)
    ecosystem_inputs: tuple[object, ...] = ()
    ecosystem_tables: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    extra_edges: tuple[Edge, ...] = ()
    not_to_publish: frozenset[PackageId] = frozenset()
    absent: frozenset[str] = frozenset()

    def own(self, kind: type[Own]) -> Own:
        """The inputs of one ecosystem, or of the command, by the class that declares them; defaults
        if there are none of it.
        """
        known = (self.own_inputs, *self.ecosystem_inputs)
        return next((each for each in known if isinstance(each, kind)), kind())

    @property
    def package_filter(self) -> PackageFilter:
        return PackageFilter(
            known=self.known_ecosystems,
            only=self.ecosystem,
            packages=self.packages,
            exclude_packages=self.exclude_packages,
        )

    @property
    def ecosystems_to_discover(self) -> tuple[str, ...]:
        """The chosen ecosystems that have packages here, and those to be consulted."""
        about = self.package_filter
        present = (name for name in about.ecosystems if name not in self.absent)
        return (*present, *about.find_consulted(self.extra_edges))

    @property
    def is_uploading(self) -> bool:
        return self.own_inputs.is_uploading

    def will_build(self, ecosystem: str) -> bool:
        """Whether what builds take is worth preparing while the plan is made. With `dist`, most
        likely nothing is built, and what is makes its own preparations.
        """
        about = self.mode == "publish" and self.package_filter.has_ecosystem(ecosystem)
        return about and not self.dist

    def registry_url(self, ecosystem: str, *, default: str) -> Url:
        """Where its packages go if not into a directory. Credentials go to the origin of `default`
        without being told to.
        """
        # Brings httpx, which the caller has imported.
        from releasekit.http.origins import same_origin  # noqa: PLC0415

        goes_to = self.registries.get(ecosystem)
        if not isinstance(goes_to, Url):
            return Url(default)
        return Url(goes_to.text) if same_origin(goes_to.text, default) else goes_to


@dataclass(frozen=True, kw_only=True)
class Config(PlanConfig, DecisionInputs, ReportConfig):
    """The inputs, with paths that are absolute and resolved, and what comes with them: a function
    takes the part that it reads.

    `given` is that of `Inputs`. `written` are the keys of `[version]` in releasekit.toml, and "tag"
    where `[tag]` names tags.
    """

    versioning: VersionOptions = field(default_factory=VersionOptions)
    given: Mapping[str, str] = field(default_factory=dict)
    written: frozenset[str] = field(default_factory=frozenset, compare=False)


def load(inputs: Inputs, cwd: Path, declared: Declared) -> Config:
    """Read releasekit.toml, fill in what `inputs` leave open, and check what can be checked here.

    A relative path is relative to `cwd` when a flag or an input gave it, and to the root when
    releasekit.toml did. Raises ConfigError.
    """
    label = inputs.given.get("working_directory", "working-directory")
    given = inputs.working_directory
    try:
        root = existing_directory(cwd / given, label)
    except PathError as error:
        if inputs.mode in declared.inputs["packages"].commands and not given.is_absolute():
            hint = f"If that is the name of a package, write `--packages {given}`."
            raise error.with_(hint=hint) from error.__cause__
        raise
    command = declared.commands[inputs.mode]
    has_workspace = "workspace" in command.takes
    path = _config_path(inputs, root, cwd) if has_workspace else None
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
    placed = replace(
        joined,
        config_file=path if joined.config_file else None,
        ecosystem=tuple(dict.fromkeys(joined.ecosystem)),
        dist=locations.dist(file.dist) if "planning" in command.takes else (),
        build_concurrency=joined.build_concurrency or cpu_count(),
        results_directory=locations.results_directory(),
        trust_config=locations.path(joined.trust_config, "trust_config"),
        insecure_hosts=locations.insecure_hosts(),
        allow_events=locations.allow_events(),
        state_directory=locations.state_directory(),
        outputs_file=locations.outlet(joined.outputs_file, "outputs_file", "outputs"),
        uv_path=locations.uv_path(),
        build_sandbox_paths=locations.build_sandbox_paths(),
        index_url=locations.index_url(),
        find_links=locations.find_links(),
    )
    _check_shards(joined, declared)
    return Config(
        **{name: each for name, each in vars(placed).items() if name not in _OF_INPUTS},
        root=root,
        command=command,
        own_inputs=locations.build(command.inputs),
        known_ecosystems=tuple(declared.ecosystems),
        is_part=any(getattr(inputs, each) for each in _PARTS),
        tagging=file.tagging,
        announcing=file.announcing,
        versioning=file.versioning,
        written=file.written,
        levels=replace(file.levels, strict=joined.strict),
        registries=locations.registries(),
        ecosystem_inputs=locations.ecosystem_inputs(),
        ecosystem_tables=file.tables,
        extra_edges=file.dependencies,
    )


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


def _check_shards(inputs: Inputs, declared: Declared) -> None:
    """For all commands, so that `check` tells what `plan` would refuse."""
    if isinstance(shards := inputs.further.get("shards"), tuple):
        ShardCounts.parse(shards, declared.ecosystems, inputs.given["shards"])
    if not inputs.shard:
        return
    label = inputs.given.get("shard", "shard")
    if "plan-file" not in inputs.further:
        raise ConfigError(
            f"{label}: {inputs.shard[:60]!r} is a part of a plan, and there is no `plan-file`",
            hint="Give the plan file that `mode: plan` has written with `shards`.",
            problem=Problem.SHARDS,
        )
    Shard.parse(inputs.shard, label)


def cpu_count() -> int:
    """CPUs this process may use; a container's or a batch system's limit is honoured on Linux."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
