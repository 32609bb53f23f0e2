"""A real reactor on disk: a parent with ${revision}, a BOM, jars that need each other."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Final

from integration.maven_server import local_repository
from integration.tools import require_tool
from workspaces import git

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

GROUP: Final = "com.example.acme"
VERSION: Final = "1.4.0"
JARS: Final[Mapping[str, tuple[str, ...]]] = {
    "core": (),
    "text": ("core",),
    "http": ("core",),
    "web": ("text", "http"),
}
# For what one jar or two show as well as four.
SMALL: Final[Mapping[str, tuple[str, ...]]] = {"core": ()}
PAIR: Final[Mapping[str, tuple[str, ...]]] = {"core": (), "text": ("core",)}


def needs_of(jars: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """What each artifact needs to be there first."""
    return {
        "acme-parent": (),
        **{
            f"acme-{name}": ("acme-parent", *(f"acme-{need}" for need in needs))
            for name, needs in jars.items()
        },
        "acme-bom": ("acme-parent", *(f"acme-{name}" for name in jars)),
    }


NEEDS: Final = needs_of(JARS)
_PROJECT: Final = """\
<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
{body}
</project>
"""
_PARENT: Final = f"""\
  <groupId>{GROUP}</groupId>
  <artifactId>acme-parent</artifactId>
  <version>${{{{revision}}}}${{{{changelist}}}}</version>
  <packaging>pom</packaging>
  <properties>
    <revision>0.0.0</revision>
    <changelist>-SNAPSHOT</changelist>
    <maven.compiler.source>8</maven.compiler.source>
    <maven.compiler.target>8</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <modules>{{modules}}</modules>
"""
_INHERITED: Final = f"""\
  <!-- of this workspace -->
  <parent>
    <groupId>{GROUP}</groupId>
    <artifactId>acme-parent</artifactId>
    <version>${{{{revision}}}}${{{{changelist}}}}</version>
  </parent>
  <artifactId>{{artifact}}</artifactId>
"""
_DEPENDENCY: Final = """
    <dependency>
      <groupId>${{project.groupId}}</groupId>
      <artifactId>acme-{name}</artifactId>
      <version>${{project.version}}</version>
    </dependency>"""


def write(root: Path, jars: Mapping[str, tuple[str, ...]] = JARS) -> Path:
    """A git repository with the reactor; the release is set from outside, as CI does it."""
    modules = [*jars, "bom", "internal"]
    listed = "".join(f"<module>{name}</module>" for name in modules)
    page(root / "pom.xml", _PARENT.format(modules=listed))
    for name, needs in jars.items():
        dependencies = "".join(_DEPENDENCY.format(name=need) for need in needs)
        body = inherited(f"acme-{name}") + f"  <dependencies>{dependencies}</dependencies>"
        page(root / name / "pom.xml", body)
        source = root / name / "src" / "main" / "java" / "acme" / f"{name.capitalize()}.java"
        source.parent.mkdir(parents=True)
        uses = " + ".join([f'"{name}"', *(f"{need.capitalize()}.NAME" for need in needs)])
        source.write_text(
            f"package acme;\n\n/** Part of acme. */\npublic final class {name.capitalize()} {{\n"
            f"  /** Its name. */\n  public static final String NAME = {uses};\n\n"
            f"  private {name.capitalize()}() {{}}\n}}\n"
        )
    managed = "".join(_DEPENDENCY.format(name=name) for name in jars)
    bom = inherited("acme-bom") + "  <packaging>pom</packaging>\n  <dependencyManagement>"
    page(
        root / "bom" / "pom.xml",
        f"{bom}<dependencies>{managed}</dependencies></dependencyManagement>",
    )
    skip = "  <properties><maven.deploy.skip>true</maven.deploy.skip></properties>"
    page(root / "internal" / "pom.xml", inherited("acme-internal") + skip)
    (root / ".gitignore").write_text("target/\n")
    (root / ".mvn").mkdir()
    (root / ".mvn" / "maven.config").write_text(f"-Drevision={VERSION}\n-Dchangelist=\n")
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Start")
    return root


def inherited(artifact: str) -> str:
    return _INHERITED.format(artifact=artifact)


def page(path: Path, body: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_PROJECT.format(body=body))


# A JVM that lives for seconds: with them, packaging takes 4.5 s of CPU, not 8.2.
_SHORT_LIVED: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def environment() -> dict[str, str]:
    """So that mvn fetches its plugins once for all tests."""
    return {"MAVEN_OPTS": f"{_SHORT_LIVED} -Dmaven.repo.local={local_repository()}"}


def mvn(directory: Path, *arguments: str, repository: Path | None = None) -> str:
    """What mvn prints; nothing of a release can be in its local repository before."""
    local = f"-Dmaven.repo.local={repository or local_repository()}"
    argv = [str(require_tool("mvn")), "--batch-mode", "--no-transfer-progress", local, *arguments]
    done = subprocess.run(
        argv,
        cwd=directory,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(directory),
            "LANG": "C.UTF-8",
            "MAVEN_OPTS": _SHORT_LIVED,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    return done.stdout


def dependent(
    directory: Path,
    url: str,
    *,
    version: str = VERSION,
    artifact: str = "acme-web",
    name: str = "acme.Web.NAME + acme.Text.NAME + acme.Core.NAME",
) -> None:
    """A project outside the workspace that uses `artifact`, by the BOM of `version`, for `name`, a
    text in Java.
    """
    page(
        directory / "pom.xml",
        f"""\
  <groupId>org.example.user</groupId>
  <artifactId>user</artifactId>
  <version>1</version>
  <properties>
    <maven.compiler.source>8</maven.compiler.source>
    <maven.compiler.target>8</maven.compiler.target>
  </properties>
  <repositories>
    <repository>
      <id>released</id>
      <url>{url}</url>
      <releases><checksumPolicy>fail</checksumPolicy></releases>
    </repository>
  </repositories>
  <dependencyManagement><dependencies><dependency>
    <groupId>{GROUP}</groupId>
    <artifactId>acme-bom</artifactId>
    <version>{version}</version>
    <type>pom</type>
    <scope>import</scope>
  </dependency></dependencies></dependencyManagement>
  <dependencies><dependency>
    <groupId>{GROUP}</groupId>
    <artifactId>{artifact}</artifactId>
  </dependency></dependencies>""",
    )
    source = directory / "src" / "main" / "java" / "User.java"
    source.parent.mkdir(parents=True)
    source.write_text(f"class User {{ String name = {name}; }}\n")
