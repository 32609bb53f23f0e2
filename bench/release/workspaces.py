"""The same release in the form of each ecosystem, committed to git, with what its peers read."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Final

from bench.release.servers.go import HOST
from bench.release.shape import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    Shape = Mapping[str, tuple[str, ...]]

_IGNORED: Final = (
    *("/.releasekit/", "node_modules", "/dist/", "target/", "/Cargo.lock", "/uv.lock"),
    *("/.nx/", "/.pnp.*", "/.yarn/", "/yarn.lock", "/package-lock.json"),
)
GROUP: Final = "org.example.bench"
_POM: Final = """\
<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
{body}
</project>
"""
_PARENT: Final = f"""\
  <groupId>{GROUP}</groupId>
  <artifactId>bench-parent</artifactId>
  <version>{VERSION}</version>
  <packaging>pom</packaging>
  <properties>
    <maven.compiler.source>8</maven.compiler.source>
    <maven.compiler.target>8</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <modules>{{modules}}</modules>
  <build><pluginManagement><plugins>{{plugins}}
  </plugins></pluginManagement></build>"""
# Those of Maven's own defaults that take part, as the newest of each.
_PLUGINS: Final = {
    "maven-compiler-plugin": "3.14.0",
    "maven-deploy-plugin": "3.1.4",
    "maven-install-plugin": "3.1.4",
    "maven-jar-plugin": "3.4.2",
    "maven-resources-plugin": "3.3.1",
    "maven-surefire-plugin": "3.5.3",
}
_PLUGIN: Final = """
    <plugin><artifactId>{name}</artifactId><version>{version}</version></plugin>"""
_MODULE: Final = f"""\
  <parent>
    <groupId>{GROUP}</groupId>
    <artifactId>bench-parent</artifactId>
    <version>{VERSION}</version>
  </parent>
  <artifactId>{{name}}</artifactId>
  <dependencies>{{needs}}</dependencies>"""
_NEED: Final = f"""
    <dependency>
      <groupId>{GROUP}</groupId>
      <artifactId>{{name}}</artifactId>
      <version>{VERSION}</version>
    </dependency>"""


def write(ecosystem: str, root: Path, shape: Shape) -> Path:
    root.mkdir(parents=True)
    text(root / ".gitignore", "".join(f"{line}\n" for line in _IGNORED))
    _WRITERS[ecosystem](root, shape)
    git(root, "init", "--quiet", "--initial-branch", "main")
    commit(root)
    return root


def commit(root: Path) -> None:
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Start")


def git(root: Path, *arguments: str) -> str:
    settings = ("-c", "user.name=Bench", "-c", "user.email=bench@example.invalid")
    argv = ["git", *settings, "-c", "gc.auto=0", *arguments]
    return subprocess.run(argv, cwd=root, check=True, capture_output=True, text=True).stdout


def json_text(path: Path, document: Mapping[str, object]) -> None:
    text(path, json.dumps(document, indent=2) + "\n")


def text(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def _npm(root: Path, shape: Shape) -> None:
    top = {"name": "bench", "version": "0.0.0", "private": True, "workspaces": ["packages/*"]}
    json_text(root / "package.json", top)
    for name, needs in shape.items():
        directory = root / "packages" / name
        document = {
            "name": f"@bench/{name}",
            "version": VERSION,
            "license": "MIT",
            "repository": {"type": "git", "url": "git+https://github.com/acme/bench.git"},
            "files": ["index.js"],
            "dependencies": {f"@bench/{need}": f"^{VERSION}" for need in needs},
        }
        json_text(directory / "package.json", document)
        text(directory / "README.md", f"# {name}\n")
        text(directory / "index.js", f"module.exports = {json.dumps(name)};\n")


def _pypi(root: Path, shape: Shape) -> None:
    text(root / "pyproject.toml", '[tool.uv.workspace]\nmembers = ["packages/*"]\n')
    for name, needs in shape.items():
        directory = root / "packages" / name
        sources = "".join(f"{need} = {{ workspace = true }}\n" for need in needs)
        text(
            directory / "pyproject.toml",
            f'[project]\nname = "{name}"\nversion = "{VERSION}"\nrequires-python = ">=3.11"\n'
            f"dependencies = {json.dumps(list(needs))}\n\n"
            '[build-system]\nrequires = ["hatchling==1.33.0"]\n'
            'build-backend = "hatchling.build"\n\n'
            f"[tool.uv.sources]\n{sources}",
        )
        module = directory / "src" / name.replace("-", "_")
        text(module / "__init__.py", f'NAME = "{name}"\n')


def _cargo(root: Path, shape: Shape) -> None:
    text(root / "Cargo.toml", '[workspace]\nmembers = ["crates/*"]\nresolver = "2"\n')
    # As the limit, which leaves out compiling.
    text(root / "releasekit.toml", "[cargo]\nverify = false\n")
    for name, needs in shape.items():
        needed = "".join(
            f'{need} = {{ path = "../{need}", version = "{VERSION}" }}\n' for need in needs
        )
        text(
            root / "crates" / name / "Cargo.toml",
            f'[package]\nname = "{name}"\nversion = "{VERSION}"\nedition = "2021"\n'
            f'license = "MIT"\ndescription = "Of a benchmark"\n\n[dependencies]\n{needed}',
        )
        text(root / "crates" / name / "src" / "lib.rs", f'pub const NAME: &str = "{name}";\n')


def _maven(root: Path, shape: Shape) -> None:
    """One module more than packages: the parent, which all of them need."""
    modules = "".join(f"<module>{name}</module>" for name in shape)
    plugins = "".join(_PLUGIN.format(name=name, version=it) for name, it in _PLUGINS.items())
    parent = _PARENT.format(modules=modules, plugins=plugins)
    text(root / "pom.xml", _POM.format(body=parent))
    for name, needs in shape.items():
        needed = "".join(_NEED.format(name=need) for need in needs)
        body = _MODULE.format(name=name, needs=needed)
        text(root / name / "pom.xml", _POM.format(body=body))
        kind = name.title().replace("-", "")
        source = f"package bench;\n\npublic final class {kind} {{\n  static final int N = 1;\n}}\n"
        text(root / name / "src" / "main" / "java" / "bench" / f"{kind}.java", source)


def _go(root: Path, shape: Shape) -> None:
    """With its versions in place, so that tags alone are a release of it."""
    uses = "".join(f"\t./{name}\n" for name in shape)
    text(root / "go.work", f"go 1.22\n\nuse (\n{uses})\n")
    text(root / "VERSION", f"{VERSION}\n")
    text(root / "releasekit.toml", '[go]\nversion-file = "VERSION"\nverify = false\n')
    for name, needs in shape.items():
        package = name.replace("-", "")
        lines = "".join(f"\t{HOST}/{need} v{VERSION}\n" for need in needs)
        required = f"\nrequire (\n{lines})\n" if needs else ""
        text(root / name / "go.mod", f"module {HOST}/{name}\n\ngo 1.22\n{required}")
        imports = "".join(f'import _ "{HOST}/{need}"\n' for need in needs)
        text(root / name / f"{package}.go", f"package {package}\n\n{imports}")


_WRITERS: Final[Mapping[str, Callable[[Path, Shape], None]]] = {
    "npm": _npm,
    "pypi": _pypi,
    "cargo": _cargo,
    "maven": _maven,
    "go": _go,
}
