"""Attestations in the forms in which they lie beside files and on registries: Sigstore's bundles,
one or several in lines, provenance objects of Python indexes, and npm's lists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from releasekit.provenance.bundle import MEDIA_TYPE, Bundle
from releasekit.provenance.statement import ABOUT_ORIGIN, PAYLOAD_TYPE, SLSA, canonical
from releasekit.text.json_text import parse_json, values_in

if TYPE_CHECKING:
    from collections.abc import Iterator

# A release of 20,000 files has twenty statements; each of them takes half a megabyte.
MAX_BYTES: Final = 32 * 1024 * 1024
MAX_BUNDLES: Final = 1_000
# There may be empty ones.
_MAX_LINES: Final = 10 * MAX_BUNDLES
# In all that is signed, and in what is around it. A thousand statements about one file each have
# 200,000, twenty about a thousand files 120,000.
MAX_VALUES: Final = 500_000


def bundles_of(data: bytes) -> list[Bundle]:
    """All that `data` holds, unchecked. Raises ValueError that says what is wrong with it."""
    if len(data) > MAX_BYTES:
        raise ValueError(f"has more than {MAX_BYTES} bytes")
    found: list[Bundle] = []
    values = 0
    for document in _documents(data):
        for each in _bundles(document):
            if len(found) == MAX_BUNDLES:
                raise ValueError(f"has more than {MAX_BUNDLES} attestations")
            text = canonical(each)
            found.append(_parsed(text))
            values += values_in(text) + values_in(found[-1].payload)
            if values > MAX_VALUES:
                raise ValueError(f"has more than {MAX_VALUES} values in its attestations")
    if not found:
        raise ValueError("has no attestation in it")
    # Such as what is in a file, which `gh attestation download` gets too.
    return [each for each in found if each.predicate_type in ABOUT_ORIGIN] or found


def _parsed(text: bytes) -> Bundle:
    try:
        return Bundle.parse(text)
    except ValueError as error:
        raise ValueError(f"holds an attestation that cannot be read: {error}") from error


def _documents(data: bytes) -> Iterator[Any]:
    """One, or one a line, of which the first that is wrong is the last that is read."""
    try:
        whole = parse_json(data, max_bytes=None, max_values=MAX_VALUES)
    except ValueError as error:
        whole = error
    if not isinstance(whole, ValueError):
        yield whole
        return
    if data.count(b"\n") > _MAX_LINES:
        raise ValueError(f"is not JSON ({whole}), and has more than {_MAX_LINES} lines")
    lines = [line for line in data.split(b"\n") if line.strip()]
    if len(lines) < 2 or not lines[0].rstrip().endswith(b"}"):
        raise ValueError(f"is not JSON: {whole}")
    for line in lines:
        try:
            yield parse_json(line, max_bytes=None, max_values=MAX_VALUES)
        except ValueError as error:
            raise ValueError(f"has a line that is not JSON: {error}") from error


def _bundles(document: Any) -> Iterator[Any]:
    match document:
        case {"verificationMaterial": _}:
            yield document
        case {"verification_material": _}:
            yield _from_pep740(document)
        case {"attestation_bundles": [*groups]}:
            # https://docs.pypi.org/api/integrity/
            for each in groups:
                yield from _bundles(each)
        case {"attestations": [*attestations]}:
            for each in attestations:
                yield from _bundles(each)
        case {"predicateType": kind, "bundle": bundle}:
            # npm itself signs, with a key of its own, that it has published the package.
            # https://github.com/npm/attestation/tree/main/specs/publish/v0.1
            if kind == SLSA:
                yield bundle
        case _:
            raise ValueError("is neither a bundle of Sigstore nor a provenance object")


def _from_pep740(attestation: Any) -> dict[str, Any]:
    """https://peps.python.org/pep-0740/#attestation-objects"""
    match attestation:
        case {
            "version": 1,
            "verification_material": {
                "certificate": certificate,
                "transparency_entries": entries,
            },
            "envelope": {"statement": statement, "signature": signature},
        }:
            return {
                "mediaType": MEDIA_TYPE,
                "verificationMaterial": {
                    "certificate": {"rawBytes": certificate},
                    "tlogEntries": entries,
                },
                "dsseEnvelope": {
                    "payload": statement,
                    "payloadType": PAYLOAD_TYPE,
                    "signatures": [{"sig": signature}],
                },
            }
        case _:
            raise ValueError("has an attestation that is not of PEP 740's version 1")
