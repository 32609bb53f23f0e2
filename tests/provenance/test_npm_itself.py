"""npm's own code on both sides: what it signs about a tarball is what is signed here, and what is
signed here passes where it verifies what it installs.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from harness.http_server import Handler, serving
from integration.tools import require_tool
from provenance import official, signing, tuf
from provenance.authority import Authority
from provenance.shapes import flipped, shape
from releasekit.provenance.bundle import Bundle
from releasekit.provenance.job import Job
from releasekit.provenance.statement import SLSA, Subject, slsa

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from provenance.sigstore_double import Sigstore

TARBALL = b"a tarball of npm"
PURL = "pkg:npm/%40acme/widgets@1.0.0"

_SIGN = """
const [npm, purl, sha512, url, identityToken] = process.argv.slice(1)
const { generateProvenance } = require(`${npm}/node_modules/libnpmpublish/lib/provenance.js`)
const options = { fulcioURL: url, rekorURL: url, identityToken }
generateProvenance([{ name: purl, digest: { sha512 } }], options)
  .then(bundle => console.log(JSON.stringify(bundle)))
"""
_INSTALL = """
const [npm, registry, tufCache, cache] = process.argv.slice(1)
const pacote = require(`${npm}/node_modules/pacote`)
const options = { registry, tufCache, cache, verifyAttestations: true, fetchRetries: 0 }
pacote.manifest('@acme/widgets@1.0.0', options)
  .then(manifest => console.log(JSON.stringify(manifest._attestations)))
  .catch(error => { console.error(error.code, error.message); process.exit(1) })
"""


def subject(tarball: bytes = TARBALL) -> Subject:
    return Subject(name=PURL, digests={"sha512": hashlib.sha512(tarball).hexdigest()})


def signed(sigstore: Sigstore, about: Subject) -> Bundle:
    """The second entry of its log."""
    job = Job.from_token(sigstore.issuer.token("x"), server=signing.SERVER)
    return signing.signed(sigstore, [signing.about(b"x"), slsa([about], job)])[1]


def node(
    script: str, *arguments: str | Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    argv: list[str | Path] = [require_tool("node"), "-e", script, official.npm_itself(), *arguments]
    whole = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], **environment}
    return subprocess.run(argv, capture_output=True, text=True, check=False, env=whole)


def test_npm_signs_the_same(sigstore: Sigstore) -> None:
    """R14: the registry compares parts of the statement with the package and the certificate."""
    sigstore.claims["run_attempt"] = "3"
    sigstore.claims["workflow_ref"] = "acme/widgets/.github/workflows/release.yml@refs/tags/v1"
    ours = signed(sigstore, subject())
    token = sigstore.issuer.token("sigstore")
    digest = subject().digests["sha512"]
    done = node(_SIGN, PURL, digest, sigstore.url, token, **sigstore.environment)
    assert done.returncode == 0, done.stderr
    theirs = Bundle.parse(done.stdout.encode())
    assert theirs.statement == ours.statement
    assert theirs.predicate_type == SLSA
    assert shape(dict(theirs.document)) == shape(dict(ours.document))
    assert official.python(sigstore, theirs) == theirs.payload


@contextlib.contextmanager
def registry(bundle: Bundle, tarball: bytes = TARBALL) -> Iterator[str]:
    """As npm's, for one version with its provenance."""
    attested = "/-/npm/v1/attestations/@acme%2fwidgets@1.0.0"
    integrity = f"sha512-{base64.b64encode(hashlib.sha512(tarball).digest()).decode()}"

    class Registry(Handler):
        def do_GET(self) -> None:
            body = json.dumps(self._document()).encode()
            self.send(200, [("Content-Type", "application/json")], body)

        def _document(self) -> dict[str, Any]:
            if self.path == attested:
                one = {"predicateType": bundle.predicate_type, "bundle": dict(bundle.document)}
                return {"attestations": [one]}
            dist = {
                "tarball": f"{url}/@acme/widgets/-/widgets-1.0.0.tgz",
                "integrity": integrity,
                "attestations": {
                    "url": url + attested,
                    "provenance": {"predicateType": bundle.predicate_type},
                },
            }
            version = {"name": "@acme/widgets", "version": "1.0.0", "dist": dist}
            return {
                "name": "@acme/widgets",
                "dist-tags": {"latest": "1.0.0"},
                "versions": {"1.0.0": version},
            }

    with serving(Registry) as url:
        yield url


def installed(
    sigstore: Sigstore, bundle: Bundle, directory: Path, tarball: bytes = TARBALL
) -> subprocess.CompletedProcess[str]:
    trusted = tuf.seeded(directory / "tuf", sigstore.trusted_root.read_bytes())
    with registry(bundle, tarball) as url:
        return node(_INSTALL, f"{url}/", trusted, directory / "cache")


def test_npm_installs_what_is_signed(sigstore: Sigstore, tmp_path: Path) -> None:
    done = installed(sigstore, signed(sigstore, subject()), tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["provenance"] == {"predicateType": SLSA}


def test_npm_refuses_another_tarball(sigstore: Sigstore, tmp_path: Path) -> None:
    done = installed(sigstore, signed(sigstore, subject()), tmp_path, b"another tarball")
    assert done.returncode == 1
    assert done.stderr.startswith("EATTESTATIONSUBJECT")


@pytest.mark.parametrize("part", ["signature", "trust"])
def test_npm_refuses_what_is_not_sound(sigstore: Sigstore, tmp_path: Path, part: str) -> None:
    bundle = signed(sigstore, subject())
    if part == "trust":
        sigstore.authority = Authority()
    else:
        document = json.loads(bundle.text)
        (signature,) = document["dsseEnvelope"]["signatures"]
        signature["sig"] = flipped(signature["sig"])
        bundle = Bundle.parse(json.dumps(document).encode())
    done = installed(sigstore, bundle, tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("EATTESTATIONVERIFY"), done.stderr
