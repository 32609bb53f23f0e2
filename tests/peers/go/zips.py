"""Module zips of x/mod: directories that it packs, in part, or refuses to."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Final

from peers import ours
from peers.go import packing, txtar
from peers.go.asking import build
from peers.scenarios import Case, Files, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

# Where a test names none.
_PATH: Final = "example.com/m"
_VERSION: Final = "v1.0.0"
_GO: Final = re.compile(rb"^go [0-9.]+\n", re.MULTILINE)


# Modules of one repository by their directories: https://go.dev/ref/mod#vcs-dir
_LAYOUTS: Final[tuple[Mapping[str, str], ...]] = (
    {
        ".": "example.com/m",
        "v2": "example.com/m/v2",
        "sub": "example.com/m/sub",
        "at/two": "example.com/m/at/two/v2",
        "three/v3": "example.com/m/three/v3",
        "v4/four": "example.com/m/v4/four",
    },
    {".": "example.com/m/v2", "sub": "example.com/m/sub/v3"},
    {".": "gopkg.in/m.v2"},
)


def read_layouts(checkout: Path) -> Iterator[Case]:
    program = build(checkout)
    for layout in _LAYOUTS:
        judge = functools.partial(_judge_layout, layout, program)
        yield Case(name=f"layout::{layout['.']}", judge=judge)


def _judge_layout(layout: Mapping[str, str], program: Path, directory: Path) -> Verdict:
    root = directory / "repository"
    root.mkdir()
    files = {f"{at}/go.mod": f"module {path}\n" for at, path in layout.items()}
    Files(files={**files, "LICENSE": "A license.\n"}).write(root)
    ours.commit(root)
    majors = {at: re.search(r"[/.]v(\d+)$", path) for at, path in layout.items()}
    modules = [
        packing.Module(
            path=path, version=f"v{major[1] if (major := majors[at]) else 1}.2.3", below=at
        )
        for at, path in layout.items()
    ]
    config = directory / "releasekit.toml"
    config.write_text(packing.options({each.below: each.version for each in modules}))
    return packing.judge(root, config, modules, program)


def read_zips(checkout: Path) -> Iterator[Case]:
    program = build(checkout)
    for path in sorted(checkout.glob("zip/testdata/*/*.txt")):
        above, files = txtar.read(path.read_bytes())
        said = dict(line.split("=", 1) for line in above.splitlines() if "=" in line)
        name = f"{path.parent.name}::{path.stem}"
        yield Case(name=name, judge=functools.partial(_judge_zip, said, files, program))


def _judge_zip(
    said: Mapping[str, str], files: Mapping[str, bytes], program: Path, directory: Path
) -> Verdict:
    path, version = said.get("path", _PATH), said.get("version", _VERSION)
    # Names in a zip have the module before them.
    below = {each.removeprefix(f"{path}@{version}/"): data for each, data in files.items()}
    wanted = {name: data for name, data in below.items() if name != "want"}
    # No directory of theirs needs a go.mod, nor the path in it; one of ours is found by it.
    language = _GO.search(wanted.get("go.mod", b""))
    named = f"module {path}\n".encode(errors="surrogateescape")
    wanted["go.mod"] = named + (language[0] if language else b"")
    root = directory / "repository"
    root.mkdir()
    try:
        Files(files={k: v for k, v in wanted.items() if ".git" not in k.split("/")}).write(root)
    except ValueError as error:
        return Verdict("unusable", f"no file system has it: {error}")
    ours.commit(root)
    config = directory / "releasekit.toml"
    config.write_text(packing.options({".": version}))
    module = packing.Module(path=path, version=version, below=".")
    return packing.judge(root, config, [module], program)
