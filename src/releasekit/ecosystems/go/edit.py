"""Writes the next versions of Go modules, which stand in version files and in releasekit.toml."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from releasekit.ecosystems.go import paths
from releasekit.ecosystems.go.discover import find_in_file, spell_place
from releasekit.errors import join_errors
from releasekit.host.edits import Edits, refuse_edit
from releasekit.text.splice import splice
from releasekit.text.toml_text import find_strings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from releasekit.ecosystems.go.discover import Module, Place


def edit_versions(
    modules: Mapping[str, Module],
    versions: Mapping[str, str],
    edits: Edits,
    config_file: Path,
) -> None:
    """As `interface.Target.edit_versions`."""
    wanted: dict[Place, str] = {modules[path].version_place: versions[path] for path in versions}
    keys = [place for place in wanted if isinstance(place, tuple)]
    text = (edits.read(config_file) or "") if keys else ""
    spans = find_strings(text, keys)
    refused: list[tuple[str, str]] = []
    for path, module in modules.items():
        where = module.manifest.relative_to(edits.root)
        place, version = module.version_place, versions.get(path, "")
        spelled = spell_place(place, edits.root)
        if version and (trouble := paths.trouble_with_version(path, f"v{version}")):
            refused.append((f"{where}: {trouble}", _advise(path, version, where, spelled)))
        if not version and place in wanted:
            moves = f"{spelled} is going to be {wanted[place]}"
            hint = "Release both, or give one a version of its own below [go.versions]."
            refused.append((f"{where}: keeps {module.version}, and {moves}", hint))
    for place in keys:
        if place not in spans:
            said = f"{spell_place(place, edits.root)} is not spelled plainly"
            refused.append((said, f'Write "{wanted[place]}" there by hand.'))
    if refused:
        raise join_errors([refuse_edit(said, hint) for said, hint in refused])
    if keys:
        edits.write(config_file, _replace(text, {spans[key]: wanted[key] for key in keys}))
    for place, version in wanted.items():
        if isinstance(place, Path):
            text = edits.read(place) or ""
            edits.write(place, _replace(text, {find_in_file(text, place): version}))


def _advise(path: str, version: str, where: Path, place: str) -> str:
    """How the module gets the path of another major version.
    https://go.dev/ref/mod#major-version-suffixes
    """
    if path.startswith("gopkg.in/"):
        return "Change the module path by hand: in go.mod, and in all imports."
    new = paths.with_major(path, paths.parse_version(f"v{version}").release[0])
    command = f"go mod edit -module={quote(new)} {quote(where.as_posix())}"
    return f"Run `{command}`, write {new} in all imports, and {version} in {place}."


def _replace(text: str, versions: Mapping[tuple[int, int], str]) -> str:
    """With a `v` before each of them where there was one."""
    found = {span: "v" if text.startswith("v", span[0]) else "" for span in versions}
    return splice(text, ((span, f"{v}{versions[span]}") for span, v in found.items()))
