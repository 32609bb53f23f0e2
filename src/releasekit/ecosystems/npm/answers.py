"""What an npm registry answers when a version is published or staged, and what to do about it.

npmjs.com publishes no list; the words are those that its documentation and its users quote.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.npm import NPMJS_HOST
from releasekit.ecosystems.shared.answers import ResponseRules
from releasekit.errors import Transient
from releasekit.http.answers import LOOKED_AT_BYTES
from releasekit.text.commands import spell

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx


_EXISTS: Final = (
    # https://docs.npmjs.com/cli/commands/npm-publish
    (403, "publish over"),
    (403, "previously published"),
    # https://docs.gitlab.com/user/packages/npm_registry/#troubleshooting
    (403, "already exists"),
    (400, "already exists"),
    (400, "does not allow updating assets"),  # Nexus
    (403, "overwrite artifact"),  # Artifactory
)
_TOKEN: Final = "Check RELEASEKIT_NPM_TOKEN (input `npm-token`)"  # noqa: S105 (its name)
_BYPASS: Final = (
    "The account asks for a second factor: use trusted publishing, `stage: always`, which takes "
    "none, or a granular access token that may bypass it. If the package's publishing access is "
    '"Require two-factor authentication and disallow tokens", only trusted publishing is left.'
)
_PAYMENT: Final = (
    "A package with a scope is private unless told otherwise: set `npm-access: public`, or "
    "publishConfig.access in its package.json."
)
_HIDDEN: Final = (
    f"{_TOKEN}: npm answers 404 to those who may not publish the package. The scope has to exist, "
    "and `npm-registry` is the registry's root."
)
_PUBLISHER: Final = (
    "In the package's settings on npmjs.com, its trusted publisher has to name exactly this "
    "repository, workflow file and environment. Publishing takes `npm publish` among its allowed "
    "actions; without it, `stage: auto` stages, which takes `npm stage publish`."
)
STAGES_ONLY: Final = (
    "This token may stage and not publish: leave `stage` at `auto`, or set it to `always`. Only "
    "trusted publishing publishes from a job without a person's approval."
)
WAITS: Final = (
    f"It is staged, and waits for a person's approval: {spell('approve')}, or the Staged "
    "Packages of your account on npmjs.com."
)
_DUAL_USE: Final = (
    "What declares dual-use content is published from a job by staging only: set `stage: always`, "
    "and keep contentPolicy and the DISCLOSURE file. https://docs.npmjs.com/policies/dual-use"
)
_HELD: Final = (
    "npm holds an account for 72 hours after one of its recovery codes was used; this cannot "
    "be shortened. Run again afterwards. If none of you used the code, tell npm's support."
)
_SMALLER: Final = (
    "Leave out unneeded files: `files` in package.json lists what goes in. In transit a tarball is "
    "a third larger; on your own server, raise the limit, such as verdaccio's "
    "`max_body_size`: https://verdaccio.org/docs/configuration"
)
_PROVENANCE: Final = (
    "npm does not take what was signed about where the tarball comes from: "
    "https://docs.npmjs.com/generating-provenance-statements. `attestations: off` publishes "
    "without."
)
_HINTS: Final = {
    # For provenance, as users met them: https://github.com/npm/cli/issues/8036,
    # https://github.com/grafana/plugin-tools/pull/2045,
    # https://github.com/fastagent-sh/fastagent/pull/63, https://github.com/npm/cli/issues/8699
    "Failed to validate repository information": "Set `repository.url` in its package.json to this "
    "repository, spelled as GitHub spells it: capitals count.",
    "runner environment": "npm takes provenance from GitHub-hosted runners only: move the job that "
    "publishes to one, such as `runs-on: ubuntu-latest`, or set `attestations: off`.",
    "repository visibility": "npm takes provenance from public repositories only: publish from "
    "one, or set `attestations: off`.",
    "provenance bundle": _PROVENANCE,
    # For a document with two attachments:
    # https://github.com/verdaccio/verdaccio/blob/6.x/src/api/endpoint/api/publish.ts
    "unsupported registry call": "Verdaccio says so of a tarball with an attestation, for which it "
    "has no place: leave `attestations` at `auto`.",
    # https://docs.gitlab.com/user/packages/npm_registry/#troubleshooting
    "structure is too large": "Shorten package.json and README.md, which this registry keeps "
    "with the version and limits. https://gitlab.com/gitlab-org/gitlab/-/issues/345759",
    # https://github.com/pulumi/pulumi-azure-native/issues/2294
    "Too many files": _SMALLER,
    # For a publisher that may only stage, one that names another workflow, and one that the
    # package's publishing access keeps out: https://github.com/kg86/visstr/pull/40,
    # https://github.com/gtrabanco/agentic-workflow/issues/39,
    # https://github.com/webarkit/jsartoolkitNFT/issues/620
    "OIDC permission denied": _PUBLISHER,
    # https://github.com/npm/documentation/pull/2036
    "E_STAGE_REQUIRED": STAGES_ONLY,
    "npm stage publish": STAGES_ONLY,
    # Where npm's own client sends those who make a token that bypasses the second factor:
    # https://github.com/npm/cli/blob/latest/lib/commands/token.js
    "bypass-2fa-tokens": STAGES_ONLY,
    "one-time pass": _BYPASS,
    "Two-factor": _BYPASS,
    "dual-use": _DUAL_USE,
    "contentPolicy": _DUAL_USE,
    # https://github.com/npm/documentation/pull/2029
    "security hold": _HELD,
    "72 hours": _HELD,
    "72-hour": _HELD,
    # https://github.com/mosuka/litsea/issues/225
    "spam detection": "npm takes the name for spam: ask its support to allow it, then run again. "
    "https://npmjs.com/support",
    # https://github.com/npm/cli/issues/8860
    "republished until 24 hours": "The name was unpublished: run again a day later.",
}
_BY_STATUS: Final = {
    400: "The usual causes are a name or version that npm does not take, a dist-tag that reads as "
    "a version, and a scope that is not the registry's: "
    "https://docs.npmjs.com/cli/configuring-npm/package-json",
    401: f"{_TOKEN}: the registry does not know it, or it has expired.",
    402: _PAYMENT,
    403: f"{_TOKEN}: its owner may not publish this package, or the name is too close.",
    404: _HIDDEN,
    # https://github.com/npm/documentation/issues/1691
    413: _SMALLER,
}
ANSWERS: Final = ResponseRules(
    exists=_EXISTS,
    hints=_HINTS,
    by_status=_BY_STATUS,
    reading="The registry is for those with a token only, for a plan as well: give one that may "
    "read the package as RELEASEKIT_NPM_TOKEN (input `npm-token`).",
    denied=frozenset({404}),
    moved="npm-registry",
)

# https://github.com/ffflorian/schemastore-updater/pull/1571. Others saw npm make a placeholder,
# 0.0.0-stage, for a new name.
FIRST_VERSION: Final = (
    "npm stages no version of a package that it does not know. Publish the first one by hand, or "
    "with `stage: never` and a token that may publish; then add the trusted publisher."
)
NO_STAGING: Final = (
    "This registry may know no staging: set `stage: never`. If it does, it answers 404 to those "
    "who may not write."
)
STAGE_ANSWERS: Final = ResponseRules(
    exists=_EXISTS,
    hints={**_HINTS, "E_STAGE_REQUIRED": _TOKEN, "npm stage publish": _TOKEN},
    by_status={
        **_BY_STATUS,
        403: f"{_TOKEN}: its owner may not stage this package; a trusted publisher needs `npm "
        "stage publish` among its allowed actions.",
    },
    moved="npm-registry",
)

# Words about the token, for any package.
_TOKEN_STAGES: Final = ("E_STAGE_REQUIRED", "bypass-2fa-tokens")
_PACKAGE_STAGES: Final = ("OIDC permission denied", "npm stage publish", "dual-use")
# Words about a second factor, which a job cannot enter and staging does not ask for:
# https://docs.npmjs.com/cli/v11/commands/npm-stage
_SECOND_FACTOR: Final = ("one-time pass", "Two-factor")


def is_for_stage_only_token(response: httpx.Response, name: str) -> bool:
    """Whether a publish was refused because the token may only stage, for any package."""
    return response.status_code == 403 and _says(response, _TOKEN_STAGES, name)


def may_only_stage(response: httpx.Response, name: str) -> bool:
    """Whether a publish of the package `name` was refused to an identity that may still stage it.

    Other servers ask for a second factor too, and most of them cannot stage.
    """
    if response.status_code == 403 and _says(response, (*_TOKEN_STAGES, *_PACKAGE_STAGES), name):
        return True
    if response.status_code not in {401, 403} or response.request.url.host != NPMJS_HOST:
        return False
    return "otp" in response.headers.get("WWW-Authenticate", "").lower() or _says(
        response, _SECOND_FACTOR, name
    )


def is_held_already(words: str) -> bool:
    """Whether a refusal means that the registry has bytes of this version which it does not show.

    npm says `previously staged version` of a staged version, and for some minutes of one that was
    published and is still being scanned: https://github.com/npm/cli/issues/9889 and
    https://github.com/githits-com/githits-cli/pull/367. The answer to a staging is `previously
    published version` where the version is staged: https://github.com/npm/cli/issues/9519
    """
    return "previously staged version" in words.lower()


@contextlib.contextmanager
def maybe_stored() -> Iterator[None]:
    """A lookup that fails in here leaves open whether the registry has the bytes."""
    try:
        yield
    except Transient as error:
        raise error.with_(ambiguous=True) from error.__cause__


def _says(response: httpx.Response, texts: tuple[str, ...], name: str) -> bool:
    """A text that is in `name` does not count: refusals repeat the name of the package."""
    # The code stands beside the message for people.
    said = response.content[:LOOKED_AT_BYTES].decode("utf-8", "replace").lower()
    return any(text.lower() in said for text in texts if text.lower() not in name.lower())
