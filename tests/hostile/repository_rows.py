"""What proxies, repositories and portals may say of a package: zips, XML, checksums, states."""

from __future__ import annotations

import functools
import io
import json
import zipfile
from typing import TYPE_CHECKING, Final

from effort import SEARCHING
from hostile.answers import DONE, FAILED, Row, Stage
from hostile.page_rows import COMMAND, EITHER, MANY, PATIENT, SHORTLY, page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


@functools.cache
def _zip(kind: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        if kind == "bomb":
            with archive.open("example.com/acme/mono/core@v1.0.0/a.go", "w", force_zip64=True) as a:
                for _ in range(1024 if SEARCHING else 256):
                    a.write(bytes(1024 * 1024))
        elif kind == "entries":
            for number in range(MANY):
                archive.writestr(f"{number}", "")
        else:
            archive.writestr("../../../../../tmp/INJECTED\x1b[2J", "")
    return made.getvalue()


def _go() -> Iterator[Row]:
    rows: Mapping[str, tuple[str, bytes | Callable[[], bytes]]] = {
        "info-of-another": (".info", b'{"Version": "v9.9.9"}'),
        "info-with-commands": (".info", json.dumps({"Version": COMMAND}).encode()),
        "info-a-list": (".info", b"[]"),
        "mod-of-others": (".mod", b"module evil\n"),
        "mod-of-50MB": (".mod", lambda: b"x" * 50_000_000),
        "zip-that-is-none": (".zip", b"PK\x05\x06"),
        "zip-bomb": (".zip", lambda: _zip("bomb")),
        f"zip-with-{MANY}-entries": (".zip", lambda: _zip("entries")),
        "zip-with-traversal": (".zip", lambda: _zip("traversal")),
    }
    for name, (at, body) in rows.items():
        yield Row(
            name=name,
            trick=page(body),
            stage=Stage.READ,
            at=at,
            protocols=("go",),
            argv=SHORTLY,
        )


def _xml(text: str) -> bytes:
    return f"<metadata><versioning><versions>{text}</versions></versioning></metadata>".encode()


def _maven() -> Iterator[Row]:
    entities = "".join(f'<!ENTITY e{n} "&e{n - 1};&e{n - 1};">' for n in range(1, 40))
    rows: Mapping[str, tuple[bytes | Callable[[], bytes], frozenset[int]]] = {
        # Read as mvn reads it, which fetches nothing of that.
        "doctype": (b'<!DOCTYPE m SYSTEM "file:///proc/self/environ">' + _xml(""), DONE),
        "entities": (
            f'<!DOCTYPE m [<!ENTITY e0 "x">{entities}]>'.encode() + _xml("&e39;"),
            FAILED,
        ),
        "deep": (lambda: b"<a>" * 10**5 + b"</a>" * 10**5, FAILED),
        "deep-inside": (lambda: _xml("<a>" * 10**5 + "</a>" * 10**5), FAILED),
        "open": (lambda: b"<metadata>" + b"<a>" * 10**6, FAILED),
        "attributes": (b"<metadata " + b" ".join(b"a%d=''" % n for n in range(10**5)), FAILED),
        "another-root": (b"<html/>", FAILED),
        f"{MANY}-versions": (
            lambda: _xml("".join(f"<version>0.{number}</version>" for number in range(MANY))),
            EITHER,
        ),
        "version-of-1MB": (lambda: _xml(f"<version>{'1.' * 500_000}</version>"), EITHER),
        "version-with-commands": (
            _xml("<version>1&#10;::error::INJECTED&#x202e;</version>"),
            EITHER,
        ),
        "utf-16-without-end": (b"\xff\xfe<\0", FAILED),
    }
    for name, (body, codes) in rows.items():
        yield Row(
            name=f"metadata-{name}",
            trick=page(body, "text/xml"),
            stage=Stage.READ,
            at="maven-metadata.xml",
            protocols=("maven",),
            codes=codes,
            argv=PATIENT,
        )
    for name, checksum in (
        ("of-1MB", b"0" * 10**6),
        ("that-is-none", b"<html>zz"),
        ("with-commands", b"\n::error::INJECTED\x1b[2J"),
        ("of-others", b"0" * 40),
        ("empty", b""),
    ):
        yield Row(
            name=f"checksum-{name}",
            trick=page(checksum, "text/plain"),
            stage=Stage.READ,
            at=".sha1",
            protocols=("maven",),
            argv=SHORTLY,
        )

    yield Row(
        name="pom-of-50MB",
        trick=page(lambda: b"x" * 50_000_000, "text/xml"),
        stage=Stage.LOOK,
        at=".pom",
        protocols=("maven",),
    )


def _portal() -> Iterator[Row]:
    for name, identifier in (
        ("of-1MB", b"x" * 10**6),
        ("with-commands", b"1\n::error::INJECTED"),
        ("with-dots", b"../../../../api/v1/token"),
        ("with-a-query", b"1?id=2&x=%0a"),
        ("empty", b""),
    ):
        yield Row(
            name=f"id-{name}",
            trick=page(identifier, "text/plain"),
            stage=Stage.UPLOAD,
            protocols=("portal",),
            argv=SHORTLY,
        )
    wrong = {"pkg:maven/x": ["\n::error::INJECTED\x1b[2J", 7, "\ud800"], "y": {"z": "x" * 10**6}}
    for name, answer in (
        ("pending-for-ever", {"deploymentState": "PENDING"}),
        ("state-with-commands", {"deploymentState": COMMAND}),
        ("state-of-1MB", {"deploymentState": "X" * 10**6}),
        ("state-a-list", {"deploymentState": [[]]}),
        ("errors-with-commands", {"deploymentState": "FAILED", "errors": wrong}),
        ("errors-a-list", {"deploymentState": "FAILED", "errors": [wrong]}),
        ("published-and-never-there", {"deploymentState": "PUBLISHED"}),
    ):
        yield Row(
            name=f"status-{name}",
            trick=page(json.dumps(answer).encode()),
            stage=Stage.CONFIRM,
            at="/status",
            protocols=("portal",),
            argv=PATIENT,
            codes=EITHER,
        )


ROWS: Final = (*_go(), *_maven(), *_portal())
