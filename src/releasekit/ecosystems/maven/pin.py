"""In-repo versions of a POM: checked, pinned on request, and filled in where left open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import escape

from releasekit.ecosystems.maven import versions
from releasekit.ecosystems.maven.document import parse_document
from releasekit.ecosystems.maven.pom import parse_pom
from releasekit.errors import PlanError
from releasekit.problems import Problem
from releasekit.text.splice import spliced

if TYPE_CHECKING:
    from collections.abc import Mapping

    from releasekit.config.values import PinMode
    from releasekit.ecosystems.maven.pom import Reference
    from releasekit.ecosystems.maven.workspace import PomProject


# https://maven.apache.org/guides/mini/guide-maven-ci-friendly.html
CI_FRIENDLY: Final = ("revision", "sha1", "changelist")


def pin(
    manifest: str, project: PomProject, planned: Mapping[str, str], mode: PinMode = "auto"
) -> str:
    """`manifest`, which is that of `project`, with ranges of in-repo packages made exact if `mode`
    says so; a reference without a version gets one from a parent, which is exact.

    A range that excludes the planned version stays: it is looked for on the registry. Raises
    PlanError for what is no range.
    """
    if mode == "none":
        return manifest
    data = manifest.encode()
    edits: list[tuple[tuple[int, int], bytes]] = []
    for reference in parse_pom(parse_document(data), project.pom.path).references:
        name = f"{project.resolve(reference.group)}:{project.resolve(reference.artifact)}"
        wanted = project.resolve(reference.version)
        if name in planned and name != project.name and versions.is_range(wanted):
            held = _holds(project, reference, wanted, planned[name])
            if held and mode == "exact" and wanted != f"[{planned[name]}]":
                edits.append((reference.span, escape(planned[name]).encode()))
    return spliced(data, edits).decode()


def filled_in(data: bytes, project: PomProject) -> bytes:
    """The POM of `project` so that it can be read without the workspace: coordinates without
    expressions, and nothing that is set from outside.

    Maven deploys POMs as they are: the users of one whose parent has the version ${revision} would
    look for a version of that very name.
    """
    for name in (*CI_FRIENDLY, *project.overrides):
        value = project.resolve(f"${{{name}}}")
        if "${" not in value:
            data = data.replace(f"${{{name}}}".encode(), escape(value).encode())
    read = parse_pom(parse_document(data), project.pom.path)
    model = project.model()
    edits = [
        ((start, end), escape(model[path]).encode())
        for path, (start, end) in read.spans.items()
        if b"${" in data[start:end] and "${" not in model[path]
    ]
    return spliced(data, edits)


def _holds(project: PomProject, reference: Reference, wanted: str, version: str) -> bool:
    try:
        return versions.contains(wanted, version)
    except ValueError as error:
        raise PlanError(
            f"maven:{project.name}: {reference.artifact}: {error}", problem=Problem.CANNOT_PIN
        ) from error
