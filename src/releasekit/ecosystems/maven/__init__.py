"""Maven packages, repositories and the Central Portal, declared."""

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


# sha1 comes last, to prove that the others are there. Maven looks for it first.
# https://maven.apache.org/resolver/about-checksums.html
CHECKSUMS: Final = ("md5", "sha256", "sha512", "sha1")
PROOF: Final = "sha1"


def _checksums(key: str, value: object) -> tuple[str, ...]:
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
    root itself.

    `properties` are what `-D` sets, for discovery and for the build; `args` go to mvn as they are.
    `goals` are what is built: with "package", what a build attaches or signs later is left out.
    `sources` and `javadoc` make jars that the project's own build does not. `sign` is False, True
    for gpg's default key, or the key to sign with. `api` says what `maven-registry` speaks: "auto"
    takes central.sonatype.com for a portal and all else for a repository. `publishing`
    "user-managed" publishes by a request of its own what a portal has found to be in order;
    "automatic" leaves that to the portal. `stage` is the input of that name, for Maven alone; what
    a portal stages waits for a person, whatever `publishing` says. `repository` is where it becomes
    visible. `checksums` are those that a repository gets of each file, a request for each; a portal
    gets what it asks for, and a directory all there are. One that is `immutable` refuses to replace
    what it has, so that nobody has to look before each file is sent.
    """

    ECOSYSTEM: ClassVar[str] = "maven"

    reactors: tuple[str, ...] = ()
    command: str = "mvn"
    args: tuple[str, ...] = ()
    properties: Annotated[Mapping[str, str], _properties] = field(default_factory=dict)
    pass_env: tuple[str, ...] = ()
    goals: tuple[str, ...] = ("verify",)
    skip_tests: bool = False
    sources: bool = False
    javadoc: bool = False
    sign: Annotated[bool | str, _sign] = False
    api: Literal["auto", "repository", "portal"] = "auto"
    publishing: Literal["user-managed", "automatic"] = "user-managed"
    stage: Literal["", "auto", "always", "never"] = ""
    repository: str = ""
    checksums: Annotated[tuple[str, ...], _checksums] = (PROOF,)
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
            "maven-password",
            "The password for `maven-registry`, or the second half of a token.",
        ),
    ),
    inputs=Inputs,
    options=Options,
    variables=ToolVariables(
        seen=(r"JAVA_\w+", r"JDK_\w+", "M2_HOME", "MAVEN_(HOME|OPTS|ARGS)", r"MVNW_\w+")
    ),
    caches=(
        # Also that of a wrapper, which brings its own mvn.
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
