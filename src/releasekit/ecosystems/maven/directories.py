"""What another tool has published into a directory of the workspace, as Gradle, sbt, Mill and `mvn
deploy` do: a Maven repository, of which each version goes out file by file, as it is.

https://maven.apache.org/repository/layout.html
"""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import islice
from typing import TYPE_CHECKING, Final

from releasekit.config.values import Dist
from releasekit.ecosystems.dist_files import below, dist_error
from releasekit.ecosystems.maven import discover, layout, versions
from releasekit.ecosystems.maven.discover import COORDINATE, MAX_PARENTS, PomProject, is_named
from releasekit.ecosystems.maven.document import MAX_BYTES
from releasekit.ecosystems.maven.pom import PomReference, read_pom
from releasekit.ecosystems.shared.artifacts import digested
from releasekit.ecosystems.shared.documents import table_in, text_in
from releasekit.errors import BuildFailed, ManifestError
from releasekit.fields import replace
from releasekit.host import durable
from releasekit.host.files import inside, is_file, read_head
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.ecosystems.maven import MavenOptions
    from releasekit.errors import ConfigError
    from releasekit.model import Artifact

# Of a thousand modules with sources, documentation and signatures, four checksums beside each.
MAX_FILES: Final = 100_000
_LISTS: Final = re.compile(r"maven-metadata.*\.xml")
# What is made beside a package, and what interrupted transfers leave.
_ATTACHED: Final = r"\.(?:pom|module|asc)$|-(?:sources|javadoc|tests)\.[a-z]+$"
_LEFT: Final = r"\.(?:lock|lastUpdated|tmp|part|bak)$"
_LITERALLY: Final = (
    "Let the build write the coordinates themselves, without expressions (Maven does with "
    "flatten-maven-plugin)."
)
_FILL: Final = (
    "Publish into it before this, for example by `gradle publishToMavenLocal "
    '"-Dmaven.repo.local=$PWD/build/repo"` or `sbt +publish`; or correct the path.'
)
_NAMES: Final = "Letters, digits, and _ . + - are what it may hold, and no two dots in a row."
_GIVE: Final = "mvn calls such a POM invalid: let the build write the version, or manage it."
_AGAIN: Final = (
    "Each file is to be named ARTIFACT-VERSION, as the POM is: empty the directory, publish into "
    "it again, and keep everything else out."
)


def load_directories(
    root: Path, options: MavenOptions, around: Sequence[PomProject]
) -> list[PomProject]:
    """One for each POM, snapshots too; those of reactors `around` may be parents. Blocks: it reads
    all files. Raises ConfigError for the first that cannot be published as it is.
    """
    released: dict[str, PomProject] = {}
    snapshots = []
    for place in _find_places(root, options):
        for directory, names in sorted(_list_files(place).items()):
            project = _read_project(place, directory, names)
            if not project.files:
                snapshots.append(project)
            elif (first := released.setdefault(project.name, project)) is not project:
                raise _refuse_second(place, first, project)
    by_key = {each.pom.key: each for each in (*around, *released.values())}
    for project in released.values():
        if (named := project.pom.parent) and (above := by_key.get((named.group, named.artifact))):
            project.parent = above if is_named(named, above) else None
    for project in released.values():
        line = [*islice(project.ancestry(), MAX_PARENTS + 1)]
        if len(line) > MAX_PARENTS:
            raise ManifestError(f"{project.pom.path}: its parents never come to an end")
        for each in reversed(line):
            project.properties = {**project.properties, **each.pom.properties}
        # What a parent or a BOM elsewhere manages is not known.
        uses = {it.use for each in line for it in each.pom.references}
        is_known = not line[-1].pom.parent and "import" not in uses
        for it in project.pom.references if is_known else ():
            name, is_asked = project.resolve_name(it), it.needed and it.use == "dependency"
            if is_asked and not discover.find_requested_version(it, project, name):
                raise dist_error(f"{project.pom.path}: its dependency {name} has no version", _GIVE)
    return [*released.values(), *snapshots]


def _find_places(root: Path, options: MavenOptions) -> Iterator[Dist]:
    known: set[Path] = set()
    for name in options.directories:
        label = f"{options.where()} directories: {name!r}"
        path = inside(root, root / name, where=label)
        if not path.is_dir():
            raise dist_error(f"{label} is not there, or no directory", _FILL)
        if path not in known:
            yield Dist(path, label)
        known.add(path)


def _list_files(place: Dist) -> Mapping[Path, Collection[str]]:
    """By directory, without checksums and lists of versions, which are made anew."""
    held: defaultdict[Path, set[str]] = defaultdict(set)
    for path in below(place, MAX_FILES):
        if not layout.is_checksum(path.name) and not _LISTS.fullmatch(path.name):
            held[path.parent].add(path.name)
    if not held:
        raise dist_error(f"{place.label}: there is no package in it", _FILL)
    return held


def _read_project(place: Dist, directory: Path, names: Collection[str]) -> PomProject:
    """Without a parent; of a snapshot without files."""
    *above, artifact, version = ("", "", *directory.relative_to(place.path).parts)
    group, stem = ".".join(filter(None, above)), f"{artifact}-{version}"
    is_snapshot, name = versions.is_snapshot(version), f"{stem}.pom"
    if is_snapshot:  # the files of repositories name a time instead
        name = max((each for each in names if each.endswith(".pom")), default=name)
    if not group or name not in names:
        first = directory / min(names)
        raise dist_error(f"{first} lies in no GROUP/ARTIFACT/VERSION with its POM", _AGAIN)
    own = re.compile(rf"{re.escape(stem)}(?:-|\.(?![0-9]))(?!.*{_LEFT})")
    for each in (group, artifact, version, *sorted(names)):
        if not COORDINATE.fullmatch(each) or ".." in each:
            raise dist_error(f"{directory}: {each!r} is no name that can be published", _NAMES)
        if not is_snapshot and each in names and not own.match(each):
            raise dist_error(f"{directory}: {each!r} is not part of {group}:{stem}", _AGAIN)
    path = directory / name
    pom = read_pom(path)
    if pom.parent and "${" in f"{pom.parent.group}{pom.parent.artifact}{pom.parent.version}":
        raise dist_error(f"{path}: its parent is named by an expression", _LITERALLY)
    written = (pom.key[0], pom.artifact, pom.version or (pom.parent.version if pom.parent else ""))
    if written != (group, artifact, version):
        raise dist_error(
            f"{path}: it says {':'.join(written)}, and lies where {group}:{artifact}:{version} is "
            "looked for",
            f"{_LITERALLY} {_AGAIN}",
        )
    if f"{stem}.module" in names:
        variants = _list_variants(directory / f"{stem}.module")
        pom = replace(pom, references=(*pom.references, *variants))
    extensions = layout.list_extensions(pom.packaging)
    if extensions and not any(f"{stem}.{each}" in names for each in extensions):
        is_moved = any(each.use == "relocation" for each in pom.references)
        if not is_moved and all(re.search(_ATTACHED, each) for each in names):
            raise dist_error(
                f"{path}: its packaging is {pom.packaging}, and no such file lies beside it", _AGAIN
            )
        # Whoever made it knows what else it has, as Mill's own has an .exe; the POM tells that it
        # is there. https://central.sonatype.com/artifact/com.lihaoyi/mill-dist
        pom = replace(pom, packaging="pom")
    try:
        files = () if is_snapshot else (directory / each for each in sorted(names))
        artifacts = tuple(map(_read_artifact, files))
    except (BuildFailed, OSError) as error:
        raise dist_error(str(error)) from error
    project = PomProject(pom=pom, top=place.path, overrides={}, files=artifacts)
    project.group, project.artifact, project.version = group, artifact, version
    return project


def _read_artifact(path: Path) -> Artifact:
    """Raises ConfigError where a checksum beside it, with or without a name, is of other bytes."""
    artifact = digested(path, *layout.ALGORITHMS)
    for algorithm, own in artifact.digests.items():
        beside = path.with_name(f"{path.name}.{algorithm}")
        if is_file(beside) and own.encode() not in read_head(beside, 1024).lower():
            said = f"{path} has {algorithm}:{own}, and {beside.name} beside it says otherwise"
            raise dist_error(said, "Empty the directory, and publish into it again.")
    return artifact


def _list_variants(path: Path) -> Iterator[PomReference]:
    """The modules that have variants of this one for Gradle's clients; its POM need not name them.

    https://github.com/gradle/gradle/blob/master/platforms/documentation/docs/src/docs/design/gradle-module-metadata-latest-specification.md
    (available-at)
    """
    try:
        document = parse_json(durable.read_file(path, max_bytes=MAX_BYTES), max_bytes=None)
    except (OSError, ValueError) as error:
        raise dist_error(f"{path}: it is no metadata of Gradle ({error})", _AGAIN) from error
    variants = document.get("variants") if isinstance(document, dict) else None
    for variant in variants if isinstance(variants, list) else ():
        if there := table_in(variant, "available-at"):
            yield PomReference(
                use="dependency",
                group=text_in(there, "group"),
                artifact=text_in(there, "module"),
                version=text_in(there, "version"),
            )


def _refuse_second(place: Dist, first: PomProject, second: PomProject) -> ConfigError:
    newest = versions.sort_versions([first.version, second.version])[-1]
    old, new = (first, second) if second.version == newest else (second, first)
    return dist_error(
        f"{place.label}: {old.name} is there twice, {old.version} and {new.version}",
        f"One of them goes out: remove {old.pom.path.parent}, or let the build empty the directory "
        "first.",
    )
