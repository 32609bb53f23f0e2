"""Releases made from real git repositories."""

from __future__ import annotations

import asyncio
import os
import shutil
import tarfile
import zipfile
from functools import partial
from typing import TYPE_CHECKING

import pytest

import fakes
from go_workspaces import PLACEHOLDER, commit_and_push, forge, go_workspace, require_back
from releasekit.ecosystems.go import GoOptions
from releasekit.ecosystems.go.module_zip import hash_of_mod, zip_bytes
from releasekit.ecosystems.go.target import Go, GoTarget
from releasekit.errors import BuildFailed, ConfigError, PlanError, Transient
from releasekit.fields import replace
from releasekit.git.objects import Object, TagBundle
from releasekit.host.process import Processes
from releasekit.model import Action, PlannedPackage, Published
from releasekit.state.directory import built_directory
from workspaces import git

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from releasekit.model import Artifact, Package

HASHES = Published(files={"v1.0.0.zip": "h1:zip=", "v1.0.0.mod": "h1:mod="})
PACKAGES = {"core": (), "text": ("core",), "web": ("text",)}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return go_workspace(tmp_path / "workspace", forge(tmp_path / "server"), PACKAGES).resolve()


def build(
    root: Path,
    *names: str,
    published: Published | Transient | None = None,
    pin: str = "auto",
    path: str | None = None,
) -> dict[str, tuple[Artifact, ...] | BuildFailed]:
    async def lookup(package: Package) -> Published | None:
        if isinstance(published, Transient):
            raise published
        return published

    async def main() -> Sequence[tuple[str, tuple[Artifact, ...] | BuildFailed]]:
        environment = {**os.environ, "PATH": os.environ["PATH"] if path is None else path}
        async with Processes(environment=environment, variables=fakes.TOOL_VARIABLES) as processes:
            services = fakes.services(fakes.config(root), processes)
            options = GoOptions(version="1.0.0", verify=False)
            ecosystem = Go(options, services, lookup, edits=pin != "none")
            workspace = await ecosystem.discover(root)
            found = {each.id.name.rpartition("/")[2]: each for each in workspace.packages}
            (batch,) = workspace.batches([found[name] for name in names])
            into = partial(built_directory, state_directory=root / ".releasekit")
            built = await workspace.build(batch, into)
            return [(name, built[found[name].id]) for name in names]

    return dict(asyncio.run(main()))


def made(result: tuple[Artifact, ...] | BuildFailed) -> tuple[Artifact, ...]:
    assert not isinstance(result, BuildFailed), (str(result), result.log)
    return result


def failure(result: tuple[Artifact, ...] | BuildFailed) -> BuildFailed:
    assert isinstance(result, BuildFailed)
    return result


def file_of(result: tuple[Artifact, ...] | BuildFailed, name: str, tmp_path: Path) -> str:
    """From the commit that the tag leads to."""
    bundle = made(result)[0].path
    bare = tmp_path / "fetched.git"
    if not bare.exists():
        git(tmp_path, "clone", "--quiet", "--bare", str(tmp_path / "workspace"), str(bare))
    tag = TagBundle.from_bytes(bundle.read_bytes()).name
    git(bare, "fetch", "--quiet", str(bundle), f"refs/tags/{tag}:refs/tags/{tag}")
    return git(bare, "show", f"{tag}:{name}")


def test_the_same_commit_makes_the_same_bytes(root: Path) -> None:
    """R18, R19: on another machine too."""
    first = {name: made(result) for name, result in build(root, "core", "text", "web").items()}
    digests = {name: [it.digests for it in artifacts] for name, artifacts in first.items()}
    again = build(root, "core", "text", "web")
    assert {name: [a.digests for a in made(it)] for name, it in again.items()} == digests


def test_a_published_module_keeps_the_hashes_it_has_there(root: Path, tmp_path: Path) -> None:
    built = build(root, "text", published=HASHES)["text"]
    sums = file_of(built, "text/go.sum", tmp_path)
    assert "github.com/acme/mono/core v1.0.0 h1:zip=\n" in sums
    assert "github.com/acme/mono/core v1.0.0/go.mod h1:mod=\n" in sums


def test_a_go_sum_that_knows_a_published_module_is_believed(root: Path, tmp_path: Path) -> None:
    lines = (
        "github.com/acme/mono/core v1.0.0 h1:a=\ngithub.com/acme/mono/core v1.0.0/go.mod h1:b=\n"
    )
    (root / "text" / "go.sum").write_text(lines)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Tidy")
    built = build(root, "text", published=Transient("down"))["text"]
    assert file_of(built, "text/go.sum", tmp_path) == lines


def test_a_go_sum_with_stray_bytes_is_refused_by_name(root: Path) -> None:
    """R66: the go command reads lines of which it needs none, whatever is in them."""
    (root / "text" / "go.sum").write_bytes(
        b"a.example/x v1.0.0 h1:a=\na.example/\xff v1.0.0 h1:b=\n"
    )
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Tidy")
    built = build(root, "core", "text")
    assert "text/go.sum: line 2 is not UTF-8; save it as UTF-8" in str(failure(built["text"]))
    made(built["core"])


def test_what_a_killed_run_built_counts_as_built(root: Path) -> None:
    """R18: the rest of its modules become what they would have become."""
    whole = build(root, "core", "text", "web")
    (artifact, *_) = made(whole["web"])
    again = build(root, "web")
    assert [it.digests for it in made(again["web"])] == [it.digests for it in made(whole["web"])]
    artifact.path.parent.joinpath("v1.0.0.zip").unlink()
    for path in (root / ".releasekit").rglob("core/v1.0.0/v1.0.0.bundle"):
        path.write_bytes(b"torn")
    assert "neither its go.sum nor a proxy" in str(failure(build(root, "web")["web"]))


@pytest.mark.parametrize("name", ["v1.0.0.mod", "v1.0.0.zip", "v1.0.0.bundle"])
def test_a_stored_file_that_was_not_built_does_not_count(root: Path, name: str) -> None:
    """R53: what a build has left there would become hashes and requirements of all that need it."""
    whole = {key: made(it) for key, it in build(root, "core", "text", "web").items()}
    go_mod = b"module github.com/acme/mono/text\n\nrequire o.p/evil v1.0.0\n"
    prefix = "github.com/acme/mono/text@v1.0.0"
    bundle = whole["text"][0].path
    forged = {
        "v1.0.0.mod": go_mod,
        "v1.0.0.zip": zip_bytes(
            {f"{prefix}/go.mod": whole["text"][2].path.read_bytes(), f"{prefix}/evil.go": b"evil"},
            time_s=0,
        ),
        "v1.0.0.bundle": replace(
            TagBundle.from_bytes(bundle.read_bytes()), objects=(Object("tag", b"evil"),)
        ).to_bytes(),
    }
    bundle.with_name(name).write_bytes(forged[name])
    web = build(root, "web")["web"]
    if name == "v1.0.0.bundle":
        assert "neither its go.sum nor a proxy" in str(failure(web))
    else:
        assert [it.digests for it in made(web)] == [it.digests for it in whole["web"]]


def test_a_stored_module_that_is_not_what_is_published_does_not_count(root: Path) -> None:
    build(root, "core")
    shown = Published(files={"v1.0.0.bundle": "git:other"})
    assert "neither its go.sum nor a proxy" in str(
        failure(build(root, "text", published=shown)["text"])
    )


def test_what_a_run_built_of_another_commit_does_not_count(root: Path) -> None:
    build(root, "core", "text")
    git(root, "commit", "--allow-empty", "--quiet", "--message", "Later")
    assert "neither its go.sum nor a proxy" in str(failure(build(root, "web")["web"]))


def test_what_a_new_release_needs_of_others_is_required_by_all(root: Path, tmp_path: Path) -> None:
    """Else the go command would not build what a tag leads to before it changed go.mod."""
    for name, version in {"core": "v1.5.0", "text": "v1.4.0", "web": "v1.6.0"}.items():
        path = root / name / "go.mod"
        path.write_text(f"{path.read_text()}\nrequire o.p/thing {version} // indirect\n")
    sums = "o.p/thing v1.5.0 h1:t=\no.p/thing v1.5.0/go.mod h1:u=\n"
    (root / "core" / "go.sum").write_text(sums)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Need more")
    built = build(root, "core", "text", "web")
    assert "\nrequire o.p/thing v1.5.0 // indirect\n" in file_of(
        built["text"], "text/go.mod", tmp_path
    )
    assert file_of(built["text"], "text/go.sum", tmp_path).endswith(sums)
    assert "o.p/thing v1.6.0" in file_of(built["web"], "web/go.mod", tmp_path)


def test_hashes_that_a_needed_module_has_are_in_the_go_sum_of_all(
    root: Path, tmp_path: Path
) -> None:
    """R66: else go builds nothing of it: "missing go.sum entry". Of a module that go.mod does not
    name, nothing is compiled.
    """
    for name in ("core", "text"):
        path = root / name / "go.mod"
        path.write_text(f"{path.read_text()}\nrequire o.p/thing v1.5.0 // indirect\n")
    needed = ("o.p/thing v1.5.0 h1:t=\n", "o.p/thing v1.5.0/go.mod h1:u=\n")
    beside = ("o.p/test v1.0.0 h1:v=\n", "o.p/test v1.0.0/go.mod h1:w=\n")
    sums = "".join([*beside, *needed])
    (root / "core" / "go.sum").write_text(f"{sums}o.p/thing v1.4.0 h1:x=\nnonsense\n")
    (root / "text" / "go.sum").write_text("o.p/thing v1.5.0/go.mod h1:own=\n")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Need more")
    built = build(root, "core", "text", "web")
    text = file_of(built["text"], "text/go.sum", tmp_path)
    assert [line for line in text.splitlines(keepends=True) if line.startswith("o.p/")] == [
        beside[1],
        needed[0],
        "o.p/thing v1.5.0/go.mod h1:own=\n",
    ]
    web = file_of(built["web"], "web/go.sum", tmp_path)
    assert beside[1] in web
    assert needed[0] not in web


@pytest.mark.parametrize(
    ("published", "says"),
    [
        (None, "neither its go.sum nor a proxy has them"),
        (Published(files={"v1.0.0.zip": "git:1", "v1.0.0.mod": "git:1"}), "neither its go.sum"),
        (Transient("it is down"), "it is down"),
    ],
)
def test_hashes_nobody_knows_are_never_guessed(
    root: Path, published: Published | Transient | None, says: str
) -> None:
    error = failure(build(root, "text", published=published)["text"])
    assert says in str(error)
    assert "go:github.com/acme/mono/text" in str(error)


def test_a_requirement_may_be_raised_without_hashes(root: Path, tmp_path: Path) -> None:
    """The go command says what is missing in go.sum, as it would for the commit itself."""
    for name, version in {"core": "v1.5.0", "text": "v1.4.0"}.items():
        path = root / name / "go.mod"
        path.write_text(f"{path.read_text()}\nrequire o.p/thing {version} // indirect\n")
    git(root, "commit", "--all", "--quiet", "--message", "Need more")
    built = build(root, "core", "text")
    assert "o.p/thing v1.5.0" in file_of(built["text"], "text/go.mod", tmp_path)
    assert "o.p/thing" not in file_of(built["text"], "text/go.sum", tmp_path)


def test_what_needs_a_failed_build_fails_with_it(root: Path) -> None:
    (root / "core" / "more.go").write_text("package core\n")
    built = build(root, "core", "text", "web")
    assert "core/more.go is not committed" in str(failure(built["core"]))
    for name in ("text", "web"):
        assert "which could not be built" in str(failure(built[name]))


@pytest.fixture
def ring(root: Path) -> Path:
    """The same, but core and text require each other."""
    require_back(root, "core", "text")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Look back")
    return root


def digests(built: dict[str, tuple[Artifact, ...] | BuildFailed]) -> dict[str, object]:
    return {name: [it.digests for it in made(result)] for name, result in built.items()}


def test_modules_of_a_cycle_require_what_is_released(ring: Path, tmp_path: Path) -> None:
    """A hash covers go.sum, so of two that need each other only one can have the other's."""
    built = build(ring, "core", "text", "web")
    assert "mono/text v1.0.0\n" in file_of(built["core"], "core/go.mod", tmp_path)
    assert not (ring / "core" / "go.sum").exists()
    with zipfile.ZipFile(made(built["core"])[3].path) as archive:
        assert not any(name.endswith("go.sum") for name in archive.namelist())
    hashes = {
        name: [f"h1:{artifact.digests['h1']}\n" for artifact in made(built[name])[2:]]
        for name in ("core", "text")
    }
    text = file_of(built["text"], "text/go.sum", tmp_path)
    assert all(line in text for line in hashes["core"])
    web = file_of(built["web"], "web/go.sum", tmp_path)
    assert all(line in web for line in hashes["core"] + hashes["text"])


def test_a_module_of_a_cycle_is_built_once_more_as_it_was(ring: Path) -> None:
    """R18: whatever of the others an earlier run has left."""
    first = digests(build(ring, "core", "text", "web"))
    assert digests(build(ring, "core", "text", "web")) == first
    for name in ("core", "text", "web"):
        assert digests(build(ring, name)) == {name: first[name]}


def test_what_a_cycle_needs_is_built_before_it(ring: Path, tmp_path: Path) -> None:
    """Even if the order of the release, for which a dependency was set aside, is another one."""
    (ring / "web" / "go.mod").write_text("module github.com/acme/mono/web\n")
    manifest = ring / "text" / "go.mod"
    manifest.write_text(f"{manifest.read_text()}\nrequire github.com/acme/mono/web v0.0.0\n")
    git(ring, "commit", "--all", "--quiet", "--message", "Turn around")
    built = build(ring, "core", "web", "text")
    assert "mono/web v1.0.0 h1:" in file_of(built["core"], "core/go.sum", tmp_path)


def test_a_module_of_a_cycle_fails_with_a_later_one(ring: Path) -> None:
    (ring / "text" / "more.go").write_text("package text\n")
    built = build(ring, "core", "text", "web")
    assert "text/more.go is not committed" in str(failure(built["text"]))
    for name in ("core", "web"):
        assert "needs go:github.com/acme/mono/text, which could not be built" in str(
            failure(built[name])
        )
    without = build(ring, "core", "text", "web", pin="none")
    failure(without["text"])
    assert made(without["core"])
    assert made(without["web"])


def test_what_a_later_module_of_a_cycle_needs_is_required_before(
    ring: Path, tmp_path: Path
) -> None:
    for name, version in {"core": "v1.4.0", "text": "v1.5.0"}.items():
        path = ring / name / "go.mod"
        path.write_text(f"{path.read_text()}\nrequire o.p/thing {version}\n")
    sums = "o.p/thing v1.5.0 h1:t=\no.p/thing v1.5.0/go.mod h1:u=\n"
    (ring / "text" / "go.sum").write_text(sums)
    git(ring, "add", "--all")
    git(ring, "commit", "--quiet", "--message", "Need more")
    built = build(ring, "core", "text")
    assert "\nrequire o.p/thing v1.5.0\n" in file_of(built["core"], "core/go.mod", tmp_path)
    assert file_of(built["core"], "core/go.sum", tmp_path) == sums


def test_a_hash_of_what_is_still_to_be_built_is_not_kept(ring: Path, tmp_path: Path) -> None:
    """Such as that of a tag that was taken back."""
    stale = "github.com/acme/mono/text v1.0.0"
    (ring / "core" / "go.sum").write_text(
        f"{stale} h1:old=\n{stale}/go.mod h1:old=\no.p/thing v1.0.0/go.mod h1:kept=\n"
    )
    git(ring, "add", "--all")
    git(ring, "commit", "--quiet", "--message", "Tidy")
    built = build(ring, "core", "text")
    sums = file_of(built["core"], "core/go.sum", tmp_path)
    assert sums == "o.p/thing v1.0.0/go.mod h1:kept=\n"


def test_without_pins_the_commit_itself_is_tagged(root: Path) -> None:
    (artifact, _, mod, _) = made(build(root, "web", pin="none")["web"])
    bundle = TagBundle.from_bytes(artifact.path.read_bytes())
    assert [it.kind for it in bundle.objects] == ["tag"]
    assert bundle.prerequisite == git(root, "rev-parse", "HEAD").strip()
    assert mod.path.read_bytes() == (root / "web" / "go.mod").read_bytes()
    assert hash_of_mod(mod.path.read_bytes()) == f"h1:{mod.digests['h1']}"


def test_a_module_of_its_own_in_the_root_has_no_directory_in_its_tag(
    root: Path, tmp_path: Path
) -> None:
    (root / "go.work").unlink()
    (root / "go.mod").write_text(
        "module github.com/acme/mono\n\nrequire github.com/acme/mono/core v0.0.0\n"
    )
    (root / "mono.go").write_text("package mono\n")
    commit_and_push(root, forge(tmp_path / "another"), "Root")
    built = build(root, "core", "mono")["mono"]
    assert TagBundle.from_bytes(made(built)[0].path.read_bytes()).name == "v1.0.0"
    assert "mono/core v1.0.0\n" in file_of(built, "go.mod", tmp_path)
    assert file_of(built, "text/text.go", tmp_path).startswith("// Package text")


def test_what_is_not_committed_cannot_be_published(root: Path) -> None:
    shutil.copytree(root / "core", root / "new")
    (root / "new" / "go.mod").write_text("module github.com/acme/mono/new\n")
    (root / "go.work").write_text((root / "go.work").read_text() + "use ./new\n")
    assert "new/core.go is not committed" in str(failure(build(root, "new")["new"]))


def test_a_go_mod_that_git_ignores_is_not_there(root: Path) -> None:
    (root / ".gitignore").write_text("new/\n")
    (root / "new").mkdir()
    (root / "new" / "go.mod").write_text("module github.com/acme/mono/new\n")
    (root / "go.work").write_text((root / "go.work").read_text() + "use ./new\n")
    assert "HEAD has no new/go.mod" in str(failure(build(root, "new")["new"]))


@pytest.mark.parametrize("arguments", [(), ("--object-format=sha256",)])
def test_a_repository_without_a_usable_commit_is_one_clear_message(
    root: Path, arguments: tuple[str, ...]
) -> None:
    shutil.rmtree(root / ".git")
    git(root, "init", "--quiet", *arguments)
    if arguments:
        git(root, "add", "--all")
        git(root, "commit", "--quiet", "--message", "Start")
    error = failure(build(root, "core")["core"])
    assert ("SHA-256" if arguments else "no commit") in str(error)


def test_no_repository_at_all_is_one_clear_message(root: Path) -> None:
    shutil.rmtree(root / ".git")
    assert "is in no git repository" in str(failure(build(root, "core")["core"]))


def test_without_git_the_message_says_what_to_install(root: Path, tmp_path: Path) -> None:
    assert "git is not installed" in str(failure(build(root, "core", path=str(tmp_path))["core"]))


def under_another_git(tmp_path: Path, archives: str) -> str:
    """A PATH whose git does this for `git archive`; `"$git" "$@"` is what git itself does."""
    tools = tmp_path / "tools"
    tools.mkdir()
    script = (
        f'#!/bin/sh\ngit={shutil.which("git")}\ncase " $* " in\n'
        f'*" archive "*) {archives} ;;\n*) exec "$git" "$@" ;;\nesac\n'
    )
    (tools / "git").write_text(script)
    (tools / "git").chmod(0o755)
    return f"{tools}:{os.environ['PATH']}"


def planted_tar(path: Path, member: tarfile.TarInfo, data: bytes = b"") -> Path:
    path.write_bytes(member.tobuf(tarfile.GNU_FORMAT) + data.ljust(512, b"\0") + bytes(10240))
    return path


def test_no_file_in_an_open_place_becomes_a_release(root: Path, tmp_path: Path) -> None:
    """R53: builds can write where git works."""
    data = b"package core // is not committed\n"
    member = tarfile.TarInfo("core/core.go")
    member.size = len(data)
    evil = planted_tar(tmp_path / "evil.tar", member, data)
    replaced = f'"$git" "$@" && cp {evil} tree.tar'
    built = build(root, "core", path=under_another_git(tmp_path, replaced))["core"]
    with zipfile.ZipFile(made(built)[3].path) as archive:
        contents = {name.rpartition("/")[2]: archive.read(name) for name in archive.namelist()}
    assert contents["core.go"] == (root / "core" / "core.go").read_bytes()


@pytest.mark.parametrize(
    ("kind", "size"),
    [
        (tarfile.XHDTYPE, 3 << 30),
        (tarfile.GNUTYPE_SPARSE, 0),
        (tarfile.REGTYPE, 3 << 30),
        (None, 0),
    ],
    ids=["header", "sparse", "long", "torn"],
)
def test_an_archive_that_cannot_be_read_is_one_clear_message(
    root: Path, tmp_path: Path, kind: bytes | None, size: int
) -> None:
    member = tarfile.TarInfo("core/go.mod")
    member.type, member.size = kind or tarfile.REGTYPE, size
    evil = planted_tar(tmp_path / "evil.tar", member)
    if kind is None:
        evil.write_bytes(b"x" * 512)
    built = build(root, "core", path=under_another_git(tmp_path, f"cat {evil}"))["core"]
    assert "the archive that git has made" in str(failure(built))


def test_a_module_alone_in_its_repository_is_published_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "go.mod").write_text("module example.com/acme/alone\n")
    (tmp_path / "alone.go").write_text("package alone\n")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message", "Start")
    artifacts = made(build(tmp_path.resolve(), "alone")["alone"])
    with zipfile.ZipFile(artifacts[3].path) as archive:
        assert {name.partition("v1.0.0/")[2] for name in archive.namelist()} == {
            "alone.go",
            "go.mod",
        }


def test_a_name_that_is_not_utf8_is_one_clear_message(root: Path) -> None:
    (root / "core" / os.fsdecode(b"caf\xe9.txt")).touch()
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Add")
    assert "core: a file name there is not UTF-8; rename it" in str(
        failure(build(root, "core")["core"])
    )


def test_the_text_of_a_go_mod_needs_no_pin(root: Path) -> None:
    """R24: what is published is made from the commit."""
    text = (root / "web" / "go.mod").read_text()

    async def main() -> None:
        async with Processes(environment={}, variables=fakes.TOOL_VARIABLES) as processes:
            services = fakes.services(fakes.config(root), processes)
            ecosystem = Go(GoOptions(version="1.0.0"), services, absent, edits=True)
            workspace = await ecosystem.discover(root)
            assert workspace.batches([]) == []
            planned = {package.id.name: package.version for package in workspace.packages}
            assert workspace.pin(text, planned) == text
            higher = text.replace(PLACEHOLDER, "v1.0.1")
            with pytest.raises(PlanError, match=r"requires .*/text .* but the workspace has"):
                workspace.pin(higher, planned)

    asyncio.run(main())


@pytest.mark.parametrize("verify", [True, False])
def test_modules_are_compiled_unless_somebody_says_otherwise(root: Path, verify: bool) -> None:
    """Which takes the go command; the plan says what is left out."""

    async def main() -> None:
        async with Processes(environment={"PATH": str(root)}) as processes:
            services = fakes.services(fakes.config(root), processes)
            ecosystem = Go(GoOptions(version="1.0.0", verify=verify), services, absent, edits=True)
            workspace = await ecosystem.discover(root)
            target = GoTarget(workspace, fakes.FakeRegistry())
            if verify:
                with pytest.raises(ConfigError, match="go: go is not on PATH"):
                    await target.find_tool(workspace.packages)
            else:
                assert await target.find_tool(workspace.packages) == "git"
            package = workspace.packages[0]
            planned = [PlannedPackage(package=package, action=Action.PUBLISH, reason="")]
            said = "go: `[go] verify` is false: no module is built before its tag is pushed"
            assert target.plan_notes(planned) == ("" if verify else said)
            assert target.plan_notes([replace(planned[0], action=Action.KEEP)]) == ""

    asyncio.run(main())


async def absent(_package: Package) -> Published | None:
    return None
