from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import zipfile
from typing import TYPE_CHECKING

import pytest

import distributions
from releasekit.config.values import Dist
from releasekit.ecosystems.pypi import distribution
from releasekit.ecosystems.pypi.registry import make_attested_form
from releasekit.errors import PackageError
from releasekit.host.artifact_reader import open_artifact

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.ecosystems.pypi.distribution import Form
    from releasekit.model import Artifact

PACKAGE = distributions.package()
FULL = b"""\
Metadata-Version: 2.4
Name: Acme.Core
Version: 1.0.0
Dynamic: classifier
Platform: any
Supported-Platform: linux
Summary: The core
Author: A
Author-email: a@example.com
Maintainer: M
License-Expression: MIT
License-File: LICENSE
License-File: NOTICE
Keywords: one,two
Classifier: Framework :: Pytest
Classifier: Topic :: Utilities
Requires-Dist: httpx>=0.28; extra == "http"
Requires-Dist: rich
Requires-Python: >=3.11
Project-URL: Home, https://example.com
Project-URL: Docs, https://docs.example.com
Provides-Extra: http
Import-Name: acme.core
Import-Namespace: acme
X-Unknown: dropped
Description-Content-Type: text/markdown

# Acme "core"
"""


def form_of(artifact: Artifact) -> Form:
    with open_artifact(artifact) as file:
        form = make_attested_form(file, None)
        assert file.read() == artifact.path.read_bytes()
    return form


def test_every_field_of_core_metadata_is_in_the_form(tmp_path: Path) -> None:
    artifact = distributions.sdist(tmp_path, PACKAGE, info=FULL)
    data = artifact.path.read_bytes()
    assert form_of(artifact) == {
        ":action": "file_upload",
        "protocol_version": "1",
        "filetype": "sdist",
        "pyversion": "source",
        "sha256_digest": hashlib.sha256(data).hexdigest(),
        "blake2_256_digest": hashlib.blake2b(data, digest_size=32).hexdigest(),
        "metadata_version": "2.4",
        "name": "Acme.Core",
        "version": "1.0.0",
        "dynamic": ["classifier"],
        "platform": ["any"],
        "supported_platform": ["linux"],
        "summary": "The core",
        "author": "A",
        "author_email": "a@example.com",
        "maintainer": "M",
        "license_expression": "MIT",
        "license_file": ["LICENSE", "NOTICE"],
        "keywords": "one, two",
        "classifiers": ["Framework :: Pytest", "Topic :: Utilities"],
        "requires_dist": ['httpx>=0.28; extra == "http"', "rich"],
        "requires_python": ">=3.11",
        "project_urls": ["Home, https://example.com", "Docs, https://docs.example.com"],
        "provides_extra": ["http"],
        "import_name": ["acme.core"],
        "import_namespace": ["acme"],
        "description": '# Acme "core"\n',
        "description_content_type": "text/markdown",
    }


@pytest.mark.parametrize(("version", "kept"), [("2.3", False), ("2.4", True), ("new", True)])
def test_license_files_of_old_metadata_are_left_out(
    tmp_path: Path, version: str, kept: bool
) -> None:
    info = f"Metadata-Version: {version}\nName: a\nVersion: 1\nLicense-File: LICENSE\n".encode()
    assert ("license_file" in form_of(distributions.sdist(tmp_path, PACKAGE, info=info))) is kept


def test_a_wheel_tells_its_python_tag(tmp_path: Path) -> None:
    wheel = distributions.wheel(tmp_path, PACKAGE)
    form = form_of(wheel)
    assert (form["filetype"], form["pyversion"], form["name"]) == (
        "bdist_wheel",
        "py3",
        "acme-core",
    )
    tagged = wheel.path.with_name("acme_core-1.0.0-1-cp39.cp310-abi3-any.whl")
    wheel.path.rename(tagged)
    assert form_of(distributions.artifact(tagged))["pyversion"] == "cp39.cp310"


def zipped(**files: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in files.items():
            archive.writestr(name.replace("__", "/"), data)
    return buffer.getvalue()


def tarred(name: str, data: bytes, kind: bytes = tarfile.REGTYPE) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        entry = tarfile.TarInfo(name)
        entry.size, entry.type = len(data), kind
        archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


WHEEL = "acme_core-1.0.0-py3-none-any.whl"
SDIST = "acme_core-1.0.0.tar.gz"
NAMELESS = b"Metadata-Version: 2.1\nVersion: 1\n"


# Eight megabytes of each took minutes, or gigabytes.
UNUSUAL = [
    (b"Requires-Dist: a" + b">=1," * 1_000 + b"\n" + FULL, "too long a Requires-Dist"),
    (b"Requires-Dist: a" + b"\n >=1," * 1_000 + b"\n" + FULL, "too long a Requires-Dist"),
    ((b"Requires-Dist: a" + b"a" * 3_000 + b"\n") * 400 + FULL, "too long a Requires-Dist"),
    (b"requires-python: " + b">=1," * 1_000 + b"\n" + FULL, "too long a Requires-Python"),
    (b"License-Expression: " + b"MIT OR " * 1_000 + b"MIT\n" + FULL, "too long a License-Expr"),
    (b"Description-Content-Type: " + b"a " * 2_000 + b"\n" + FULL, "too long a Description-Con"),
    (b"Content-Transfer-Encoding: base64\n" + FULL, "a Content-Transfer-Encoding, which is"),
    (b"Content-Type: multipart/mixed\n" + FULL, "a Content-Type, which is that of a mail"),
    (FULL + b"\n\n" + b"a\n" * 200_000, "more than 200000 lines"),
    (FULL + b"\n\n" + b"a\r" * 200_000, "more than 200000 lines"),
    (b"Classifier: a\n" * 20_001 + FULL, "more than 200 kinds of headers, or 20000 lines"),
]


@pytest.mark.parametrize(
    ("filename", "data", "message"),
    [
        ("acme_core-1.0.0.rpm", tarred("a/PKG-INFO", FULL), "neither a wheel nor a source"),
        (WHEEL, b"no zip", "not a readable archive"),
        (WHEEL, zipped(é=b"").replace("é".encode(), b"\xff\xfe"), "not a readable archive"),
        (WHEEL, zipped(a__METADATA=FULL, METADATA=FULL), "without core metadata"),
        (WHEEL, zipped(**{"a.dist-info__METADATA": NAMELESS}), "no Metadata-Version, Name"),
        (SDIST, b"no gzip", "not a readable archive"),
        (SDIST, gzip.compress(b"no tar"), "not a readable archive"),
        (SDIST, tarred("a/PKG-INFO", FULL)[:60], "not a readable archive"),
        (SDIST, tarred("PKG-INFO", FULL), "without core metadata"),
        (SDIST, tarred("a/b/PKG-INFO", FULL), "without core metadata"),
        (SDIST, tarred("a/PKG-INFO", b"", tarfile.DIRTYPE), "without core metadata"),
        (SDIST, tarred("a/PKG-INFO", NAMELESS), "no Metadata-Version, Name"),
        (
            SDIST,
            tarred("a/PKG-INFO", b"".join(b"X-%d: 1\n" % number for number in range(201)) + FULL),
            "more than 200 kinds of headers",
        ),
        (
            SDIST,
            tarred("a/PKG-INFO", b"Description-Content-Type: " + b";" * 101 + b"\n" + FULL),
            "more than 100 brackets or semicolons",
        ),
        (
            SDIST,
            tarred("a/PKG-INFO", b"Requires-Dist: a; " + b"(" * 101 + b"\n" + FULL),
            "more than 100 brackets or semicolons",
        ),
        *(
            (SDIST, tarred("a/PKG-INFO", text), f"its metadata has {reason}")
            for text, reason in UNUSUAL
        ),
    ],
)
def test_what_is_no_distribution_is_refused_by_name(
    tmp_path: Path, filename: str, data: bytes, message: str
) -> None:
    path = tmp_path / filename
    path.write_bytes(data)
    with pytest.raises(PackageError, match=rf"^{filename}: .*{message}"):
        form_of(distributions.artifact(path))


def test_a_link_out_of_the_archive_is_no_metadata(tmp_path: Path) -> None:
    """R36"""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        entry = tarfile.TarInfo("a/PKG-INFO")
        entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(entry)
    path = tmp_path / SDIST
    path.write_bytes(buffer.getvalue())
    with pytest.raises(PackageError, match=SDIST):
        form_of(distributions.artifact(path))


@pytest.mark.parametrize("filename", [WHEEL, SDIST])
def test_metadata_is_read_up_to_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, filename: str
) -> None:
    """R40"""
    monkeypatch.setattr(distribution, "MAX_METADATA_BYTES", 10)
    make = distributions.wheel if filename == WHEEL else distributions.sdist
    with pytest.raises(PackageError, match="metadata over 10 bytes"):
        form_of(make(tmp_path, PACKAGE, text="A = 1\n"))


def test_an_archive_is_unpacked_up_to_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R40"""
    monkeypatch.setattr(distribution, "MAX_UNPACKED_BYTES", 1000)
    with pytest.raises(PackageError, match="unpacks to more than 1000 bytes"):
        form_of(distributions.sdist(tmp_path, PACKAGE, text="A" * 4000))


def test_files_tell_what_no_hook_has_to_be_asked(tmp_path: Path) -> None:
    """A wheel's metadata is whole; an sdist's says what it leaves open."""
    core = distributions.metadata(distributions.package("whole", "1.2"))
    infos = {
        "whole": core,
        "dynamic": b"Dynamic: Requires-Dist\n" + core.replace(b"whole", b"dynamic"),
        "old": core.replace(b"whole", b"old").replace(b"Version: 2.3", b"Version: 2.1"),
        "broken": b"Metadata-Version: x\n",
    }
    for name, info in infos.items():
        distributions.sdist(tmp_path, distributions.package(name, "1.2"), info=info)
    both = distributions.package("both", "1.2")
    distributions.sdist(tmp_path, both)
    distributions.wheel(tmp_path, both, requires=["whole"])
    distributions.wheel(tmp_path, distributions.package("unasked", "1.2"))
    dist = [Dist(tmp_path, "dist")]
    told = distribution.read_dist_metadata(dist, {*infos, "both"})
    assert told.keys() == {"whole", "both"}
    assert "Requires-Dist: whole" in told["both"]
    assert distribution.read_dist_metadata([Dist(tmp_path, "dist", owner="npm")], {"whole"}) == {}
