"""The `[maven]` table of releasekit.toml."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final, Literal, get_args

from releasekit.ecosystems.tables import OptionTable, mapping, one_of

if TYPE_CHECKING:
    from collections.abc import Mapping

Api = Literal["auto", "repository", "portal"]
Publishing = Literal["user-managed", "automatic"]
_PROPERTY: Final = re.compile(r"[A-Za-z_][\w.\-]*")


def _sign(_key: str, value: object) -> bool | str:
    # What begins with a hyphen would be an option of gpg.
    if isinstance(value, bool) or (isinstance(value, str) and value and value[0] != "-"):
        return value
    raise ValueError('Write sign = true, or the key that signs: sign = "KEY".')


def _properties(key: str, value: object) -> dict[str, str]:
    properties = mapping(key, value)
    if not all(_PROPERTY.fullmatch(name) for name in properties):
        raise ValueError('Write a table of strings: properties = { revision = "1.2.3" }.')
    return properties


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(OptionTable):
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

    ECOSYSTEM: ClassVar[str] = "maven"

    reactors: tuple[str, ...] = ()
    command: str = "mvn"
    args: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict, metadata={"read": _properties})
    pass_env: tuple[str, ...] = ()
    goals: tuple[str, ...] = ("package",)
    skip_tests: bool = False
    sources: bool = False
    javadoc: bool = False
    sign: bool | str = field(default=False, metadata={"read": _sign})
    api: Api = field(default="auto", metadata={"read": one_of(*get_args(Api))})
    publishing: Publishing = field(
        default="user-managed", metadata={"read": one_of(*get_args(Publishing))}
    )
    repository: str = ""
