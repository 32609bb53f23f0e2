"""As whom an upload goes out: a token, or this workflow itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.ecosystems.cargo.trusted_publishing import Exchange
from releasekit.ecosystems.shared import login
from releasekit.errors import MissingCredentials

if TYPE_CHECKING:
    from releasekit.config.config import Config
    from releasekit.ecosystems.cargo.destination import Destination
    from releasekit.ecosystems.interface import Services


def choose(config: Config, services: Services, destination: Destination) -> login.Login:
    """auto: the token if there is one, else this job's identity where crates.io is asked."""
    trusting = destination.is_crates_io and login.is_trusting(config, known=True)

    def missing() -> MissingCredentials:
        hint = "Set it to an API token (input `cargo-token`)."
        if trusting:
            hint += (
                " Or give the job `permissions: id-token: write`, and register its workflow at "
                "https://crates.io/crates/CRATE/settings/new-trusted-publisher."
            )
        return MissingCredentials(
            f"cargo: no credentials for {destination.index}: RELEASEKIT_CARGO_TOKEN is not set",
            hint=hint,
        )

    trusted = login.Trusted(Exchange.of(destination.api, config, services)) if trusting else None
    return login.choose(
        config, services, "RELEASEKIT_CARGO_TOKEN", trusted=trusted, missing=missing
    )
