"""Where the test suites of other projects come from. What is fetched is never committed.

Archives are the newest of a registry, or those of Debian 13. PEERS names a directory for checkouts
by their names here, which are taken before archives. What no registry has is cloned to it.
"""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import os
import re
import shutil
import subprocess
import tarfile
import xml.etree.ElementTree as ET
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin

import httpx
from packaging.version import InvalidVersion, Version

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

DEBIAN: Final = "http://deb.debian.org/debian"


@dataclass(frozen=True, kw_only=True)
class Source:
    """`archive` is one of crate:NAME, sdist:NAME, npm:NAME, go:MODULE, debian:PACKAGE of 13,
    central:GROUP:ARTIFACT:CLASSIFIER.EXTENSION, and goroot:PATH of the go that is installed;
    without one the tests are in git only.
    """

    name: str
    git: str
    licence: str
    archive: str = ""


@dataclass(frozen=True)
class Fetched:
    """`what` is the file that was unpacked, or the commit of a checkout. Without a `directory`,
    `what` says why, and `failed` that it should be there.
    """

    directory: Path | None
    what: str
    failed: bool = False


def fetch(source: Source, into: Path, checkouts: Path | None) -> Fetched:
    """An archive is unpacked below `into`, and what none has is cloned to `checkouts`, unless it is
    there already.
    """
    checkout = checkouts / source.name if checkouts else None
    # Those of Debian grow old.
    if checkout and (checkout.is_dir() or source.archive.partition(":")[0] in {"", "debian"}):
        found = _find_checkout(source, checkout)
        if found.directory or not source.archive:
            return found
    if source.archive.startswith("goroot:"):
        return _find_installed(source)
    if not source.archive:
        return Fetched(None, f"no registry has {source.git}; PEERS=DIRECTORY clones it")
    kind, _, name = source.archive.partition(":")
    with httpx.Client(follow_redirects=True, timeout=120.0) as client:
        try:
            url, digest = _FINDERS[kind](client, name)
            directory = into / source.name / url.rpartition("/")[2]
            if not directory.is_dir():
                _unpack(url, _get(client, url), digest, directory)
        except (httpx.HTTPError, LookupError, ValueError) as error:
            what = f"{source.archive}: {type(error).__name__}: {error}"
            return Fetched(None, what, failed=True)
    return Fetched(find_top(directory), url)


def find_top(directory: Path) -> Path:
    """Below directories with nothing beside them, as most archives have one, and zips of Go
    modules one for each element of the path.
    """
    while len(inner := [*directory.iterdir()]) == 1 and inner[0].is_dir():
        directory = inner[0]
    return directory


def _find_checkout(source: Source, checkout: Path) -> Fetched:
    """Cloned, unless it is there."""
    try:
        if not checkout.is_dir():
            _git("clone", "--quiet", "--depth", "1", source.git, str(checkout))
        top, commit = _git("-C", str(checkout), "rev-parse", "--show-toplevel", "HEAD").split("\n")
    except subprocess.CalledProcessError as error:
        return Fetched(None, f"{source.git}: {error.stderr.strip()}", failed=True)
    if Path(top) != checkout.resolve():
        return Fetched(None, f"{checkout} is not the top of a checkout", failed=True)
    return Fetched(checkout, f"{source.git} {commit}")


def _git(*arguments: str) -> str:
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    argv = ["git", *arguments]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _find_installed(source: Source) -> Fetched:
    below = source.archive.removeprefix("goroot:")
    argv = ["go", "env", "GOROOT", "GOVERSION"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    root, version = done.stdout.split("\n")[:2]
    directory = Path(root) / below
    if not directory.is_dir():
        return Fetched(None, f"{version} in {root} comes without {below}; take that of go.dev/dl")
    return Fetched(directory, f"{version} {directory}")


def _get(client: httpx.Client, url: str) -> bytes:
    answer = client.get(url)
    answer.raise_for_status()
    return answer.content


def _unpack(url: str, content: bytes, digest: str, directory: Path) -> None:
    if digest and hashlib.sha256(content).hexdigest() != digest:
        raise ValueError(f"{url} is not what its registry says it is")
    part = directory.with_name(f"{directory.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    if url.endswith((".zip", ".jar")):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            archive.extractall(part)
    else:
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            for member in archive:
                try:
                    archive.extract(member, part, filter="data")
                except (tarfile.FilterError, OSError):
                    continue  # a link that leads out of it, which a fixture may want
    part.rename(directory)


def _find_crate(client: httpx.Client, name: str) -> tuple[str, str]:
    """https://doc.rust-lang.org/cargo/reference/registry-index.html#index-files"""
    place = f"{name[:2]}/{name[2:4]}" if len(name) > 3 else f"{len(name)}/{name[0]}"
    lines = _get(client, f"https://index.crates.io/{place}/{name}").splitlines()
    rows = [row for line in lines if not (row := json.loads(line))["yanked"]]
    newest = max(rows, key=lambda row: _order(row["vers"]))
    url = f"https://static.crates.io/crates/{name}/{name}-{newest['vers']}.crate"
    return url, newest["cksum"]


def _find_sdist(client: httpx.Client, name: str) -> tuple[str, str]:
    """https://peps.python.org/pep-0691/"""
    answer = client.get(
        f"https://pypi.org/simple/{name}/",
        headers={"Accept": "application/vnd.pypi.simple.v1+json"},
    )
    answer.raise_for_status()
    files = [each for each in answer.json()["files"] if each["filename"].endswith(".tar.gz")]
    newest = max(files, key=lambda each: _order(each["filename"][:-7].rpartition("-")[2]))
    return urljoin(str(answer.url), newest["url"]), newest["hashes"]["sha256"]


def _find_npm(client: httpx.Client, name: str) -> tuple[str, str]:
    document = json.loads(_get(client, f"https://registry.npmjs.org/{name}"))
    return document["versions"][document["dist-tags"]["latest"]]["dist"]["tarball"], ""


def _find_go(client: httpx.Client, module: str) -> tuple[str, str]:
    """https://go.dev/ref/mod#goproxy-protocol"""
    versions = _get(client, f"https://proxy.golang.org/{module}/@v/list").decode().split()
    newest = max(versions, key=_order)
    return f"https://proxy.golang.org/{module}/@v/{newest}.zip", ""


def _find_debian(client: httpx.Client, name: str) -> tuple[str, str]:
    """https://www.debian.org/doc/debian-policy/ch-controlfields.html#checksums-sha1-and-checksums-sha256"""
    index = lzma.decompress(_get(client, f"{DEBIAN}/dists/trixie/main/source/Sources.xz")).decode()
    found = [each for each in index.split("\n\n") if each.startswith(f"Package: {name}\n")]
    files = re.findall(r"^ ([0-9a-f]{64}) \d+ (\S+\.orig\.tar\.\w+)$", found[-1], re.MULTILINE)
    where = re.search(r"^Directory: (\S+)$", found[-1], re.MULTILINE)
    if where is None:
        raise LookupError(f"Debian does not say where {name} is")
    digest, file = files[0]
    return f"{DEBIAN}/{where[1]}/{file}", digest


def _find_central(client: httpx.Client, name: str) -> tuple[str, str]:
    """https://maven.apache.org/repositories/metadata.html"""
    group, artifact, suffix = name.split(":")
    base = f"https://repo.maven.apache.org/maven2/{group.replace('.', '/')}/{artifact}"
    metadata = ET.fromstring(_get(client, f"{base}/maven-metadata.xml"))
    version = metadata.findtext("versioning/release")
    return f"{base}/{version}/{artifact}-{version}-{suffix}", ""


def _order(version: str) -> tuple[bool, Version]:
    """The newest last, and before it what is no release."""
    try:
        parsed = Version(version)
    except InvalidVersion:
        return False, Version("0")
    return not parsed.is_prerelease, parsed


_FINDERS: Final[Mapping[str, Callable[[httpx.Client, str], tuple[str, str]]]] = {
    "crate": _find_crate,
    "sdist": _find_sdist,
    "npm": _find_npm,
    "go": _find_go,
    "debian": _find_debian,
    "central": _find_central,
}
