"""What `cargo metadata` says of a workspace: cargo's own reading of its manifests.

Globs, inheritance, renames, default members: nothing of it is read a second time here.
https://doc.rust-lang.org/cargo/commands/cargo-metadata.html
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from releasekit.errors import CommandFailed, ConfigError, Unreadable
from releasekit.http.client import one_line
from releasekit.problems import Problem
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from releasekit.host.process import Processes

TIMEOUT_S: Final = 120.0
_LINKED: Final = frozenset({"cdylib", "staticlib"})
_USED: Final = frozenset({"lib", "rlib", "dylib", "proc-macro", "bin"})
INSTALL: Final = "Install Rust (https://rustup.rs), or leave cargo out with `ecosystem`."
# What is wrong in a manifest stands above its place, and neither is in cargo's last words.
_PLACED: Final = re.compile(
    r"^error: (?P<what>.+(?:\n(?!error: |warning: ).+){0,2}?)\n *--> (?P<place>.+\.toml:\d+:\d+)$",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A dependency. `requirement` is "*" where no version is written, which is the only way to
    write that one: registries refuse wildcards. `path` is None where the manifest has none, and
    `registry` the URL of its index, empty for crates.io.
    """

    name: str
    path: Path | None
    requirement: str
    kind: Literal["normal", "build", "dev"]
    registry: str = ""

    @property
    def versioned(self) -> bool:
        return self.requirement != "*"

    @property
    def stripped(self) -> bool:
        """Cargo leaves it out of what is published.

        https://doc.rust-lang.org/cargo/reference/specifying-dependencies.html#development-dependencies
        """
        return self.kind == "dev" and not self.versioned


@dataclass(frozen=True, slots=True, kw_only=True)
class Crate:
    """One member. `publish` is None for anywhere, else the names of the registries it may go to;
    `lacks` are the fields without which crates.io takes no package. No crate can use one that
    `is_foreign`: it is linked by other languages, as those of maturin and napi are.
    """

    name: str
    version: str
    manifest: Path
    workspace: Path
    publish: tuple[str, ...] | None
    needs: tuple[Need, ...]
    lacks: tuple[str, ...] = ()
    is_foreign: bool = False


async def read_metadata(directory: Path, processes: Processes) -> list[Crate]:
    """The members of the workspace that `directory / "Cargo.toml"` belongs to.

    Raises ConfigError with cargo's own words, and where there is no cargo.
    """
    if processes.which("cargo") is None:
        raise ConfigError(
            f"{directory / 'Cargo.toml'}: cargo is not on PATH",
            hint=INSTALL,
            problem=Problem.TOOL_MISSING,
        )
    # Neither the network nor a lock file: with --no-deps it only reads manifests.
    argv = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--offline"]
    try:
        done = await processes.run(argv, cwd=directory, timeout_s=TIMEOUT_S)
    except CommandFailed as error:
        raise Unreadable(
            f"{directory / 'Cargo.toml'}: cargo cannot read it: {complaint(error.log)}"
        ) from error
    if "\\u0000" in done.stdout:
        raise Unreadable(f"{directory / 'Cargo.toml'}: holds a NUL character")
    return await asyncio.to_thread(parse_metadata, done.stdout)


def parse_metadata(text: str) -> list[Crate]:
    """The packages of `cargo metadata --no-deps`."""
    document = parse_json(text, max_bytes=None)
    workspace = Path(document["workspace_root"])
    return [_crate(package, workspace) for package in document["packages"]]


def complaint(log: tuple[str, ...]) -> str:
    """Cargo's error in one line, warnings left out; with its place where it is in a manifest."""
    text = "\n" + "\n".join(log)
    if placed := _PLACED.search(text):
        return one_line(f"{placed['place']}: {placed['what']}")
    words = text.rpartition("\nerror: ")[2].replace("\nCaused by:\n", ": ")
    return one_line(words) or "it says nothing"


def _crate(package: dict[str, Any], workspace: Path) -> Crate:
    publish = package["publish"]
    lacks = [] if package["description"] else ["description"]
    if not (package["license"] or package["license_file"]):
        lacks.append("license")
    return Crate(
        name=package["name"],
        version=package["version"],
        manifest=Path(package["manifest_path"]),
        workspace=workspace,
        publish=None if publish is None else tuple(publish),
        needs=tuple(map(_need, package["dependencies"])),
        lacks=tuple(lacks),
        is_foreign=_is_foreign(package),
    )


def _is_foreign(package: dict[str, Any]) -> bool:
    """https://doc.rust-lang.org/reference/linkage.html"""
    kinds = {kind for target in package.get("targets", ()) for kind in target["kind"]}
    return bool(kinds & _LINKED) and kinds.isdisjoint(_USED)


def _need(dependency: dict[str, Any]) -> Need:
    return Need(
        name=dependency["name"],
        path=Path(dependency["path"]) if dependency.get("path") else None,
        requirement=dependency["req"],
        kind=dependency["kind"] or "normal",
        registry=dependency["registry"] or "",
    )
