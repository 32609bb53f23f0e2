"""The version that a POM has had."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.maven.document import parse_document

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from releasekit.ecosystems.maven.document import Element
    from releasekit.model import Package

_PROPERTY: Final = re.compile(r"\$\{([^{}]+)\}")
_MOST_POMS: Final = 20


def version_at(package: Package, read: Callable[[Path], bytes | None]) -> str:
    """Implements `Target.version_at`: its own or its parent's, with the properties of both, as far
    as parents lie in the directories above.

    https://maven.apache.org/guides/mini/guide-maven-ci-friendly.html
    """
    poms = [_pom(read(package.manifest))]
    above = list(package.manifest.parent.parents)[:_MOST_POMS]
    poms += [_pom(read(each / package.manifest.name)) for each in above]
    own = poms[0]
    version = own.value("version") or own.value("parent", "version") if own else ""

    def value(found: re.Match[str]) -> str:
        names = (pom.value("properties", found[1]) for pom in poms if pom)
        return next(filter(None, names), found[0])

    version = _PROPERTY.sub(value, version)
    return "" if "${" in version else version


def _pom(data: bytes | None) -> Element | None:
    try:
        return parse_document(data) if data else None
    except ValueError:
        return None
