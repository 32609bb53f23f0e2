"""What cargo and crates.io test, beside cargo itself and what those tests expect of crates.io."""

from __future__ import annotations

from typing import Final

from peers.cargo import crates_io, packing, plans
from peers.scenarios import Peer
from peers.sources import Source

SOURCES: Final = (
    Source(
        name="cargo",
        git="https://github.com/rust-lang/cargo",
        licence="MIT OR Apache-2.0",
        archive="crate:cargo",
    ),
    Source(
        name="spdx",
        git="https://github.com/EmbarkStudios/spdx",
        licence="MIT OR Apache-2.0",
        archive="crate:spdx",
    ),
    Source(
        name="crates.io",
        git="https://github.com/rust-lang/crates.io",
        licence="MIT OR Apache-2.0",
    ),
)
PEERS: Final = (
    Peer(name="what is planned", ecosystem="cargo", sources=("cargo",), read=plans.read),
    Peer(name="what is packed", ecosystem="cargo", sources=("cargo",), read=packing.read),
    Peer(
        name="what crates.io takes",
        ecosystem="cargo",
        sources=("crates.io",),
        read=crates_io.read_uploads,
    ),
    Peer(
        name="names that crates.io knows",
        ecosystem="cargo",
        sources=("crates.io",),
        read=crates_io.read_names,
    ),
    Peer(
        name="licenses that crates.io knows",
        ecosystem="cargo",
        sources=("spdx",),
        read=crates_io.read_licenses,
    ),
)
