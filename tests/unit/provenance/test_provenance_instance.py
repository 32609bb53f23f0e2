from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest

from raising import raises
from releasekit.errors import ConfigError
from releasekit.problems import Problem
from releasekit.provenance.instance import instance_at

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SIGNING: dict[str, Any] = {
    "mediaType": "application/vnd.dev.sigstore.signingconfig.v0.2+json",
    "caUrls": [
        {
            "url": "https://old.example",
            "majorApiVersion": 1,
            "validFor": {"start": "2021-01-01T00:00:00Z", "end": "2022-01-01T00:00:00Z"},
        },
        {
            "url": "https://fulcio.example",
            "majorApiVersion": 1,
            "validFor": {"start": "2022-01-01T00:00:00.000Z"},
        },
    ],
    "rekorTlogUrls": [
        {"url": "https://rekor2.example", "majorApiVersion": 2, "validFor": {}},
        {
            "url": "https://not-yet.example",
            "majorApiVersion": 1,
            "validFor": {"start": "2999-01-01"},
        },
        {"url": "https://rekor.example/log/", "majorApiVersion": 1},
    ],
}
CONFIG: dict[str, Any] = {
    "mediaType": "application/vnd.dev.sigstore.clienttrustconfig.v0.1+json",
    "trustedRoot": {
        "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
        "certificateAuthorities": [],
        "tlogs": [],
        "ctlogs": [],
    },
    "signingConfig": SIGNING,
}


def written(directory: Path, document: object) -> Path:
    path = directory / "trust.json"
    path.write_text(json.dumps(document))
    return path


def test_without_a_file_it_is_the_public_one() -> None:
    found = instance_at(None)
    assert str(found.authority) == "https://fulcio.sigstore.dev"
    assert str(found.log) == "https://rekor.sigstore.dev"


def test_a_file_names_another_one(tmp_path: Path) -> None:
    """The first service that counts today, of the version that PyPI's verifier takes."""
    found = instance_at(written(tmp_path, CONFIG))
    assert str(found.authority) == "https://fulcio.example"
    assert str(found.log) == "https://rekor.example/log/"


def put(*keys: str | int, value: object) -> Callable[[dict[str, Any]], None]:
    def change(document: Any) -> None:
        *path, last = keys
        for key in path:
            document = document[key]
        document[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (put("mediaType", value="text/plain"), "mediaType is 'text/plain'; it has to be appl"),
        (put("trustedRoot", value=None), "trustedRoot.mediaType is not there; it has to be appl"),
        (put("signingConfig", value=[]), "signingConfig.mediaType is not there; it has to be a"),
        (
            put("signingConfig", "mediaType", value="application/x.v0.1+json"),
            r"signingConfig.mediaType is 'application/x.v0.1\+json'; it has to be",
        ),
        (put("signingConfig", "caUrls", value="x"), "signingConfig.caUrls is 'x'; it has to be"),
        (
            put("signingConfig", "caUrls", value=[]),
            r"signingConfig.caUrls is \[\]; .* certificate authority of majorApiVersion 1",
        ),
        (
            put("signingConfig", "rekorTlogUrls", value=SIGNING["rekorTlogUrls"][:2]),
            "signingConfig.rekorTlogUrls is .*transparency log of majorApiVersion 1",
        ),
        (
            put("signingConfig", "caUrls", 1, "url", value="http://fulcio.example"),
            r"signingConfig.caUrls\[1\].url = http://fulcio.example: must be https://",
        ),
        (
            put("signingConfig", "caUrls", 1, "url", value="https://me:secret@fulcio.example"),
            r"signingConfig.caUrls\[1\].url: a URL with credentials",
        ),
        (
            put("signingConfig", "caUrls", 1, "url", value=7),
            r"signingConfig.caUrls\[1\].url is 7; it has to be a text",
        ),
        (
            put("signingConfig", "caUrls", 0, "validFor", "end", value="soon\x1b[2J"),
            r"signingConfig.caUrls\[0\].validFor.end is 'soon\\x1b\[2J'; it has to be a time",
        ),
        (
            put("signingConfig", "caUrls", 0, "validFor", "start", value=2022),
            r"signingConfig.caUrls\[0\].validFor.start is 2022; it has to be a time",
        ),
    ],
)
def test_what_cannot_be_used_is_named(
    tmp_path: Path, change: Callable[[dict[str, Any]], None], complaint: str
) -> None:
    document = copy.deepcopy(CONFIG)
    change(document)
    path = written(tmp_path, document)
    with pytest.raises(ConfigError, match=f"^trust-config: {path}: {complaint}") as caught:
        instance_at(path)
    assert "secret" not in str(caught.value)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < len(str(path)) + 260


@pytest.mark.parametrize("content", ["", "{", "[" * 500, "[1]", "{} {}", "null", "\xff"])
def test_what_is_no_such_file_is_told_as_that(tmp_path: Path, content: str) -> None:
    path = tmp_path / "trust.json"
    path.write_bytes(content.encode("latin-1"))
    with raises(Problem.TRUST_CONFIG, match=r"^trust-config: .*: (is not JSON|mediaType is)"):
        instance_at(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    says = r"^trust-config: .*: cannot be read \(.*\); write the path of a client trust config$"
    for path in (tmp_path / "trust.json", tmp_path):
        with raises(Problem.TRUST_CONFIG, match=says):
            instance_at(path)
