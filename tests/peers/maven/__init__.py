"""The tests of Maven and of its plugins."""

from __future__ import annotations

from typing import Final

from peers.maven import deploying
from peers.maven.plans import read_plans
from peers.scenarios import Peer
from peers.sources import Source

_APACHE: Final = "Apache-2.0"
# Those whose integration tests Debian leaves in.
_PLUGINS: Final = ("compiler", "deploy", "install", "invoker", "jar", "resources", "source", "war")
SOURCES: Final = (
    Source(
        name="maven4",
        git="https://github.com/apache/maven",
        licence=_APACHE,
        archive="central:org.apache.maven:apache-maven:src.zip",
    ),
    *(
        Source(
            name=name,
            git=f"https://github.com/apache/{name}",
            licence=_APACHE,
            archive=f"debian:{name}",
        )
        for name in ("maven", "maven-enforcer")
    ),
    *(
        Source(
            name=f"maven-{name}-plugin",
            git=f"https://github.com/apache/maven-{name}-plugin",
            licence=_APACHE,
            archive=f"debian:maven-{name}-plugin",
        )
        for name in _PLUGINS
    ),
    # Its archives are of Java alone.
    Source(
        name="flatten-maven-plugin",
        git="https://github.com/mojohaus/flatten-maven-plugin",
        licence=_APACHE,
    ),
)
_FLATTEN: Final = "flatten-maven-plugin"
PEERS: Final = (
    # All in one JVM; but a source that is missing would take the others with it.
    Peer(
        name="what is planned",
        ecosystem="maven",
        sources=tuple(each.name for each in SOURCES if each.name != _FLATTEN),
        read=read_plans,
    ),
    Peer(
        name="what is deployed",
        ecosystem="maven",
        sources=tuple(each.name for each in SOURCES if each.name != _FLATTEN),
        read=deploying.read,
    ),
    Peer(name="what is flattened", ecosystem="maven", sources=(_FLATTEN,), read=read_plans),
)
