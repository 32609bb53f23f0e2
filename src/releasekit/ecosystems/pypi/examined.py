"""What is wrong with built files that an index takes all the same, or refuses too late.

The rules are those of `twine check` (https://twine.readthedocs.io/en/stable/#twine-check) so far as
they need no renderer, of the core metadata, and of the index for platform tags.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Final

from packaging.metadata import Metadata, RawMetadata, parse_email
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from releasekit.ecosystems.pypi.discover import MANIFEST
from releasekit.ecosystems.pypi.distribution import metadata_of, names_in, older_than_2_4
from releasekit.ecosystems.pypi.manifest import is_requirement
from releasekit.ecosystems.pypi.pin import is_exact
from releasekit.errors import PackageError
from releasekit.host import durable
from releasekit.host.artifact_reader import open_artifact
from releasekit.http.client import one_line
from releasekit.model import PackageWarning, WarningName
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from releasekit.model import Artifact, Package

# A wheel that was built on a Linux and never repaired says only that. The two that PyPI takes are
# from before there was a standard for them.
# https://packaging.python.org/en/latest/specifications/platform-compatibility-tags/
# https://github.com/pypi/warehouse/blob/main/warehouse/forklift/legacy.py
_PLAIN_LINUX: Final = re.compile(r"linux_(?!armv[67]l$).+")
_MAX_DIRECTORIES: Final = 100_000
_NO_MODULES: Final = re.compile(
    r"(?:^|/)(?:\.[^/]*|build|dist|docs?|examples?|node_modules|scripts|tests?)/"
    r"|(?:^|/)(?:conf|conftest|noxfile|setup|tasks)\.py$"
)


def warnings_of(
    package: Package, artifacts: Sequence[Artifact], *, on_pypi: bool
) -> Iterator[PackageWarning]:
    """`on_pypi` says that they go to pypi.org or test.pypi.org. Blocks.

    Raises PackageError for a file that cannot be read, or is that of another package.
    """
    for artifact in artifacts:
        if artifact.filename.endswith(".whl"):
            yield from _of_tags(artifact, on_pypi=on_pypi)
            yield from _of_contents(package, artifact)
    texts = [_metadata_in(artifact) for artifact in artifacts]
    for artifact, text in zip(artifacts, texts, strict=True):
        _check(package, artifact, text)
    # They all say the same; the first file speaks for the release.
    for text in texts[:1]:
        yield from of_metadata(text)


def pinned_apart(artifacts: Sequence[Artifact], versions: Mapping[str, str]) -> list[str]:
    """Which packages whoever installs these needs in one version only, and not in that of
    `versions`; none where the files cannot be read. Blocks.
    """
    try:
        text = _metadata_in(artifacts[0])  # They all say the same.
    except PackageError:
        return []
    raw, _ = parse_email(text)
    found: dict[str, None] = {}
    for wanted in map(Requirement, filter(is_requirement, raw.get("requires_dist", []))):
        version = versions.get(canonicalize_name(wanted.name), "")
        apart = version and not wanted.specifier.contains(version, prereleases=True)
        if apart and is_exact(wanted) and "extra" not in str(wanted.marker):
            found[canonicalize_name(wanted.name)] = None
    return [*found]


def _metadata_in(artifact: Artifact) -> bytes:
    with open_artifact(artifact) as opened, opened.raw() as file:
        return metadata_of(file, artifact.filename)


def _check(package: Package, artifact: Artifact, text: bytes) -> None:
    """An index takes a file for what its metadata says, whatever the file is called."""
    raw, _ = parse_email(text)
    name, version = raw.get("name", ""), raw.get("version", "")
    try:
        same = (canonicalize_name(name), Version(version)) == (
            package.id.name,
            Version(package.version),
        )
    except ValueError:
        same = False
    if not same:
        raise PackageError(
            f"{artifact.filename}: its metadata is that of {one_line(f'{name} {version}', 100)!r}, "
            f"not of {package.id.name} {package.version}",
            hint="Have the build backend take name and version from one place.",
            problem=Problem.NOT_A_PACKAGE,
        )


def _of_tags(artifact: Artifact, *, on_pypi: bool) -> Iterator[PackageWarning]:
    tags = artifact.filename.removesuffix(".whl").split("-")[-1].split(".")
    plain = [tag for tag in tags if _PLAIN_LINUX.fullmatch(tag)]
    if plain:
        consequence = (
            "PyPI refuses it" if on_pypi else "it works only where the libraries are the same"
        )
        yield PackageWarning(
            name=WarningName.PLATFORM_TAG,
            message=f"{artifact.filename} has the platform tag {plain[0]}, and {consequence}: "
            "build it with cibuildwheel, or repair it with auditwheel",
            error=on_pypi,
        )


def _of_contents(package: Package, artifact: Artifact) -> Iterator[PackageWarning]:
    """A wheel without modules is meant so where there are none in its sources either."""
    with open_artifact(artifact) as opened, opened.raw() as file:
        names = names_in(file, artifact.filename)
    if all(".dist-info/" in name for name in names) and _has_modules(package):
        yield PackageWarning(
            name=WarningName.EMPTY_PACKAGE,
            message=f"{artifact.filename} holds no modules, and {package.directory.name}/ does: "
            "tell the build backend which packages to include",
        )


def _has_modules(package: Package) -> bool:
    """Those of another project further down are not its own."""
    for where, directories, files in islice(durable.walk(package.directory), _MAX_DIRECTORIES):
        directories[:] = [
            name
            for name in directories
            if not _NO_MODULES.search(f"{name}/") and not durable.is_file(where / name / MANIFEST)
        ]
        if any(name.endswith(".py") and not _NO_MODULES.search(name) for name in files):
            return True
    return False


def of_metadata(text: bytes) -> Iterator[PackageWarning]:
    """What is wrong with the metadata of a distribution."""
    raw, unparsed = parse_email(text)
    if older_than_2_4(raw.get("metadata_version", "")):
        raw.pop("license_files", None)  # which is not sent with the file either
    for name in sorted(unparsed):
        yield _invalid(f"its metadata has {name} twice, or not as text")
    try:
        Metadata.from_raw(raw, validate=True)
    except ExceptionGroup as group:
        for error in group.exceptions:
            yield _invalid(f"its metadata is invalid: {error}")
    yield from _of_description(raw)


def _of_description(raw: RawMetadata) -> Iterator[PackageWarning]:
    # What setuptools wrote where there was none.
    if raw.get("description", "").strip() in {"", "UNKNOWN"}:
        yield PackageWarning(
            name=WarningName.MISSING_README,
            message="it has no description, so its page is empty: name a `readme`",
        )
    elif not raw.get("description_content_type"):
        yield _invalid(
            "nothing says what its description is written in, so it is shown as "
            "reStructuredText: name a `readme` with a suffix"
        )


def _invalid(message: str) -> PackageWarning:
    return PackageWarning(name=WarningName.INVALID_METADATA, message=message)
