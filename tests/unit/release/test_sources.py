"""R45: what is sent was built from the sources that were planned."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from fakes import package, plan
from releasekit.errors import ConfigError
from releasekit.fields import replace
from releasekit.release.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from releasekit.model import Package

HEAD = "c0ffee"


class Checkout:
    """A tree with a package in each directory that is named; git is counted, and says `head`."""

    def __init__(self, root: Path, *names: str) -> None:
        self.root = root
        self.packages = {name: self._package(name) for name in names}
        self.head = HEAD
        self.looks = 0
        self.looking = asyncio.Event()
        self.during: Callable[[], Awaitable[None]] | None = None

    def _package(self, name: str) -> Package:
        directory = self.root / name
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "manifest").write_bytes(b"original")
        made = package(name.replace("/", "-") or "root")
        return replace(made, directory=directory, manifest=directory / "manifest")

    def sources(self, *, git: bool = True, commit: str = HEAD) -> Sources:
        made = replace(plan(*self.packages.values()), commit=commit)
        return Sources(made, self.look if git else None)

    async def look(self) -> str:
        self.looks += 1
        self.looking.set()
        if self.during is not None:
            await self.during()
        return self.head

    def change(self, sources: Sources, name: str) -> str:
        return asyncio.run(sources.change(self.packages[name]))


@pytest.mark.parametrize("git", [True, False])
def test_what_stays_as_planned_has_no_change(tmp_path: Path, git: bool) -> None:
    checkout = Checkout(tmp_path, "a", "b")
    sources = checkout.sources(git=git)
    assert checkout.change(sources, "a") == checkout.change(sources, "b") == ""


def test_an_early_look_serves_no_package_that_is_built_later(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path, "a")
    sources = checkout.sources()
    asyncio.run(sources.look_early())
    checkout.head = "decaf"
    with sources.building([checkout.packages["a"]], {}):
        pass
    assert "the sources are at decaf" in checkout.change(sources, "a")
    assert checkout.looks == 2


@pytest.mark.parametrize("kind", ["nothing", "link", "sparse"])
def test_a_manifest_that_is_none_by_then_is_refused_in_a_sentence(
    tmp_path: Path, kind: str
) -> None:
    """R52, R53: a build that a plan has asked may have left a process."""
    checkout = Checkout(tmp_path, "a")
    manifest = tmp_path / "a/manifest"
    manifest.unlink()
    if kind == "link":
        manifest.symlink_to("missing")
    elif kind == "sparse":
        with manifest.open("wb") as file:
            file.truncate(50 * 1024**3)
    with pytest.raises(ConfigError, match=f"^{manifest.parent}/.*: (No such|is larger than)"):
        checkout.sources()


@pytest.mark.parametrize("git", [True, False])
def test_a_changed_manifest_is_the_change_of_its_package_alone(tmp_path: Path, git: bool) -> None:
    checkout = Checkout(tmp_path, "a", "b", "c")
    sources = checkout.sources(git=git)
    (tmp_path / "a" / "manifest").write_bytes(b"edited")
    (tmp_path / "c" / "manifest").unlink()
    assert checkout.change(sources, "a") == (
        f"{tmp_path}/a/manifest is not what it was when it was planned"
    )
    assert checkout.change(sources, "b") == ""
    assert checkout.change(sources, "c") == f"{tmp_path}/c/manifest: No such file or directory"


def test_a_manifest_with_the_same_bytes_is_the_same(tmp_path: Path) -> None:
    """As a pin gives it back: another file, the same bytes."""
    checkout = Checkout(tmp_path, "a")
    sources = checkout.sources()
    (tmp_path / "a" / "manifest").unlink()
    (tmp_path / "a" / "manifest").write_bytes(b"original")
    assert checkout.change(sources, "a") == ""


def test_what_another_batch_has_pinned_meanwhile_is_no_change(tmp_path: Path) -> None:
    """A manifest that two packages share, in git and outside; what is not given back is one."""
    checkout = Checkout(tmp_path, "a", "b")
    shared = tmp_path / "a" / "manifest"
    for git in (True, False):
        sources = checkout.sources(git=git)
        with sources.building([checkout.packages["b"]], {shared: b"pinned"}):
            shared.write_bytes(b"pinned")
            assert checkout.change(sources, "a") == ""
            shared.write_bytes(b"edited")
            assert "manifest is not" in checkout.change(sources, "a")
            shared.write_bytes(b"pinned")
        assert "manifest is not" in checkout.change(sources, "a")
        shared.write_bytes(b"original")


def test_another_commit_is_a_change_of_everything_that_is_still_to_be_sent(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path, "a", "b")
    sources = checkout.sources(commit=f"{HEAD}+dirty.0123")
    assert checkout.change(sources, "a") == ""
    with sources.building([checkout.packages["b"]], {}):
        checkout.head = "decaf"
    assert checkout.change(sources, "b") == "the sources are at decaf, planned c0ffee"
    checkout.head = ""
    with sources.building([checkout.packages["a"]], {}):
        pass
    assert checkout.change(sources, "a") == "the sources are at no commit, planned c0ffee"


def test_one_look_serves_all_that_were_built_before_it(tmp_path: Path) -> None:
    """500 packages are one look, or as many as there are builds that end after the last one."""
    checkout = Checkout(tmp_path, *(str(number) for number in range(500)))
    sources = checkout.sources()
    packages = list(checkout.packages.values())

    async def main() -> None:
        for each in packages[:250]:
            with sources.building([each], {}):
                pass
        await asyncio.gather(*map(sources.change, packages[:200]))
        assert checkout.looks == 1
        for each in packages[250:]:
            with sources.building([each], {}):
                pass
        assert await sources.change(packages[200]) == ""
        assert checkout.looks == 1
        await asyncio.gather(*map(sources.change, packages[250:]))
        assert checkout.looks == 2

    asyncio.run(main())


def test_a_look_that_began_before_the_build_ended_does_not_serve_it(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path, "a", "b")
    sources = checkout.sources()
    go_on = asyncio.Event()
    checkout.during = go_on.wait  # type: ignore[assignment]

    async def main() -> None:
        first = asyncio.create_task(sources.change(checkout.packages["a"]))
        await asyncio.sleep(0)
        with sources.building([checkout.packages["b"]], {}):
            pass
        go_on.set()
        assert await first == ""
        checkout.head = "decaf"
        assert "at decaf" in await sources.change(checkout.packages["b"])
        assert checkout.looks == 2

    asyncio.run(main())


def test_a_look_that_was_cut_off_is_none(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path, "a")
    sources = checkout.sources()
    checkout.during = asyncio.Event().wait  # type: ignore[assignment]

    async def main() -> None:
        first = asyncio.create_task(sources.change(checkout.packages["a"]))
        await checkout.looking.wait()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        checkout.during = None
        checkout.head = "decaf"
        assert await sources.change(checkout.packages["a"])
        assert checkout.looks == 2

    asyncio.run(main())
