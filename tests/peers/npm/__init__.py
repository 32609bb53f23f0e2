"""npm, pnpm and yarn: what their tests write, and what they make of it."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

from peers.npm import naming, packing, pnpm, wire, yarn
from peers.npm.reading import as_files, fill_in, name_each, read_events
from peers.scenarios import Case, Files, Peer
from peers.sources import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from peers import ours
    from peers.npm.packing import Tarballs
    from peers.npm.reading import Event

# Tests of commands that pack, publish, or work in workspaces.
_PACKING: Final = (
    "diff",
    "pack",
    "pkg",
    "publish",
    "query",
    "run-script",
    "unpublish",
    "version",
    "view",
)


def read_packlist(checkout: Path) -> Iterator[Case]:
    events = read_events(checkout.glob("test/*.js"), calls=["testdir"])
    return _cases(events, _read_packlist, packing.pack_by_npm)


def read_cli(checkout: Path) -> Iterator[Case]:
    files = [checkout / f"test/lib/commands/{name}.js" for name in _PACKING]
    events = read_events(filter(lambda path: path.is_file(), files), keys=["prefixDir"])
    events += read_events(checkout.glob("workspaces/libnpmpack/test/*.js"), calls=["testdir"])
    return _cases(events, _read_directory, packing.pack_by_npm)


def _cases(
    events: Iterable[Event],
    read: Callable[[Event], tuple[Files, str]],
    pack: Callable[[Path, Path], Tarballs],
) -> Iterator[Case]:
    for name, event in name_each(events):
        yield Case(
            name=name,
            judge=functools.partial(
                packing.judge, functools.partial(read, event), pack, explain, packing.as_it_is
            ),
        )


def _read_packlist(event: Event) -> tuple[Files, str]:
    """`t.testdir({…}) + '/pkg'` names the directory that is packed."""
    tail = event.tail.strip().removeprefix("+").strip()
    at = tail.split(tail[0])[1].strip("/") if tail[:1] in {"'", '"'} else ""
    return fill_in(as_files(event.args[0])), at


def _read_directory(event: Event) -> tuple[Files, str]:
    return as_files(event.args[0]), ""


def explain(_top: Path, done: ours.Ran, what: str) -> str:
    if "must have name and version" in what:
        return "npm.md: no version, or a placeholder (`0.0.0-development`) means never published"
    if "only ReleaseKit refuses it" not in what:
        return ""
    if "rk-119" in done.out:
        return "npm.md: A package whose tarball does not contain its bundled dependencies fails"
    if done.refuses("RK-221") and " is 'foo '" in done.error:
        return "limits.md: A name, version or table that npm corrects when it publishes"
    return ""


SOURCES: Final = (
    Source(name="npm-packlist", git="https://github.com/npm/npm-packlist", licence="ISC"),
    Source(name="cli", git="https://github.com/npm/cli", licence="Artistic-2.0"),
    Source(
        name="validate-npm-package-name",
        git="https://github.com/npm/validate-npm-package-name",
        licence="ISC",
        archive="debian:node-validate-npm-package-name",
    ),
    Source(
        name="node-semver",
        git="https://github.com/npm/node-semver",
        licence="ISC",
        archive="debian:node-semver",
    ),
    Source(
        name="read-package-json",
        git="https://github.com/npm/read-package-json",
        licence="ISC",
        archive="debian:node-read-package-json",
    ),
    Source(
        name="normalize-package-data",
        git="https://github.com/npm/normalize-package-data",
        licence="BSD-2-Clause",
        archive="debian:node-normalize-package-data",
    ),
    Source(name="package-json", git="https://github.com/npm/package-json", licence="ISC"),
    Source(name="pnpm", git="https://github.com/pnpm/pnpm", licence="MIT"),
    Source(
        name="npm-package-arg",
        git="https://github.com/npm/npm-package-arg",
        licence="ISC",
        archive="debian:node-npm-package-arg",
    ),
)
PEERS: Final = (
    Peer(
        name="npm-packlist: what is packed",
        ecosystem="npm",
        sources=("npm-packlist",),
        read=read_packlist,
    ),
    Peer(name="npm: what is packed", ecosystem="npm", sources=("cli",), read=read_cli),
    Peer(
        name="npm: what is sent",
        ecosystem="npm",
        sources=("package-json",),
        read=wire.read_manifests,
    ),
    Peer(
        name="npm: what is sent",
        ecosystem="npm",
        sources=("read-package-json",),
        read=wire.read_fixtures,
    ),
    Peer(
        name="npm: what is sent",
        ecosystem="npm",
        sources=("normalize-package-data",),
        read=wire.read_fixtures,
    ),
    Peer(name="npm: what is sent", ecosystem="npm", sources=("cli",), read=wire.read_published),
    Peer(name="npm: what is sent", ecosystem="npm", sources=("cli",), read=wire.read_ordered),
    Peer(name="pnpm: what is packed", ecosystem="npm", sources=("pnpm",), read=pnpm.read_packed),
    *(
        Peer(
            name="yarn: what is packed",
            ecosystem="npm",
            sources=(source,),
            read=functools.partial(yarn.read_with, read),
        )
        for source, read in (
            ("npm-packlist", read_packlist),
            ("cli", read_cli),
            ("pnpm", pnpm.read_packed),
        )
    ),
    Peer(
        name="npm: names",
        ecosystem="npm",
        sources=("validate-npm-package-name",),
        read=naming.read_names,
    ),
    Peer(
        name="npm: versions", ecosystem="npm", sources=("node-semver",), read=naming.read_versions
    ),
    Peer(name="npm: ranges", ecosystem="npm", sources=("node-semver",), read=naming.read_ranges),
    Peer(
        name="npm: requirements",
        ecosystem="npm",
        sources=("npm-package-arg",),
        read=naming.read_requirements,
    ),
)
