"""Monorepos on paper, of as many packages as one likes: five ecosystems, in layers."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.npm.tarball import make_filename
from releasekit.model import Artifact, Dependency, DependencyKind, Package, PackageId

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

REGISTRIES: Final[Mapping[str, str]] = {
    "npm": "https://registry.npmjs.org/",
    "pypi": "https://upload.pypi.org/legacy/",
    "cargo": "https://crates.io/",
    "go": "https://proxy.golang.org/",
    "maven": "https://central.sonatype.com/",
}
# Of a hundred packages.
SHARES: Final = {"npm": 40, "pypi": 24, "cargo": 14, "go": 12, "maven": 10}
AREAS: Final = (
    *("auth", "billing", "catalog", "search", "orders", "media", "email", "metrics", "storage"),
    *("queue", "config", "geo", "users", "reports", "audit", "flags", "chat", "fraud", "loyalty"),
    *("pricing", "shipping", "taxes", "webhooks", "workflow"),
)
PARTS: Final = (
    *("core", "types", "errors", "schema", "client", "server", "cache", "events", "codec", "http"),
    *("testing", "cli", "admin", "react", "worker", "sdk", "export", "sync"),
)
_ROOT: Final = Path("/repository")


@dataclass(frozen=True, slots=True)
class Member:
    package: Package
    layer: int


def six() -> list[Member]:
    """Small enough for every name to be read: a core, what is made of it, and two that are last."""
    core, client = PackageId("cargo", "acme-core"), PackageId("npm", "@acme/client")
    measure, web = PackageId("pypi", "acme-measure"), PackageId("pypi", "acme-web")
    sdk, android = (
        PackageId("go", "github.com/acme/platform/sdk"),
        PackageId("maven", "com.acme:acme-android"),
    )
    return [
        Member(_package(core, "1.8.0"), 0),
        Member(_package(client, "4.2.0", core), 1),
        Member(_package(measure, "2.4.0", core), 1),
        Member(_package(sdk, "v1.12.0"), 0),
        Member(_package(web, "2.4.0", measure, client), 2),
        Member(_package(android, "3.0.1", sdk), 1),
    ]


def many(count: int) -> list[Member]:
    """The same for the same `count`, dependencies first."""
    random, layers = Random(count), max(3, round(2 * math.log(count) / math.log(4)))
    members: list[Member] = []
    for id_, layer in _placed(random, count, layers):
        below = [each for each in members if each.layer < layer]
        version = _version(random, id_)
        members.append(Member(_package(id_, version, *_needs(random, id_, layer, below)), layer))
    return members


def _placed(random: Random, count: int, layers: int) -> list[tuple[PackageId, int]]:
    """Names with their layers, sorted by these: fewer packages in the first and in the last."""
    found = []
    for ecosystem, number in _numbers(count).items():
        pairs = [(area, part) for part in PARTS for area in AREAS]
        # The parts that stand first are those that others need.
        for place, (area, part) in enumerate(sorted(random.sample(pairs, number), key=_by_part)):
            layer = min(layers - 1, round(layers * (place / number) ** 0.9 - 0.2))
            found.append((PackageId(ecosystem, _NAMES[ecosystem](area, part)), layer))
    return sorted(found, key=lambda each: (each[1], each[0]))


def _by_part(pair: tuple[str, str]) -> tuple[int, str]:
    return PARTS.index(pair[1]), pair[0]


def _numbers(count: int) -> dict[str, int]:
    numbers = {ecosystem: count * share // 100 for ecosystem, share in SHARES.items()}
    numbers["npm"] += count - sum(numbers.values())
    return numbers


def _needs(random: Random, id_: PackageId, layer: int, below: Sequence[Member]) -> list[PackageId]:
    """One to three of the layers below, most of the same ecosystem and of the layer just below."""
    near = [each for each in below if each.layer == layer - 1] or below
    alike = [each for each in near if each.package.id.ecosystem == id_.ecosystem]
    needs: dict[PackageId, None] = {}
    for _ in range(random.choice((1, 1, 2, 2, 3)) if below else 0):
        others = alike if alike and random.random() < 0.9 else near
        needs[random.choice(others if random.random() < 0.8 else below).package.id] = None
    return list(needs)


def _version(random: Random, id_: PackageId) -> str:
    version = f"{random.randint(0, 6)}.{random.randint(0, 24)}.{random.choice((0, 0, 0, 1, 2, 3))}"
    return f"v{random.randint(0, 1)}{version[1:]}" if id_.ecosystem == "go" else version


def _package(id_: PackageId, version: str, *needs: PackageId) -> Package:
    directory = _ROOT / id_.ecosystem / id_.name.rpartition("/")[2].rpartition(":")[2]
    return Package(
        id=id_,
        version=version,
        directory=directory,
        manifest=directory / "manifest",
        dependencies=tuple(Dependency(on=on, kind=DependencyKind.RUNTIME) for on in needs),
    )


def filenames(package: Package) -> Sequence[str]:
    name, version = package.id.name, package.version
    match package.id.ecosystem:
        case "npm":
            return (make_filename(name, version),)
        case "pypi":
            stem = f"{name.replace('-', '_')}-{version}"
            return (f"{stem}-py3-none-any.whl", f"{stem}.tar.gz")
        case "cargo":
            return (f"{name}-{version}.crate",)
        case "go":
            return tuple(f"{version}.{end}" for end in ("bundle", "info", "mod", "zip"))
        case _:
            stem = f"{name.rpartition(':')[2]}-{version}"
            return tuple(f"{stem}{end}" for end in (".jar", "-javadoc.jar", "-sources.jar", ".pom"))


def artifact(package: Package, filename: str) -> Artifact:
    sha256 = digest(f"{package} {filename}")
    small = filename.endswith((".info", ".mod", ".pom"))
    size = int(sha256[:4], 16) // (64 if small else 1) + 180
    return Artifact(path=Path(filename), size=size, digests={"sha256": sha256})


def page(package: Package) -> str:
    """Where people find it."""
    name, version = package.id.name, package.version
    pages = {
        "npm": f"https://www.npmjs.com/package/{name}/v/{version}",
        "pypi": f"https://pypi.org/project/{name}/{version}/",
        "cargo": f"https://crates.io/crates/{name}/{version}",
        "go": f"https://pkg.go.dev/{name}@{version}",
        "maven": f"https://central.sonatype.com/artifact/{name.replace(':', '/')}/{version}",
    }
    return pages[package.id.ecosystem]


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


_NAMES: Final = {
    "npm": lambda area, part: f"@acme/{area}-{part}",
    "pypi": lambda area, part: f"acme-{area}-{part}",
    "cargo": lambda area, part: f"acme-{area}-{part}",
    "go": lambda area, part: f"github.com/acme/platform/{area}/{part}",
    "maven": lambda area, part: f"com.acme.{area}:{area}-{part}",
}
