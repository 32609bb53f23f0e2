"""PyPI's upload API with its rules for attestations: they are verified before a file is stored, by
PyPI's own verifier, against the root of trust of Sigstore's double.

https://github.com/pypi/warehouse/blob/main/warehouse/attestations/services.py
"""

from __future__ import annotations

import base64
import email
import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from unittest import mock

import pypi_attestations
from pydantic import TypeAdapter, ValidationError
from sigstore.verify import Verifier

from provenance import official
from provenance.oidc import GITLAB, ISSUER
from trusted_index import TrustedIndex

if TYPE_CHECKING:
    from provenance.sigstore_double import Sigstore
    from trusted_index import Answer

# Of an account, and of nobody's workflow.
TOKEN = "pypi-of-an-account"
_REFS = ("ref_path", "sha")
_TYPES = tuple(pypi_attestations.AttestationType)


class Refused(Exception):
    """In PyPI's words."""


@dataclass
class Warehouse(TrustedIndex):
    """`publisher` is registered. What is stored is in `stored` by its name, and what was attested
    of it in `attested`.
    """

    sigstore: Sigstore = field(kw_only=True)
    publisher: pypi_attestations.GitHubPublisher | pypi_attestations.GitLabPublisher = field(
        default_factory=lambda: pypi_attestations.GitHubPublisher(
            repository="acme/widgets", workflow="release.yml"
        )
    )
    stored: dict[str, bytes] = field(default_factory=dict)
    attested: dict[str, list[str]] = field(default_factory=dict)
    forms: list[dict[str, str]] = field(default_factory=list)

    def answer(self, method: str, target: str, authorization: str, body: bytes) -> Answer:
        if method == "GET" and target.startswith("/simple/"):
            return self._page(target.split("/")[2])
        return super().answer(method, target, authorization, body)

    def _page(self, name: str) -> Answer:
        """https://packaging.python.org/en/latest/specifications/simple-repository-api/"""
        files = [
            {"filename": each, "hashes": {"sha256": hashlib.sha256(content).hexdigest()}}
            for each, content in self.stored.items()
            if each.startswith(f"{name.replace('-', '_')}-")
        ]
        page = json.dumps({"files": files}).encode()
        return 200 if files else 404, page, "application/vnd.pypi.simple.v1+json"

    def _mint(self, token: str) -> Answer:
        """GitHub has one token service, which is Sigstore's double where that plays along."""
        body = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        if self._admits(claims):
            self.id_tokens.append(token)
        return super()._mint(token)

    def _admits(self, claims: dict[str, Any]) -> bool:
        """https://github.com/pypi/warehouse/blob/main/warehouse/oidc/models/gitlab.py"""
        publisher = self.publisher
        if isinstance(publisher, pypi_attestations.GitHubPublisher):
            return (claims.get("iss"), claims.get("repository")) == (ISSUER, publisher.repository)
        file = f"gitlab.com/{publisher.repository}//{publisher.workflow_filepath}"
        return (
            claims["iss"] == GITLAB
            and claims["project_path"].lower() == publisher.repository.lower()
            and claims["sub"].startswith(f"project_path:{publisher.repository}:")
            and claims["ci_config_ref_uri"] in {f"{file}@{claims[ref]}" for ref in _REFS}
            and publisher.environment in {None, claims.get("environment")}
        )

    def _upload(self, authorization: str, body: bytes) -> Answer:
        _, _, password = base64.b64decode(authorization.partition(" ")[2]).decode().partition(":")
        if password not in {*self.valid, TOKEN}:
            return 403, b"Invalid or non-existent authentication information.", "text/plain"
        form, name, content = _parsed(body)
        self.forms.append(form)
        try:
            kinds = self.examined(form, name, content, trusted=password in self.valid)
        except Refused as error:
            words = f"400 Invalid attestations supplied during upload: {error}"
            return 400, words.encode(), "text/plain"
        self.stored[name] = content
        self.attested[name] = kinds
        return 200, b"", "text/plain"

    def examined(
        self, form: dict[str, str], name: str, content: bytes, *, trusted: bool
    ) -> list[str]:
        """The predicate types of what is attested of a file; none without."""
        if "attestations" not in form:
            return []
        if not trusted:
            raise Refused("Attestations are only supported when using Trusted Publishing")
        try:
            found = TypeAdapter(list[pypi_attestations.Attestation]).validate_json(
                form["attestations"]
            )
        except ValidationError as error:
            raise Refused(f"Malformed attestations: {error}") from error
        if not found:
            raise Refused("Malformed attestations: an empty attestation set is not permitted")
        if len(found) > len(_TYPES):
            raise Refused(f"A maximum of {len(_TYPES)} attestations per file are supported")
        digest = hashlib.sha256(content).hexdigest()
        distribution = pypi_attestations.Distribution(name=name, digest=digest)
        kinds: list[str] = []
        for attestation in found:
            kind = self._verified(attestation, distribution)
            if kind in kinds:
                raise Refused("Multiple attestations for the same file with the same predicate")
            kinds.append(kind)
        return kinds

    def _verified(
        self,
        attestation: pypi_attestations.Attestation,
        distribution: pypi_attestations.Distribution,
    ) -> str:
        verifier = Verifier(trusted_root=official.trust(self.sigstore).trusted_root)
        try:
            with mock.patch.object(Verifier, "production", return_value=verifier):
                kind, _ = attestation.verify(self.publisher, distribution)
        except pypi_attestations.VerificationError as error:
            words = "Could not verify the uploaded artifact using the included attestation"
            raise Refused(f"{words}: {error}") from error
        except Exception as error:  # as it does
            words = "Unknown error while trying to verify included attestations"
            raise Refused(f"{words}: {error}") from error
        return kind


def _parsed(body: bytes) -> tuple[dict[str, str], str, bytes]:
    """The fields of a form, and its file."""
    boundary = body.partition(b"\r\n")[0].removeprefix(b"--")
    head = b"Content-Type: multipart/form-data; boundary=" + boundary + b"\r\n\r\n"
    form: dict[str, str] = {}
    name, content = "", b""
    parts: Any = email.message_from_bytes(head + body).get_payload()
    for part in parts:
        field_name = part.get_param("name", header="content-disposition")
        if filename := part.get_filename():
            # The parser of mail would read a line end as the end of a line.
            start = body.index(b"\r\n\r\n", body.index(f'filename="{filename}"'.encode())) + 4
            end = body.index(b"\r\n--" + boundary, start)
            name, content = filename, body[start:end]
        else:
            form[field_name] = part.get_payload(decode=True).decode()
    return form, name, content


def as_form(*attestations: dict[str, Any]) -> dict[str, str]:
    return {"attestations": json.dumps(attestations)}
