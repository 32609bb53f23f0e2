from __future__ import annotations

import json

import pytest

from provenance.oidc import Issuer
from releasekit.provenance.job import Job
from releasekit.provenance.statement import (
    MAX_SUBJECTS,
    PUBLISH,
    SLSA,
    Subject,
    canonical,
    pae,
    publish,
    slsa,
)

WHEEL = Subject(name="widgets-1.0.0-py3-none-any.whl", digests={"sha256": "0" * 64})


def test_the_statement_of_pypi() -> None:
    assert publish(WHEEL) == (
        b'{"_type":"https://in-toto.io/Statement/v1","predicate":null,'
        b'"predicateType":"https://docs.pypi.org/attestations/publish/v1",'
        b'"subject":[{"digest":{"sha256":"%s"},"name":"widgets-1.0.0-py3-none-any.whl"}]}'
        % (b"0" * 64)
    )
    assert json.loads(publish(WHEEL))["predicateType"] == PUBLISH


def test_the_statement_of_npm_and_github() -> None:
    """R14: each value as npm's own client writes it, because the registry compares them."""
    issuer = Issuer()
    issuer.claims["workflow_ref"] = "acme/widgets/.github/workflows/release.yml@refs/tags/v1"
    issuer.claims["ref"] = "refs/heads/main"
    job = Job.from_token(issuer.token("sigstore"), server="https://github.com")
    document = json.loads(slsa([WHEEL], job))
    assert document["predicateType"] == SLSA
    assert document["predicate"] == {
        "buildDefinition": {
            "buildType": "https://slsa-framework.github.io/github-actions-buildtypes/workflow/v1",
            "externalParameters": {
                "workflow": {
                    "ref": "refs/tags/v1",
                    "repository": "https://github.com/acme/widgets",
                    "path": ".github/workflows/release.yml",
                }
            },
            "internalParameters": {
                "github": {
                    "event_name": "push",
                    "repository_id": "1",
                    "repository_owner_id": "2",
                }
            },
            "resolvedDependencies": [
                {
                    "uri": "git+https://github.com/acme/widgets@refs/heads/main",
                    "digest": {"gitCommit": "a" * 40},
                }
            ],
        },
        "runDetails": {
            "builder": {"id": "https://github.com/actions/runner/github-hosted"},
            "metadata": {
                "invocationId": "https://github.com/acme/widgets/actions/runs/42/attempts/1"
            },
        },
    }


def test_a_statement_is_about_some_subjects_and_about_each_once() -> None:
    job = Job.from_token(Issuer().token("sigstore"), server="https://github.com")
    many = [Subject(name=str(number), digests={}) for number in range(MAX_SUBJECTS + 1)]
    assert len(json.loads(slsa(many[1:], job))["subject"]) == MAX_SUBJECTS
    with pytest.raises(ValueError, match="1025 subjects"):
        slsa(many, job)
    with pytest.raises(ValueError, match="0 subjects"):
        slsa([], job)
    with pytest.raises(ValueError, match="each subject once"):
        slsa([WHEEL, WHEEL], job)


def test_what_is_signed_says_how_long_its_parts_are() -> None:
    """The example of the specification is of another type, so that this one is counted by hand.

    https://github.com/secure-systems-lab/dsse/blob/master/protocol.md#test-vectors
    """
    assert pae(b"hello world") == b"DSSEv1 28 application/vnd.in-toto+json 11 hello world"
    assert pae(b"") == b"DSSEv1 28 application/vnd.in-toto+json 0 "


def test_the_same_document_is_the_same_bytes() -> None:
    assert canonical({"b": ["ä"], "a": 1}) == canonical({"a": 1, "b": ["ä"]})
    assert canonical({"b": ["ä"], "a": 1}) == '{"a":1,"b":["ä"]}'.encode()
    with pytest.raises(ValueError, match="JSON"):
        canonical(float("nan"))
