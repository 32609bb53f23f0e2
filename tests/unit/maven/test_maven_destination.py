from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

import fakes
from releasekit.ecosystems.maven import MavenOptions
from releasekit.ecosystems.maven.target import Maven
from releasekit.errors import ConfigError
from unit.maven.poms import child, gav, modules, write

if TYPE_CHECKING:
    from pathlib import Path

NEXUS = "https://nexus.acme.example/releases"
CENTRAL = "https://central.sonatype.com"
OSSRH = "https://s01.oss.sonatype.org/service/local/staging/deploy/maven2/"
PORTAL = "central-publishing-maven-plugin"


def managed(url: str) -> str:
    place = f"<repository><id>corp</id><url>{url}</url></repository>"
    return f"<distributionManagement>{place}</distributionManagement>"


def profile(body: str, name: str = "release") -> str:
    return f"<profiles><profile><id>{name}</id>{body}</profile></profiles>"


def prop(name: str, value: str) -> str:
    return f"<properties><{name}>{value}</{name}></properties>"


def plugin(artifact: str, body: str = "") -> str:
    return (
        f"<build><plugins><plugin><artifactId>{artifact}</artifactId>{body}</plugin>"
        "</plugins></build>"
    )


def configured(name: str) -> str:
    return f"<configuration><{name}>id::{NEXUS}</{name}></configuration>"


def discovered(root: Path, **changes: object) -> list[str]:
    config = fakes.config(root, **changes)

    async def discover() -> list[str]:
        async with Maven(config, MavenOptions(), fakes.services(config, None)) as ecosystem:
            found = await ecosystem.discover(root)
            return [each.id.name for each in found.packages]

    return asyncio.run(discover())


def make(tmp_path: Path, top: str, inner: str = "") -> Path:
    write(tmp_path / "pom.xml", gav("top") + modules("core") + top)
    write(tmp_path / "core/pom.xml", child("core") + inner)
    return tmp_path.resolve()


@pytest.mark.parametrize(
    ("top", "inner", "given", "refused"),
    [
        # Where `mvn deploy` says with maven-deploy-plugin 3.1.2 that it sends each.
        (managed(NEXUS), "", "", f"distributionManagement is '{NEXUS}', and g:core, g:top would"),
        (managed(NEXUS), "", NEXUS, ""),
        (managed(NEXUS), "", CENTRAL, ""),
        (managed(NEXUS), "", "dir:/srv/maven", ""),
        ("", managed(NEXUS), "", "and g:core would go to"),
        (managed(NEXUS), managed(OSSRH), "", "and g:top would go to"),
        (managed(OSSRH), "", "", ""),
        (managed("https://sonatype.com.acme.example/"), "", "", "would go to"),
        (managed(NEXUS) + plugin(PORTAL), "", "", ""),
        (managed("${corp}") + prop("corp", NEXUS), "", "", f"is '{NEXUS}'"),
        (managed("${corp}"), "", "", "is '${corp}', in which ReleaseKit does not resolve ${corp}"),
        (managed("${c}") + prop("c", "https://${env.H}/r"), "", "", "does not resolve ${env.H}, "),
        (profile(managed(NEXUS)), "", "", f"is '{NEXUS}'"),
        (managed(OSSRH) + profile(managed(NEXUS)), "", "", ""),
        (prop("altDeploymentRepository", f"id::default::{NEXUS}"), "", "", f"is '{NEXUS}'"),
        (managed(OSSRH) + prop("altReleaseDeploymentRepository", f"id::{NEXUS}"), "", "", NEXUS),
        (managed("a b\u00e9://"), "", "", "would go to"),
    ],
)  # fmt: skip
def test_nothing_goes_to_central_that_poms_mean_for_another_repository(
    tmp_path: Path, top: str, inner: str, given: str, refused: str
) -> None:
    """R67, R68: an input is stronger than files, as a property of mvn's command line is."""
    root, goes_to = make(tmp_path, top, inner), fakes.registries(maven=given)
    if not refused:
        assert discovered(root, registries=goes_to)
        return
    with pytest.raises(ConfigError) as caught:
        discovered(root, registries=goes_to)
    assert refused in str(caught.value)
    assert f"`maven-registry: {CENTRAL}` publishes everything" in caught.value.hint
    assert "${" not in caught.value.hint
    for settled in ({"exclude_packages": ("*",)}, {"mode": "version"}):
        assert discovered(root, **settled)


def test_arguments_of_mvn_name_a_repository_too(tmp_path: Path) -> None:
    """R67"""
    root = make(tmp_path, managed(OSSRH))
    (root / ".mvn").mkdir()
    (root / ".mvn/maven.config").write_text(f"-DaltDeploymentRepository=corp::{NEXUS}\n")
    with pytest.raises(ConfigError, match=f"-DaltDeploymentRepository is '{NEXUS}'"):
        discovered(root)


@pytest.mark.parametrize(
    "name",
    [
        "altDeploymentRepository",
        "altReleaseDeploymentRepository",
        "altSnapshotDeploymentRepository",
    ],
)
def test_a_build_deploys_nowhere_by_itself(tmp_path: Path, name: str) -> None:
    """R68: a plugin's configuration is stronger than arguments, so it would, in a dry run too."""
    run = "<executions><execution><id>default-cli</id>{}</execution></executions>"
    for body in (configured(name), run.format(configured(name))):
        for top in (
            plugin("maven-deploy-plugin", body),
            profile(plugin("maven-deploy-plugin", body)),
        ):
            root = make(tmp_path, top)
            with pytest.raises(ConfigError, match=f"maven-deploy-plugin is configured with {name}"):
                discovered(root, registries=fakes.registries(maven="dir:/srv/maven"))
            assert discovered(root, exclude_packages=("*",))
            assert discovered(root, mode="version")
