"""What the published files of a package are made of, asked wherever somebody has to know which
packages a change is about.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from releasekit.ecosystems.shared.packed import Counts
    from releasekit.git.versions import Read
    from releasekit.model import Package


class Composition:
    """Of the packages of one ecosystem, whose manifests it reads; it starts no process. An
    ecosystem overrides what it knows better.
    """

    def packs(self, _package: Package, _names: Collection[str], /) -> Counts:
        """Of all files that git tracks below its directory, by names relative to it, whether one
        goes into what is published of it, or makes it, and is more than a test or a note. A name
        that ends with a slash is a directory of which nothing more is known: whether one of its
        files may.
        """
        return lambda _: True

    def follows_links(self, _package: Package, _names: Collection[str], /) -> bool:
        """Whether a symbolic link among the same files stands for what it leads to."""
        return True

    def find_unbuilt(self, _package: Package, _names: Collection[str], /) -> str:
        """A file that the package leads its users to, and that these `names` in it do not have;
        empty where all are there.
        """
        return ""

    def list_outside(self, _package: Package, /) -> Collection[Path]:
        """The files and directories outside its directory that go into what is published of it, by
        what manifests say or by a rule of the ecosystem; they need not be there.
        """
        return ()

    def list_compiled(self, _package: Package, /) -> Collection[Path]:
        """The manifests of what is compiled into it and may be a package here, wherever they lie.
        Of each counts what lies below its directory, but neither in a package further down nor
        below another manifest of that name. They need not be there.
        """
        return ()

    def find_parts(self, _package: Package, /) -> Mapping[Package, Collection[Package]]:
        """The packages here whose files may go into what is published of it, by the manifests
        alone, each with those that may take it in.
        """
        return {}

    def follow_imports(
        self, _package: Package, _part: Package, _tracked: Callable[[Package], Sequence[str]], /
    ) -> Counts | None:
        """Of a package and such a part, by what git tracks below the directory of a package, which
        files of the part the sources of the package lead to; None where they lead to none.
        """
        return None

    def read_offered(self, _package: Package, _read: Read, /) -> str:
        """What its manifest said itself that users get, at another time, as text to compare; empty
        where there was no manifest.
        """
        return ""

    def read_inherited(self, _package: Package, _read: Read, /) -> str:
        """What its manifest took from files outside its directory, at another time, as text to
        compare.
        """
        return ""
