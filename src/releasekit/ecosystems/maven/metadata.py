"""maven-metadata.xml: which versions of an artifact there are, merged and never shortened.

https://maven.apache.org/repositories/metadata.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import escape

from releasekit.ecosystems.maven import layout, versions
from releasekit.ecosystems.maven.document import parse_document
from releasekit.text.escape import clip

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from releasekit.model import Package

_PAGE: Final = """\
<?xml version="1.0" encoding="UTF-8"?>
<metadata>
  <groupId>{group}</groupId>
  <artifactId>{artifact}</artifactId>
  <versioning>
    <latest>{latest}</latest>
    <release>{release}</release>
    <versions>
{versions}
    </versions>
    <lastUpdated>{updated}</lastUpdated>
  </versioning>
</metadata>
"""


def listed_versions(page: bytes) -> tuple[str, ...]:
    """The versions a page names, in its order; raises ValueError for what is no such page."""
    root = parse_document(page)
    if root.tag != "metadata":
        raise ValueError(f"its root is <{clip(root.tag, 60)}>, not <metadata>")
    named = root.all("versioning", "versions", "version")
    return tuple(version.text.strip() for version in named)


def merged_page(page: bytes | None, package: Package, *, now: datetime) -> bytes | None:
    """`page` with the version of `package`; None when it is listed there already.

    `page` is None where there is none yet. `latest` and `release` are the highest versions, so
    that a release of an older line does not take their place. Raises ValueError.
    """
    known = listed_versions(page) if page is not None else ()
    if package.version in known:
        return None
    return new_page(package, {*known, package.version}, now=now)


def new_page(package: Package, found: Collection[str], *, now: datetime) -> bytes:
    """A page that names these versions."""
    ordered = versions.in_order(found)
    releases = [version for version in ordered if not versions.is_snapshot(version)]
    group, artifact = layout.group_and_artifact(package)
    return _PAGE.format(
        group=escape(group),
        artifact=escape(artifact),
        latest=escape(ordered[-1]),
        release=escape((releases or ordered)[-1]),
        versions="\n".join(f"      <version>{escape(each)}</version>" for each in ordered),
        updated=f"{now:%Y%m%d%H%M%S}",
    ).encode()
