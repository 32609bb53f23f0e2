"""What an npm registry's answer means; the wording is the only signal for half of it."""

from __future__ import annotations

from typing import Final

from releasekit.ecosystems.shared.answers import Answers

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
    "The account asks for a second factor: use a granular access token that may bypass it, or "
    "trusted publishing."
)
_PAYMENT: Final = (
    "A package with a scope is private unless told otherwise: set `npm-access: public`, or "
    "publishConfig.access in its package.json."
)
_HIDDEN: Final = (
    f"{_TOKEN}: npm answers 404 to those who may not publish the package. The scope has to exist, "
    "and `npm-registry` is the registry's root."
)
_BY_STATUS: Final = {
    401: f"{_TOKEN}: the registry does not know it, or it has expired.",
    402: _PAYMENT,
    403: f"{_TOKEN}: its owner may not publish this package, or the name is too close.",
    404: _HIDDEN,
}
ANSWERS: Final = Answers(
    exists=_EXISTS,
    hints={"one-time pass": _BYPASS, "two-factor": _BYPASS},
    by_status=_BY_STATUS,
    denied=frozenset({404}),
    moved="npm-registry",
)
