"""Which files count for what is published of a package, as its POM says; read without Maven."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.composition import Composition
from releasekit.ecosystems.maven.roots import read_loosely
from releasekit.ecosystems.shared.packed import is_below, is_beside

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from releasekit.ecosystems.shared.packed import Counts
    from releasekit.model import Package

_NAMES: Final = re.compile(r"[\w.-]+")
# What leads out of the directory of a POM, except to other POMs.
_OUTSIDE: Final = re.compile(
    r"<(?:module|relativePath)>[^<]*<"
    r"|(?:\$\{(?:project\.)?basedir\}/)?((?:\.\./)+[^<>${}\s,*\"']+)"
)
# Source sets of tests, benchmarks, the site and its notes on changes.
_OF_TESTS: Final = re.compile(r"(?:changes|it|jmh|site|(?:\w*[Tt])est\w*|\w+Test)/")
# Source sets of which plugins make files for a POM without a jar.
_ATTACHED: Final = re.compile(r"(?:main|assembly)/")


class MavenComposition(Composition):
    def packs(self, package: Package, _tracked: Collection[str]) -> Counts:
        """Sources count, and directories whose names the POM has.

        https://maven.apache.org/guides/introduction/introduction-to-the-standard-directory-layout.html
        """
        names_in_pom = set(_NAMES.findall(read_loosely(package.manifest)))
        is_pom = package.packaging == "pom"

        def counts(name: str) -> bool:
            top, _, below = name.partition("/")
            if name == package.manifest.name:
                return True
            if top == "src" and below:
                return bool(_ATTACHED.match(below) if is_pom else not _OF_TESTS.match(below))
            return not is_pom and top in names_in_pom and not is_beside(name)

        return counts

    def list_outside(self, package: Package) -> Collection[Path]:
        """Directories of sources and resources, and other files.

        https://maven.apache.org/pom.html#Resources
        """
        text = read_loosely(package.manifest)
        named = {match[1] for match in _OUTSIDE.finditer(text) if match[1]} if "../" in text else ()
        paths = [package.directory / name.rstrip("/") for name in sorted(named)]
        return [path for path in paths if not is_below(path, package.directory)]
