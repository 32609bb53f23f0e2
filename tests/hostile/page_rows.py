"""What an index may say of a package: pages of JSON, HTML, and lines of JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from effort import SEARCHING
from hostile.answers import DONE, FAILED, Row, Stage
from hostile.registries import crate_line
from hostile.wire import Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from hostile.http_tricks import Moment, Trick
    from hostile.wire import Part

# The package is looked up, and what is said of it is of no use.
PATIENT: Final = ("--task-timeout", "2s")
# Where a proxy is asked until the time is up, and only the end counts.
SHORTLY: Final = ("--task-timeout", "1s")
EITHER: Final = frozenset({0, 1})
MANY: Final = 10**5 if SEARCHING else 10**4
_LINKS: Final = 10**6 if SEARCHING else 10**5
_OURS: Final = "core-1.0.0-py3-none-any.whl"
_DEEP: Final = 100_000
_HUGE: Final = "7" * 5000
COMMAND: Final = "x\n::error::INJECTED\r##[error]INJECTED\x1b[2J\u2028\u202e.tar.gz"
_SHA: Final = "0" * 64


def page(body: bytes | Callable[[], bytes], kind: str = "application/json") -> Trick:
    """Always this page; what is large is made when it is asked for."""

    def answer(_moment: Moment) -> Iterator[Part]:
        yield Reply(body=body if isinstance(body, bytes) else body(), kind=kind).wire()

    return answer


def _simple(*files: object, **more: object) -> bytes:
    return json.dumps({"meta": {"api-version": "1.1"}, "files": [*files], **more}).encode()


def _file(name: str = _OURS, **hashes: object) -> dict[str, object]:
    return {"filename": name, "url": name, "hashes": hashes or {"sha256": _SHA}}


_SIMPLE: Final = "application/vnd.pypi.simple.v1+json"
_NUMBER: Final = b'{"files": [], "versions": [%s]}'
# What every JSON may hold; {} is where a protocol's own fields are.
_JSON: Final[Mapping[str, bytes]] = {
    "integer-of-5000-digits": b'{"x": ' + _HUGE.encode() + b", %s}",
    "numbers-that-are-none": b'{"x": [NaN, -Infinity, 1e999999], %s}',
    "deep-arrays": b'{"x": ' + b"[" * _DEEP + b"]" * _DEEP + b", %s}",
    "deep-objects": b'{"x": ' + b'{"x":' * _DEEP + b"1" + b"}" * _DEEP + b", %s}",
    "lone-surrogates": b'{"x": "\\ud800", "\\udfff": 1, %s}',
    "keys-twice": b'{"x": 1, %s, "x": 2}',
    "no-utf-8": b'{"x": "\xff\xfe", %s}',
    "end-missing": b'{"x": 1, %s',
}
_FIELDS: Final = {
    "pypi": (b'"files": []', _SIMPLE),
    "npm": (b'"versions": {}, "dist-tags": {}', "application/json"),
    "cargo": (b'"name": "acme-core", "vers": "0.9.0", "cksum": "%s"' % (b"0" * 64), "text/plain"),
    "go": (b'"Version": "v0.9.0"', "application/json"),
}
# Those that some parsers take, and a release may well go on; what is no JSON stops it.
_READABLE: Final = frozenset({"numbers-that-are-none", "lone-surrogates", "keys-twice"})


def _json() -> Iterator[Row]:
    for name, form in _JSON.items():
        for protocol, (fields, kind) in _FIELDS.items():
            yield Row(
                name=f"json-{name}",
                trick=page(form.replace(b"%s", fields), kind),
                stage=Stage.READ if protocol == "go" else Stage.LOOK,
                at=".info" if protocol == "go" else "",
                codes=EITHER if protocol != "go" else FAILED,
                argv=SHORTLY if protocol == "go" else PATIENT,
                protocols=(protocol,),
            )


def _pypi() -> Iterator[Row]:
    def look(name: str, body: bytes | Callable[[], bytes], kind: str = _SIMPLE) -> Row:
        row = Row(name=name, trick=page(body, kind), stage=Stage.LOOK, protocols=("pypi",))
        return replace(row, codes=EITHER)

    yield look(
        f"{MANY}-versions", lambda: _simple(*(_file(f"core-0.{n}.tar.gz") for n in range(MANY)))
    )
    yield look("name-of-1MB", lambda: _simple(_file("core-" + "1." * 500_000 + "0.tar.gz")))
    tags = ".".join(["py3"] * 9999)
    yield look("tags-without-end", _simple(_file(f"core-1.0.0-{tags}-none-any.whl")))
    yield look("names-with-commands", _simple(_file(COMMAND), _file("core-1.0.0" + COMMAND)))
    yield look("html-1e6-openings", lambda: b"<" * 10**6, "text/html")
    yield look(f"html-{_LINKS}-links", lambda: b"<a href=x>" * _LINKS, "text/html")
    yield look("html-1e6-attributes", lambda: b"<a " + b"x " * 10**6, "text/html")
    yield look("html-1e6-entities", lambda: b"<a href='" + b"&amp" * 10**6 + b"'>", "text/html")
    yield look("html-open-comment", lambda: b"<!--" * 10**5, "text/html")
    for name, files in (
        ("digest-of-1MB", _file(sha256="0" * 10**6)),
        ("digest-that-is-none", _file(sha256="zz" * 32)),
        ("digest-with-commands", _file(sha256="0\n::error::INJECTED\x1b[2J")),
        ("digest-of-another-kind", _file(md5="0" * 32)),
        ("digest-of-no-kind", _file(sha256=7)),
        ("digest-of-others", _file()),
    ):
        # Our name, and nobody can say that these are our bytes.
        yield replace(look(name, _simple(files)), codes=FAILED)
    for name, document in (
        ("files-a-table", {"files": {}}),
        ("a-file-a-number", {"files": [7]}),
        ("filename-a-list", {"files": [{"filename": []}]}),
        ("a-list", []),
        ("null", None),
    ):
        yield replace(look(f"types-{name}", json.dumps(document).encode()), codes=FAILED)
    dots = _simple(_file("../../core-1.0.0.tar.gz"), _file("core-1.0.0/../x.whl"))
    yield look("names-with-dots", dots)


def _npm() -> Iterator[Row]:
    def look(name: str, document: object, codes: frozenset[int] = FAILED) -> Row:
        body = json.dumps(document).encode()
        return Row(name=name, trick=page(body), stage=Stage.LOOK, protocols=("npm",), codes=codes)

    for name, dist in (
        ("digest-of-1MB", {"integrity": "sha512-" + "A" * 10**6}),
        ("digest-that-is-none", {"integrity": "sha512-!!", "shasum": "zz"}),
        ("digest-with-commands", {"shasum": "0\n::error::INJECTED\x1b[2J"}),
        ("digest-of-another-kind", {"integrity": "md5-AAAA"}),
        ("digest-a-table", {"integrity": {}, "shasum": []}),
        ("dist-a-list", [1]),
    ):
        # As the document of a version, and in that of the package.
        entry: dict[str, object] = {"name": "@acme/core", "version": "1.0.0", "dist": dist}
        yield look(name, {**entry, "versions": {"1.0.0": entry}})
    versions = {f"0.{number}.0": {"dist": {"shasum": "0" * 40}} for number in range(MANY)}
    for name, document in (
        (f"{MANY}-versions", {"versions": versions, "dist-tags": {"latest": "0.1.0"}}),
        ("tags-a-list", {"versions": {}, "dist-tags": []}),
        ("versions-a-list", {"versions": [], "dist-tags": {"latest": {}}}),
        ("latest-of-1e5-digits", {"versions": {}, "dist-tags": {"latest": "9" * 10**5 + ".0.0"}}),
        ("latest-with-commands", {"versions": {}, "dist-tags": {"latest": COMMAND}}),
    ):
        yield replace(
            look(name, document, EITHER), trick=_packument(document), argv=("--npm-tag", "")
        )
    yield look("a-list", [])


def _packument(document: object) -> Trick:
    def answer(moment: Moment) -> Iterator[Part]:
        if moment.request.path.endswith("/1.0.0"):
            yield Reply(404, b"{}").wire()
        else:
            yield Reply(body=json.dumps(document).encode()).wire()

    return answer


def _cargo() -> Iterator[Row]:
    def line(**changes: Any) -> bytes:
        return json.dumps({**json.loads(crate_line("acme-core", "1.0.0", b"")), **changes}).encode()

    rows: Mapping[str, tuple[bytes | Callable[[], bytes], frozenset[int]]] = {
        "digest-of-1MB": (line(cksum="0" * 10**6), FAILED),
        "digest-that-is-none": (line(cksum="zz"), FAILED),
        "digest-with-commands": (line(cksum="0\n::error::INJECTED\x1b[2J"), FAILED),
        "digest-a-number": (line(cksum=7), FAILED),
        "digest-of-others": (line(), FAILED),
        "version-of-1e5-digits": (line(vers="9" * 10**5 + ".0.0"), EITHER),
        "version-a-list": (line(vers=[]), FAILED),
        "name-with-commands": (line(name=COMMAND, vers="0.1.0"), EITHER),
        "a-line-a-list": (b"[]\n7\n", FAILED),
        "1e6-line-ends": (b"\n" * 10**6, EITHER),
        f"{MANY}-versions": (
            lambda: b"\n".join(line(vers=f"0.{number}.0") for number in range(MANY)),
            EITHER,
        ),
    }
    for name, (body, codes) in rows.items():
        yield Row(
            name=name,
            trick=page(body, "text/plain"),
            stage=Stage.LOOK,
            protocols=("cargo",),
            codes=codes,
        )
    for name, config in (
        ("api-a-file", {"dl": "x", "api": "file:///proc/self/environ"}),
        ("api-over-http", {"dl": "x", "api": "http://registry.example/"}),
        ("api-a-number", {"dl": "x", "api": 7}),
        ("api-with-commands", {"dl": "x", "api": "https://a/" + COMMAND}),
        ("api-without-host", {"dl": "x", "api": "https://[::1"}),
        ("api-of-1MB", {"dl": "x", "api": "https://" + "a." * 500_000}),
        ("a-list", []),
    ):
        yield Row(
            name=f"config-{name}",
            trick=page(json.dumps(config).encode()),
            stage=Stage.CONFIG,
            protocols=("cargo",),
        )


def _going_back() -> Iterator[Row]:
    """An index that shows a version, and then another one or none."""
    wheel = page(_simple(_file()), _SIMPLE)
    yield Row(
        name="other-bytes-later",
        trick=wheel,
        stage=Stage.CONFIRM,
        protocols=("pypi",),
        outcomes=("failed", "blocked"),
    )
    line = crate_line("acme-core", "1.0.0", b"").encode()
    yield Row(
        name="other-bytes-later",
        trick=page(line, "text/plain"),
        stage=Stage.CONFIRM,
        protocols=("cargo",),
        outcomes=("failed", "blocked"),
    )
    entry = {"name": "@acme/core", "version": "1.0.0", "dist": {"shasum": "0" * 40}}
    yield Row(
        name="other-bytes-later",
        trick=page(json.dumps(entry).encode()),
        stage=Stage.CONFIRM,
        protocols=("npm",),
        outcomes=("failed", "blocked"),
    )
    yield Row(
        name="anothers-page",
        trick=page(_simple(_file("other-1.0.0.tar.gz")), _SIMPLE),
        stage=Stage.CONFIRM,
        protocols=("pypi",),
        argv=PATIENT,
        outcomes=("unknown", "blocked"),
    )
    yield Row(
        name="gone-once-seen",
        trick=page(_simple(), _SIMPLE),
        stage=Stage.CONFIRM,
        first=1,
        at="/core/",
        protocols=("pypi",),
        codes=DONE,
        outcomes=("published", "published"),
    )


ROWS: Final = (
    *_json(),
    *_pypi(),
    *_npm(),
    *_cargo(),
    *_going_back(),
)
