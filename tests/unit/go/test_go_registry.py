"""Tags on a bare repository beside the workspace, and what a proxy shows of them."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import TYPE_CHECKING, TypeVar

import httpx
import pytest
from msgspec import Struct

import fakes
from go_workspaces import Forge, built, deploy, forge, go_workspace, short
from integration.tools import require_tool
from releasekit.aio import Group
from releasekit.config.tag_options import TagOptions
from releasekit.ecosystems import ECOSYSTEMS
from releasekit.ecosystems.folders import discovery
from releasekit.ecosystems.go import paths, registry
from releasekit.errors import MissingCredentials, PackageError, Rejected
from releasekit.fields import replace
from releasekit.git.objects import Object, TagBundle
from releasekit.git.remote import Remote
from releasekit.host.process import Processes
from releasekit.http.client import http_client
from releasekit.http.credentials import Credentials, snapshot
from releasekit.plan.decision import compare
from workspaces import git

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from releasekit.ecosystems.interface import Target
    from releasekit.git.remote import RemoteTag
    from releasekit.model import Package, Published

T = TypeVar("T")
WORKSPACE = {"core": (), "text": ("core",), "lone": ()}
PROXY = "https://proxy.example/"
TAG = Object("tag", b"")


class Place(Struct, frozen=True):
    root: Path
    forge: Forge
    answers: Callable[[httpx.Request], httpx.Response] | None = None

    def run(
        self,
        use: Callable[[Target, list[Package]], Awaitable[T]],
        *,
        proxy: str = "",
        path: str = os.environ["PATH"],
        **changes: object,
    ) -> T:
        """Without a proxy, what is on the remote is what there is."""
        tables = {"go": {"version": "1.0.0", "proxy": bool(proxy)}}
        config = fakes.config(
            self.root,
            ecosystem_tables=tables,
            registries=fakes.registries(go=proxy),
            max_retries=0,
            **changes,
        )
        settings = str(self.forge.home / ".gitconfig")
        taken = snapshot({**os.environ, "GIT_CONFIG_GLOBAL": settings, "PATH": path})
        credentials = Credentials(taken, mask=lambda _: None)
        transport = httpx.MockTransport(self.answers or self.serve)

        async def main() -> T:
            async with (
                http_client(transport=transport) as http,
                Processes(
                    environment=taken.environment, variables=fakes.TOOL_VARIABLES
                ) as processes,
                Group() as group,
            ):
                services = fakes.make_services(config, http, processes, credentials)
                opened = await discovery(ECOSYSTEMS["go"], config, services).opened_in(group)
                found = await opened.discover(self.root)
                packages = sorted(found.workspace.packages, key=lambda package: package.id)
                return await use(found, packages)

        return asyncio.run(main())

    def serve(self, request: httpx.Request) -> httpx.Response:
        """What was built of core, as a proxy would have fetched it, at a time of its own."""
        name = request.url.path.rpartition("/")[2]
        found = list((self.root / ".releasekit").rglob(f"core/v1.0.0/{name}"))
        if not found:
            return httpx.Response(404)
        data = found[0].read_bytes()
        if name.endswith(".info"):
            data = json.dumps(json.loads(data) | {"Time": "2020-02-02T02:02:02Z"}).encode()
        return httpx.Response(200, content=data)


class Asked:
    """What the proxy of a place was asked, and until when it has answers to nothing."""

    def __init__(self, place: Place) -> None:
        self.paths: list[str] = []
        self.fetched = False
        self.place = place

    def serve(self, request: httpx.Request) -> httpx.Response:
        self.paths.append(request.url.path.removeprefix("/github.com/acme/mono/"))
        return self.place.serve(request) if self.fetched else httpx.Response(404)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    require_tool("go")  # which builds each module
    made = forge(tmp_path / "server")
    return Place(go_workspace(tmp_path / "workspace", made, WORKSPACE).resolve(), made)


def test_everything_goes_out_in_one_push(place: Place) -> None:
    async def use(target: Target, packages: list[Package]) -> None:
        artifacts = await built(target, packages)
        target.registry.check_credentials()
        assert target.registry.url == "git remote origin"
        assert [await target.registry.lookup(package) for package in packages] == [None] * 3
        await deploy(target, packages, artifacts)
        # As after a lost answer: what is there is not pushed again.
        await deploy(target, packages[1:], artifacts)
        for package in packages:
            published = await target.registry.lookup(package)
            assert compare(artifacts[short(package)], published) == compare((), None)

    place.run(use)
    # The first push was that of the branch.
    assert [len(push) for push in place.forge.pushes()] == [0, 3]


def test_modules_with_the_same_go_sum_go_out_in_one_push(tmp_path: Path) -> None:
    require_tool("go")
    made = forge(tmp_path / "server")
    modules = {"core": (), "text": ("core",), "web": ("core",)}
    place = Place(go_workspace(tmp_path / "workspace", made, modules).resolve(), made)

    async def use(target: Target, packages: list[Package]) -> None:
        await deploy(target, packages, await built(target, packages))

    place.run(use)
    assert [len(push) for push in made.pushes()] == [0, 3]
    sums = [git(made.bare, "rev-parse", f"{name}/v1.0.0:{name}/go.sum") for name in ("text", "web")]
    assert sums[0] == sums[1]


def test_tags_tell_whether_what_is_hardly_meant_is_new(place: Place) -> None:
    git(place.forge.bare, "tag", "core/v0.9.0", "main")

    async def use(target: Target, packages: list[Package]) -> list[str]:
        assert target.preflight.is_new is not None
        for package in packages:
            doubt = "" if short(package) == "lone" else "lies in a directory called `examples`"
            assert await target.registry.lookup(replace(package, doubt=doubt)) is None
        return [short(package) for package in packages if target.preflight.is_new(package.id)]

    assert place.run(use) == ["text"]


def test_as_many_go_out_in_one_push_as_start_workflows(place: Place) -> None:
    """GitHub starts none for more than three."""

    async def use(target: Target, packages: list[Package]) -> None:
        await deploy(target, packages, await built(target, packages))

    place.run(use, tagging=TagOptions(at_a_time=2))
    assert [len(push) for push in place.forge.pushes()] == [0, 2, 1]


@pytest.mark.parametrize(
    ("proxy", "page"),
    [
        (PROXY, f"{PROXY}github.com/acme/mono/core/@v/v1.0.0.info"),
        ("https://proxy.golang.org", "https://pkg.go.dev/github.com/acme/mono/core@v1.0.0"),
    ],
)
def test_a_tag_is_published_once_the_proxy_shows_it(place: Place, proxy: str, page: str) -> None:
    async def use(target: Target, packages: list[Package]) -> Published | None:
        artifacts = await built(target, packages)
        assert target.registry.url == f"{proxy.rstrip('/')}/"
        assert await target.registry.lookup(packages[0]) is None
        # Files that a proxy fetches by itself are not uploaded.
        await target.registry.upload(packages[0], artifacts["core"][1:])
        assert place.forge.tags() == {}
        await target.registry.upload(packages[0], artifacts["core"])
        found = await target.registry.lookup(packages[0])
        assert compare(artifacts["core"], found).differing == ()
        return found

    published = place.run(use, proxy=proxy)
    assert published is not None
    assert published.url == page
    # The official proxy's hashes come from the checksum database, which has none here.
    assert published.complete is (proxy == PROXY)


def test_no_public_proxy_is_told_of_a_private_module(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R68: as with the go command, https://go.dev/ref/mod#private-modules."""
    monkeypatch.setenv("GOPRIVATE", "*.corp.example,github.com/ac*")
    place = replace(place, answers=lambda request: pytest.fail(f"{request.url} was asked"))

    async def use(target: Target, packages: list[Package]) -> Published | None:
        artifacts = await built(target, packages)
        await target.registry.upload(packages[0], artifacts["core"])
        return await target.registry.lookup(packages[0])

    published = place.run(use, proxy="https://proxy.golang.org")
    assert published is not None
    assert published.complete
    assert {each.partition(":")[0] for each in published.files.values()} == {"git"}


@pytest.mark.parametrize(
    ("patterns", "is_private"),
    [
        ("github.com/acme", True),
        ("github.com/acme/", True),
        ("*.example,github.com/a*/mono", True),
        ("github.com/acme/mono/core/deep", False),
        ("github.com/ac", False),
        ("*", True),
        ("none", False),
        ("", False),
        (",", False),
        ("[^a]ithub.com", True),
        (r"github.com/\acme", True),
        (r"github.com/\*", False),
        ("[!a]ithub.com", False),
        ("[!g]ithub.com", True),
        ("github.com[.-0]acme", False),
        ("github.com/ac[^-z]e", False),
        ("github.com/a[m-c]*", False),
        ("[g-]ithub.com", False),
        (r"[\]g]ithub.com", True),
        ("github.com/[", False),
        ("[,github.com", True),
        ("github.com/ac?e/m*o/*", True),
        ("none, github.com", False),
        ("github.com//", False),
    ],
)
def test_what_goprivate_names(patterns: str, is_private: bool) -> None:
    """R67: as the go command matches, `go doc golang.org/x/mod/module.MatchPrefixPatterns`."""
    assert paths.is_private("github.com/acme/mono/core", patterns) is is_private


def test_what_go_env_has_written_is_private_too(tmp_path: Path) -> None:
    """R68: as `go env -w` writes it, and as the go command reads it."""
    file = tmp_path / "env"
    told = {"GOENV": str(file)}
    assert registry.read_private(told) == ""
    file.write_text("# mine\nGOPRIVATE=a\nGOPRIVATE=b.example/*\n")
    assert registry.read_private(told) == "b.example/*"
    assert registry.read_private({**told, "GOPRIVATE": ""}) == "b.example/*"
    assert registry.read_private({**told, "GOPRIVATE": "c"}) == "c"
    assert registry.read_private({**told, "GONOPROXY": "none", "GOPRIVATE": "c"}) == "none"
    usual = tmp_path / "go/env"
    usual.parent.mkdir()
    usual.write_text("GONOPROXY=d\n")
    there = {"XDG_CONFIG_HOME": str(tmp_path)}
    assert registry.read_private(there) == ("d" if sys.platform == "linux" else "")
    assert registry.read_private({**there, "GOENV": "off"}) == ""


def test_without_git_nothing_can_be_pushed(place: Place, tmp_path: Path) -> None:
    async def use(target: Target, _packages: list[Package]) -> None:
        target.registry.check_credentials()

    with pytest.raises(MissingCredentials, match="git is not installed"):
        place.run(use, path=str(tmp_path))


def test_a_bundle_of_another_tag_is_not_pushed(place: Place) -> None:
    async def use(target: Target, packages: list[Package]) -> None:
        artifacts = await built(target, packages)
        other = place.root / "other" / "v1.0.0.bundle"
        other.parent.mkdir()
        other.write_bytes(artifacts["core"][0].path.read_bytes())
        wrong = replace(artifacts["core"][0], path=other)
        await target.registry.upload(packages[1], [wrong])

    with pytest.raises(Rejected, match=r"is to be lone/v1\.0\.0, and was built as core/v1\.0\.0"):
        place.run(use)


def test_outside_of_a_repository_there_is_nothing_to_tag(tmp_path: Path) -> None:
    (tmp_path / "server").mkdir()
    (tmp_path / "go.mod").write_text("module example.com/alone\n")
    path, data = tmp_path / "v1.0.0.bundle", TagBundle("v1.0.0", "1" * 40, [TAG]).to_bytes()
    path.write_bytes(data)

    async def use(target: Target, packages: list[Package]) -> None:
        await target.registry.upload(packages[0], [fakes.artifact(path, data)])

    with pytest.raises(Rejected, match="is in no git repository, and a Go module is published by"):
        Place(tmp_path, forge(tmp_path / "server")).run(use)


def test_a_push_that_the_remote_refuses_is_final(place: Place) -> None:
    hook = place.forge.bare / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho only robots may push >&2\nexit 1\n")
    hook.chmod(0o755)

    async def use(target: Target, packages: list[Package]) -> None:
        await deploy(target, packages, await built(target, packages))

    with pytest.raises(Rejected, match=r"core v1\.0\.0: git remote origin: only robots may push"):
        place.run(use)
    assert place.forge.tags() == {}


@pytest.mark.parametrize("name", ["core", "lone"])
def test_a_tag_is_never_moved(place: Place, name: str) -> None:
    """R17: nothing goes out with it; alone, the lookup shows whose it is."""
    git(place.forge.bare, "tag", f"{name}/v1.0.0", "main")
    theirs = git(place.forge.bare, "rev-parse", f"{name}/v1.0.0").strip()

    async def use(target: Target, packages: list[Package]) -> Published | None:
        artifacts = await built(target, packages)
        with pytest.raises(Rejected, match=f"has {name}/v1.0.0 by now, and not ours"):
            await deploy(target, packages, artifacts)
        mine = next(package for package in packages if short(package) == name)
        await target.registry.upload(mine, artifacts[name])
        found = await target.registry.lookup(mine)
        assert compare(artifacts[name], found).differing
        return found

    shown = place.run(use)
    assert shown is not None
    assert set(shown.files.values()) == {f"git:{theirs}"}
    assert list(place.forge.tags()) == [f"{name}/v1.0.0"]
    assert git(place.forge.bare, "rev-parse", f"{name}/v1.0.0").strip() == theirs


def test_what_an_earlier_run_built_is_pushed_as_it_is(place: Place) -> None:
    """R18: the bundle alone carries the tag and its commit; nothing is built again."""
    artifacts = place.run(built)

    async def use(target: Target, packages: list[Package]) -> None:
        for package in sorted(packages, key=lambda package: len(package.dependencies)):
            name = short(package)
            await target.registry.upload(package, artifacts[name])
            published = await target.registry.lookup(package)
            assert compare(artifacts[name], published) == compare((), None)

    place.run(use)
    git(place.forge.bare, "fsck", "--strict")


def test_a_damaged_bundle_is_not_pushed(place: Place) -> None:
    artifacts = place.run(built)["core"]
    artifacts[0].path.write_bytes(b"# v2 git bundle\n")

    async def use(target: Target, packages: list[Package]) -> None:
        await target.registry.upload(packages[0], artifacts[:1])

    with pytest.raises(PackageError, match="not what was built"):
        place.run(use)
    whole = fakes.artifact(artifacts[0].path, b"# v2 git bundle\n")

    async def again(target: Target, packages: list[Package]) -> None:
        await target.registry.upload(packages[0], [whole])

    with pytest.raises(Rejected, match="not a bundle"):
        place.run(again)


def test_a_module_that_go_would_not_find_is_not_tagged(place: Place) -> None:
    (place.root / "lone" / "go.mod").write_text("module github.com/acme/mono/elsewhere\n")
    git(place.root, "commit", "--all", "--quiet", "--message", "Rename")

    async def use(target: Target, packages: list[Package]) -> None:
        artifacts = await built(target, packages)
        await target.registry.upload(packages[1], artifacts["elsewhere"])

    with pytest.raises(Rejected, match="would not look for it in lone"):
        place.run(use)


@pytest.mark.parametrize("fetched", [True, False])
def test_what_was_pushed_together_is_asked_for_together(place: Place, fetched: bool) -> None:
    """R1 R15: by requests that begin after the push, and each answers one look; an answer that does
    not show everything answers none.
    """
    asked = Asked(place)
    asked.fetched = fetched
    changed = replace(place, answers=asked.serve)

    async def use(target: Target, packages: list[Package]) -> None:
        artifacts = await built(target, packages)
        assert [await target.registry.lookup(package) for package in packages] == [None] * 3
        assert asked.paths == []
        await deploy(target, packages, artifacts)
        core = next(package for package in packages if short(package) == "core")
        assert (await found(target, core)).complete == fetched
        begun = {path.partition("/")[0] for path in asked.paths}
        assert begun == {"core", "lone", "text"}
        first = len([path for path in asked.paths if path.startswith("core/")])
        assert first == (3 if fetched else 2)
        asked.fetched = True
        assert (await found(target, core)).complete
        assert len([path for path in asked.paths if path.startswith("core/")]) == first + 3

    async def found(target: Target, package: Package) -> Published:
        published = await target.registry.lookup(package)
        assert published is not None
        return published

    changed.run(use, proxy=PROXY)


@pytest.mark.parametrize("proxy", [PROXY, ""])
def test_behind_a_push_the_remote_is_looked_at_only_without_a_proxy(
    place: Place, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    """R1: the remote has answered for each tag, and what the proxy has fetched is compared."""
    looks, list_tags = [], Remote.list_tags

    async def look(remote: Remote) -> Mapping[str, RemoteTag]:
        looks.append(remote)
        return await list_tags(remote)

    async def use(target: Target, packages: list[Package]) -> None:
        artifacts = await built(target, packages)
        await deploy(target, packages, artifacts)
        found = await target.registry.lookup(packages[0])
        assert compare(artifacts["core"], found) == compare((), None)

    monkeypatch.setattr(Remote, "list_tags", look)
    place.run(use, proxy=proxy)
    assert bool(looks) is not bool(proxy)


@pytest.mark.parametrize(
    ("newest", "mod", "here", "expected", "asked"),
    [
        ("", "", "", None, []),
        ("core/v1.0.1", "retract v1.0.0 // bad", "", "retracted (bad)", ["core/@v/v1.0.1.mod"]),
        ("core/v1.0.1", "retract v0.9.0", "", None, ["core/@v/v1.0.1.mod"]),
        ("core/v1.0.1", "retract (", "", None, ["core/@v/v1.0.1.mod"]),
        ("core/v1.1.0-rc.1", "", "", None, []),
        ("core/v2.0.0", "", "", None, []),
        ("text/v1.0.1", "", "", None, []),
        # What the next commit says is not published yet, so the published go.mod is asked.
        ("", "", "retract v1.0.0", None, ["core/@v/v1.0.0.mod"]),
        ("", "retract v1.0.0", "retract v1.0.0", "retracted", ["core/@v/v1.0.0.mod"]),
    ],
)
def test_the_newest_go_mod_is_asked_once_and_only_where_it_may_tell(
    place: Place, newest: str, mod: str, here: str, expected: str | None, asked: list[str]
) -> None:
    """R65: the newest version is that of `@latest`."""
    git(place.forge.bare, "tag", "core/v1.0.0", "main")
    if newest:
        git(place.forge.bare, "tag", newest, "main")
    paths: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        path = request.url.path.removeprefix("/github.com/acme/mono/")
        if path.endswith(".mod"):
            paths.append(path)
            return httpx.Response(200, text=f"module github.com/acme/mono/core\n{mod}\n")
        return httpx.Response(200, json={"Version": "v1.0.0"})

    async def use(target: Target, packages: list[Package]) -> str | None:
        with packages[0].manifest.open("a") as file:
            file.write(f"\n{here}\n")
        first, second = [await target.registry.lookup(packages[0]) for _ in range(2)]
        assert first is not None
        assert first == second
        return str(first.withdrawal) if first.withdrawal else None

    official = "https://proxy.golang.org"
    assert replace(place, answers=answer).run(use, proxy=official) == expected
    assert paths == asked
