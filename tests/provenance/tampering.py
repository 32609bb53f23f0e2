"""Bundles that no registry may take for a file, each made of the statement that it would take."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any
from unittest import mock

from provenance import signing, sigstore_double
from releasekit.provenance.certificate import Identity
from releasekit.provenance.statement import canonical

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from provenance.sigstore_double import Sigstore


def changed_statement(sigstore: Sigstore, statement: bytes, _path: Path) -> bytes:
    """Another digest under the signature of the right one."""
    (bundle,) = signing.signed(sigstore, [statement])
    document = json.loads(bundle.text)
    told = json.loads(statement)
    for algorithm, digest in told["subject"][0]["digest"].items():
        told["subject"][0]["digest"][algorithm] = f"{int(digest[0], 16) ^ 1:x}{digest[1:]}"
    document["dsseEnvelope"]["payload"] = base64.b64encode(canonical(told)).decode()
    return canonical(document)


def of_another_file(sigstore: Sigstore, statement: bytes, _path: Path) -> bytes:
    def change(told: dict[str, Any]) -> None:
        told["subject"][0]["digest"] = {
            algorithm: digest[::-1] for algorithm, digest in told["subject"][0]["digest"].items()
        }

    return _signed(sigstore, statement, change)


def two_subjects(sigstore: Sigstore, statement: bytes, _path: Path) -> bytes:
    def change(told: dict[str, Any]) -> None:
        told["subject"].append({**told["subject"][0], "name": f"{told['subject'][0]['name']}.too"})

    return _signed(sigstore, statement, change)


def another_name(sigstore: Sigstore, statement: bytes, _path: Path) -> bytes:
    def change(told: dict[str, Any]) -> None:
        told["subject"][0]["name"] = told["subject"][0]["name"].replace("1.0.0", "1.0.1")

    return _signed(sigstore, statement, change)


def another_repository(sigstore: Sigstore, statement: bytes, _path: Path) -> bytes:
    """As who else can: with a job of its own."""
    sigstore.become("evil/widgets")
    (bundle,) = signing.signed(sigstore, [statement])
    return bundle.text


def foreign_certificate(_sigstore: Sigstore, statement: bytes, path: Path) -> bytes:
    """Of an authority that says the very same, and that nobody trusts."""
    with sigstore_double.serving(path / "foreign") as foreign:
        (bundle,) = signing.signed(foreign, [statement])
    return bundle.text


def expired_certificate(sigstore: Sigstore, statement: bytes, _path: Path) -> bytes:
    """Logged when it was no longer valid, which we would not even send."""
    sigstore.log.shift_s = 700
    with mock.patch.object(Identity, "covers", return_value=True):
        (bundle,) = signing.signed(sigstore, [statement])
    sigstore.log.shift_s = 0
    return bundle.text


EVERYWHERE = (
    *(changed_statement, of_another_file, two_subjects, another_name, another_repository),
    *(foreign_certificate, expired_certificate),
)


def _signed(
    sigstore: Sigstore, statement: bytes, change: Callable[[dict[str, Any]], None]
) -> bytes:
    told = json.loads(statement)
    change(told)
    (bundle,) = signing.signed(sigstore, [canonical(told)])
    return bundle.text


def claiming(sigstore: Sigstore, statement: bytes, claims: Mapping[str, str]) -> bytes:
    """Signed by a job of which GitHub says this too."""
    sigstore.claims.update(claims)
    (bundle,) = signing.signed(sigstore, [statement])
    return bundle.text
