"""Whatever text comes from outside, a parser gives a value or one of the errors it declares, and
soon. More of it: EXAMPLES=5000.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import releasekit
from releasekit.decided import Level
from releasekit.ecosystems.cargo import requirements as cargo_requirement
from releasekit.ecosystems.cargo import sparse_index
from releasekit.ecosystems.go import gomod
from releasekit.ecosystems.go import paths as go_paths
from releasekit.ecosystems.maven import document as maven_document
from releasekit.ecosystems.maven import versions as maven_versions
from releasekit.ecosystems.npm import manifest as npm_manifest
from releasekit.ecosystems.npm import reference
from releasekit.ecosystems.pypi import manifest as pypi_manifest
from releasekit.ecosystems.pypi import simple_index
from releasekit.ecosystems.shared.semver import Version
from releasekit.errors import ReleasekitError
from releasekit.git.trailers import find_base
from releasekit.http.answers import retry_after, words_of_page
from releasekit.plan.file import PlanFile
from releasekit.report.results import load_results
from releasekit.state.history import encode, fold
from releasekit.text.globs import Glob
from releasekit.text.numbering import numbering_of
from releasekit.text.toml_text import parse_toml
from releasekit.versions import messages
from releasekit.versions.change_files import read_change_file
from watchdog import least_s

if TYPE_CHECKING:
    from collections.abc import Callable

_HERE: Final = Path("manifest")
# CPU time for 60,000 characters: generous, for a slow machine that has other things to do.
_SOON_S: Final = 5.0


def _pyproject(text: str) -> object:
    return pypi_manifest.parse_project(parse_toml(text), _HERE)


def _requirement(text: str) -> object:
    return pypi_manifest.parse_requirement(text, path=_HERE, where="dependencies")


def _package_json(text: str) -> object:
    document = npm_manifest.parse_manifest(text)
    return npm_manifest.parse_package(document, _HERE), npm_manifest.list_declared(document, _HERE)


def _retry_after(text: str) -> object:
    return retry_after(httpx.Response(429, headers=[(b"retry-after", _bytes(text))]))


def _plan_file(text: str) -> object:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "plan.json")
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        return PlanFile.read(path)


def _journal(text: str) -> object:
    return fold(text.encode("utf-8", "surrogatepass"), state_directory=Path("/state"))


def _sealed(text: str) -> object:
    record: dict[str, Any] = {"v": 2, "run": "r", "seq": 0, "at": 0.0, "durable": 0}
    event, _, name = text.partition(" ")
    values = {"event": event, "package": name, "version": name, "node": name, "registry": name}
    return fold(encode({**record, **values}), state_directory=Path("/state"))


def _message(text: str) -> object:
    said = messages.read_message(text), messages.read_merged(text), find_base(text)
    return said, messages.read_squashed(text), messages.find_reverted(text)


def _next_versions(text: str) -> object:
    """In all ecosystems, each of which may find that it is no version, or a date."""
    found = []
    for ecosystem in ("pypi", "npm", "cargo", "go", "maven"):
        numbering = numbering_of(ecosystem)
        with contextlib.suppress(ValueError):
            found.append(numbering.order(numbering.bump(text, Level.MINOR, "shift")))
    return found


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


# A parser, and the words that its texts are made of besides any characters.
PARSERS: Final[dict[str, tuple[Callable[[str], object], str]]] = {
    "pyproject.toml": (_pyproject, '[project] name = "a" version "1" dependencies [ ] { } . , \n'),
    "TOML": (parse_toml, '[ ] [[ ]] { } = . a "a" """ \' 0x 1e9 1979-05-27 \\u \n # inf'),
    "a requirement": (_requirement, "a [x] >= == ~= 1.0 , ; python_version or and ( ) @ file: '3'"),
    "a version of PEP 440": (
        lambda text: pypi_manifest.normalize_version(text, path=_HERE),
        "1 . ! + a b rc dev post - _ 0",
    ),
    "package.json": (
        _package_json,
        '{ } [ ] : , "name" "version" "1.0.0" "dependencies" null 1e999 "\\ud800"',
    ),
    "a reference of npm": (
        reference.is_range,
        "^ ~ >= < * x 1 .2.3 || - npm: workspace: @ a/b + file: #",
    ),
    "a version of semver": (Version.parse, "1 . - + a 0 99999999999999999999"),
    "a requirement of cargo": (cargo_requirement.Requirement.parse, "^ ~ = >= < , * 1 . 2 - + a"),
    "lines of a sparse index": (
        lambda text: list(sparse_index.parse_lines(_bytes(text))),
        '{ } "name" : "vers" , \n [ ] null "1.0.0" "cksum"',
    ),
    "go.mod": (
        lambda text: gomod.parse_mod(text, "go.mod"),
        'module a.b/c require ( ) replace => v1.0.0 \n // /* */ ` " go 1.22 retract [ , ]',
    ),
    "go.work": (
        lambda text: (gomod.used_directories(text, "w"), gomod.replaces_of_work(text, "w")),
        'use ( ) ./a ../ \n replace => v1.0.0 ` "',
    ),
    "a path of Go": (go_paths.split_major, "a . / v2 gopkg.in/ .v 99999999999 - ~"),
    "trouble with a path of Go": (go_paths.trouble_with_path, "a . / v2 ~ - \\ : \x00"),
    "trouble with a version of Go": (
        lambda text: go_paths.trouble_with_version(f"a.b/{text}", text),
        "v 1 . 2 - + incompatible 0",
    ),
    "a version of Go": (go_paths.parse_version, "v 1 . 2 - + rc"),
    "a POM": (
        lambda text: maven_document.parse_document(_bytes(text)),
        "<project> </project> <a> </a> <!DOCTYPE <![CDATA[ ]]> & &amp; &#x0; <?xml ?> <!-- -->",
    ),
    "a version of Maven": (
        lambda text: maven_versions.compare(text, "1.0-alpha"),
        "1 . - alpha snapshot 0 final sp 99999999999999999999",
    ),
    "a range of Maven": (
        lambda text: maven_versions.contains(text, "1.0"),
        "[ ] ( ) , 1 . 0 - alpha",
    ),
    "a page of a simple index": (
        lambda text: list(simple_index.parse_page(_bytes(text), "text/html")),
        "<a href=\" ' > </a> a-1.0.tar.gz #sha256= & &amp; < <!-- <base &#",
    ),
    "an index in JSON": (
        lambda text: list(
            simple_index.parse_page(_bytes(text), "application/vnd.pypi.simple.v1+json")
        ),
        '{ } [ ] : , "files" "filename" "hashes" "sha256" "a-1.0.tar.gz" "url" null 1',
    ),
    "a file name of Python": (
        simple_index.parse_filename,
        "a - 1.0 .tar.gz .whl py3 none any _ ! + .zip",
    ),
    "words of a page": (words_of_page, "< > </ <script> </script> <!-- --> & &lt; <p> a"),
    "Retry-After": (_retry_after, "1 9 Wed, 21 Oct 2015 07:28:00 GMT - : 99999 +"),
    "a glob": (
        lambda text: Glob.parse(text, where="members"),
        "* ** / { } , [ ] ! a ? .. ( ) + |",
    ),
    "results": (load_results, '{ } [ ] : , "schema" 1 "packages" "name" null 1e999 "\\udfff"'),
    "a plan file": (_plan_file, '{ } [ ] : , "schema" 1 "packages" "commit" null "\\udfff"'),
    "a version to be raised": (
        _next_versions,
        "1 . 0 - + v ! 2026 rc beta dev post snapshot SNAPSHOT jre sp M1 99999999999999999999",
    ),
    "a message of a commit": (
        _message,
        'feat fix ( ) ! : * BREAKING CHANGE: Revert " This reverts commit 3f2a91c0 (#41) \r\n',
    ),
    "a change file": (
        lambda text: read_change_file("a.md", text),
        '--- \n ---\n "a" \' a: major 2.0.0 # pr: 41 commit: 3f2a91c & * | [ ] { } \ufeff \r\n',
    ),
    "a journal": (_journal, '{ } "v" : 2 , "crc" "event" \n "00000000"'),
    "an event of a journal": (_sealed, "built intent outcome step_started planned run_ended : /"),
}
# These name the file or the key themselves; the others leave that to their callers.
_OURS: Final = frozenset(
    {
        *("a requirement", "a version of PEP 440", "go.mod", "go.work", "a glob", "results"),
        *(
            "a plan file",
            "a change file",
            "a version to be raised",
            "a message of a commit",
            "a journal",
            "an event of a journal",
        ),
    }
)


def declared_by(name: str) -> tuple[type[Exception], ...]:
    return (ReleasekitError,) if name in _OURS else (ReleasekitError, ValueError)


def _texts(words: str) -> st.SearchStrategy[str]:
    word = (
        st.sampled_from([*words.split(" "), " ", "\n"]) | st.characters() | st.integers().map(str)
    )
    short = st.lists(word, max_size=30).map("".join)
    long = st.tuples(short, st.sampled_from([1, 10, 1000, 20_000]), short)
    return long.map(lambda parts: (parts[0] * parts[1])[:60_000] + parts[2])


@pytest.mark.parametrize("name", PARSERS)
@settings(max_examples=int(os.environ.get("EXAMPLES", "40")))
@given(data=st.data())
def test_a_parser_gives_a_value_or_its_own_error(name: str, data: st.DataObject) -> None:
    """R40, R51"""
    parse, words = PARSERS[name]
    text = data.draw(_texts(words))

    def parsed() -> None:
        with contextlib.suppress(*declared_by(name)):
            parse(text)

    took_s = least_s(parsed, _SOON_S)
    assert took_s <= _SOON_S, (took_s, text[:200])


def _artifact(piece: bytes, times: int) -> bytes:
    """A zip of results, however long they are."""
    file = io.BytesIO()
    with (
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made,
        made.open("results.json", "w") as entry,
    ):
        for _ in range(times):
            entry.write(piece)
    return file.getvalue()


def _table(count: int, name: bytes = b"a") -> bytes:
    """The end of a zip of so many files, with names in UTF-8."""
    size = struct.pack("<H", len(name))
    data = (b"PK\1\2" + bytes(4) + b"\0\x08" + bytes(18) + size + bytes(16) + name) * count
    return data + b"PK\5\6" + bytes(8) + struct.pack("<LLH", len(data), 0, 0)


def _tarball(*entries: tuple[bytes, bytes, int]) -> bytes:
    """Of entries of a type, and of a piece so many times."""
    file = io.BytesIO()
    with gzip.open(file, "wb", 1) as packed:
        for kind, piece, times in entries:
            entry = tarfile.TarInfo("a")
            entry.type, entry.size = kind, len(piece) * times
            packed.write(entry.tobuf(tarfile.GNU_FORMAT))
            for _ in range(times):
                packed.write(piece)
            packed.write(bytes(-entry.size % 512))
    return file.getvalue()


_SPARSE: Final = b"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n"
_ARTIFACT: Final = "load_all(_results_in(data, 'a', MAX_BYTES))"
_PACKED: Final = "read_tarball(io.BytesIO(data), 'a')"
# What is small, and what reads it.
_HUGE: Final[dict[str, tuple[Callable[[], bytes], str]]] = {
    "30 MB of lists": (lambda: _artifact(b"[]," * 500_000, 20), _ARTIFACT),
    "60 MB of lists": (lambda: _artifact(b"[]," * 500_000, 40), _ARTIFACT),
    "350 MB of zeros": (lambda: _artifact(bytes(1 << 20), 350), _ARTIFACT),
    "1.3 million files": (lambda: _table(1_300_000), _ARTIFACT),
    "600,000 files": (lambda: _table(600_000), _ARTIFACT),
    "31 MB of wide names": (
        lambda: _table(500, "\U0001f680".encode() + b"a" * 65_000 + b"\0b"),
        _ARTIFACT,
    ),
    "a name of 400 MB": (
        lambda: _tarball((tarfile.GNUTYPE_LONGNAME, bytes(1 << 20), 400)),
        _PACKED,
    ),
    "attributes of 400 MB": (
        lambda: _tarball((tarfile.XHDTYPE, bytes(1 << 20), 400)),
        _PACKED,
    ),
    "a sparse file": (
        lambda: _tarball(
            (tarfile.XHDTYPE, _SPARSE, 1), (tarfile.REGTYPE, b"999999999\n" + b"1\n" * 99_000, 5)
        ),
        _PACKED,
    ),
}
_CHILD: Final = """
import io, sys
from releasekit.approval.workflow_run import MAX_BYTES, _results_in
from releasekit.ecosystems.npm.tarball import read_tarball
from releasekit.errors import ReleasekitError
from releasekit.report import load_all
data = sys.stdin.buffer.read()
try:
    {read}
except ReleasekitError as error:
    print(error)
with open("/proc/self/status") as status:
    print(*(line for line in status if line.startswith("VmHWM")))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="its peak is read from /proc")
@pytest.mark.parametrize("name", _HUGE)
def test_what_is_small_and_stands_for_much_is_refused_in_a_sentence(name: str) -> None:
    """R40"""
    make, read = _HUGE[name]
    done = subprocess.run(
        [sys.executable, "-c", _CHILD.format(read=read)],
        env={**os.environ, "PYTHONPATH": str(Path(releasekit.__file__).parents[1])},
        check=True,
        capture_output=True,
        input=make(),
    )
    *said, peak = done.stdout.decode().strip().splitlines()
    assert said, "it was not refused"
    assert int(peak.split()[1]) < 300 * 1024, peak


_DEEP: Final = {
    "TOML": "x = " + "[" * 50_000,
    "package.json": "[" * 100_000,
    "lines of a sparse index": "[" * 100_000,
    "an index in JSON": "[" * 100_000,
    "results": "[" * 100_000,
    "a plan file": "[" * 100_000,
    "a POM": "<a>" * 100_000,
    "go.mod": "(" * 100_000,
}


@pytest.mark.parametrize("name", _DEEP)
def test_what_is_nested_without_end_is_refused(name: str) -> None:
    """R40; a RecursionError is for `read_parsed` to name, wherever that calls the parser."""
    by_read_parsed = {"TOML", "package.json"}
    also = (RecursionError,) if name in by_read_parsed else ()
    with pytest.raises((*declared_by(name), *also)):
        PARSERS[name][0](_DEEP[name])


@pytest.mark.parametrize("name", PARSERS)
def test_a_huge_number_is_no_surprise(name: str) -> None:
    """R40"""
    parse, _ = PARSERS[name]
    digits = "9" * 5000
    for text in (digits, f"v{digits}.0.0", f"a/v{digits}", f"gopkg.in/a.v{digits}", f">={digits}"):
        for whole in (text, f"x = {digits}", json.dumps({"schema": 0}).replace("0", digits)):
            with contextlib.suppress(*declared_by(name)):
                parse(whole)
