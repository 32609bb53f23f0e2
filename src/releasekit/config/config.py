"""Inputs and releasekit.toml joined into what the run is going to work with."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from releasekit.config.file import ConfigFile, read_config
from releasekit.config.inputs import DECLARED
from releasekit.config.places import Places, existing_directory, resolved
from releasekit.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from releasekit.config.inputs import Inputs

FILENAME: Final = "releasekit.toml"


@dataclass(frozen=True, kw_only=True)
class Config:
    """Paths are absolute and resolved. `registries` holds only what is not an ecosystem's own
    default: "https://…" or "dir:/absolute/path". `ecosystems` is empty for all that are found.

    `ecosystem_tables` are the `[pypi]`… tables as written, for each ecosystem's own `Options`;
    `extra_dependencies` is the `[dependencies]` table, "ecosystem:name" to the same.
    """

    root: Path
    mode: Literal["plan", "publish", "report", "doctor"]
    ecosystems: tuple[str, ...]
    packages: tuple[str, ...]
    exclude_packages: tuple[str, ...]
    plan_file: Path | None
    dry_run: bool
    concurrency: int
    build_concurrency: int
    max_retries: int
    retry_base_delay_s: float
    task_timeout_s: float
    deadline_s: float | None
    failure_policy: Literal["skip-dependents", "stop"]
    gate: Literal["visible", "accepted"]
    pin: Literal["auto", "exact", "none"]
    trusted_publishing: Literal["auto", "always", "never"]
    registries: Mapping[str, str]
    pypi_username: str
    pypi_index: str
    npm_tag: str
    npm_access: Literal["", "public", "restricted"]
    maven_username: str
    state_directory: Path
    results_file: Path | None
    format: Literal["table", "json", "mermaid"]
    fix: bool
    summary: bool
    annotations: bool
    uv_path: str
    index_url: str
    find_links: tuple[str, ...]
    ecosystem_tables: Mapping[str, Mapping[str, object]]
    extra_dependencies: Mapping[str, tuple[str, ...]]


def load(inputs: Inputs, cwd: Path) -> Config:
    """Read releasekit.toml, fill in what `inputs` leave open, and check what can be checked here.

    A relative path is relative to `cwd` when a flag or an input gave it, and to the root when
    releasekit.toml did. Raises ConfigError.
    """
    label = inputs.given.get("working_directory", "working-directory")
    root = existing_directory(cwd / inputs.working_directory, label)
    path = _config_path(inputs, root, cwd)
    file = read_config(path) if path else ConfigFile()
    open_to_file = {
        name: text
        for name, text in file.texts.items()
        if DECLARED[name].attribute not in inputs.given
    }
    labels = {name: f"{path.name if path else FILENAME}: {name}" for name in open_to_file}
    joined = inputs.adding(open_to_file, labels)
    places = Places(
        inputs=joined,
        in_file=frozenset(joined.given.keys() - inputs.given.keys()),
        root=root,
        cwd=cwd,
    )
    return _config(joined, places, file)


def _config_path(inputs: Inputs, root: Path, cwd: Path) -> Path | None:
    if inputs.config_file:
        label = inputs.given["config_file"]
        path = resolved(cwd / inputs.config_file, label)
        if not path.is_file():
            raise ConfigError(f"{label}: {path} is no file; write the path of a {FILENAME}")
        return path
    path = resolved(root / FILENAME, FILENAME)
    if not path.is_file():
        return None
    if not path.is_relative_to(root):
        raise ConfigError(
            f"{FILENAME} leads out of the workspace, to {path}",
            hint="Give it as --config-file or as an input if that is meant.",
        )
    return path


def _config(inputs: Inputs, places: Places, file: ConfigFile) -> Config:
    return Config(
        root=places.root,
        mode=inputs.mode,
        ecosystems=tuple(dict.fromkeys(inputs.ecosystem)),
        packages=inputs.packages,
        exclude_packages=inputs.exclude_packages,
        plan_file=places.path("plan_file"),
        dry_run=inputs.dry_run,
        concurrency=inputs.concurrency,
        build_concurrency=inputs.build_concurrency or cpu_count(),
        max_retries=inputs.max_retries,
        retry_base_delay_s=inputs.retry_base_delay,
        task_timeout_s=inputs.task_timeout,
        deadline_s=inputs.deadline,
        failure_policy=inputs.failure_policy,
        gate=inputs.gate,
        pin=inputs.pin,
        trusted_publishing=inputs.trusted_publishing,
        registries=places.registries(),
        pypi_username=inputs.pypi_username,
        pypi_index=places.pypi_index(),
        npm_tag=inputs.npm_tag,
        npm_access=inputs.npm_access,
        maven_username=inputs.maven_username,
        state_directory=places.state_directory(),
        results_file=places.path("results_file"),
        format=inputs.format,
        fix=inputs.fix,
        summary=inputs.summary,
        annotations=inputs.annotations,
        uv_path=places.uv_path(),
        index_url=places.index_url(),
        find_links=places.find_links(),
        ecosystem_tables=file.tables,
        extra_dependencies=file.dependencies,
    )


def cpu_count() -> int:
    """CPUs this process may use; a container's or a batch system's limit is honoured on Linux."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
