"""Which dist-tag a version gets: `npm install NAME` takes what `latest` points to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.ecosystems.npm.reference import is_range
from releasekit.ecosystems.shared.documents import table_in
from releasekit.ecosystems.shared.semver import Version
from releasekit.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

LATEST = "latest"


def checked_tag(tag: str, *, where: str) -> str:
    """Raises ConfigError for what npm would take for a version.

    https://docs.npmjs.com/cli/commands/npm-dist-tag#caveats
    """
    if tag and (is_range(tag) or any(not (letter.isalnum() or letter in "-._") for letter in tag)):
        raise ConfigError(
            f"{where} = {tag!r} is no dist-tag", hint='Write a word that is no range: "next".'
        )
    return tag


def given_tag(npm_tag: str, manifest: Mapping[str, object], *, where: str) -> str:
    """The one that is asked for: by the input, else by `publishConfig.tag`; empty for none."""
    own = table_in(manifest, "publishConfig").get("tag")
    return npm_tag or checked_tag(str(own or ""), where=f"{where}: publishConfig.tag")


def choose_tag(version: str, *, latest: str) -> str:
    """Where nobody asks for one: a prerelease gets its own word, a version below the one that
    `latest` points to a tag of its release line, and only what is newest becomes `latest`.
    """
    ours = Version.parse(version)
    if ours.pre:
        word = next((part for part in ours.pre if isinstance(part, str)), "")
        return word if word and word != LATEST and not is_range(word) else "next"
    try:
        theirs = Version.parse(latest)
    except ValueError:
        return LATEST
    if theirs.pre or ours >= theirs:
        return LATEST
    major, minor, _ = ours.release
    # Not "1.x": a tag must not read as a range.
    return f"release-{major}.x" if major else f"release-0.{minor}.x"
