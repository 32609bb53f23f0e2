"""The zip file of a module, and its hash: the same files and the same h1 as the go command's.

https://go.dev/ref/mod#zip-files, https://pkg.go.dev/golang.org/x/mod/zip and
https://pkg.go.dev/golang.org/x/mod/sumdb/dirhash#Hash1
"""

from __future__ import annotations

import base64
import hashlib
import io
import re
import time
import zipfile
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from releasekit.ecosystems.go import paths
from releasekit.ecosystems.interface import Composition
from releasekit.ecosystems.shared.archives import BAD_ZIP, opened_entry, opened_zip
from releasekit.ecosystems.shared.packed import below, is_irrelevant
from releasekit.errors import BuildFailed
from releasekit.host.files import is_file, repository_of
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    from releasekit.ecosystems.shared.packed import Counts
    from releasekit.model import Package

MAX_ZIP_BYTES: Final = 500 * 1024 * 1024
MAX_GO_MOD_BYTES: Final = 16 * 1024 * 1024
LICENSE: Final = "LICENSE"
_PIECE_BYTES: Final = 1024 * 1024
_SHOWN: Final = 3
_TESTING: Final = re.compile(r"_test\.go$|(?:^|/)testdata/")
_LANGUAGE: Final = re.compile(r"([0-9]+)(?:\.([0-9]*)|$)")


class GoComposition(Composition):
    def make_filter(self, _package: Package, tracked: Collection[str]) -> Counts:
        left_out = ("vendor/", *below("go.mod", tracked))

        def counts(name: str) -> bool:
            if name.startswith(left_out) or _TESTING.search(name):
                return False
            # A package can be imported from any directory.
            return name.endswith(".go") or not is_irrelevant(name)

        return counts

    def follows_links(self, _package: Package, _tracked: Collection[str]) -> bool:
        """No module has one: https://go.dev/ref/mod#zip-files"""
        return False

    def list_outside(self, package: Package) -> Collection[Path]:
        """A module without a licence has that of the repository.

        https://go.dev/ref/mod#vcs-license
        """
        top = repository_of(package.directory)
        if top is None or top == package.directory or is_file(package.directory / LICENSE):
            return ()
        return (top / LICENSE,)


class ModuleFile(Struct, frozen=True, kw_only=True):
    """One entry of a git tree; a symbolic link or the like is not `regular`."""

    size: int
    regular: bool = True


def select_files(files: Mapping[str, ModuleFile], *, go: str, module: str) -> list[str]:
    """The files of its directory that belong to a module, in their order.

    Names are relative to that directory; `go` is the version in go.mod. Raises BuildFailed for
    files that no module can hold.
    """
    nested = {
        name.rpartition("/")[0]
        for name, file in files.items()
        if file.regular and name.lower().endswith("/go.mod")
    }
    chosen: list[str] = []
    troubles: list[str] = []
    folded: dict[str, str] = {}
    for name, file in files.items():
        if name == ".hg_archival.txt" or _is_vendored(name, go):
            continue
        if nested.intersection(_list_levels(name)[:-1]):
            continue
        trouble = paths.trouble_with_file(name) or _find_collision(name, folded)
        if not trouble and name != "go.mod" and name.lower() == "go.mod":
            trouble = "go.mod files must have lowercase names"
        if trouble:
            troubles.append(f"{name}: {trouble}")
        elif file.regular:
            chosen.append(name)
    troubles += _find_excess({name: files[name].size for name in chosen})
    if troubles:
        more = f" (and {len(troubles) - _SHOWN} more)" if len(troubles) > _SHOWN else ""
        raise BuildFailed(
            f"go:{module} cannot be published: {'; '.join(troubles[:_SHOWN])}{more}",
            hint="Go refuses a module with such files; rename, move or remove them.",
            problem=Problem.NOT_A_PACKAGE,
        )
    return chosen


def _find_excess(sizes: Mapping[str, int]) -> Iterator[str]:
    if (total := sum(sizes.values())) > MAX_ZIP_BYTES:
        yield f"its files have {total} bytes, {MAX_ZIP_BYTES} are allowed"
    for name in ("go.mod", LICENSE):
        if sizes.get(name, 0) > MAX_GO_MOD_BYTES:
            yield f"{name}: larger than {MAX_GO_MOD_BYTES} bytes"


def _list_levels(name: str) -> list[str]:
    """A path and the directories above it, from the top."""
    parts = name.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts) + 1)]


def _is_vendored(name: str, go: str) -> bool:
    """Go repeats an old mistake for go.mod files before 1.24, so that hashes stay the same.

    https://go.dev/issue/37397
    """
    match = _LANGUAGE.match(go)
    mended = match is not None and (int(match[1]), int(match[2] or "0")) >= (1, 24)
    if mended and name == "vendor/modules.txt":
        return True
    if name.startswith("vendor/"):
        rest = name[len("vendor/") :]
    elif (at := name.find("/vendor/")) >= 0:
        rest = name[at + len("/vendor/") :] if mended else name[len("/vendor/") :]
    else:
        return False
    return "/" in rest


def _find_collision(name: str, folded: dict[str, str]) -> str:
    """Why a file system that ignores case cannot hold it, or a directory above it."""
    for path in _list_levels(name):
        other = folded.setdefault(_fold(path), path)
        if other != path:
            return f"differs from {other} in case only"
    return ""


def _fold(text: str) -> str:
    """Simple case folding: characters whose other case is several characters stay."""
    pairs = ((character, character.upper()) for character in text)
    return "".join(up.lower() if len(up) == len(up.lower()) == 1 else low for low, up in pairs)


def hash1(contents: Mapping[str, bytes]) -> str:
    """The `h1:` hash over these files, full names."""
    return _sum_up({name: hashlib.sha256(data).hexdigest() for name, data in contents.items()})


def _sum_up(digests: Mapping[str, str]) -> str:
    summary = "".join(f"{digests[name]}  {name}\n" for name in sorted(digests))
    return f"h1:{base64.b64encode(hashlib.sha256(summary.encode()).digest()).decode()}"


def hash_of_mod(mod: bytes) -> str:
    """The `h1:` hash of a go.mod alone."""
    return hash1({"go.mod": mod})


def hash_of_zip(data: bytes) -> str:
    """The `h1:` hash of a module zip; raises ValueError for an invalid or too large file."""
    try:
        with opened_zip(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            if sum(entry.file_size for entry in entries) > MAX_ZIP_BYTES:
                raise ValueError("its files are larger than a module may be")
            return _sum_up({entry.filename: _digest(archive, entry) for entry in entries})
    except BAD_ZIP as error:
        raise ValueError(f"not a zip file ({error})") from error


def _digest(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> str:
    # In pieces: a zip of a megabyte may hold a file of half a gigabyte.
    digest = hashlib.sha256()
    with opened_entry(archive, entry) as file:
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest()


def zip_bytes(contents: Mapping[str, bytes], *, time_s: int) -> bytes:
    """A zip of these files, full names; the same bytes for the same files and time."""
    buffer = io.BytesIO()
    # The epoch of the format.
    moment = max(time.gmtime(time_s)[:6], (1980, 1, 1, 0, 0, 0))
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in contents.items():
            entry = zipfile.ZipInfo(name, moment)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED, 6)
    return buffer.getvalue()
