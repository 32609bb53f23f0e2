"""What says where files come from, in `dir:` registries: any web server serves it, and the official
clients find and verify it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import subprocess
import urllib.request
from importlib import import_module
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from unittest import mock

import pypi_attestations
import pytest
from sigstore.verify import Verifier

import distributions
import javascript
from integration.servers import static_server
from integration.tools import require_tool
from provenance import official, tampering, targets, tuf
from releasekit.ecosystems import ECOSYSTEMS
from releasekit.ecosystems.directory import DirectoryRegistry
from releasekit.errors import PackageError
from releasekit.fields import replace
from releasekit.host import durable
from releasekit.model import Package, PackageId
from releasekit.provenance.bundle import read
from releasekit.provenance.statement import PUBLISH, SLSA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from provenance.sigstore_double import Sigstore
    from releasekit.ecosystems.directory import Layout
    from releasekit.model import Artifact

WIDGETS = distributions.package("widgets")
CORE = PackageId("npm", "@acme/core")


@pytest.fixture
def www(tmp_path: Path) -> Path:
    (tmp_path / "www").mkdir()
    return tmp_path / "www"


@pytest.fixture
def origin(www: Path) -> Iterator[str]:
    with static_server(www) as url:
        yield url


def publish(
    sigstore: Sigstore | None, package: Package, files: list[Artifact], www: Path, url: str = ""
) -> list[Artifact]:
    """The files as they were sent: without `sigstore`, as they are."""

    async def main() -> list[Artifact]:
        ecosystem = package.id.ecosystem
        async with targets.opened(
            ecosystem,
            package.directory,
            f"dir:{www}",
            {},
            ecosystem_tables={ecosystem: {"directory-url": url}} if url else {},
        ) as target:
            sent = await targets.attested(sigstore, target, package, *files) if sigstore else files
            await target.registry.upload(package, sent)
            return sent

    return asyncio.run(main())


def python_package(root: Path, version: str = "1.0.0") -> tuple[Package, list[Artifact]]:
    package = replace(WIDGETS, version=version, directory=root, manifest=root / "pyproject.toml")
    return package, list(distributions.both(root / "dist" / version, package))


def npm_package(root: Path, version: str = "1.0.0") -> tuple[Package, list[Artifact]]:
    javascript.write(root, {"package.json": {"name": CORE.name, "version": version}})
    package = Package(id=CORE, version=version, directory=root, manifest=root / "package.json")
    return package, [javascript.tarball(root / "dist" / version, package)]


def fetched(url: str) -> bytes:
    with urllib.request.urlopen(url) as response:
        data: bytes = response.read()
    return data


def entries(www: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((www / "simple/widgets/index.json").read_bytes())[
        "files"
    ]
    return found


def test_pypis_verifier_accepts_a_file_from_a_static_index(
    sigstore: Sigstore, tmp_path: Path, www: Path, origin: str
) -> None:
    """R14: what a client reads off the page, fetches, and holds against the file it has got."""
    package, files = python_package(tmp_path)
    publish(sigstore, package, files, www, origin)
    page = json.loads(fetched(f"{origin}/simple/widgets/index.json"))
    assert page["meta"] == {"api-version": "1.3"}
    verifier = Verifier(trusted_root=official.trust(sigstore).trusted_root)
    for entry in page["files"]:
        provenance = pypi_attestations.Provenance.model_validate_json(fetched(entry["provenance"]))
        (bundle,) = provenance.attestation_bundles
        assert bundle.publisher.kind == "GitHub"
        content = fetched(f"{origin}/simple/widgets/{entry['url']}")
        distribution = pypi_attestations.Distribution(
            name=entry["filename"], digest=hashlib.sha256(content).hexdigest()
        )
        with mock.patch.object(Verifier, "production", return_value=verifier):
            kind, _ = bundle.attestations[0].verify(bundle.publisher, distribution)
        assert kind == PUBLISH
        assert (
            f'data-provenance="{entry["provenance"]}"'
            in (www / "simple/widgets/index.html").read_text()
        )


def test_an_address_that_nobody_knows_is_not_written(
    sigstore: Sigstore, tmp_path: Path, www: Path
) -> None:
    """It has to be absolute, and clients read no page with another one; the file lies there."""
    package, files = python_package(tmp_path)
    publish(sigstore, package, files, www)
    assert all("provenance" not in entry for entry in entries(www))
    assert "data-provenance" not in (www / "simple/widgets/index.html").read_text()
    for file in files:
        assert (www / f"files/widgets/{file.filename}.provenance").is_file()
    # Another version, once the address is known, puts it on the page of all.
    publish(None, *python_package(tmp_path, "1.1.0"), www, "https://pkgs.example/py/")
    attested = {entry["filename"]: entry.get("provenance") for entry in entries(www)}
    assert {name: bool(url) for name, url in attested.items()} == {
        "widgets-1.0.0-py3-none-any.whl": True,
        "widgets-1.0.0.tar.gz": True,
        "widgets-1.1.0-py3-none-any.whl": False,
        "widgets-1.1.0.tar.gz": False,
    }
    assert attested["widgets-1.0.0.tar.gz"] == (
        "https://pkgs.example/py/files/widgets/widgets-1.0.0.tar.gz.provenance"
    )


_INSTALL = """
const pacote = require(`${process.argv[1]}/node_modules/pacote`)
const [, , registry, cache, tufCache, into] = process.argv
const options = { registry, cache, tufCache, verifyAttestations: true, fullMetadata: true }
const main = async () => {
  const found = await pacote.manifest('@acme/core@1.0.0', options)
  await pacote.extract('@acme/core@1.0.0', into, options)
  console.log(JSON.stringify({ shown: found._attestations, name: found.name }))
}
main().catch(error => { console.error(error.code, error.message); process.exit(1) })
"""


def install(sigstore: Sigstore, origin: str, lab: Path) -> subprocess.CompletedProcess[str]:
    """As npm does, by its own library, with the root of trust of the double."""
    lab.mkdir()
    cache = tuf.seeded(lab / "tuf", sigstore.trusted_root.read_bytes())
    argv: list[str | Path] = [
        require_tool("node"),
        "-e",
        _INSTALL,
        official.npm_itself(),
        f"{origin}/",
        lab / "cache",
        cache,
        lab / "installed",
    ]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def test_npm_installs_from_a_static_registry_and_verifies(
    sigstore: Sigstore, tmp_path: Path, www: Path, origin: str
) -> None:
    publish(sigstore, *npm_package(tmp_path), www, origin)
    done = install(sigstore, origin, tmp_path / "lab")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {
        "name": "@acme/core",
        "shown": {
            "url": f"{origin}/-/npm/v1/attestations/@acme/core@1.0.0",
            "provenance": {"predicateType": SLSA},
        },
    }
    assert (tmp_path / "lab/installed/package.json").is_file()


@pytest.mark.parametrize(
    ("tamper", "told"),
    [
        (tampering.changed_statement, "EATTESTATION"),
        (tampering.of_another_file, "EATTESTATIONSUBJECT"),
        (tampering.another_name, "EATTESTATIONSUBJECT"),
        (tampering.foreign_certificate, "EATTESTATIONVERIFY"),
        (tampering.expired_certificate, "EATTESTATIONVERIFY"),
    ],
)
def test_npm_does_not_install_what_was_tampered_with(
    sigstore: Sigstore,
    tmp_path: Path,
    www: Path,
    origin: str,
    tamper: Callable[[Sigstore, bytes, Path], bytes],
    told: str,
) -> None:
    """R29: whoever can write to the directory cannot make npm believe another origin."""
    package, files = npm_package(tmp_path)
    (sent,) = publish(sigstore, package, files, www, origin)
    assert sent.attestation is not None
    statement = json.loads(sigstore.entries[-1].payload)
    forged = json.loads(tamper(sigstore, json.dumps(statement).encode(), tmp_path))
    page = www / "-/npm/v1/attestations/@acme/core@1.0.0"
    document = {"attestations": [{"predicateType": SLSA, "bundle": forged}]}
    page.write_text(json.dumps(document))
    done = install(sigstore, origin, tmp_path / "lab")
    assert done.returncode == 1
    assert told in done.stderr


def test_an_address_that_changes_counts_for_attestations_too(
    sigstore: Sigstore, tmp_path: Path, www: Path
) -> None:
    publish(sigstore, *npm_package(tmp_path), www, "https://x.example/npm")
    publish(None, *npm_package(tmp_path, "1.1.0"), www, "https://y.example")
    versions = json.loads((www / "@acme/core").read_bytes())["versions"]
    assert versions["1.0.0"]["dist"]["attestations"] == {
        "url": "https://y.example/-/npm/v1/attestations/@acme/core@1.0.0",
        "provenance": {"predicateType": SLSA},
    }
    assert "attestations" not in versions["1.1.0"]["dist"]


class Killed(BaseException):
    """Nothing catches it: no better than SIGKILL, and in the same place every time."""


def writes(package: Package, files: list[Artifact], www: Path) -> list[str]:
    """The names of what an upload puts into place, in order."""
    names: list[str] = []

    def replace_(path: Path, data: bytes, *, temporary: Path) -> None:
        names.append(path.name)
        REPLACE(path, data, temporary=temporary)

    with mock.patch.object(durable, "replace", replace_):
        publish(None, package, files, www, "https://x.example")
    return names


REPLACE = durable.replace


@pytest.mark.parametrize("make", [python_package, npm_package])
def test_a_kill_between_files_leaves_what_the_next_call_completes(
    sigstore: Sigstore,
    tmp_path: Path,
    make: Callable[[Path], tuple[Package, list[Artifact]]],
) -> None:
    """R12: at each write; and no page ever shows a file whose attestation is not there."""
    package, files = make(tmp_path)
    sent = publish(sigstore, package, files, tmp_path / "whole", "https://x.example")
    whole = contents(tmp_path / "whole")
    total = len(writes(package, sent, tmp_path / "counted"))
    assert total >= 3
    for killed_at in range(total):
        www = tmp_path / f"www-{killed_at}"
        left = iter(range(killed_at))

        def die(path: Path, data: bytes, *, temporary: Path, left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                raise Killed
            REPLACE(path, data, temporary=temporary)

        with mock.patch.object(durable, "replace", die), pytest.raises(Killed):
            publish(None, package, sent, www, "https://x.example")
        for path in www.rglob("*.tar.gz"):
            assert path.with_name(f"{path.name}.provenance").is_file()
        publish(None, package, sent, www, "https://x.example")
        assert contents(www) == whole


def contents(www: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(www)): path.read_bytes() for path in www.rglob("*") if path.is_file()
    }


@pytest.mark.parametrize("make", [python_package, npm_package])
def test_what_is_there_is_never_replaced(
    sigstore: Sigstore,
    tmp_path: Path,
    www: Path,
    make: Callable[[Path], tuple[Package, list[Artifact]]],
) -> None:
    """Neither by another signature of the same file, nor is one given to a file without."""
    package, files = make(tmp_path)
    publish(sigstore, package, files[:1], www, "https://x.example")
    before = contents(www)
    publish(sigstore, package, files[:1], www, "https://x.example")
    assert contents(www) == before
    bare = tmp_path / "bare"
    publish(None, package, files[:1], bare, "https://x.example")
    before = contents(bare)
    publish(sigstore, package, files[:1], bare, "https://x.example")
    assert contents(bare) == before


@pytest.mark.parametrize("make", [python_package, npm_package])
def test_a_bundle_that_was_changed_on_disk_stores_nothing(
    sigstore: Sigstore,
    tmp_path: Path,
    www: Path,
    make: Callable[[Path], tuple[Package, list[Artifact]]],
) -> None:
    package, files = make(tmp_path)
    (sent,) = publish(sigstore, package, files[:1], tmp_path / "elsewhere")
    assert sent.attestation is not None
    sent.attestation.path.write_bytes(b"{}")
    with pytest.raises(PackageError, match="is not the attestation that was signed"):
        publish(None, package, [sent], www)
    assert set(contents(www)) <= {".lock"}


@pytest.mark.parametrize("ecosystem", ["cargo", "go", "maven"])
def test_where_no_client_looks_for_one_there_is_none(
    sigstore: Sigstore, tmp_path: Path, ecosystem: str
) -> None:
    """Of a file that has one all the same, as in a release of several ecosystems."""
    package, files = python_package(tmp_path)
    (sent,) = publish(sigstore, package, files[:1], tmp_path / "www")
    assert sent.attestation is not None
    declared = ECOSYSTEMS[ecosystem]
    module = import_module(f"{declared.folder}.target")
    layout: Layout = module.layout(declared.options(), declared.inputs())
    assert layout.attestation(package, sent.filename, read(sent.attestation)) is None
    with (
        mock.patch.object(layout, "path_for", return_value=PurePosixPath("file")),
        mock.patch.object(layout, "pages", return_value=[]),
    ):
        asyncio.run(DirectoryRegistry(tmp_path / "bare", layout).upload(package, [sent]))
    assert set(contents(tmp_path / "bare")) == {".lock", "file"}
