"""The declaration of Maven packages, repositories and the Central Portal."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Final, Literal

from releasekit.config.declaration import Declaration, Demo, EcosystemDeclaration, Manifests
from releasekit.config.tables import OptionTable, mapping, strings
from releasekit.host.sandbox import Cache
from releasekit.host.scrub import ToolVariables


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    username: Annotated[
        str,
        Declaration(
            "The user that `maven-password` belongs to, or the first half of a token.", "text"
        ),
    ] = ""


_PROPERTY: Final = re.compile(r"[A-Za-z_][\w.\-]*")


def _parse_sign(_key: str, value: object) -> bool | str:
    # A key that begins with a hyphen would be an option of gpg.
    if isinstance(value, bool) or (isinstance(value, str) and value and value[0] != "-"):
        return value
    raise ValueError('Write sign = true, or the key that signs: sign = "KEY".')


def _parse_properties(key: str, value: object) -> dict[str, str]:
    properties = mapping(key, value)
    if not all(_PROPERTY.fullmatch(name) for name in properties):
        raise ValueError('Write a table of strings: properties = { revision = "1.2.3" }.')
    return properties


# sha1 comes last, and so proves that the others exist. Maven looks for it first.
# https://maven.apache.org/resolver/about-checksums.html
CHECKSUMS: Final = ("md5", "sha256", "sha512", "sha1")
PROOF: Final = "sha1"


def _parse_checksums(key: str, value: object) -> tuple[str, ...]:
    names = strings(key, value)
    if (names and PROOF not in names) or not set(names) <= set(CHECKSUMS):
        raise ValueError(
            'Write "sha1", which Maven and Gradle check, and with it any of "md5", "sha256" and '
            '"sha512": checksums = ["sha1", "md5"].'
        )
    return tuple(dict.fromkeys(names))


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(OptionTable):
    """`reactors` are directories with a pom.xml, relative to the workspace's root; empty for the
    root.

    `properties` are set by `-D`, for discovery and for the build; `args` go to mvn as they are.
    `goals` are built: "package" leaves out the files that later phases attach or sign. `sources`
    and `javadoc` make jars that the build of the project does not make. `sign` is False, True for
    gpg's default key, or the key. `api` is the kind of `maven-registry`: "auto" takes
    central.sonatype.com for a portal and all others for repositories. `publishing` "user-managed"
    publishes by a second request after the checks of a portal; "automatic" leaves that to the
    portal. `stage` is the input of that name, for Maven alone; a staged release waits for a person
    with either `publishing`. `repository` is where a portal makes releases visible. `checksums`
    are those that a repository gets of each file, one request each; a portal gets those that it
    wants, and a directory all. An `immutable` repository refuses to replace its files, so that a
    release need not look before it sends each.
    """

    ECOSYSTEM: ClassVar[str] = "maven"

    reactors: tuple[str, ...] = ()
    command: str = "mvn"
    args: tuple[str, ...] = ()
    properties: Annotated[Mapping[str, str], _parse_properties] = field(default_factory=dict)
    pass_env: tuple[str, ...] = ()
    goals: tuple[str, ...] = ("verify",)
    skip_tests: bool = False
    sources: bool = False
    javadoc: bool = False
    sign: Annotated[bool | str, _parse_sign] = False
    api: Literal["auto", "repository", "portal"] = "auto"
    publishing: Literal["user-managed", "automatic"] = "user-managed"
    stage: Literal["", "auto", "always", "never"] = ""
    repository: str = ""
    checksums: Annotated[tuple[str, ...], _parse_checksums] = (PROOF,)
    immutable: bool = False


DECLARATION: Final = EcosystemDeclaration(
    name="maven",
    folder=__name__,
    title="Maven packages",
    registry=Declaration.registry(
        "maven-registry",
        "Where Maven packages go: a repository's URL, or `dir:PATH` for a static directory. "
        "Default: Maven Central, by its portal.",
    ),
    secrets=(
        Declaration.secret(
            "maven-password", "The password for `maven-registry`, or the second half of a token."
        ),
    ),
    inputs=Inputs,
    options=Options,
    variables=ToolVariables(
        seen=(r"JAVA_\w+", r"JDK_\w+", "M2_HOME", "MAVEN_(HOME|OPTS|ARGS)", r"MVNW_\w+")
    ),
    caches=(
        # Also the mvn of a wrapper.
        Cache("java", "MAVEN_USER_HOME", "~/.m2", below=("repository/", "wrapper/")),
        Cache("java", "", "~/.m2", below=("repository/",), of_the_user=True),
        Cache("java", "MAVEN_OPTS", "", option="-Dmaven.repo.local="),
        Cache("java", "MAVEN_ARGS", "", option="-Dmaven.repo.local="),
    ),
    demo=Demo(tool="mvn", version="3"),
    suffixes=(".pom", ".module", ".jar", ".war", ".ear", ".aar"),
    manifests=Manifests(
        names=("pom.xml",), workspaces="reactors", packages="reactors", nested=True
    ),
    approves=True,
)
