"""The `[maven]` table of releasekit.toml."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, Self, cast

from releasekit.ecosystems import tables
from releasekit.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

WHERE: Final = tables.where("maven")
Api = Literal["auto", "repository", "portal"]
Publishing = Literal["automatic", "user-managed"]
_PROPERTY: Final = re.compile(r"[A-Za-z_][\w.\-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`reactors` are directories with a pom.xml, relative to the workspace's root; empty for the
    root itself.

    `properties` are what `-D` sets, for discovery and for the build; `args` go to mvn as they are.
    `goals` are what is built: "verify" where a build attaches or signs files only then.
    `sources` and `javadoc` make jars that the project's own build does not. `sign` is False, True
    for gpg's default key, or the key to sign with. `api` says what `maven-registry` speaks: "auto"
    takes central.sonatype.com for a portal and all else for a repository. `publishing`
    "user-managed" publishes by a request of its own what a portal has found to be in order;
    "automatic" leaves that to the portal. `repository` is where it becomes visible.
    """

    reactors: tuple[str, ...] = ()
    command: str = "mvn"
    args: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    pass_env: tuple[str, ...] = ()
    goals: tuple[str, ...] = ("package",)
    skip_tests: bool = False
    sources: bool = False
    javadoc: bool = False
    sign: bool | str = False
    api: Api = "auto"
    publishing: Publishing = "user-managed"
    repository: str = ""

    @classmethod
    def from_table(cls, table: Mapping[str, object]) -> Self:
        """Raises ConfigError naming the key, its value, and what to write instead."""
        return cls(
            reactors=tables.strings(table, "reactors", where=WHERE),
            command=tables.string(table, "command", where=WHERE) or "mvn",
            args=tables.strings(table, "args", where=WHERE),
            properties=_properties(table),
            pass_env=tables.strings(table, "pass-env", where=WHERE),
            goals=tables.strings(table, "goals", where=WHERE) or ("package",),
            skip_tests=tables.boolean(table, "skip-tests", where=WHERE),
            sources=tables.boolean(table, "sources", where=WHERE),
            javadoc=tables.boolean(table, "javadoc", where=WHERE),
            sign=_sign(table),
            api=cast("Api", _choice(table, "api", ("auto", "repository", "portal"))),
            publishing=cast(
                "Publishing", _choice(table, "publishing", ("user-managed", "automatic"))
            ),
            repository=tables.string(table, "repository", where=WHERE),
        )


def _wrong(key: str, value: object, instead: str) -> ConfigError:
    return ConfigError(f"{WHERE} {key} is {value!r}", hint=f"Write {instead}.")


def _choice(table: Mapping[str, object], key: str, choices: tuple[str, ...]) -> str:
    value = table.get(key, choices[0])
    if value not in choices:
        raise _wrong(key, value, f"one of {', '.join(map(repr, choices))}")
    return str(value)


def _sign(table: Mapping[str, object]) -> bool | str:
    value = table.get("sign", False)
    # What begins with a hyphen would be an option of gpg.
    if isinstance(value, bool) or (isinstance(value, str) and value and value[0] != "-"):
        return value
    raise _wrong("sign", value, 'sign = true, or the key that signs: sign = "KEY"')


def _properties(table: Mapping[str, object]) -> dict[str, str]:
    value = table.get("properties", {})
    if not isinstance(value, dict) or not all(
        isinstance(item, str) and _PROPERTY.fullmatch(name) for name, item in value.items()
    ):
        raise _wrong("properties", value, 'a table of strings: properties = { revision = "1.2.3" }')
    return dict(value)
