"""The official verifiers, with the root of trust of the double: those of PyPI, of Sigstore's Python
client, and of npm, which brings its own.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pypi_attestations
from cryptography.hazmat.primitives.serialization import Encoding
from sigstore.models import Bundle as OfficialBundle
from sigstore.models import ClientTrustConfig
from sigstore.sign import SigningContext
from sigstore.verify import Verifier, policy

from integration.tools import leave_out, require_tool
from provenance.oidc import GITLAB, ISSUER

if TYPE_CHECKING:
    from provenance.sigstore_double import Sigstore
    from releasekit.provenance.bundle import Bundle

PEM = Encoding.PEM
# The Python client has no public way to name a root for PyPI's verifier, hence the patch.
_JAVASCRIPT = """
const { readFileSync } = require('fs')
const [npm, root, bundle, workflow, issuer] = process.argv.slice(1)
const at = name => require(`${npm}/node_modules/@sigstore/${name}`)
const { bundleFromJSON } = at('bundle')
const { TrustedRoot } = at('protobuf-specs')
const { Verifier, toSignedEntity, toTrustMaterial } = at('verify')
const read = path => JSON.parse(readFileSync(path))
const verifier = new Verifier(toTrustMaterial(TrustedRoot.fromJSON(read(root))))
const signer = verifier.verify(toSignedEntity(bundleFromJSON(read(bundle))), {
  subjectAlternativeName: workflow, extensions: { issuer },
})
console.log(signer.identity.subjectAlternativeName)
"""


def trust(sigstore: Sigstore) -> ClientTrustConfig:
    return ClientTrustConfig.from_json(sigstore.trust_config.read_text())


def context(sigstore: Sigstore) -> SigningContext:
    """The official signer."""
    return SigningContext.from_trust_config(trust(sigstore))


def python(sigstore: Sigstore, bundle: Bundle, *, repository: str = "acme/widgets") -> bytes:
    """The payload, as Sigstore's Python client accepts it; it raises for what it does not."""
    verifier = Verifier(trusted_root=trust(sigstore).trusted_root)
    wanted = policy.AllOf(
        [
            policy.OIDCIssuerV2(_issuer(sigstore)),
            policy.OIDCSourceRepositoryURI(f"{_server(sigstore)}/{repository}"),
        ]
    )
    _, payload = verifier.verify_dsse(OfficialBundle.from_json(bundle.text), wanted)
    return payload


def pypi(
    sigstore: Sigstore,
    attestation: dict[str, Any],
    file: Path,
    *,
    repository: str = "acme/widgets",
) -> str:
    """The predicate's type, as PyPI accepts the attestation for the file."""
    verifier = Verifier(trusted_root=trust(sigstore).trusted_root)
    publisher: pypi_attestations.GitHubPublisher | pypi_attestations.GitLabPublisher
    if _issuer(sigstore) == ISSUER:
        publisher = pypi_attestations.GitHubPublisher(repository=repository, workflow="release.yml")
    else:
        publisher = pypi_attestations.GitLabPublisher(
            repository=repository, workflow_filepath=".gitlab-ci.yml"
        )
    parsed = pypi_attestations.Attestation.model_validate_json(json.dumps(attestation))
    with mock.patch.object(Verifier, "production", return_value=verifier):
        kind, _ = parsed.verify(publisher, pypi_attestations.Distribution.from_file(file))
    return kind


def javascript(
    sigstore: Sigstore, bundle: Bundle, *, workflow: str = ""
) -> subprocess.CompletedProcess[str]:
    """Of npm's own: its standard output is the workflow that has signed."""
    node = require_tool("node")
    path = sigstore.directory / "bundle.json"
    path.write_bytes(bundle.text)
    claims = sigstore.claims
    signing = claims.get("ci_config_ref_uri") or f"github.com/{claims['job_workflow_ref']}"
    expected = workflow or f"https://{signing}"
    argv: list[str | Path] = [
        node,
        "-e",
        _JAVASCRIPT,
        npm_itself(),
        sigstore.trusted_root,
        path,
        expected,
        _issuer(sigstore),
    ]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def _issuer(sigstore: Sigstore) -> str:
    return str(sigstore.claims.get("iss", ISSUER))


def _server(sigstore: Sigstore) -> str:
    return GITLAB if _issuer(sigstore) == GITLAB else "https://github.com"


def npm_itself() -> str:
    """Where npm is installed; its dependencies lie in its `node_modules`."""
    argv: list[str | Path] = [require_tool("npm"), "root", "--global"]
    found = subprocess.run(argv, capture_output=True, text=True, check=True)
    place = f"{found.stdout.strip()}/npm"
    if not Path(place, "node_modules").is_dir():
        leave_out(f"there is no npm with its own modules in {place}, as that of Debian's package")
    return place
