"""What tools that decide versions test: versions, ranges, messages of commits, change files."""

from __future__ import annotations

from typing import Final

from peers.scenarios import Peer
from peers.sources import Source
from peers.versions.changesets import read_files, read_plans
from peers.versions.messages import read_analyzed, read_commits, read_parsed, read_strategies
from peers.versions.semver import read_crate, read_npm

SOURCES: Final = (
    Source(
        name="node-semver",
        git="https://github.com/npm/node-semver",
        licence="ISC",
        archive="debian:node-semver",
    ),
    Source(
        name="semver",
        git="https://github.com/dtolnay/semver",
        licence="MIT OR Apache-2.0",
        archive="crate:semver",
    ),
    Source(name="changesets", git="https://github.com/changesets/changesets", licence="MIT"),
    Source(
        name="conventional-changelog",
        git="https://github.com/conventional-changelog/conventional-changelog",
        licence="MIT",
    ),
    Source(
        name="commit-analyzer",
        git="https://github.com/semantic-release/commit-analyzer",
        licence="MIT",
    ),
    Source(
        name="release-please",
        git="https://github.com/googleapis/release-please",
        licence="Apache-2.0",
    ),
    # What takes types out of TypeScript.
    Source(
        name="amaro",
        git="https://github.com/nodejs/amaro",
        licence="MIT",
        archive="npm:amaro",
    ),
)
PEERS: Final = (
    Peer(name="ranges of npm", ecosystem="versions", sources=("node-semver",), read=read_npm),
    Peer(name="ranges of cargo", ecosystem="versions", sources=("semver",), read=read_crate),
    Peer(
        name="change files of changesets",
        ecosystem="versions",
        sources=("changesets", "amaro"),
        read=read_files,
    ),
    Peer(
        name="plans of changesets",
        ecosystem="versions",
        sources=("changesets", "amaro", "node-semver"),
        read=read_plans,
    ),
    Peer(
        name="messages of conventional-commits-parser",
        ecosystem="versions",
        sources=("conventional-changelog", "amaro"),
        read=read_parsed,
    ),
    Peer(
        name="messages of semantic-release",
        ecosystem="versions",
        sources=("commit-analyzer", "amaro"),
        read=read_analyzed,
    ),
    Peer(
        name="messages of release-please",
        ecosystem="versions",
        sources=("release-please", "amaro"),
        read=read_commits,
    ),
    Peer(
        name="versions of release-please",
        ecosystem="versions",
        sources=("release-please", "amaro"),
        read=read_strategies,
    ),
)
