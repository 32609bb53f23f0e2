"""How the clients of users are asked: several at once, and what is said of those that fail."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, cast

import pytest

import fakes
from fakes import FakeRegistry, FakeTarget, FakeWorkspace, package, package_id
from raising import raises
from releasekit.cli.status import _refuse_foreign, _resolve_all, _with_version
from releasekit.config.values import Directory
from releasekit.ecosystems.interface import Trial
from releasekit.errors import CommandFailed
from releasekit.fields import replace
from releasekit.model import PackageId, Published
from releasekit.problems import Problem
from releasekit.report.status import StatusAnswers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from releasekit.host.process import Processes
    from releasekit.model import Package

NAMES = ("a", "b", "c", "d")


@dataclass
class Clients:
    """Stands in for processes: `failing` is what a client prints for a package before it fails.
    None ends before as many run `together`. Each finds its file, `wanted`.
    """

    failing: dict[str, tuple[str, ...]] = field(default_factory=dict)
    wanted: str = "wanted"
    together: int = 1
    running: int = 0
    peak: int = 0
    full: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, argv: Sequence[str], *, cwd: Path, **_: object) -> None:
        if self.wanted:
            assert (cwd / self.wanted).read_text() == argv[1]
        self.running += 1
        self.peak = max(self.peak, self.running)
        if self.running == self.together:
            self.full.set()
        await self.full.wait()
        await asyncio.sleep(0)
        self.running -= 1
        if argv[1] in self.failing:
            raise CommandFailed("`client` failed with exit code 1", log=self.failing[argv[1]])
        if argv[1] == "absent":
            raise CommandFailed("`client` cannot be started", problem=Problem.CANNOT_START)


def try_out(package: Package, shared: Path, *, alone: bool = False) -> Trial:
    assert shared.name == "fake"
    name = package.id.name
    # Without files, nothing comes between the clients and their turn.
    files = {} if alone else {"wanted": name}
    return Trial(argv=("/bin/client", name), files=files, alone=alone)


def resolve(
    place: Path,
    clients: Clients,
    *names: str,
    alone: bool = False,
    has_client: bool = True,
    **changes: object,
) -> StatusAnswers:
    packages = [package(name) for name in names]
    there = Published(files={"a": "sha256:00"})
    status = StatusAnswers(packages=packages, answers={each.id: there for each in packages})
    trying = partial(try_out, alone=alone) if has_client else None
    target = FakeTarget(FakeWorkspace(packages), FakeRegistry(), try_out=trying)
    config = fakes.config(place, **{"concurrency": 3, **changes})
    services = fakes.services(config, cast("Processes", clients))
    return asyncio.run(_resolve_all(status, {"fake": target}, services, config, place))


def test_several_are_asked_at_once_under_the_limit(tmp_path: Path) -> None:
    clients = Clients(together=3)
    made = resolve(tmp_path, clients, *NAMES)
    assert clients.peak == 3
    assert made.is_installable
    assert made.is_smoked


def test_a_client_that_shares_nothing_is_asked_alone(tmp_path: Path) -> None:
    clients = Clients(wanted="")
    resolve(tmp_path, clients, *NAMES, alone=True)
    assert clients.peak == 1


def test_a_failure_has_the_cause_that_the_client_names_or_its_last_line(tmp_path: Path) -> None:
    clients = Clients(
        {
            "a": ("npm error code E404", "npm error 404 no b", "npm error A complete log"),
            "b": ("it went wrong", " ", ""),
            "c": (),
        }
    )
    made = resolve(tmp_path, clients, *NAMES)
    assert made.unresolved == {
        package_id("a"): "client: 404 no b",
        package_id("b"): "client: it went wrong",
        package_id("c"): "client: `client` failed with exit code 1",
    }
    assert not made.is_installable


def test_a_client_that_is_missing_or_cannot_ask_is_told_of_each_package(
    tmp_path: Path,
) -> None:
    missing = resolve(tmp_path, Clients(), "absent", "a")
    assert missing.unresolved == {
        package_id(
            "absent"
        ): "client cannot be started: install it, or name others in `--ecosystem`"
    }
    directory = {"fake": Directory(tmp_path)}
    served = resolve(tmp_path, Clients(), "a", registries=directory)
    why = "no client reads a directory: serve it, and give its address"
    assert served.unresolved == {package_id("a"): why}
    # As of an ecosystem whose packages go into directories alone.
    assert resolve(tmp_path, Clients(), "a", has_client=False).unresolved == served.unresolved


@pytest.mark.parametrize(
    ("ecosystem", "spelled"), [("go", "v1.4.0-rc.1"), ("npm", "1.4.0-rc.1"), ("pypi", "1.4.0rc1")]
)
def test_a_version_is_spelled_as_the_ecosystem_does(ecosystem: str, spelled: str) -> None:
    each = replace(package("a"), id=PackageId(ecosystem, "a"))
    assert _with_version(each, "1.4.0-rc.1").version == spelled


@pytest.mark.parametrize("name", [".cargo", "uv.toml"])
def test_clients_obey_nothing_that_another_user_has_left_above(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, left = tmp_path / "a" / "b", tmp_path / name
    place.mkdir(parents=True)
    (tmp_path / "target").mkdir()
    left.symlink_to(tmp_path / "target")
    _refuse_foreign(place)
    if os.getuid() == 0:
        os.lchown(left, 1, -1)
    monkeypatch.setattr(os, "getuid", lambda: 2)
    with raises(Problem.PATH, match=f"{name} belongs to another user"):
        _refuse_foreign(place)


def test_what_is_missing_is_not_asked_for(tmp_path: Path) -> None:
    made = resolve(tmp_path, Clients({"a": ("no",)}), "a")
    assert made.unresolved
    gone = replace(made, answers={package_id("a"): None}, unresolved={})
    target = FakeTarget(FakeWorkspace(made.packages), FakeRegistry(), try_out=try_out)
    config = fakes.config(tmp_path)
    services = fakes.services(config, cast("Processes", Clients({"a": ("no",)})))
    again = asyncio.run(_resolve_all(gone, {"fake": target}, services, config, tmp_path))
    assert not again.unresolved
