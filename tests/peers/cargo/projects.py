"""The projects that cargo's tests write, read out of their source: its own tests run them."""

from __future__ import annotations

import itertools
import os
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from peers import ours
from peers.cargo import empty
from peers.scenarios import Files, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_TEST: Final = re.compile(
    r"^#\[cargo_test[^\n]*\]\n(?:#\[[^\n]*\n)*(?:async )?fn (\w+)\(", re.MULTILINE
)
# A literal of Rust: https://doc.rust-lang.org/reference/tokens.html#string-literals
_RAW: Final = r'b?r(?P<{0}h>#*)"(?P<{0}r>.*?)"(?P={0}h)'
_PLAIN: Final = r'b?"(?P<{0}p>(?:[^"\\]|\\.)*)"'
_LITERAL: Final = "(?:" + _RAW + "|" + _PLAIN + ")"
_BASIC: Final = (
    r"&?(?P<basic>basic_manifest|basic_bin_manifest|basic_lib_manifest)"
    r'\((?P<args>[^)"]*"[^)]*)\)'
)
_STEP: Final = re.compile(
    r"\.(?P<call>file|symlink|symlink_dir|executable|change_file|add_file)\(\s*"
    + _LITERAL.format("n")
    + r"\s*,\s*&?(?:"
    + _LITERAL.format("t")
    + "|"
    + _BASIC
    + r")\s*,?\s*\)",
    re.DOTALL,
)
_CALL: Final = re.compile(r"\.(?:file|symlink|symlink_dir|executable|no_manifest)\(")
_START: Final = re.compile(
    r"\b(?:project\(\)|project_in\([^)]*\)|ProjectBuilder::new\(|git::(?:new|repo|new_repo)\()"
)
# Nobody is asked but the empty registry: the proxy is where nothing listens.
_CONFIG: Final = """\
[source.crates-io]
replace-with = "empty"
[source.empty]
registry = "sparse+{index}"
[net]
retry = 0
[http]
proxy = "http://127.0.0.1:9"
[registries.alternative]
index = "sparse+http://127.0.0.1:9/index/"
[registries.other]
index = "sparse+http://127.0.0.1:9/other/"
"""
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\", '"': '"', "'": "'"}


def read(checkout: Path, *suites: str) -> Iterator[tuple[str, Files | None]]:
    """Each project of each test, by `SUITE::TEST#NUMBER`; None for one that the test computes."""
    for path in sorted(checkout.glob("tests/testsuite/*.rs")):
        if not suites or path.stem in suites:
            yield from _read_suite(path)


def write(files: Files | None, directory: Path) -> Path | Verdict:
    """The project, in a repository of its own, and where in it its Cargo.toml is; what is not of it
    is on no registry, and no network is asked.
    """
    if files is None:
        return Verdict("unusable", "the test computes what it writes")
    root, home = directory / "repository", directory / "cargo"
    try:
        files.write(root)
    except ValueError as error:
        return Verdict("unusable", str(error))
    home.mkdir()
    (home / "config.toml").write_text(_CONFIG.format(index=empty.serve()))
    os.environ |= {"CARGO_HOME": str(home), "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    ours.commit(root)
    tops = {PurePosixPath(name).parent for name in files.files if name.endswith("Cargo.toml")}
    least = min((len(top.parts) for top in tops), default=0)
    first = [top for top in tops if len(top.parts) == least]
    return root / first[0] if len(first) == 1 else root


def _read_suite(path: Path) -> Iterator[tuple[str, Files | None]]:
    text = path.read_text()
    starts = [*_TEST.finditer(text)]
    for test, following in itertools.zip_longest(starts, starts[1:]):
        body = text[test.end() : following.start() if following else len(text)]
        places = [each.start() for each in _START.finditer(body)]
        for number, (start, end) in enumerate(itertools.pairwise([*places, len(body)])):
            chain = body[start:end].partition(".build()")[0]
            name = f"{path.stem}::{test[1]}#{number}"
            calls = [each for each in _CALL.finditer(chain) if "no_manifest" not in each[0]]
            if any(_STEP.match(chain, each.start()) is None for each in calls):
                yield name, None
            elif calls:
                yield name, _read_project(chain)


def _read_project(chain: str) -> Files:
    files, links = {}, {}
    for step in _STEP.finditer(chain):
        path = _value(step, "n")
        if step["call"].startswith("symlink"):
            links[_value(step, "t")] = path
        else:
            files[path] = _basic(step) if step["basic"] else _value(step, "t")
    if ".no_manifest()" not in chain and chain.startswith("project"):
        files.setdefault("Cargo.toml", _manifest("foo", "0.0.1"))
    return Files(files=files, links=links)


def _value(step: re.Match[str], group: str) -> str:
    raw = step[f"{group}r"]
    if raw is not None:
        return raw
    text = re.sub(r"\\\n\s*", "", step[f"{group}p"])
    text = re.sub(r"\\u\{([0-9a-fA-F]+)\}", lambda it: chr(int(it[1], 16)), text)
    return re.sub(r"\\(.)", lambda it: _ESCAPES.get(it[1], it[0]), text)


def _basic(step: re.Match[str]) -> str:
    given = re.findall(r'"([^"]*)"', step["args"])
    if step["basic"] == "basic_manifest":
        return _manifest(*given)
    kind = "bin" if "bin" in step["basic"] else "lib"
    target = "[[bin]]" if kind == "bin" else "[lib]"
    return f'{_manifest(given[0], "0.5.0")}{target}\nname = "{given[0]}"\n'


def _manifest(name: str, version: str) -> str:
    return f'[package]\nname = "{name}"\nversion = "{version}"\nauthors = []\nedition = "2015"\n'
