"""Maven packages, repositories and the Central Portal, declared."""

from dataclasses import dataclass
from typing import Annotated, Final

from releasekit.config.declaration import Declaration
from releasekit.config.ecosystem import Demo, EcosystemDeclaration
from releasekit.ecosystems.maven.options import Options
from releasekit.host.scrub import ToolVariables


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    username: Annotated[
        str,
        Declaration(
            "The user that `maven-password` belongs to, or the first half of a token.", "text"
        ),
    ] = ""


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
    demo=Demo(tool="mvn", version="3"),
)
