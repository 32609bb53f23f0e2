"""What is signed: in-toto statements about files, in the two forms that registries take.

https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from releasekit.provenance.job import Job

PUBLISH: Final = "https://docs.pypi.org/attestations/publish/v1"
SLSA: Final = "https://slsa.dev/provenance/v1"
# What npm takes of GitLab. https://slsa.dev/spec/v0.2/provenance and
# https://github.com/in-toto/attestation/blob/main/spec/v0.1.0/statement.md
EARLIER_SLSA: Final = "https://slsa.dev/provenance/v0.2"
EARLIER_STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v0.1"
# https://docs.github.com/rest/repos/attestations
MAX_SUBJECTS: Final = 1024
# Those that say where a file comes from. Others are about its contents, not its maker.
ABOUT_ORIGIN: Final = frozenset({PUBLISH, SLSA, EARLIER_SLSA})
STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"
# Of what npm and GitHub make of a job. https://slsa.dev/spec/v1.0/provenance and
# https://slsa-framework.github.io/github-actions-buildtypes/workflow/v1
_BUILD_TYPE: Final = "https://slsa-framework.github.io/github-actions-buildtypes/workflow/v1"
_BUILDER: Final = "https://github.com/actions/runner"
_GITLAB_BUILD_TYPE: Final = "https://docs.gitlab.com/ci/pipeline_security/slsa/provenance_v1"
_NPM_GITLAB_BUILD_TYPE: Final = "https://github.com/npm/cli/gitlab/v0alpha1"
_NPM_URL: Final = "pkg:npm/"


class Subject(Struct, frozen=True, kw_only=True):
    """A file: its name, or its package URL where a registry wants one, and its digests in hex, by
    the name of the algorithm.
    """

    name: str
    digests: Mapping[str, str]

    def covers(self, filename: str, digests: Mapping[str, str]) -> bool:
        """Whether it is the file of this name with these digests."""
        known = self.digests.keys() & digests.keys()
        same = bool(known) and all(self.digests[name] == digests[name] for name in known)
        return same and self.is_called(filename)

    def is_called(self, filename: str) -> bool:
        """A release statement may name the directory too, to tell files of one name apart. A
        package URL stands for the names that npm's registry and `npm pack` give the tarball.
        """
        if not self.name.startswith(_NPM_URL):
            return self.name == filename or self.name.endswith(f"/{filename}")
        package, _, version = unquote(self.name.removeprefix(_NPM_URL)).rpartition("@")
        names = package.rpartition("/")[2], package.removeprefix("@").replace("/", "-")
        return filename in {f"{name}-{version}.tgz" for name in names}


def publish(subject: Subject) -> bytes:
    """That this job publishes the file; who the job is, the certificate says.

    https://docs.pypi.org/attestations/publish/v1/
    """
    return _statement((subject,), PUBLISH, None)


def slsa(subjects: Sequence[Subject], job: Job) -> bytes:
    """That this job has built the files, from which commit, by which workflow; of GitHub as npm
    writes it, whose registry looks at each of these. Raises ValueError for more than MAX_SUBJECTS,
    for none, and for the same one twice.
    """
    if not 0 < len(subjects) <= MAX_SUBJECTS:
        raise ValueError(f"{len(subjects)} subjects: a statement is about 1 to {MAX_SUBJECTS}")
    if len({each.name for each in subjects}) < len(subjects):
        raise ValueError("a statement names each subject once")
    predicate = _provenance if job.kind == "github" else _gitlab_provenance
    return _statement(subjects, SLSA, predicate(job))


def npm_provenance(subject: Subject, job: Job) -> bytes:
    """The same about a tarball, as npm's client writes it of each CI.

    https://github.com/npm/cli/blob/latest/workspaces/libnpmpublish/lib/provenance.js
    """
    if job.kind == "github":
        return slsa((subject,), job)
    source = {"uri": f"git+{job.repository_url}", "digest": {"sha1": job.sha}}
    variables = job.variables
    predicate = {
        "buildType": _NPM_GITLAB_BUILD_TYPE,
        "builder": {"id": _gitlab_builder(job)},
        "invocation": {
            "configSource": {**source, "entryPoint": variables.get("CI_JOB_NAME", "")},
            "parameters": dict(variables),
            "environment": {
                "architecture": variables.get("CI_RUNNER_EXECUTABLE_ARCH", ""),
                "server": job.server,
                "project": job.repository,
                "job": {"id": job.run_id},
                "pipeline": {"id": variables.get("CI_PIPELINE_ID", ""), "ref": job.workflow_path},
            },
        },
        "metadata": {
            "buildInvocationId": job.run_url,
            # There are more, which are nobody's business.
            "completeness": {"parameters": False, "environment": True, "materials": False},
            "reproducible": False,
        },
        "materials": [source],
    }
    return _statement((subject,), EARLIER_SLSA, predicate, EARLIER_STATEMENT_TYPE)


def _gitlab_provenance(job: Job) -> dict[str, Any]:
    """With the variables that say which build it is, though this type is for all of them."""
    variables = job.variables
    return {
        "buildDefinition": {
            "buildType": _GITLAB_BUILD_TYPE,
            "externalParameters": {
                "source": job.repository_url,
                "entryPoint": variables.get("CI_JOB_NAME", ""),
                "variables": dict(variables),
            },
            "internalParameters": {
                "architecture": variables.get("CI_RUNNER_EXECUTABLE_ARCH", ""),
                "job": job.run_id,
            },
            "resolvedDependencies": [{"uri": job.repository_url, "digest": {"gitCommit": job.sha}}],
        },
        "runDetails": {
            "builder": {"id": _gitlab_builder(job)},
            "metadata": {"invocationId": job.run_id},
        },
    }


def _gitlab_builder(job: Job) -> str:
    return f"{job.repository_url}/-/runners/{job.variables.get('CI_RUNNER_ID', '')}"


def _provenance(job: Job) -> dict[str, Any]:
    source = f"git+{job.repository_url}@{job.ref}"
    return {
        "buildDefinition": {
            "buildType": _BUILD_TYPE,
            "externalParameters": {
                "workflow": {
                    "ref": job.workflow_git_ref,
                    "repository": job.repository_url,
                    "path": job.workflow_path,
                }
            },
            "internalParameters": {
                "github": {
                    "event_name": job.event_name,
                    "repository_id": job.repository_id,
                    "repository_owner_id": job.repository_owner_id,
                }
            },
            "resolvedDependencies": [{"uri": source, "digest": {"gitCommit": job.sha}}],
        },
        "runDetails": {
            "builder": {"id": f"{_BUILDER}/{job.runner_environment}"},
            "metadata": {"invocationId": job.run_url},
        },
    }


def _statement(
    subjects: Sequence[Subject],
    predicate_type: str,
    predicate: object,
    statement_type: str = STATEMENT_TYPE,
) -> bytes:
    return canonical(
        {
            "_type": statement_type,
            "subject": [{"name": each.name, "digest": dict(each.digests)} for each in subjects],
            "predicateType": predicate_type,
            "predicate": predicate,
        }
    )


def pae(body: bytes) -> bytes:
    """What the signature is over. https://github.com/secure-systems-lab/dsse/blob/master/protocol.md"""
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(body), body)


def canonical(document: object) -> bytes:
    """JSON that is the same bytes for the same document."""
    return json.dumps(
        document, separators=(",", ":"), sort_keys=True, ensure_ascii=False, allow_nan=False
    ).encode()
