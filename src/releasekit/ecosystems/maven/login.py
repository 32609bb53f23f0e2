"""As whom files go out: a user and a password, as every Maven repository takes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from releasekit.ecosystems.maven import Inputs
from releasekit.ecosystems.shared.login import pair
from releasekit.errors import MissingCredentials

if TYPE_CHECKING:
    from releasekit.config.config import Config
    from releasekit.http.credentials import Credentials, Secret


@dataclass(frozen=True, slots=True)
class Login:
    """`place` is where they are for; without a password, nothing is ever sent."""

    place: str
    username: str
    password: Secret | None

    @classmethod
    def of(cls, config: Config, credentials: Credentials, place: str) -> Login:
        return cls(place, config.own(Inputs).username, credentials.get("RELEASEKIT_MAVEN_PASSWORD"))

    def check(self) -> None:
        """Raises MissingCredentials; no network."""
        missing = [
            name
            for name, value in (
                ("RELEASEKIT_MAVEN_USERNAME", self.username),
                ("RELEASEKIT_MAVEN_PASSWORD", self.password),
            )
            if not value
        ]
        if missing:
            raise MissingCredentials(
                f"maven: no credentials for {self.place}: {' and '.join(missing)} "
                f"{'is' if len(missing) == 1 else 'are'} not set",
                hint="Set them to a user and its password, or to the two halves of a token "
                "(inputs `maven-username` and `maven-password`).",
            )

    def header(self, scheme: str = "Basic") -> dict[str, str]:
        """The portal wants the same pair as Bearer."""
        if self.password is None:
            return {}
        return {"Authorization": f"{scheme} {pair(self.username, self.password)}"}
