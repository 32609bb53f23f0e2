"""Tags pushed to a git remote with accounts, on its bad days."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import pytest

import fakes
from go_workspaces import (
    REMOTE,
    Forge,
    built,
    commit_and_push,
    deploy,
    forge,
    go_workspace,
    short,
)
from harness.git_server import git_server
from integration.recorder import Fault, Recorder
from integration.servers import PASSWORD, USERNAME, free_port, recorded
from integration.tools import require_tool
from releasekit.aio import Group
from releasekit.ecosystems import ECOSYSTEMS
from releasekit.ecosystems.folders import discovery
from releasekit.ecosystems.preflight import RightsFound
from releasekit.errors import Denied, Transient
from releasekit.host.process import Processes
from releasekit.http.client import http_client
from releasekit.http.credentials import Credentials, snapshot
from releasekit.plan.decision import compare
from workspaces import TWELVE, Program

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from pathlib import Path

    from releasekit.ecosystems.interface import Target
    from releasekit.model import Package, Published

T = TypeVar("T")
PUSH = ("POST", r".*/git-receive-pack")
WORKSPACE = {"core": (), "text": ("core",), "lone": ()}


@dataclass(frozen=True)
class Place:
    root: Path
    forge: Forge
    recorder: Recorder

    def login(self, origin: str = "", *, password: str = PASSWORD) -> None:
        """git's own configuration: where the remote is, and as whom."""
        host = (origin or self.recorder.url).removeprefix("http://")
        (self.forge.home / ".gitconfig").write_text(
            f'[url "http://{USERNAME}:{password}@{host}/mono.git"]\n\tinsteadOf = {REMOTE}\n'
        )

    def run(self, use: Callable[[Target, list[Package]], Awaitable[T]], **table: object) -> T:
        async def main() -> T:
            async with self._opened(table) as target:
                packages = sorted(target.workspace.packages, key=lambda package: package.id)
                return await use(target, packages)

        return asyncio.run(main())

    @asynccontextmanager
    async def _opened(self, table: dict[str, object]) -> AsyncIterator[Target]:
        # Without a proxy: what is on the remote is what there is.
        tables = {"go": {"version": "1.0.0", "proxy": False, **table}}
        config = fakes.config(self.root, ecosystem_tables=tables, max_retries=0)
        taken = snapshot({**os.environ, "GIT_CONFIG_GLOBAL": str(self.forge.home / ".gitconfig")})
        credentials = Credentials(taken, mask=lambda _: None)
        async with (
            Processes(environment=taken.environment, variables=fakes.TOOL_VARIABLES) as processes,
            http_client() as http,
            Group() as group,
        ):
            services = fakes.make_services(config, http, processes, credentials)
            opened = await discovery(ECOSYSTEMS["go"], config, services).opened_in(group)
            yield await opened.discover(self.root)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    require_tool("go")  # which builds each module
    made = forge(tmp_path / "server")
    root = go_workspace(tmp_path / "workspace", made, WORKSPACE).resolve()
    with git_server(tmp_path / "server") as origin, recorded(origin) as recorder:
        found = Place(root, made, recorder)
        found.login()
        yield found


async def publish(target: Target, packages: list[Package]) -> None:
    """Builds all three, and pushes them at once."""
    artifacts = await built(target, packages)
    await deploy(target, packages, artifacts)


async def look(target: Target, packages: list[Package]) -> list[Published | None]:
    return list(await asyncio.gather(*map(target.registry.lookup, packages)))


def test_everything_goes_out_in_one_push(place: Place) -> None:
    async def use(target: Target, packages: list[Package]) -> None:
        artifacts = await built(target, packages)
        assert await look(target, packages) == [None, None, None]
        target.registry.check_credentials()
        await deploy(target, packages, artifacts)
        # As after a lost answer: what is there is not pushed again.
        await deploy(target, packages[1:], artifacts)
        for package, published in zip(packages, await look(target, packages), strict=True):
            ours = artifacts[short(package)]
            assert compare(ours, published) == compare((), None)

    place.run(use)
    pushes = [seen for seen in place.recorder.exchanges if seen.path.endswith("/git-receive-pack")]
    assert [seen.method for seen in pushes] == ["POST"]
    assert sorted(place.forge.tags()) == ["core/v1.0.0", "lone/v1.0.0", "text/v1.0.0"]


def test_the_remote_is_looked_at_before_a_push_and_behind_it_alone(place: Place) -> None:
    """What it has by then, git itself passes over."""

    async def use(target: Target, packages: list[Package]) -> None:
        artifacts = await built(target, packages)
        assert await look(target, packages) == [None, None, None]
        await deploy(target, packages, artifacts)
        assert all(await look(target, packages))

    place.run(use)
    asked = [seen for seen in place.recorder.exchanges if seen.status == 200]
    services = [seen.path.partition("?service=")[2] for seen in asked if "/info/refs" in seen.path]
    assert services == ["git-upload-pack", "git-receive-pack", "git-upload-pack"]


def test_an_ambiguous_push_stays_so_where_the_remote_is_down_behind_it(place: Place) -> None:
    """R15"""
    down = Fault(kind="status", method="GET", path=r".*service=git-upload-pack", status=503)
    place.recorder.faults += [Fault(kind="lost", method=PUSH[0], path=PUSH[1]), *[down] * 5]
    with pytest.raises(Transient) as caught:
        place.run(publish)
    assert caught.value.ambiguous


def test_one_look_at_the_remote_serves_all_who_ask(place: Place) -> None:
    assert place.run(look) == [None, None, None]
    asked = [seen for seen in place.recorder.exchanges if seen.status == 200]
    assert len([seen for seen in asked if "/info/refs" in seen.path]) == 1


def test_wrong_credentials_are_denied_without_being_shown(place: Place) -> None:
    """R34"""
    place.login(password="wrong-horse")
    for use in (publish, look):
        with pytest.raises(Denied) as caught:
            place.run(use)
        assert "wrong-horse" not in f"{caught.value!r} {caught.value.hint}"
        assert "contents: write" in caught.value.hint
        assert "\n" not in str(caught.value)
    assert place.forge.tags() == {}


def rights(place: Place, *, proving: bool = True) -> RightsFound:
    async def use(target: Target, packages: list[Package]) -> RightsFound:
        assert target.preflight.rights is not None
        return await target.preflight.rights.find_rights(packages, proving=proving)

    return place.run(use)


def test_whether_git_may_push_is_known_before_it_does(place: Place) -> None:
    """R38: a login that may read and not write is denied for all modules, in one look."""
    assert rights(place) == RightsFound()
    before = len(place.recorder.exchanges)
    assert rights(place, proving=False) == RightsFound()
    assert len(place.recorder.exchanges) == before
    refusal = Fault(kind="status", method="GET", path=r".*service=git-receive-pack", status=403)
    place.recorder.faults.append(refusal)
    found = rights(place).denied
    assert {each.name.rpartition("/")[2] for each in found} == set(WORKSPACE)
    (error,) = set(found.values())
    assert isinstance(error, Denied)
    assert "contents: write" in error.hint
    assert place.forge.tags() == {}


@pytest.mark.parametrize("flags", [(), ("--tag",)], ids=["alone", "tag"])
def test_a_login_that_may_not_push_keeps_twelve_modules_back(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    """R38: with the right given, the same command publishes. Modules have no tag but their own."""
    made = forge(tmp_path / "server")
    root = go_workspace(tmp_path / "workspace", made).resolve()
    (root / "releasekit.toml").write_text(
        '[go]\nversion = "1.0.0"\nproxy = false\nverify = false\n'
    )
    commit_and_push(root, made, "Configure")
    (tmp_path / "home").mkdir()
    settings = {"GIT_CONFIG_GLOBAL": str(made.home / ".gitconfig")}
    with git_server(tmp_path / "server") as origin, recorded(origin) as recorder:
        Place(root, made, recorder).login()
        refusal = Fault(kind="status", method="GET", path=r".*service=git-receive-pack", status=403)
        recorder.faults += [refusal, refusal]
        program = Program(tmp_path / "home", settings)
        run = program.run("publish", root, *flags)
        assert run.code == 3, run.out + run.err
        assert run.err.count("nothing was sent [RK-324]") == 1
        assert run.err.count("go:github.com/acme/mono/demo-base, ") == 1
        assert "`permissions: contents: write`" in run.err
        assert made.tags() == {}
        recorder.faults.clear()
        run = program.run("publish", root, *flags)
    assert run.code == 0, run.out + run.err
    assert set(made.tags()) == {f"{name}/v1.0.0" for name in TWELVE}


def test_a_remote_that_is_down_is_no_verdict(place: Place) -> None:
    """R15, R16"""
    place.login(f"http://127.0.0.1:{free_port()}")
    for use in (publish, look):
        with pytest.raises(Transient) as caught:
            place.run(use)
        assert not caught.value.ambiguous


@pytest.mark.parametrize(
    ("fault", "ambiguous"),
    [
        (Fault(kind="status", method=PUSH[0], path=PUSH[1], status=503), True),
        (Fault(kind="status", method=PUSH[0], path=PUSH[1], status=429), False),
        (Fault(kind="reset", method=PUSH[0], path=PUSH[1]), True),
    ],
)
def test_a_bad_day_is_worth_another_attempt(place: Place, fault: Fault, ambiguous: bool) -> None:
    """R12"""
    # curl tries once more by itself when an old connection is cut off.
    place.recorder.faults.extend([fault] * 5)
    with pytest.raises(Transient) as caught:
        place.run(publish)
    place.recorder.faults.clear()
    assert caught.value.ambiguous is ambiguous
    assert "go:github.com/acme/mono/core v1.0.0" in str(caught.value)
    assert place.forge.tags() == {}
    place.run(publish)
    assert len(place.forge.tags()) == 3


def test_an_answer_that_is_lost_is_ambiguous_and_the_remote_knows(place: Place) -> None:
    """R15, R16: all of it is there, or nothing."""
    place.recorder.faults.append(Fault(kind="lost", method=PUSH[0], path=PUSH[1]))
    with pytest.raises(Transient) as caught:
        place.run(publish)
    assert caught.value.ambiguous
    assert all(place.run(look))
    before = place.forge.tags()
    place.run(publish)
    assert place.forge.tags() == before
