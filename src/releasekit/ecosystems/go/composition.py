"""Which files count for what is published of a module."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.composition import Composition
from releasekit.ecosystems.go.module_zip import LICENSE
from releasekit.ecosystems.shared.packed import below, is_beside
from releasekit.host.files import is_file, repository_of

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from releasekit.ecosystems.shared.packed import Counts
    from releasekit.model import Package

_TESTING: Final = re.compile(r"_test\.go$|(?:^|/)testdata/")


class GoComposition(Composition):
    def packs(self, _package: Package, tracked: Collection[str]) -> Counts:
        elsewhere = ("vendor/", *below("go.mod", tracked))

        def counts(name: str) -> bool:
            if name.startswith(elsewhere) or _TESTING.search(name):
                return False
            # A package can be imported from any directory.
            return name.endswith(".go") or not is_beside(name)

        return counts

    def follows_links(self, _package: Package, _names: Collection[str]) -> bool:
        """No module has one: https://go.dev/ref/mod#zip-files"""
        return False

    def list_outside(self, package: Package) -> Collection[Path]:
        """A module without a licence has that of the repository.

        https://go.dev/ref/mod#vcs-license
        """
        top = repository_of(package.directory)
        if top is None or top == package.directory or is_file(package.directory / LICENSE):
            return ()
        return (top / LICENSE,)
