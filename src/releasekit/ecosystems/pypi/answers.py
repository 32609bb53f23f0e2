"""What a package index's answer to an upload means.

The wording is the only signal for half of it; each is from the server's own source, or twine's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.shared.answers import Answers, hints_by_status
from releasekit.http.client import message_of

if TYPE_CHECKING:
    import httpx

# https://github.com/pypi/warehouse/blob/main/warehouse/forklift/legacy.py
_HINTS: Final = {
    "previously used by a file that has since been deleted": (
        "A filename is never taken twice, deleted or not: publish under another version."
    ),
    "Uploading new files to releases older than": (
        "The release can no longer be completed: publish under another version."
    ),
    "Too many new projects created": (
        "The registry limits how many projects one user creates in an hour. Run again later: "
        "what is published stays. Projects that begin as a pending trusted publisher are not "
        "limited: "
        "https://docs.pypi.org/trusted-publishers/creating-a-project-through-oidc/"
    ),
    "Non-user identities cannot create new projects": (
        "Add a pending trusted publisher for exactly this project name: "
        "https://docs.pypi.org/trusted-publishers/creating-a-project-through-oidc/"
    ),
    "OIDC scoped token is not valid for project": (
        "Add this workflow as a trusted publisher of this project too: "
        "https://docs.pypi.org/trusted-publishers/adding-a-publisher/"
    ),
    "Invalid or non-existent authentication information": (
        "RELEASEKIT_PYPI_TOKEN must hold the whole token, `pypi-` included, and one made on "
        "this very registry: pypi.org and test.pypi.org do not share accounts."
    ),
    # https://github.com/pypi/warehouse/blob/main/warehouse/attestations/services.py
    "only supported when using Trusted Publishing": (
        "Register this workflow as a trusted publisher of the project and leave out `pypi-token`; "
        "or set `attestations: off`. https://docs.pypi.org/trusted-publishers/adding-a-publisher/"
    ),
    "Attestations are not currently supported with": (
        "PyPI takes attestations of GitHub's workflows, and none of this publisher: set "
        "`attestations: off`."
    ),
    "Could not verify the uploaded artifact": (
        "What was signed names another repository, workflow or file than PyPI expects: its trusted "
        "publisher has to be exactly this repository and this workflow file, and no reusable "
        "workflow. `attestations: off` publishes without."
    ),
    "Invalid attestations supplied": (
        "Publish without them, by `attestations: off`, and report this: PyPI should take what is "
        "sent."
    ),
    "File too large": (
        "Leave out what nobody needs, or ask for a higher limit: "
        "https://docs.pypi.org/project-management/storage-limits/"
    ),
    "Project size too large": (
        "Delete files of old releases, or ask for a higher limit: "
        "https://docs.pypi.org/project-management/storage-limits/"
    ),
    "too similar to an existing project": (
        "Give the project another name: https://pypi.org/help/#project-name"
    ),
    "local versions": (
        "A version with `+` in it never goes to a public index: leave out `+` and what follows. "
        "https://packaging.python.org/en/latest/specifications/version-specifiers/"
        "#local-version-identifiers"
    ),
    "failed to render": (
        "Check the README with `twine check`, and that `readme` in pyproject.toml names its kind: "
        "https://pypi.org/help/#description-content-type"
    ),
    # https://gitlab.com/gitlab-org/gitlab/-/issues/444304
    "is too long (maximum is": "Shorten that field in pyproject.toml: this registry has a limit.",
    "allowed to upload to project": (
        "The token belongs to somebody who does not maintain this project, or is limited to "
        "another one."
    ),
    "isn't allowed": "Give the project another name: https://pypi.org/help/#project-name",
}
ANSWERS: Final = Answers(
    # https://github.com/pypa/twine/blob/main/twine/commands/upload.py (skip_upload)
    exists=(
        (400, "already exist"),  # PyPI, which says so by nothing else, and Google's registry
        (400, "updating asset"),  # Nexus
        (400, "already been taken"),  # GitLab
        (403, "overwrite artifact"),  # Artifactory
    ),
    hints=_HINTS,
    by_status=hints_by_status(
        denied="Check RELEASEKIT_PYPI_TOKEN (input `pypi-token`), and `pypi-username` if the "
        "registry wants a user and a password.",
        wrong_place="`pypi-registry` is the address that takes uploads (https://HOST/legacy/ on "
        "many servers), `pypi-index` the one that pip installs from.",
    )
    | {
        400: "The usual causes are a field or classifier that the registry does not know, a "
        "version with `+`, a name that is taken or forbidden, and a file that is too large. "
        "https://packaging.python.org/en/latest/specifications/core-metadata/ and "
        "https://docs.pypi.org/project-management/storage-limits/",
    },
    reading="The index is for those with a login only, for a plan as well: give a token that may "
    "read it as RELEASEKIT_PYPI_TOKEN (input `pypi-token`), with `pypi-username` if the registry "
    "wants a user and a password.",
    moved="pypi-registry",
)


def says_token_is_stale(response: httpx.Response) -> bool:
    """Whether the same request may pass with a token made a moment ago."""
    if response.status_code != 403:
        return response.status_code == 401
    words = message_of(response)
    return any(
        text in words for text in ("Invalid or non-existent authentication", "token is expired")
    )
