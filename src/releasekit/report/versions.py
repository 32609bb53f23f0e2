"""Versions that are decided: what each package gets and why, for a terminal, the job summary, and
the steps that follow.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Final

from releasekit.decided import Level
from releasekit.model import DependencyKind
from releasekit.report.remarks import warning_table
from releasekit.report.summary.markdown import LIMIT_BYTES, first_fitting, table, warning_section
from releasekit.report.text import columns, few, packages
from releasekit.text.escape import clip, code, log_line, markdown, prose, visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from releasekit.decided import Bump, Decision, Edge, Reason
    from releasekit.model import Package, PackageId, PackageWarning

_CHARS: Final = 200
_MOST_FILES: Final = 20
_MOST_MOVED: Final = 50
# Rows of the summary, and reasons of each; fewer until it fits.
_SIZES: Final = ((2_000, 20), (500, 5), (50, 1))
_BUDGET_CHARS: Final = 450_000


class VersionsView:
    """A decision in words; `packages` are all of the workspace, as they stand, and `notes` tells of
    those that are in none. What has `moved` gets the version of something else, and no release.
    """

    def __init__(
        self,
        decision: Decision,
        packages: Mapping[PackageId, Package],
        warned: Sequence[tuple[Package, Sequence[PackageWarning]]] = (),
        notes: Sequence[str] = (),
        moved: Mapping[PackageId, str] | None = None,
    ) -> None:
        self.decision = decision
        self.packages = packages
        self.warned = warned
        self.notes = notes
        self.moved = moved or {}
        self._bumps = {bump.package: bump for bump in decision.bumps}
        self._named = Counter(package.name for package in packages)

    @property
    def versions(self) -> dict[PackageId, str]:
        """The new ones, as their manifests say them."""
        return {bump.package: self.spell(bump.package, bump.new) for bump in self.decision.bumps}

    def with_moved(self, moved: Mapping[PackageId, str]) -> VersionsView:
        return VersionsView(self.decision, self.packages, self.warned, self.notes, moved)

    @property
    def moved_notes(self) -> list[str]:
        names = [f"{self.name(each)} {version}" for each, version in sorted(self.moved.items())]
        told = few([clip(visible(name), _CHARS) for name in names], _MOST_MOVED)
        return [f"moved along, and not released: {told}"] if names else []

    @property
    def to_write(self) -> dict[PackageId, str]:
        """Those that their manifests do not say already."""
        return {
            package: version
            for package, version in self.versions.items()
            if version != self.packages[package].version
        }

    @property
    def is_refused(self) -> bool:
        """By a warning that is to be taken for an error."""
        return any(each.error for _, warnings in self.warned for each in warnings)

    @property
    def headline(self) -> str:
        if not self.decision.bumps:
            return "No package gets a new version"
        written = len(self.decision.bumps) - len(self.to_write)
        beside = f", {written} of them already written" if written else ""
        return f"{packages(len(self.decision.bumps))} to release{beside}"

    def reasons(self, bump: Bump) -> list[Reason]:
        """What asks for the most comes first."""
        return sorted(bump.reasons, key=lambda reason: -reason.level)

    def name(self, package: PackageId) -> str:
        """Without its ecosystem where one package alone has the name."""
        return package.name if self._named[package.name] < 2 else str(package)

    def spell(self, package: PackageId, version: str) -> str:
        """As the ecosystem writes it: the versions of Go modules begin with a `v`."""
        return f"v{version}" if version and package.ecosystem == "go" else version

    def change(self, bump: Bump) -> str:
        old, new = (self.spell(bump.package, each) for each in (bump.old, bump.new))
        return f"{old} → {new}" if old else new

    def level(self, bump: Bump, reason: Reason) -> str:
        """What the reason asks for, and what came of it where a version below 1.0.0 gives less."""
        if reason.edge is not None and reason.edge.carry == "same":
            return "the same level"
        below_one = bump.old.startswith("0.") and bump.new.startswith("0.")
        if below_one and reason.level == bump.level > Level.PATCH:
            is_same_minor = bump.old.split(".")[1] == bump.new.split(".")[1]
            given = Level.PATCH if is_same_minor else Level.MINOR
            asked = "breaking" if reason.level is Level.MAJOR else "feature"
            return f"{asked}, {given} below 1.0" if given < reason.level else str(given)
        return str(reason.level) if reason.level else ""

    def because(self, reason: Reason) -> str:
        text = reason.rule
        if reason.source is not None:
            text = reason.source.title
        elif reason.edge is not None:
            text = self._describe_edge(reason.edge)
        elif (group := reason.group) is not None:
            count = packages(len(group.packages))
            shared = f"one version for {count}, in {group.place}"
            text = shared if group.place else f"{group.kind} group {group.name}"
        return clip(visible(text), _CHARS)

    def _describe_edge(self, edge: Edge) -> str:
        # A prerelease that has a tag already is written, and no bump.
        raised = self._bumps.get(edge.on)
        new = raised.new if raised else self.packages[edge.on].version.removeprefix("v")
        on, version = self.name(edge.on), self.spell(edge.on, new)
        dependent = self._bumps.get(edge.dependent)
        if dependent is None:
            return f"its requirement {edge.requirement} admits {on} {version}"
        if edge.carry:
            return f"follows {on} {version}"
        if edge.admits(new):
            return f"requires {on}, now {version}"
        if edge.kind is DependencyKind.PEER:
            return f"its peer {edge.requirement} excludes {on} {version}"
        joint = "" if edge.on.ecosystem == "pypi" else " "
        old = self.spell(edge.dependent, edge.packed or dependent.old)
        return f"when packed, {old} requires {on}{joint}{edge.requirement}"


def versions_table(
    view: VersionsView, changes: Mapping[str, bool], *, verbose: bool = False
) -> str:
    """One line for each package and reason; `changes` are files, and whether they stay. `verbose`
    adds what was left alone, and why.
    """
    rows = []
    for bump in view.decision.bumps:
        head = (view.name(bump.package), view.change(bump))
        for reason in view.reasons(bump):
            rows.append((*head, view.level(bump, reason), view.because(reason)))
            head = ("", "")
    lines = columns(rows) if rows else []
    left = view.decision.left_alone if verbose else ()
    if left:
        told = [(view.name(each.package), view.because(each)) for each in left]
        lines += [*([""] if lines else []), "left alone:", *columns(told)]
    return "\n".join(
        [
            *(*lines, *([""] if lines else [])),
            *warning_table(view.warned),
            log_line(view.headline),
            *([log_line(_list_files(changes))] if changes else []),
            *map(log_line, (*view.moved_notes, *view.notes)),
        ]
    )


def versions_summary(view: VersionsView, *, limit_bytes: int = LIMIT_BYTES) -> str:
    """The section of the job summary; it says less rather than exceed the limit."""
    return first_fitting((_summary(view, rows, most) for rows, most in _SIZES), limit_bytes)


def _summary(view: VersionsView, most_rows: int, most_reasons: int) -> str:
    bumps = view.decision.bumps
    rows = []
    for bump in bumps[:most_rows]:
        told = [markdown(view.because(each)) for each in view.reasons(bump)[:most_reasons]]
        left = len(bump.reasons) - most_reasons
        told += [f"and {left} more"] if left > 0 else []
        old, new = (view.spell(bump.package, each) for each in (bump.old, bump.new))
        rows.append(
            (code(view.name(bump.package)), markdown(old), markdown(new), "<br>".join(told))
        )
    left = len(bumps) - most_rows
    return "\n".join(
        [
            f"## {view.headline}",
            "",
            *(table(("package", "now", "next", "because"), rows) if rows else []),
            *([f"… and {packages(left)} more."] if left > 0 else []),
            "",
            *(f"{prose(note)}\n" for note in (*view.moved_notes, *view.notes)),
            *warning_section(view.warned, most_rows),
        ]
    )


def _list_files(changes: Mapping[str, bool]) -> str:
    """Files of one name are counted, as `3 package.json`."""
    paths = [path for path, stays in changes.items() if stays]
    many = Counter(path.rpartition("/")[2] for path in paths)
    told = [f"{count} {name}" for name, count in many.items() if count > 1]
    told += [path for path in paths if many[path.rpartition("/")[2]] == 1]
    told += [f"- {path}" for path, stays in changes.items() if not stays]
    return few(told, _MOST_FILES)


def versions_outputs(view: VersionsView, changes: Mapping[str, bool], root: Path) -> dict[str, str]:
    """`bumped` says whether there is something to write. Where very many packages would exceed
    GitHub's limit, the reasons are left out.
    """
    rows: list[dict[str, object]] = [
        {
            "package": bump.package.name,
            "ecosystem": bump.package.ecosystem,
            "directory": view.packages[bump.package].directory.relative_to(root).as_posix(),
            "from": view.spell(bump.package, bump.old),
            "to": view.spell(bump.package, bump.new),
            "level": str(bump.level),
            "reasons": [view.because(each) for each in view.reasons(bump)],
        }
        for bump in view.decision.bumps
    ]
    text = _json(rows)
    if len(text) > _BUDGET_CHARS:
        text = _json([{**row, "reasons": []} for row in rows])
    return {
        "bumped": "true" if view.to_write else "false",
        "versions": text,
        "changed-files": _json(list(changes)),
    }


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
