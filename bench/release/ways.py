"""Every way to publish that is compared: its commands, and what it needs before the clock runs."""

from __future__ import annotations

import contextlib
import json
import subprocess
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from bench.release import javascript
from bench.release.measure import Cost, WrongResult, released, serving
from bench.release.place import PROJECT, Place, Scenario
from bench.release.shape import VERSION, shape
from bench.release.workspaces import git, write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from bench.release.peers import Peers

OURS: Final = "ReleaseKit"
LIMIT: Final = "bare limit"
CONFIRMED: Final = f"{LIMIT} with confirmation"


@dataclass(frozen=True)
class Way:
    """`slots` is how many uploads it may have at once: what it was told, else its own default."""

    name: str
    commands: Callable[[Place], Sequence[Sequence[str | Path]]]
    prepare: Callable[[Place], None] = lambda _: None
    slots: int = 16


def beside(tree: Path, ways: Iterable[Way]) -> Iterator[Way]:
    """No peers, and ours also as another checkout has it. Where the lock files are the same, both
    run in one environment.
    """
    for way in ways:
        if way.name.startswith((OURS, LIMIT)):
            yield way
        if way.name.startswith(OURS):
            name = way.name.replace(OURS, f"{OURS} of {tree.name}", 1)
            yield replace(way, name=name, commands=partial(_by, tree, way))


def _by(tree: Path, way: Way, place: Place) -> Sequence[Sequence[str | Path]]:
    return way.commands(replace(place, tree=tree))


def _at(name: str, slots: int, commands: Callable[[Place], list[list[str | Path]]]) -> Way:
    return Way(f"{name}, {slots} slots", commands, slots=slots)


SIXTEEN, FIVE = (
    (
        _at(OURS, slots, lambda place: place.ours),
        _at(LIMIT, slots, lambda place: place.limit(confirms=False)),
        _at(CONFIRMED, slots, lambda place: place.limit(confirms=True)),
    )
    for slots in (16, 5)
)

# As the limit and all peers but cargo: nobody waits until the registry shows a package. crates.io
# takes none before it shows what it needs.
ACCEPTED: Final = Way(
    f"{OURS}, 16 slots, `gate: accepted`", lambda place: [[*place.ours[0], "--gate", "accepted"]]
)

# Nothing goes out before all is built: what the two overlap is lost.
BUILT: Final = Way(
    f"{OURS}, 16 slots, `start-uploads: built`",
    lambda place: [[*place.ours[0], "--start-uploads", "built"]],
)


def _uv(_place: Place) -> list[list[str | Path]]:
    return [
        ["uv", "build", "--quiet", "--all-packages"],
        # It publishes to loopback, and uv counts that as being online.
        ["env", "UV_OFFLINE=0", "uv", "publish", "--quiet"],
    ]


def _twine(place: Place) -> list[list[str | Path]]:
    """Its own shell finds the files once they are built."""
    script = f"exec {place.peers.twine[0]} upload --disable-progress-bar dist/*.whl dist/*.gz"
    return [["uv", "build", "--quiet", "--all-packages"], ["sh", "-c", script]]


def _cargo_publish(*flags: str) -> Callable[[Place], list[list[str | Path]]]:
    return lambda _: [["cargo", "publish", "--workspace", *flags, "--quiet", "--registry", "local"]]


def _verify(place: Place) -> None:
    """As by default: the other measurements leave it out, as the limit does."""
    path = place.root / "releasekit.toml"
    before, found, after = path.read_text().partition("verify = false")
    assert found
    path.write_text(f"{before}verify = true{after}")
    git(place.root, "commit", "--quiet", "--all", "--message", "Verify")


VERIFIED: Final = Way(f"{OURS}, 16 slots, `verify`", lambda place: place.ours, _verify)


def _mvn(*flags: str) -> Callable[[Place], list[list[str | Path]]]:
    def commands(place: Place) -> list[list[str | Path]]:
        target = f"-DaltDeploymentRepository=bench::{place.server.origin}/maven2/"
        return [["mvn", "--quiet", "--batch-mode", *flags, target, "deploy"]]

    return commands


def _tags(place: Place) -> list[str]:
    """`git tag` has been run before: it is no part of publishing."""
    return [f"{name}/v{VERSION}" for name in shape(place.scenario.packages)]


def _tagged(place: Place) -> None:
    for tag in _tags(place):
        git(place.root, "tag", tag)


PEERS: Final[Mapping[str, tuple[Way, ...]]] = {
    "npm": tuple(
        Way(name, tool.commands, tool.prepare, tool.slots)
        for name, tool in javascript.TOOLS.items()
    ),
    "pypi": (
        Way("`uv build`, `uv publish`", _uv, slots=1),
        Way("`uv build`, `twine upload`", _twine, slots=1),
    ),
    "cargo": (
        Way("`cargo publish --workspace --no-verify`", _cargo_publish("--no-verify")),
        Way("`cargo publish --workspace`", _cargo_publish()),
        VERIFIED,
    ),
    "maven": (Way("`mvn -T2 deploy`", _mvn("-T2")), Way("`mvn deploy`", _mvn())),
    "go": (
        Way(
            "`git push` of all tags",
            lambda place: [["git", "push", "--quiet", "--atomic", "origin", *_tags(place)]],
            _tagged,
        ),
        Way(
            "`git push`, tag by tag",
            lambda place: [["git", "push", "--quiet", "origin", tag] for tag in _tags(place)],
            _tagged,
            slots=1,
        ),
        VERIFIED,
    ),
}

# Beside what cargo does by default, and beside the least that publishes and compiles.
COMPILED: Final = (
    VERIFIED,
    SIXTEEN[0],
    Way(
        f"{OURS}, 16 slots, then `cargo build --workspace`",
        lambda place: [*place.ours, ["cargo", "build", "--workspace", "--quiet"]],
    ),
    *PEERS["cargo"][:2],
)


@contextlib.contextmanager
def placed(
    scenario: Scenario, peers: Peers, directory: Path, *, slots: int, offline: bool = True
) -> Iterator[Place]:
    """A new checkout and a new registry, in an empty `directory`."""
    packages = shape(scenario.packages)
    (directory / "home").mkdir()
    (directory / "shape.json").write_text(json.dumps(packages))
    root = write(scenario.ecosystem, directory / "workspace", packages)
    options: list[str] = []
    if scenario.ecosystem == "go":
        options = ["--directory", str(_remote(root, directory / "mono.git"))]
    with serving(scenario, *options) as server:
        yield Place(
            directory=directory,
            root=root,
            server=server,
            peers=peers,
            scenario=scenario,
            slots=slots,
            offline=offline,
        )


def once(
    way: Way, scenario: Scenario, peers: Peers, directory: Path, *, offline: bool = True
) -> Cost:
    """Raises WrongResult unless all of it is published."""
    with placed(scenario, peers, directory, slots=way.slots, offline=offline) as place:
        environment = {**place.environment, "PYTHONPATH": str(PROJECT)}
        if way.name.startswith(OURS):
            del environment["PYTHONPATH"]
        way.prepare(place)
        needs = shape(scenario.packages)
        cost = released(way.commands(place), place, environment=environment, needs=needs)
    _check(way, scenario, cost)
    return cost


def _check(way: Way, scenario: Scenario, cost: Cost) -> None:
    """npm's names have a scope, and Maven has a parent that is published too."""
    published = {name.rpartition("/")[2] for name in cost.published}
    wanted = {f"{name} {VERSION}" for name in shape(scenario.packages)}
    if missing := sorted(wanted - published):
        what = f"{len(missing)} of {len(wanted)} packages, {missing[0]} for one"
        raise WrongResult(f"{scenario.ecosystem}, {way.name}: did not publish {what}")
    if scenario.ecosystem == "pypi" and {*cost.published.values()} != {2}:
        raise WrongResult(f"pypi, {way.name}: not two files of each package")


def _remote(root: Path, bare: Path) -> Path:
    subprocess.run(["git", "init", "--quiet", "--bare", str(bare)], check=True)
    git(bare, "config", "http.receivepack", "true")
    git(root, "push", "--quiet", str(bare), "HEAD:refs/heads/main")
    git(root, "remote", "add", "origin", "https://github.com/acme/mono")
    return bare
