from __future__ import annotations

import copy
import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raising import raises
from releasekit.attested import Attestation
from releasekit.problems import Problem
from releasekit.provenance import bundle
from releasekit.provenance.bundle import Bundle
from releasekit.provenance.certificate import describe_publisher
from releasekit.provenance.statement import Subject
from unit.provenance import certificates
from unit.provenance.bundles import STATEMENT, base64_of, document

if TYPE_CHECKING:
    from pathlib import Path

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


def encoded(value: object) -> bytes:
    return json.dumps(value).encode()


def paths(value: object, at: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Of everything in a document."""
    match value:
        case dict():
            inner = [each for key in value for each in paths(value[key], (*at, key))]
        case list():
            inner = [each for key, item in enumerate(value) for each in paths(item, (*at, key))]
        case _:
            inner = []
    return [at, *inner]


def replaced(value: Any, path: tuple[str | int, ...], new: object) -> Any:
    if not path:
        return new
    changed = copy.deepcopy(value)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = new
    return changed


def attestation(path: Path, data: bytes) -> Attestation:
    digest = hashlib.sha256(data).hexdigest()
    return Attestation(path=path, sha256=digest, log_index=7, log_url="https://rekor.example")


def test_a_bundle_tells_what_is_in_it() -> None:
    found = Bundle.parse(encoded(document()))
    assert found.predicate_type == "https://docs.pypi.org/attestations/publish/v1"
    assert found.subjects == (Subject(name="widgets-1.0.0.tar.gz", digests={"sha256": "0" * 64}),)
    assert found.log_index == 7
    assert found.statement == STATEMENT
    assert json.loads(found.payload) == STATEMENT
    assert found.certificate == found.signature == b"\0\0\0"
    assert Bundle.parse(found.text) == found
    assert json.loads(found.text) == document()


def test_pep_740_has_the_same_parts_elsewhere() -> None:
    whole = document()
    assert Bundle.parse(encoded(whole)).pep740() == {
        "version": 1,
        "verification_material": {
            "certificate": "AAAA",
            "transparency_entries": whole["verificationMaterial"]["tlogEntries"],
        },
        "envelope": {"statement": whole["dsseEnvelope"]["payload"], "signature": "AAAA"},
    }


@pytest.mark.parametrize(
    ("path", "value", "complaint"),
    [
        (
            ("mediaType",),
            "application/x",
            "mediaType is 'application/x'; it has to be application/v",
        ),
        (("dsseEnvelope", "payloadType"), "text/plain", "payloadType is 'text/plain'; it has to"),
        (("dsseEnvelope", "payload"), "!", "payload is '!'; it has to be base64"),
        (("dsseEnvelope", "payload"), "é", "payload is 'é'; it has to be base64"),
        (("dsseEnvelope", "payload"), base64_of([]), "statement._type is not there"),
        (("dsseEnvelope", "payload"), base64_of({**STATEMENT, "_type": "x"}), "_type is 'x'; it"),
        (("dsseEnvelope", "payload"), base64_of({**STATEMENT, "subject": []}), "a list of files"),
        (
            ("dsseEnvelope", "payload"),
            base64_of({**STATEMENT, "subject": [{"name": "x", "digest": {}}]}),
            r"statement.subject\[0\].digest is {}; it has to be an object of digests",
        ),
        (
            ("dsseEnvelope", "payload"),
            base64_of({**STATEMENT, "subject": [{"name": "x", "digest": {"sha\n256": 7}}]}),
            r"statement.subject\[0\].digest.sha.*256 is 7; it has to be a text",
        ),
        (
            ("dsseEnvelope", "payload"),
            base64_of({**STATEMENT, "subject": [{"name": "x", "digest": ["sha256"]}]}),
            r"statement.subject\[0\].digest is \['sha256'\]; it has to be an object$",
        ),
        (("dsseEnvelope", "signatures"), [], "signatures is .*; it has to be a list of one"),
        (("dsseEnvelope", "signatures"), [{"sig": "AA=="}] * 2, "it has to be a list of one"),
        (("verificationMaterial", "tlogEntries"), [], "tlogEntries is .*; it has to be a list of"),
        *(
            (("verificationMaterial", "tlogEntries", 0, "logIndex"), value, "a number from 0 on")
            for value in ("-1", "9" * 19, 10**19, "9" * 9999, "٣", True)
        ),
    ],
)
def test_what_is_no_bundle_is_told_as_that(
    path: tuple[str | int, ...], value: object, complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint) as caught:
        Bundle.parse(encoded(replaced(document(), path, value)))
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


def test_numbers_may_be_numbers() -> None:
    path = ("verificationMaterial", "tlogEntries", 0, "logIndex")
    assert Bundle.parse(encoded(replaced(document(), path, 7))).log_index == 7


def test_a_bundle_has_a_largest_size() -> None:
    with pytest.raises(ValueError, match="more than 4194304 bytes"):
        Bundle.parse(encoded(document()) + b" " * bundle.MAX_BYTES)


@given(st.sampled_from(paths(document())), JSON)
def test_any_document_is_a_bundle_or_a_value_error(
    path: tuple[str | int, ...], value: object
) -> None:
    _parsed(replaced(document(), path, value))


@given(st.sampled_from(paths(STATEMENT)), JSON)
def test_any_statement_is_one_or_a_value_error(path: tuple[str | int, ...], value: object) -> None:
    _parsed(document(replaced(STATEMENT, path, value)))


def _parsed(value: object) -> None:
    try:
        found = Bundle.parse(encoded(value))
    except ValueError:
        return
    assert Bundle.parse(found.text) == found
    assert found.subjects


@pytest.mark.parametrize("certificate", [b"", b"nonsense", b"\x30\x03\x02\x01\x00"])
def test_a_publisher_is_told_by_a_certificate_alone(certificate: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        describe_publisher(certificate)


def test_a_publisher_is_a_repository_and_a_workflow_of_it() -> None:
    for repository, workflow in (
        ("https://github.com/acme/widgets", "https://github.com/evil/widgets/w.yml@main"),
        ("https://github.com/acme/widgets", "https://github.com/acme/widgets/w.yml"),
        ("", ""),
    ):
        said = {"8": "https://token.example", "12": repository, "13": "abc", "18": workflow}
        certificate = certificates.made(
            *((number, b"\x0c%c" % len(text) + text.encode()) for number, text in said.items())
        )
        with pytest.raises(ValueError, match="names"):
            describe_publisher(certificate.der)


@pytest.mark.parametrize(
    ("repository", "file", "publisher"),
    [
        (
            "https://ghe.example/acme/widgets",
            "/.github/workflows/release.yml",
            {"kind": "GitHub", "repository": "acme/widgets", "workflow": "release.yml"},
        ),
        (
            "https://git.example/acme/tools/widgets",
            "//ci/release.yml",
            {
                "kind": "GitLab",
                "repository": "acme/tools/widgets",
                "workflow_filepath": "ci/release.yml",
            },
        ),
    ],
)
def test_a_publisher_has_the_form_of_its_forge(
    repository: str, file: str, publisher: dict[str, str]
) -> None:
    said = {
        "8": "https://token.example",
        "12": repository,
        "13": "abc",
        "14": "refs/heads/main",
        "18": f"{repository}{file}@refs/heads/main",
        "20": "push",
    }
    certificate = certificates.made(
        *((number, b"\x0c%c" % len(text) + text.encode()) for number, text in said.items())
    )
    assert describe_publisher(certificate.der) == {**publisher, "environment": None}


def test_a_file_is_the_bundle_that_was_made(tmp_path: Path) -> None:
    data = encoded(document())
    path = tmp_path / "widgets-1.0.0.tar.gz.sigstore.json"
    path.write_bytes(data)
    assert bundle.read(attestation(path, data)) == Bundle.parse(data)


def test_a_file_that_is_another_one_is_not_read_on(tmp_path: Path) -> None:
    path = tmp_path / "f.sigstore.json"
    path.write_bytes(b"other")
    with raises(
        Problem.CHANGED_MEANWHILE, match="is not the attestation that was signed"
    ) as caught:
        bundle.read(attestation(path, encoded(document())))
    assert caught.value.problem is Problem.CHANGED_MEANWHILE
    assert "Remove the file" in caught.value.hint


def test_a_file_that_is_gone_or_none_is_told_as_that(tmp_path: Path) -> None:
    path = tmp_path / "f.sigstore.json"
    with raises(Problem.CHANGED_MEANWHILE, match="cannot be read"):
        bundle.read(attestation(path, b""))
    path.write_bytes(b"{}")
    with raises(Problem.CHANGED_MEANWHILE, match="is not a Sigstore bundle"):
        bundle.read(attestation(path, b"{}"))


def test_a_file_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    """R28: a repository may have planted it."""
    data = encoded(document())
    (tmp_path / "real").write_bytes(data)
    path = tmp_path / "f.sigstore.json"
    path.symlink_to("real")
    with raises(Problem.CHANGED_MEANWHILE, match="cannot be read"):
        bundle.read(attestation(path, data))
