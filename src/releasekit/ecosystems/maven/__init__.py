"""The declaration of Maven packages, repositories and the Central Portal."""

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Literal

from msgspec import Struct, field

from releasekit.config.declaration import Declaration, EcosystemDeclaration, Manifests, Setup, Tool
from releasekit.config.tables import Option, OptionTable, mapping, strings
from releasekit.host.sandbox import Cache
from releasekit.host.scrub import ToolVariables

CENTRAL: Final = "https://central.sonatype.com"


class MavenInputs(Struct, frozen=True, kw_only=True):
    username: Annotated[
        str,
        Declaration(
            "The user that `maven-password` belongs to, or the first half of a token.",
            "text",
            taken_with="lookup",
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


class MavenOptions(OptionTable, frozen=True, kw_only=True):
    TABLE: ClassVar[str] = "maven"

    reactors: Annotated[
        tuple[str, ...], Option("Directories with a pom.xml; if empty, the root.")
    ] = ()
    directories: Annotated[
        tuple[str, ...],
        Option(
            "Directories into which another tool has published, in Maven's layout: what lies there "
            "goes out as it is. Without `reactors`, they take the place of the root."
        ),
    ] = ()
    command: Annotated[str, Option("The program that builds: `mvn`, or a wrapper, `./mvnw`.")] = (
        "mvn"
    )
    args: Annotated[tuple[str, ...], Option("Further arguments of each call.")] = ()
    properties: Annotated[
        Mapping[str, str],
        Option("What `-D` sets, for discovery and for the build.", _parse_properties),
    ] = field(default_factory=dict)
    pass_env: Annotated[
        tuple[str, ...], Option("Variables that builds see besides the usual ones.")
    ] = ()
    goals: Annotated[
        tuple[str, ...],
        Option("What is built: `package` leaves out files that later phases attach or sign."),
    ] = ("verify",)
    skip_tests: Annotated[bool, Option("Build without running tests.")] = False
    sources: Annotated[bool, Option("Add a sources jar, where the build makes none.")] = False
    javadoc: Annotated[bool, Option("Add a javadoc jar, where the build makes none.")] = False
    sign: Annotated[
        bool | str,
        Option("`true` signs with gpg's default key, a string with that key.", _parse_sign),
    ] = False
    api: Annotated[
        Literal["auto", "repository", "portal"],
        Option(
            "What `maven-registry` is; `auto` takes central.sonatype.com for a portal, and all "
            "others for repositories."
        ),
    ] = "auto"
    publishing: Annotated[
        Literal["user-managed", "automatic"],
        Option(
            "Of a portal: `user-managed` publishes by a second request after its checks, "
            "`automatic` leaves that to it."
        ),
    ] = "user-managed"
    stage: Annotated[
        Literal["", "auto", "always", "never"],
        Option(
            "The input `stage`, for Maven alone; a staged release waits for a person, whatever "
            "`publishing` says."
        ),
    ] = ""
    repository: Annotated[str, Option("Where a portal makes releases visible.")] = ""
    checksums: Annotated[
        tuple[str, ...],
        Option(
            "The checksums that a repository gets of each file, one request each; a portal gets "
            "those that it wants, and a directory all.",
            _parse_checksums,
        ),
    ] = (PROOF,)
    immutable: Annotated[
        bool,
        Option("The repository replaces no file, so a release need not look before it sends each."),
    ] = False


TOOL: Final = Tool(
    program="mvn",
    version="3.6.3",
    install="Install Maven 3.6.3 or later (https://maven.apache.org/install.html), or name the "
    'wrapper in releasekit.toml: [maven] command = "./mvnw".',
)

DECLARATION: Final = EcosystemDeclaration(
    name="maven",
    folder=__name__,
    title="Maven packages",
    registry=Declaration.registry(
        "maven-registry",
        "Where Maven packages go: a repository's URL, or `dir:PATH` for a static directory. "
        "Default: Maven Central, by its portal.",
    ),
    default_registry=CENTRAL,
    # https://central.sonatype.org/publish/publish-portal-snapshots/
    pages={
        **dict.fromkeys(("repo1.maven.org", "repo.maven.apache.org"), (CENTRAL,)),
        **dict.fromkeys(("search.maven.org", "mvnrepository.com"), (CENTRAL,)),
        "central.sonatype.com": (CENTRAL, f"{CENTRAL}/repository/maven-snapshots"),
    },
    secrets=(
        Declaration.secret(
            "maven-password", "The password for `maven-registry`, or the second half of a token."
        ),
    ),
    inputs=MavenInputs,
    options=MavenOptions,
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
    setup=Setup(
        # https://central.sonatype.org/publish/requirements/
        first="Save a user token of https://central.sonatype.com/usertoken as the secrets "
        "MAVEN_USERNAME and MAVEN_PASSWORD, and a private key without a passphrase, whose public "
        "half is on a key server (https://central.sonatype.org/publish/requirements/gpg/), as "
        "GPG_KEY.",
        steps="""\
- uses: actions/setup-java@b6effb05e454b25005698d916606bdc6ffcbf961 # v5.7.0
  with:
    distribution: temurin
    java-version: "21"
    gpg-private-key: ${{ secrets.GPG_KEY }}  # Maven Central wants signatures
""",
        inputs="""\
maven-username: ${{ secrets.MAVEN_USERNAME }}
maven-password: ${{ secrets.MAVEN_PASSWORD }}
""",
        options="""\
sources = true  # Maven Central wants these jars: where no plugin of yours makes them
javadoc = true
sign = true  # where no plugin of yours signs
""",
    ),
    tool=TOOL,
    suffixes=(".pom", ".module", ".jar", ".war", ".ear", ".aar"),
    manifests=Manifests(
        names=("pom.xml",), workspaces="reactors", packages="reactors", nested=True
    ),
)
