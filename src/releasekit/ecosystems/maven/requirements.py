"""What Maven Central refuses to publish: its portal says so once the whole release is uploaded, and
packages of other ecosystems have gone out by then.

https://central.sonatype.org/publish/requirements/
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.ecosystems.maven import layout
from releasekit.ecosystems.maven.pom import REQUIRED
from releasekit.report.text import few

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from releasekit.ecosystems.maven.pom import Pom
    from releasekit.model import Package


def list_lacking(pom: Pom, above: Sequence[Pom]) -> Iterator[str]:
    """What a POM lacks, with its parents, the nearest first. One that only a registry has may have
    it all but for the name, which nothing inherits. https://maven.apache.org/pom.html#inheritance
    """
    said = pom.described.union(*(each.described - {"<name>"} for each in above))
    if [pom, *above][-1].parent is not None:
        said |= REQUIRED.keys() - {"<name>"}
    if missing := [tag for tag in REQUIRED if tag not in said]:
        yield f"it neither declares nor inherits {', '.join(missing)}"
    # Maven only warns of one: https://github.com/AbsaOSS/spline-spark-agent/issues/875
    managed = (it for it in pom.references if it.use in {"managed", "import"} and not it.version)
    if names := [f"{each.group}:{each.artifact}" for each in managed]:
        yield f"its <dependencyManagement> has no <version> of {few(names)}"


def list_missing_files(package: Package, names: Collection[str]) -> Iterator[str]:
    """What has to lie beside these files of a release."""
    missing = [name for name in layout.usual_names(package) if name not in names]
    if missing and f"{layout.prefix(package)}.jar" in names:
        cure = "set `sources` and `javadoc` of [maven], or have another tool make them"
        yield f"it has no {' and no '.join(missing)}: {cure}"
    signed = (name for name in sorted(names) if layout.has_checksums(name))
    if unsigned := [name for name in signed if f"{name}.asc" not in names]:
        yield f"no signature of {few(unsigned)}: set `sign` of [maven]"
