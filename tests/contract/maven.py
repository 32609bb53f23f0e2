from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contract.case import Place
from integration.maven_server import MavenServer, local_repository

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from contract.case import Member

GROUP: Final = "com.example.demo"
_VERSIONS: Final = {
    "open": "${project.version}",
    "fits": "[1.0.0,2.0.0)",
    "excludes": "[2.0.0,)",
}
_NAMESPACE: Final = 'xmlns="http://maven.apache.org/POM/4.0.0"'
_PARENT: Final = f"""\
<project {_NAMESPACE}>
  <modelVersion>4.0.0</modelVersion>
  <groupId>{GROUP}</groupId>
  <artifactId>workspace</artifactId>
  <version>1.0.0-SNAPSHOT</version>
  <packaging>pom</packaging>
  <modules>{{modules}}</modules>
</project>
"""
_MODULE: Final = f"""\
<project {_NAMESPACE}>
  <modelVersion>4.0.0</modelVersion>
  <groupId>{GROUP}</groupId>
  <artifactId>demo-{{key}}</artifactId>
  <version>{{version}}</version>
  <properties>
    <maven.compiler.source>8</maven.compiler.source>
    <maven.compiler.target>8</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
    <maven.deploy.skip>{{private}}</maven.deploy.skip>
  </properties>
  <!-- of this workspace -->
  <dependencies>{{needs}}</dependencies>
</project>
"""
_DEPENDENCY: Final = """
    <dependency>
      <groupId>${{project.groupId}}</groupId>
      <artifactId>demo-{key}</artifactId>
      <version>{version}</version>
    </dependency>
"""


class Maven:
    """A reactor of jars."""

    tools = ("mvn", "nginx")
    servers = ("maven_server",)
    # Of all the requests it takes to bring a POM there, the one that ends it.
    upload = ("PUT", r".*\.pom\.sha1")
    version = "1.0.0"
    around = (f"{GROUP}:workspace",)

    def name(self, key: str) -> str:
        return f"{GROUP}:demo-{key}"

    def write(self, root: Path, members: Sequence[Member]) -> None:
        (root / ".mvn").mkdir()
        cache = f"-Dmaven.repo.local={local_repository()}\n"
        (root / ".mvn" / "maven.config").write_text(cache)
        modules = "".join(f"<module>modules/{member.key}</module>" for member in members)
        (root / "pom.xml").write_text(_PARENT.format(modules=modules))
        for member in members:
            directory = root / "modules" / member.key
            sources = directory / "src" / "main" / "java" / "demo"
            sources.mkdir(parents=True)
            name = member.key.capitalize()
            (sources / f"{name}.java").write_text(
                f'package demo;\n\npublic class {name} {{\n  String text = "{member.text}";\n'
                f"{'  nonsense' if member.broken else ''}}}\n"
            )
            needs = [
                _DEPENDENCY.format(key=key, version=_VERSIONS[how])
                for key, how in member.needs.items()
            ]
            page = _MODULE.format(
                key=member.key,
                version=self.version,
                private=str(member.private).lower(),
                needs="".join(needs),
            )
            (directory / "pom.xml").write_text(page)

    def include(self, root: Path, directory: Path) -> None:
        path = root / "pom.xml"
        module = f"<module>modules/{directory.name}</module></modules>"
        path.write_text(path.read_text().replace("</modules>", module))

    def place(self, server: object) -> Place:
        assert isinstance(server, MavenServer)
        environment = server.environment
        return Place(
            registry=server.url,
            environment={"RELEASEKIT_MAVEN_PASSWORD": environment["RELEASEKIT_MAVEN_PASSWORD"]},
            wrong_environment={"RELEASEKIT_MAVEN_PASSWORD": "wrong-horse"},
            inputs={"username": environment["RELEASEKIT_MAVEN_USERNAME"]},
            recorder=server.recorder,
        )


CASE: Final = Maven()
