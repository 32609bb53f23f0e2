"""What Go's own tests have: zips and texts of golang.org/x/mod, and scripts of the go command."""

from __future__ import annotations

from typing import Final

from peers.go.scripts import read_scripts
from peers.go.tables import read_tables, read_texts
from peers.go.zips import read_layouts, read_zips
from peers.scenarios import Peer
from peers.sources import Source

SOURCES: Final = (
    Source(
        name="mod",
        git="https://go.googlesource.com/mod",
        licence="BSD-3-Clause",
        archive="go:golang.org/x/mod",
    ),
    Source(
        name="cmd-go-testdata",
        git="https://go.googlesource.com/go",
        licence="BSD-3-Clause",
        archive="goroot:src/cmd/go/testdata",
    ),
)
PEERS: Final = (
    Peer(name="paths and versions", ecosystem="go", sources=("mod",), read=read_tables),
    Peer(name="go.mod and go.work", ecosystem="go", sources=("mod",), read=read_texts),
    Peer(name="module zips", ecosystem="go", sources=("mod",), read=read_zips),
    Peer(name="tags", ecosystem="go", sources=("mod",), read=read_layouts),
    Peer(
        name="scripts of go", ecosystem="go", sources=("cmd-go-testdata", "mod"), read=read_scripts
    ),
)
