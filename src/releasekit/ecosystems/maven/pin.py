"""POMs as they are published: with exact versions of in-repo packages, and with the coordinates
that readers without the workspace could not resolve.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from releasekit.ecosystems.maven import versions
from releasekit.ecosystems.maven.document import encode, parse_document
from releasekit.ecosystems.maven.pom import CI_FRIENDLY, Pom, PomReference, parse_pom
from releasekit.errors import PlanError
from releasekit.problems import Problem
from releasekit.text.splice import splice

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from releasekit.config.values import PinMode
    from releasekit.ecosystems.maven.discover import PomProject


def _refer_to_parent(pom: Pom) -> Iterator[PomReference]:
    parent, span = pom.parent, pom.spans.get("parent.version")
    if parent is not None and span is not None:
        yield PomReference(
            use="import",
            group=parent.group,
            artifact=parent.artifact,
            version=parent.version,
            span=span,
        )


def pin_versions(
    manifest: str, pom: Pom, project: PomProject, planned: Mapping[str, str], mode: PinMode = "auto"
) -> str:
    """The manifest of `project`, which reads as `pom`, with ranges of in-repo packages made exact
    if `mode` says so; a reference without a version gets an exact one from a parent.

    A range that excludes the planned version stays, for a version on the registry. Raises PlanError
    for an invalid range.
    """
    if mode == "none":
        return manifest
    data = manifest.encode("utf-8", "surrogateescape")
    edits: list[tuple[tuple[int, int], bytes]] = []
    for reference in (*pom.references, *_refer_to_parent(pom)):
        name = project.resolve_name(reference)
        wanted = project.resolve(reference.version)
        if name in planned and name != project.name and versions.is_range(wanted):
            try:
                held = versions.contains(wanted, planned[name])
            except ValueError as error:
                raise PlanError(
                    f"maven:{project.name}: {reference.artifact}: {error}",
                    problem=Problem.CANNOT_PIN,
                ) from error
            if held and mode == "exact" and wanted != f"[{planned[name]}]":
                edits.append((reference.span, encode(escape(planned[name]), data)))
    return splice(data, edits).decode("utf-8", "surrogateescape")


def fill_in_pom(data: bytes, project: PomProject) -> bytes:
    """The POM of `project` for readers without the workspace: coordinates without expressions, and
    with the properties that are set from outside.

    Maven deploys POMs as they are: if the parent of one has the version ${revision}, its users look
    for a version with that name.
    """
    for name in (*CI_FRIENDLY, *project.overrides):
        value = project.resolve(f"${{{name}}}")
        if "${" not in value:
            data = data.replace(encode(f"${{{name}}}", data), encode(escape(value), data))
    read = parse_pom(parse_document(data), project.pom.path)
    model = project.model()
    edits = [
        ((start, end), encode(escape(model[path]), data))
        for path, (start, end) in read.spans.items()
        if encode("${", data) in data[start:end] and "${" not in model[path]
    ]
    return splice(data, edits)
