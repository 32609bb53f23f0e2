"""Python: the projects that build backends and uv are tested with, and what PyPI refuses."""

from __future__ import annotations

from typing import Final

from peers.pypi import wire
from peers.scenarios import Peer
from peers.sources import Source

SOURCES: Final = (
    Source(name="warehouse", git="https://github.com/pypi/warehouse", licence="Apache-2.0"),
    Source(
        name="packaging",
        git="https://github.com/pypa/packaging",
        licence="Apache-2.0 OR BSD-2-Clause",
        archive="sdist:packaging",
    ),
    Source(
        name="email-validator",
        git="https://github.com/JoshData/python-email-validator",
        licence="Unlicense",
        archive="sdist:email-validator",
    ),
    Source(
        name="rfc3986",
        git="https://github.com/python-hyper/rfc3986",
        licence="Apache-2.0",
        archive="sdist:rfc3986",
    ),
)
PEERS: Final = (
    Peer(
        name="metadata that PyPI refuses",
        ecosystem="pypi",
        sources=("warehouse",),
        read=wire.read_forms,
    ),
    Peer(
        name="addresses that PyPI refuses",
        ecosystem="pypi",
        sources=("warehouse", "email-validator"),
        read=wire.read_addresses,
    ),
    Peer(
        name="URLs that PyPI refuses",
        ecosystem="pypi",
        sources=("warehouse", "rfc3986"),
        read=wire.read_urls,
    ),
    Peer(
        name="files that PyPI refuses",
        ecosystem="pypi",
        sources=("warehouse",),
        read=wire.read_files,
    ),
    Peer(
        name="platforms that PyPI refuses",
        ecosystem="pypi",
        sources=("warehouse", "packaging"),
        read=wire.read_tags,
    ),
    Peer(
        name="names that PyPI refuses",
        ecosystem="pypi",
        sources=("warehouse",),
        read=wire.read_names,
    ),
)
