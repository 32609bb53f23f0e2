"""As whom an upload goes out: a token, a user and a password, or this workflow itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.pypi import Inputs, trusted_publishing
from releasekit.ecosystems.shared import login
from releasekit.errors import MissingCredentials

if TYPE_CHECKING:
    import httpx

    from releasekit.config.config import Config
    from releasekit.ecosystems.interface import Services

_PUBLISHERS: Final = frozenset({"upload.pypi.org", "test.pypi.org"})
# The user name that says "the password is an API token".
# https://pypi.org/help/#apitoken
_TOKEN_USER: Final = "__token__"  # noqa: S105 (the user, not the password)


def choose(config: Config, services: Services, upload: httpx.URL) -> login.Login:
    """auto: the token if there is one, else this job's identity where PyPI knows what that is."""
    trusting = login.is_trusting(config, known=upload.host in _PUBLISHERS)

    def missing() -> MissingCredentials:
        if trusting:
            return trusted_publishing.not_offered(upload, services.credentials.environment)
        return MissingCredentials(
            f"pypi: no credentials for {upload}: RELEASEKIT_PYPI_TOKEN is not set",
            hint="Set it to an API token (input `pypi-token`). For a user and a password, give the "
            "user as `pypi-username` and the password in RELEASEKIT_PYPI_TOKEN.",
        )

    exchange = trusted_publishing.Exchange(upload, config, services)
    trusted = login.Trusted(exchange) if trusting else None
    return login.choose(config, services, "RELEASEKIT_PYPI_TOKEN", trusted=trusted, missing=missing)


def user_of(config: Config, chosen: login.Login) -> str:
    """Whose password the token is."""
    return config.own(Inputs).username if isinstance(chosen, login.Given) else _TOKEN_USER
