"""What authenticates an upload: a token, or by trusted publishing this job's identity, which is
exchanged for a short-lived token.
"""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from releasekit.config.declaration import PREFIX
from releasekit.errors import MissingCredentials, Transient, UnnamedRegistry
from releasekit.http.answers import check
from releasekit.http.client import retry, send
from releasekit.http.identity import (
    Minted,
    SharedToken,
    describe_places,
    is_known,
    open_tokens,
    text_of,
)
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import httpx

    from releasekit.attested import Obstacle
    from releasekit.config.values import TrustedPublishing, Url
    from releasekit.ecosystems.interface import Services
    from releasekit.errors import PackageError
    from releasekit.host.ci import CI
    from releasekit.http.credentials import Secret
    from releasekit.model import Package

TRUSTED: Final = "trusted publishing, as this job"
_FORK: Final = (
    "A pull request from a fork is given neither secrets nor ID tokens. Publish from a push, a tag "
    "or a release: `on: { push: { tags: ['v*'] } }`"
)


class TokenExchange(ABC):
    """Exchanges an ID token for an upload token, at the registry of `url`, which `takes_once` each
    of them, or as often as it comes.
    """

    takes_once = True

    def __init__(self, url: httpx.URL, services: Services) -> None:
        self._url = url
        self._http = services.http
        self._credentials = services.credentials
        self._identity = open_tokens(services.ci, services.credentials, services.http)
        self._policy = services.retries

    @property
    def what(self) -> str:
        """The beginning of messages."""
        return f"trusted publishing at {self._url.host}"

    @abstractmethod
    async def audience(self) -> str:
        """The audience that the ID token has to name."""

    @abstractmethod
    def request(self, token: Secret) -> httpx.Request:
        """The request that sends an ID token."""

    @abstractmethod
    def refusal(self, response: httpx.Response, token: Secret) -> PackageError | None:
        """Why the registry does not trust this job, and what to change; Transient where it has
        taken this ID token already; None for another answer.
        """

    def lifetime_s(self, _response: httpx.Response) -> float:
        """The lifetime of the token; 0 for one upload."""
        return 0.0

    async def mint(self) -> Minted:
        """Masked before it is returned. Raises Denied with what to change, or Transient."""
        try:
            return await retry(self._attempt, self._policy)
        except Transient as error:
            # The token may have been made, but nothing was uploaded.
            raise error.with_(ambiguous=False) from error.__cause__

    async def _attempt(self) -> Minted:
        # Where a registry takes each ID token once, an attempt whose answer was lost may have spent
        # it: the next attempt is told so.
        token = await self._identity.fetch(await self.audience())
        response = await send(self._http, self.request(token))
        refusal = self.refusal(response, token)
        if self.takes_once and (response.is_success or isinstance(refusal, Transient)):
            self._identity.spend(token)
        if refusal is not None:
            raise refusal
        check(response, self.what, redact=self._credentials.redact)
        minted = text_of(response, "token")
        if minted is None:
            raise Transient(
                f"{self.what}: an answer without a token", problem=Problem.STRANGE_ANSWER
            )
        return Minted(self._credentials.adopt(minted), self.lifetime_s(response))


class Login(ABC):
    """Where the token of a request comes from."""

    @abstractmethod
    def check(self) -> str:
        """What it is, in words. Raises MissingCredentials, or UnnamedRegistry; no network."""

    @abstractmethod
    async def get(self, package: Package) -> Secret:
        """For an upload that starts now. Raises Denied, Transient, Rejected."""

    def renew(self, _refused: Secret, /) -> bool:
        """Drop a token that the registry refused; whether the next `get` brings another."""
        return False

    def for_reading(self) -> Secret | None:
        """The token for reading private registries; None without a lasting one."""
        return None


class TokenAuth(Login):
    """The token of a variable, or of the user's file `source`."""

    def __init__(self, token: Secret, *, variable: str = "", source: str = "") -> None:
        self._token = token
        self._variable = variable
        self.source = source

    def check(self) -> str:
        return f"the token of {self.source or self._variable}"

    async def get(self, package: Package) -> Secret:  # noqa: ARG002 (one token for all)
        return self._token

    def for_reading(self) -> Secret | None:
        return self._token


class OidcAuth(Login):
    """Trusted publishing: a token for all packages, made from this job's identity when needed."""

    def __init__(self, exchange: TokenExchange) -> None:
        self._shared = SharedToken(exchange.mint)

    def check(self) -> str:
        return TRUSTED

    async def get(self, package: Package) -> Secret:  # noqa: ARG002
        return await self._shared.get()

    def renew(self, refused: Secret, /) -> bool:
        self._shared.drop(refused)
        return True


class NoAuth(Login):
    """No login; `error` says what to set, or why a login is not sent. Reading still works."""

    def __init__(self, error: MissingCredentials | UnnamedRegistry) -> None:
        self._error = error

    def check(self) -> str:
        raise self._error

    async def get(self, package: Package) -> Secret:  # noqa: ARG002
        raise self._error


def is_trusting(wish: TrustedPublishing, *, known: bool) -> bool:
    """Whether this job's identity may be used: "auto" asks only a registry `known` to take it."""
    return wish == "always" or (wish == "auto" and known)


class TokenInput(Struct, frozen=True, kw_only=True):
    """The input for a token for uploads to `registry`; `kind` says what token it is. `register` is
    what trusted publishing takes besides a permission.
    """

    ecosystem: str
    registry: Url
    kind: str
    register: str = ""

    @property
    def variable(self) -> str:
        return f"RELEASEKIT_{self.ecosystem.upper()}_TOKEN"

    def missing(self, ci: CI, obstacle: Obstacle | None, *, places: str = "") -> MissingCredentials:
        """Why there is neither a token nor an identity; `obstacle` is what is in the way of that,
        where the registry would trust one. It trusts jobs of `places`, and this is none.
        """
        reason, name = f"{self.variable} is not set", f"{self.ecosystem}-token"
        if ci.is_actions:
            secret = f"${{{{ secrets.{self.ecosystem.upper()}_TOKEN }}}}"
            given = f"the input `{name}` to {self.kind}, from a secret: `{name}: {secret}`"
        else:
            given = f"the environment variable {self.variable} to {self.kind}."
        hint = f"Set {given}"
        if places:
            hint = f"{hint.rstrip('.')}. Trusted publishing works in jobs of {places} only."
        elif obstacle and ci.is_actions and ci.is_from_fork():
            reason, hint = "this run is for a pull request from a fork", _FORK
        elif obstacle:
            reason = f"{obstacle.condition}, and {reason}"
            hint = f"{obstacle.cure.rstrip('.')}{self.register}; or set {given}"
        return MissingCredentials(
            f"{self.ecosystem}: no credentials for {self.registry}: {reason}", hint=hint
        )


def choose_login(
    wish: TrustedPublishing,
    services: Services,
    wanted: TokenInput,
    *,
    trusted: Login | None,
    audiences: Sequence[str],
    issuers: Collection[str],
) -> Login:
    """The token of `wanted` if it is set, else `trusted` if this job has an identity for one of the
    `audiences`, and the registry knows it: it is of one of these `issuers`, unless the user says
    that it does.
    """
    token = services.credentials.get(wanted.variable)
    if token is not None and wish != "always":
        return withhold(wanted.ecosystem, wanted.registry) or TokenAuth(
            token, variable=wanted.variable
        )
    if trusted is None:
        return NoAuth(wanted.missing(services.ci, None))
    tokens = open_tokens(services.ci, services.credentials, services.http)
    if wish == "auto" and not is_known(tokens.find_issuer(audiences), issuers):
        return NoAuth(wanted.missing(services.ci, None, places=describe_places(issuers)))
    obstacles = [tokens.find_obstacle(each) for each in audiences]
    if all(obstacles):
        return NoAuth(wanted.missing(services.ci, obstacles[0]))
    return withhold(wanted.ecosystem, wanted.registry) or trusted


def describe_untold(registry: str) -> str:
    """The note on a token where nobody is told what it may do."""
    return (
        f"{registry} tells nobody what a token may do: whether it may publish each of these shows "
        "at its upload"
    )


def withhold(ecosystem: str, registry: Url) -> NoAuth | None:
    """Replaces a login where no input names the registry."""
    error = explain_unnamed(ecosystem, registry)
    return NoAuth(error) if error else None


def explain_unnamed(ecosystem: str, registry: Url) -> UnnamedRegistry | None:
    """Why credentials must not go there, and what to add; None where they may."""
    if not registry.only_in:
        return None
    name = f"{ecosystem}-registry"
    variable = f"{PREFIX}{ecosystem.upper()}_REGISTRY"
    return UnnamedRegistry(
        f"{registry.only_in} names {registry}, and no input does; tokens go only where the "
        "workflow or the command names the registry",
        hint=f"Add `{name}: {registry}` to the action's inputs (or `--{name} {registry}`, or "
        f"{variable}).",
    )


def pair(username: str, password: Secret) -> str:
    """A user and a password as in a header. https://www.rfc-editor.org/rfc/rfc7617"""
    return base64.b64encode(f"{username}:{password.reveal()}".encode()).decode("ascii")
