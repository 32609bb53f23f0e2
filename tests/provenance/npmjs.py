"""What npmjs.com checks of provenance before it takes a version, as far as it is known: the bundle
by npm's own verifier, and what it says against the package and against the certificate.

https://docs.npmjs.com/generating-provenance-statements; the words of refusals are those that users
met, of which each is beside its hint in `npm/answers.py`.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from cryptography import x509

from harness.npm.documents import Answer, error, parsed
from provenance import official
from provenance.oidc import GITLAB
from releasekit.provenance.bundle import Bundle
from releasekit.provenance.statement import EARLIER_SLSA, SLSA

if TYPE_CHECKING:
    from harness.npm.documents import Release, Request
    from provenance.sigstore_double import Sigstore

_FULCIO = "1.3.6.1.4.1.57264.1"
_ISSUER, _RUNNER, _REPOSITORY, _COMMIT, _RUN, _VISIBILITY = 8, 11, 12, 13, 21, 22
_GITLAB_BUILD_TYPE = "https://github.com/npm/cli/gitlab/v0alpha1"
_BUILD_TYPE = "https://slsa-framework.github.io/github-actions-buildtypes/workflow/v1"


class Refused(Exception):
    """In npm's words, as far as they are known."""


@dataclass
class Examiner:
    """For `Registry.before`: an answer to what npm refuses. What it takes is in `taken`."""

    sigstore: Sigstore
    taken: list[Release] = field(default_factory=list)

    def __post_init__(self) -> None:
        official.npm_itself()  # whose verifier is asked, by the thread of a server

    def __call__(self, request: Request) -> Answer | None:
        match request.method, request.parts:
            case "PUT", [name]:
                pass
            case "POST", ["-", "stage", "package", name]:
                pass
            case _:
                return None
        release = parsed(name, request.body)
        if isinstance(release, Answer) or not release.provenance:
            return None
        document = json.loads(request.body)
        attached = document["_attachments"][f"{name}-{release.version}.sigstore"]
        try:
            self._examine(release, attached, new=name not in {each.name for each in self.taken})
        except Refused as refused:
            return error(422, f"Error verifying sigstore provenance bundle: {refused}")
        self.taken.append(release)
        return None

    def _examine(self, release: Release, attached: dict[str, Any], *, new: bool) -> None:
        if attached["length"] != len(release.provenance):
            raise Refused("it is cut off")
        try:
            bundle = Bundle.parse(release.provenance.encode())
        except ValueError as wrong:
            raise Refused(str(wrong)) from wrong
        if attached["content_type"] != bundle.document["mediaType"]:
            raise Refused("it is of another type than it says")
        self.sigstore.directory.mkdir(parents=True, exist_ok=True)
        verified = official.javascript(self.sigstore, bundle, workflow="^https://git(hub|lab).com/")
        if verified.returncode != 0:
            raise Refused(verified.stderr)
        _check_subject(release, bundle)
        _check_job(release, bundle)
        hidden = new and release.name.startswith("@") and not _says_public(release)
        if hidden or release.access != "public":
            raise Refused("Provenance is for public packages only")


def _says_public(release: Release) -> bool:
    """Whether a new package with a scope says that it is public."""
    return bool(release.manifest.get("publishConfig", {}).get("access") == "public")


def _check_subject(release: Release, bundle: Bundle) -> None:
    if len(bundle.subjects) != 1:
        raise Refused("it has more than one subject")
    (subject,) = bundle.subjects
    wanted = f"pkg:npm/{quote(release.name, safe='/')}@{release.version}"
    if subject.name != wanted:
        raise Refused(f"its subject is {subject.name}, not {wanted}")
    if subject.digests.get("sha512") != _hex(release.manifest["dist"]["integrity"]):
        raise Refused("its subject is of another tarball")


def _check_job(release: Release, bundle: Bundle) -> None:
    certified = _extensions(bundle.certificate)
    runner, repository = certified[_RUNNER], certified[_REPOSITORY]
    predicate: dict[str, Any] = bundle.statement["predicate"]
    if certified[_ISSUER] == GITLAB:
        _check_gitlab(predicate, bundle.predicate_type, certified)
        _check_repository(release, repository)
        return
    built, run = predicate["buildDefinition"], predicate["runDetails"]
    if (bundle.predicate_type, built["buildType"]) != (SLSA, _BUILD_TYPE):
        raise Refused("it is no provenance of a workflow")
    if runner != "github-hosted":
        raise Refused(
            f'Unsupported GitHub Actions runner environment: "{runner}". Only "github-hosted" '
            "runners are supported when publishing with provenance."
        )
    if certified[_VISIBILITY] != "public":
        raise Refused(
            "Unsupported GitHub Actions source repository visibility: "
            f'"{certified[_VISIBILITY]}". Only public source repositories are supported when '
            "publishing with provenance."
        )
    if run["builder"]["id"] != f"https://github.com/actions/runner/{runner}":
        raise Refused("another builder than the certificate's")
    if built["externalParameters"]["workflow"]["repository"] != repository:
        raise Refused("another repository than the certificate's")
    _check_repository(release, repository)


def _check_gitlab(predicate: dict[str, Any], kind: str, certified: dict[int, str]) -> None:
    """What is known of it is its layout alone, so that all of that is compared.

    https://github.com/npm/cli/blob/latest/workspaces/libnpmpublish/lib/provenance.js
    """
    source = {"uri": f"git+{certified[_REPOSITORY]}", "digest": {"sha1": certified[_COMMIT]}}
    config = predicate["invocation"]["configSource"]
    if (kind, predicate["buildType"]) != (EARLIER_SLSA, _GITLAB_BUILD_TYPE):
        raise Refused("it is no provenance of a pipeline")
    if (certified[_RUNNER], certified[_VISIBILITY]) != ("gitlab-hosted", "public"):
        raise Refused(f"Unsupported GitLab runner environment: {certified[_RUNNER]}")
    if not predicate["builder"]["id"].startswith(f"{certified[_REPOSITORY]}/-/runners/1"):
        raise Refused("another builder than the certificate's")
    if predicate["materials"] != [source] or not source.items() <= config.items():
        raise Refused("another commit than the certificate's")
    if predicate["metadata"]["buildInvocationId"] != certified[_RUN]:
        raise Refused("another job than the certificate's")


def _check_repository(release: Release, repository: str) -> None:
    told = release.manifest.get("repository")
    url = told.get("url", "") if isinstance(told, dict) else ""
    if url.removeprefix("git+").removesuffix(".git") != repository:
        raise Refused(
            'Failed to validate repository information: package.json: "repository.url" is '
            f'"{url}", expected to match "{repository}" from provenance'
        )


def _extensions(certificate: bytes) -> dict[int, str]:
    """What Fulcio has written into it, by number."""
    found = {}
    for extension in x509.load_der_x509_certificate(certificate).extensions:
        before, _, number = extension.oid.dotted_string.rpartition(".")
        if before == _FULCIO and isinstance(extension.value, x509.UnrecognizedExtension):
            # Short texts: one byte of kind, one of length, or two.
            value = extension.value.value
            long_form = value[1] & 0x80
            found[int(number)] = value[2 + (value[1] & 0x7F if long_form else 0) :].decode()
    return found


def _hex(integrity: str) -> str:
    return base64.b64decode(integrity.removeprefix("sha512-")).hex()
