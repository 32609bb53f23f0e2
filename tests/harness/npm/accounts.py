"""Who may do what at npmjs.com, and how a client proves that a person is there.

https://docs.npmjs.com/cli/v11/commands/npm-stage (Token Behavior),
https://github.blog/changelog/2026-09-18-stage-only-npm-tokens-for-safer-automation and
https://github.com/npm/api-documentation/tree/main/api/registry.npmjs.com (stage, oidc).
"""

from __future__ import annotations

import itertools
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from harness.npm.documents import Answer, Request, as_json, error
from trusted_index import TrustedIndex

if TYPE_CHECKING:
    from collections.abc import Callable

Kind = Literal["oidc", "stage-only", "bypass", "session"]
# Of one account; trusted publishing makes those of kind "oidc".
TOKENS: dict[str, Kind] = {
    "npm_stage-only": "stage-only",
    "npm_bypass": "bypass",
    "npm_session": "session",
}
# Where the pages are silent, which is on decisions by granular tokens, these may less.
_MAY: dict[Kind, frozenset[str]] = {
    "stage-only": frozenset({"stage", "look"}),
    "bypass": frozenset({"stage", "look", "publish"}),
    "session": frozenset({"stage", "look", "publish", "decide"}),
}
_NO_CODE = (
    "You must provide a one-time pass. Upgrade your client to npm@latest in order to use 2FA."
)
# The code is npm's, the rest is not known: https://github.com/npm/documentation/pull/2036
_STAGES = "E_STAGE_REQUIRED: run `npm stage publish`, and have the version approved"


@dataclass
class Accounts:
    """`allowed` is what a trusted publisher may do ("stage", "publish"), `codes` the one-time codes
    that are good now; an account without a `second_factor` decides nothing. `agrees_after` is how
    often a client may ask whether the person has signed in on the web before that is so; None for
    never.
    """

    tokens: dict[str, Kind] = field(default_factory=lambda: dict(TOKENS))
    allowed: frozenset[str] = frozenset({"stage"})
    codes: set[str] = field(default_factory=lambda: {"123456"})
    second_factor: bool = True
    agrees_after: int | None = None
    retry_after_s: int = 1
    # What was asked for on the web, and how often after that.
    logins: dict[str, int] = field(default_factory=dict)
    github: TrustedIndex = field(default_factory=TrustedIndex)
    # When a token ends that is made now.
    ends: Callable[[], datetime] = lambda: datetime(2026, 9, 15, tzinfo=UTC)
    _packages: dict[str, str] = field(default_factory=dict)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def id_token(self, request: Request) -> Answer:
        authorization = request.headers.get("authorization", "")
        status, body, _ = self.github.answer("GET", request.target, authorization, b"")
        return Answer(status, body)

    def exchange(self, request: Request, name: str, *, exists: bool) -> Answer:
        words = "OIDC token exchange error"
        if request.token not in self.github.id_tokens:
            return as_json(401, {"message": f"{words} - unauthorized"})
        if not exists:
            return as_json(404, {"message": f"{words} - package not found"})
        token = f"npm_oidc-{next(self._numbers)}"
        self.tokens[token] = "oidc"
        self._packages[token] = name
        times = {"created": "2026-09-15T09:59:43.831Z", "expires": self.ends().isoformat()}
        return as_json(201, {"token_type": "oidc", "token": token, **times})

    def kind(self, request: Request) -> Kind | None:
        return self.tokens.get(request.token)

    def denied(self, request: Request, action: str, name: str = "") -> Answer | None:
        kind = self.kind(request)
        if kind is None:
            return error(401, "Unauthorized")
        if kind == "oidc":
            if action in self.allowed and name == self._packages[request.token]:
                return None
            # https://github.com/software-mansion/pulsar/pull/288
            return error(403, "OIDC permission denied for this action")
        if (kind, action) == ("stage-only", "publish"):
            return error(403, _STAGES)
        if action not in _MAY[kind]:
            return error(403, "Insufficient permissions to access this resource")
        return None

    def absent(self, request: Request, action: str, origin: str, name: str = "") -> Answer | None:
        """Denied, or no proof of a person's presence."""
        denied = self.denied(request, action, name)
        bypasses = action == "publish" and self.kind(request) in {"oidc", "bypass"}
        if denied or bypasses or request.headers.get("npm-otp") in self.codes:
            return denied
        if not self.second_factor:
            return error(403, "Please enable 2fa for your account")
        words = {"error": _NO_CODE}
        headers = [("WWW-Authenticate", "OTP")]
        # Asked for a code, npmjs.com tells apart whom it can send to its website; what else than
        # npm's own user agent it takes there is not known.
        # https://github.com/npm/api-documentation/blob/main/api/registry.npmjs.com/stage.yaml
        login = str(uuid.uuid4())
        sent = request.headers
        if (
            sent.get("npm-auth-type") == "web"
            and sent.get("npm-command") == "stage"
            and sent.get("user-agent", "").startswith("npm/")
        ):
            self.logins[login] = 0
            words["authUrl"] = f"{origin}/auth/cli/{login}"
            words["doneUrl"] = f"{origin}/-/v1/done?authId={login}"
        else:
            way = f"Open {origin}/login/{login} to use your security key for authentication"
            headers.append(("npm-notice", way))
        return as_json(401, words, *headers)

    def done(self, login: str) -> Answer:
        if login not in self.logins:
            return error(404, "Not found")
        if self.agrees_after is None or self.logins[login] < self.agrees_after:
            self.logins[login] += 1
            return as_json(202, {}, ("Retry-After", str(self.retry_after_s)))
        code = f"web-{login}"
        self.codes.add(code)
        return as_json(200, {"token": code})
