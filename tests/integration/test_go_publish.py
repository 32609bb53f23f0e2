"""Go modules: a real git remote, a real module proxy, and the real go command as their reader."""

from __future__ import annotations

import shutil
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from effort import SEARCHING
from go_workspaces import (
    HOST,
    REMOTE,
    commit_and_push,
    go,
    go_environment,
    go_workspace,
    require_back,
    write_module,
)
from integration.servers import static_server
from integration.tools import require_tool
from processes import PATIENCE_S
from releasekit.model import Outcome
from releasekit.state.journal import read_history
from workspaces import PROJECT, TWELVE, Program, git, wait_for_orphans

if TYPE_CHECKING:
    from pathlib import Path

    from integration.goproxy import GoProxy
    from releasekit.state.journal import HistoryEntry
    from workspaces import Run

FEW = {
    "demo-base": (),
    "demo-http": ("demo-base",),
    "demo-docs": ("demo-http",),
    "demo-lone": (),
}
NAMES = {name: f"{HOST}/{name}" for name in FEW}


@pytest.fixture
def workspace(tmp_path: Path, goproxy: GoProxy) -> Path:
    return go_workspace(tmp_path / "a workspace", goproxy.forge, FEW)


@pytest.fixture
def program(tmp_path: Path, goproxy: GoProxy) -> Program:
    (tmp_path / "home").mkdir()
    return Program(tmp_path / "home", goproxy.environment)


def publish(program: Program, workspace: Path, server: GoProxy, *more: str) -> Run:
    return program.run(
        "publish", workspace, "--go-proxy", server.url, "--retry-base-delay", "0.05s", *more
    )


def install(where: Path, proxy: str, *names: str, version: str = "v1.0.0") -> str:
    """A new module that requires these and calls the last one, run; what it prints."""
    where.mkdir()
    environment = go_environment(where / "home", GOPROXY=proxy)
    go(where, "mod", "init", "example.com/user", environment=environment)
    go(where, "get", *(f"{HOST}/{name}@{version}" for name in names), environment=environment)
    package = names[-1].replace("-", "")
    (where / "main.go").write_text(
        f'package main\n\nimport "fmt"\nimport "{HOST}/{names[-1]}"\n\n'
        f"func main() {{ fmt.Println({package}.Name()) }}\n"
    )
    return go(where, "run", ".", environment=environment)


def test_twelve_modules_in_one_push_on_record_before_it_and_back(
    goproxy: GoProxy, program: Program, tmp_path: Path
) -> None:
    """R1, R14, R19, R25"""
    workspace = go_workspace(tmp_path / "a workspace", goproxy.forge)
    before = git(workspace, "rev-parse", "HEAD", "HEAD^{tree}")
    then = tmp_path / "then"
    then.mkdir()
    journal = workspace / ".releasekit" / "journal.jsonl"
    hook(goproxy, "pre-receive", f"cp '{journal}' '{then}/journal.jsonl'")
    names = [f"{HOST}/{name}" for name in TWELVE]
    first = publish(program, workspace, goproxy)
    assert first.code == 0, first.out + first.err
    assert first.outcomes == dict.fromkeys(names, "published")
    # A proxy remembers that nothing is there, so it is not asked before the tag is.
    assert {exchange.status for exchange in goproxy.recorder.exchanges} == {200}
    pushes = [push for push in goproxy.forge.pushes() if push]
    assert [sorted(push) for push in pushes] == [
        [f"refs/tags/{name}/v1.0.0" for name in sorted(TWELVE)]
    ]
    assert git(workspace, "status", "--porcelain") == ""
    assert git(workspace, "rev-parse", "HEAD", "HEAD^{tree}") == before
    assert git(workspace, "tag") == ""
    git(goproxy.forge.bare, "fsck", "--strict")

    # The journal as it is when the remote is about to take the first tag.
    for name, entry in read_history(then).entries.items():
        assert entry.intent is not None, name
        assert entry.intent.digests == {it.filename: it.sha256 for it in entry.artifacts}
        assert len(entry.intent.digests) == 4
        assert entry.outcome is None
        assert entry.uncertain
    assert {key[0].name for key in read_history(then).entries} == set(names)
    after = entries(workspace)
    assert {it.outcome for it in after.values()} == {Outcome.PUBLISHED}
    assert not any(it.uncertain for it in after.values())

    second = publish(program, workspace, goproxy)
    assert second.code == 0, second.out + second.err
    assert second.results["result"] == "noop"
    assert second.outcomes == dict.fromkeys(names, "already-published")
    assert [push for push in goproxy.forge.pushes() if push] == pushes

    printed = install(tmp_path / "user", goproxy.url, "demo-lone", "demo-solo", "demo-docs")
    assert printed.startswith("demo-docs demo-cli demo-api")
    build_from_tags(tmp_path, goproxy, "demo-base", "demo-http", "demo-docs")


def build_from_tags(where: Path, server: GoProxy, *names: str) -> None:
    """Each go.mod requires the planned versions, each go.sum is complete: nothing is written."""
    git(where, "clone", "--quiet", str(server.forge.bare), "checkout")
    checkout = where / "checkout"
    environment = go_environment(
        where / "go home", GOPROXY=server.url, GOFLAGS="-mod=readonly -modcacherw"
    )
    for name in names:
        git(checkout, "checkout", "--quiet", f"{name}/v1.0.0")
        go(checkout / name, "build", "./...", environment=environment)
        assert git(checkout, "status", "--porcelain") == ""
        assert "v0.0.0" not in (checkout / name / "go.mod").read_text()


def test_a_moved_tag_is_refused(goproxy: GoProxy, workspace: Path, program: Program) -> None:
    """R17: somebody else's tag appears between the plan and the push."""
    built = program.run("publish", workspace, "--go-proxy", goproxy.url, "--dry-run")
    assert built.code == 0, built.out + built.err
    git(goproxy.forge.bare, "tag", "demo-http/v1.0.0", "main")
    stranger = git(goproxy.forge.bare, "rev-parse", "demo-http/v1.0.0")
    run = publish(program, workspace, goproxy)
    assert run.outcomes[NAMES["demo-http"]] == "already-published"
    assert git(goproxy.forge.bare, "rev-parse", "demo-http/v1.0.0") == stranger


# Before the first build a run has nothing to go on with; one that dies after its push is below.
_EARLY_AND_LATE = ("run_started", "planned", "") if SEARCHING else ()


@pytest.mark.parametrize("last", ["built", "intent", *_EARLY_AND_LATE])
def test_a_killed_run_is_finished_by_the_next(
    goproxy: GoProxy, workspace: Path, program: Program, last: str
) -> None:
    """R18, R21: when this is on record, or when the tags have been pushed."""
    journal = workspace / ".releasekit" / "journal.jsonl"

    def is_there() -> bool:
        if not last:
            return bool(goproxy.forge.pushes())
        return journal.exists() and f'"event":"{last}"' in journal.read_text()

    program.kill_once(is_there, workspace, "--go-proxy", goproxy.url)
    run = publish(program, workspace, goproxy)
    assert run.code == 0, run.out + run.err
    assert set(run.outcomes.values()) <= {"published", "already-published"}
    pushed = [tag for push in goproxy.forge.pushes() for tag in push]
    assert sorted(pushed) == [f"refs/tags/{name}/v1.0.0" for name in sorted(FEW)]


def hook(server: GoProxy, name: str, script: str) -> Path:
    """One of the remote's own, which runs while git pushes."""
    path = server.forge.bare / "hooks" / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def killed_after_the_push(program: Program, workspace: Path, server: GoProxy, home: Path) -> None:
    """A run that dies when the remote has its tags and before git has told it so."""
    pid = home / "pid"
    made = hook(server, "post-update", f"kill -9 $(cat '{pid}')")
    # No hook of a remote on this machine could kill it out of the sandbox.
    argv = program.argv("publish", workspace, "--go-proxy", server.url, "--build-sandbox", "off")
    script = f'echo $$ > "{pid}"; exec "$@"'
    done = subprocess.run(
        ["sh", "-c", script, "sh", *argv],
        env=program.full_environment,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    made.unlink()
    assert done.returncode == -signal.SIGKILL, done.stdout
    wait_for_orphans(workspace)
    assert len(server.forge.tags()) == len(FEW)


def entries(workspace: Path) -> dict[str, HistoryEntry]:
    return {key[0].name: it for key, it in read_history(workspace / ".releasekit").entries.items()}


def test_a_run_that_died_with_its_push_has_published_all_of_it(
    goproxy: GoProxy, workspace: Path, program: Program, tmp_path: Path
) -> None:
    """R14, R15: tags and hashes are held against what was to be pushed, of every module."""
    killed_after_the_push(program, workspace, goproxy, tmp_path)
    assert all(it.uncertain for it in entries(workspace).values())
    run = publish(program, workspace, goproxy)
    assert run.code == 0, run.out + run.err
    assert run.outcomes == dict.fromkeys(NAMES.values(), "already-published")
    reasons = {run.row(name)["reason"] for name in NAMES.values()}
    assert reasons <= {"on the registry, as built before", "the registry shows our bytes"}
    assert [len(push) for push in goproxy.forge.pushes() if push] == [len(FEW)]
    assert not any(it.uncertain for it in entries(workspace).values())


def test_a_tag_that_is_moved_after_such_a_death_is_noticed(
    goproxy: GoProxy, workspace: Path, program: Program, tmp_path: Path
) -> None:
    """R14, R17: of a module that only went along, too."""
    killed_after_the_push(program, workspace, goproxy, tmp_path)
    git(goproxy.forge.bare, "tag", "--force", "demo-http/v1.0.0", "main")
    theirs = git(goproxy.forge.bare, "rev-parse", "demo-http/v1.0.0").strip()
    run = publish(program, workspace, goproxy)
    assert run.code == 1
    assert run.outcomes[NAMES["demo-http"]] == "failed"
    assert f"git:{theirs}" in run.row(NAMES["demo-http"])["reason"]
    assert run.outcomes[NAMES["demo-base"]] == "already-published"


def test_only_the_tag_that_is_refused_fails(
    goproxy: GoProxy, workspace: Path, program: Program
) -> None:
    """R6: a protected tag spoils the one push, and not the release."""
    hook(goproxy, "update", '[ "$1" != refs/tags/demo-http/v1.0.0 ] || { echo hands off; exit 1; }')
    run = publish(program, workspace, goproxy)
    assert run.code == 1
    outcomes = {NAMES["demo-http"]: "failed", NAMES["demo-docs"]: "blocked"}
    assert run.outcomes == dict.fromkeys(NAMES.values(), "published") | outcomes
    assert "hands off" in run.row(NAMES["demo-http"])["reason"]
    assert goproxy.forge.tags().keys() == {"demo-base/v1.0.0", "demo-lone/v1.0.0"}


def test_a_refused_push_is_one_clear_message_and_what_it_left_undone_may_change(
    goproxy: GoProxy, workspace: Path, program: Program
) -> None:
    """R14: the journal knows of every module that nothing of it was sent."""
    made = hook(goproxy, "pre-receive", "echo tags are made by robots only >&2\nexit 1")
    run = publish(program, workspace, goproxy, "--failure-policy", "stop")
    assert run.code == 1
    assert "tags are made by robots only" in run.row(NAMES["demo-base"])["reason"]
    assert goproxy.forge.tags() == {}
    assert not any(it.uncertain for it in entries(workspace).values())
    made.unlink()
    (workspace / "demo-base" / "more.go").write_text("package demobase\n")
    commit_and_push(workspace, goproxy.forge, "Mend")
    run = publish(program, workspace, goproxy)
    assert run.code == 0, run.out + run.err
    assert set(run.outcomes.values()) == {"published"}


def test_only_what_changed_is_released_later(
    goproxy: GoProxy, workspace: Path, program: Program, tmp_path: Path
) -> None:
    """A module that is published already keeps its hashes, whatever its directory holds by now."""
    assert publish(program, workspace, goproxy).code == 0
    (workspace / "demo-base" / "later.go").write_text("package demobase\n")
    (workspace / "demo-http" / "VERSION").write_text("1.1.0\n")
    commit_and_push(workspace, goproxy.forge, "Later")
    run = publish(program, workspace, goproxy)
    assert run.code == 0, run.out + run.err
    published = {name for name, how in run.outcomes.items() if how == "published"}
    assert published == {NAMES["demo-http"]}
    printed = install(tmp_path / "user", goproxy.url, "demo-http", version="v1.1.0")
    assert printed == "demo-http demo-base\n"


def test_a_tag_on_a_commit_of_its_own_says_what_has_changed_since(
    goproxy: GoProxy, workspace: Path, program: Program, tmp_path: Path
) -> None:
    """R49: publishing completes go.mod and go.sum there, which is no change of the module."""
    below = workspace / "go"
    below.mkdir()
    git(workspace, "mv", *git(workspace, "ls-tree", "--name-only", "HEAD").split(), "go")
    for file in below.rglob("*.*"):
        file.write_text(file.read_text().replace(f"{HOST}/", f"{HOST}/go/"))
    (below / "demo-lone" / "go.mod").write_text(f"module {HOST}/go/demo-lone/v2\n\ngo 1.22\n")
    (below / "demo-lone" / "VERSION").write_text("2.1.0\n")
    commit_and_push(workspace, goproxy.forge, "Move")
    first = publish(program, below, goproxy)
    assert first.code == 0, first.out + first.err
    git(tmp_path, "clone", "--quiet", "--branch=main", str(goproxy.forge.bare), "clone")
    clone = tmp_path / "clone" / "go"
    git(clone, "remote", "set-url", "origin", REMOTE)

    def plan() -> Run:
        return program.run("plan", clone, "--go-proxy", goproxy.url, "--strict")

    run = plan()
    assert run.code == 0, run.out + run.err
    assert "no tag tells" not in run.out
    (clone / "demo-http" / "demohttp.go").write_text("package demohttp\n")
    (clone / "demo-lone" / "demolone.go").write_text("package demolone\n")
    git(clone, "commit", "--quiet", "--all", "--message", "Change")
    run = plan()
    assert run.code == 3
    for source, tag in (("demohttp", "demo-http/v1.0.0"), ("demolone", "demo-lone/v2.1.0")):
        said = f"{source}.go changed since v{tag[-5:]} was published (tag go/{tag})"
        assert said in run.err


@pytest.fixture
def ring(tmp_path: Path, goproxy: GoProxy) -> Path:
    """Two modules that require each other, and one that requires both."""
    packages = {"core": (), "text": ("core",), "web": ("text",)}
    root = go_workspace(tmp_path / "ring", goproxy.forge, packages)
    require_back(root, "core", "text")
    commit_and_push(root, goproxy.forge, "Look back")
    return root


def use_both(where: Path, proxy: str) -> str:
    """As a module of its own does, with both modules of the ring; what it prints."""
    where.mkdir()
    environment = go_environment(where / "home", GOPROXY=proxy, GOFLAGS="-mod=mod -modcacherw")
    go(where, "mod", "init", "example.com/user", environment=environment)
    go(where, "get", f"{HOST}/core@v1.0.0", f"{HOST}/text@v1.0.0", environment=environment)
    (where / "main.go").write_text(
        f'package main\n\nimport "{HOST}/core/back"\n\nfunc main() {{ print(back.Name()) }}\n'
    )
    go(where, "build", "-o", "main", ".", environment=environment)
    go(where, "mod", "verify", environment=environment)
    done = subprocess.run([where / "main"], capture_output=True, text=True, check=True)
    return done.stderr


def test_modules_that_require_one_another_go_out_together(
    goproxy: GoProxy, ring: Path, program: Program, tmp_path: Path
) -> None:
    """R7, R19: Go allows it, as long as no packages import one another."""
    run = publish(program, ring, goproxy)
    assert run.code == 0, run.out + run.err
    assert f"do not order the release: {HOST}/text -> {HOST}/core (runtime)" in run.out + run.err
    tags = [f"refs/tags/{name}/v1.0.0" for name in ("core", "text", "web")]
    assert [sorted(push) for push in goproxy.forge.pushes() if push] == [tags]
    again = publish(program, ring, goproxy)
    assert again.results["result"] == "noop", again.out + again.err
    assert use_both(tmp_path / "user", goproxy.url) == "text core"
    # What stands outside of the cycle builds from its tag as it is.
    git(tmp_path, "clone", "--quiet", "--branch", "web/v1.0.0", str(goproxy.forge.bare), "web")
    environment = go_environment(
        tmp_path / "go home", GOPROXY=goproxy.url, GOFLAGS="-mod=readonly -modcacherw"
    )
    go(tmp_path / "web" / "web", "build", "./...", environment=environment)


@pytest.mark.parametrize("refused", ["apart", "core"])
def test_no_module_of_a_cycle_goes_out_without_the_others(
    goproxy: GoProxy, program: Program, tmp_path: Path, refused: str
) -> None:
    """R6: nor without what only another one needs."""
    packages = {"apart": (), "core": ("apart",), "text": ("core",), "zoo": ()}
    root = go_workspace(tmp_path / "ring", goproxy.forge, packages)
    require_back(root, "core", "text")
    commit_and_push(root, goproxy.forge, "Look back")
    hook(goproxy, "update", f'[ "$1" != refs/tags/{refused}/v1.0.0 ] || {{ echo no; exit 1; }}')
    run = publish(program, root, goproxy)
    assert run.code == 1, run.out + run.err
    fine = {"apart", "zoo"} - {refused}
    assert goproxy.forge.tags().keys() == {f"{name}/v1.0.0" for name in fine}
    assert {run.outcomes[f"{HOST}/{name}"] for name in fine} == {"published"}
    assert {run.outcomes[f"{HOST}/{name}"] for name in packages.keys() - fine} <= {
        "failed",
        "blocked",
    }


def test_modules_that_require_one_another_go_into_a_directory_which_is_a_proxy(
    goproxy: GoProxy, ring: Path, program: Program, tmp_path: Path
) -> None:
    """R7, R19"""
    where = tmp_path / "served"
    run = program.run("publish", ring, "--registry", f"dir:{where}")
    assert run.code == 0, run.out + run.err
    again = program.run("publish", ring, "--registry", f"dir:{where}")
    assert again.results["result"] == "noop", again.out + again.err
    assert goproxy.forge.tags() == {}
    with static_server(where / "go") as url:
        assert use_both(tmp_path / "user", url) == "text core"


def test_a_remote_that_is_not_there_is_one_clear_message(
    goproxy: GoProxy, workspace: Path, program: Program
) -> None:
    git(workspace, "remote", "set-url", "origin", REMOTE + "-nowhere-to-be-found.invalid/x")
    (goproxy.forge.home / ".gitconfig").write_text("[protocol]\n\tallow = never\n")
    run = publish(program, workspace, goproxy, "--max-retries", "0")
    assert run.code == 1
    assert "git remote origin" in run.err
    assert "Traceback" not in run.err
    plan = program.run("plan", workspace, "--go-proxy", goproxy.url)
    assert plan.code == 0, plan.out + plan.err
    assert "unknown whether it is published" in plan.out
    assert "`publish` would end here: git remote origin: " in plan.out


def test_a_module_that_does_not_build_gets_no_tag(
    goproxy: GoProxy, workspace: Path, program: Program
) -> None:
    """R6: what its users would meet, and the workspace hides: a requirement that go.mod lacks.
    Modules find those of the same release; tests and other platforms do not count.
    """
    (workspace / "releasekit.toml").write_text('[go]\nversion-file = "VERSION"\n')
    base = workspace / "demo-base"
    for name in ("base_test.go", "base_plan9.go"):
        (base / name).write_text("package demobase\n\nvar x = nowhere\n")
    (workspace / "demo-http" / "more.go").write_text("package demohttp\n\nvar x = nowhere\n")
    lone = f'package demolone\n\nimport _ "{HOST}/demo-base"\n'
    (workspace / "demo-lone" / "more.go").write_text(lone)
    write_module(workspace / "demo-more", "demo-more", ("demo-base",))
    work = workspace / "go.work"
    work.write_text(work.read_text().replace("\t./demo-base\n", "\t./demo-base\n\t./demo-more\n"))
    commit_and_push(workspace, goproxy.forge, "Break")
    run = publish(program, workspace, goproxy)
    assert run.code == 1
    assert run.outcomes == {
        NAMES["demo-base"]: "published",
        f"{HOST}/demo-more": "published",
        NAMES["demo-http"]: "failed",
        NAMES["demo-docs"]: "blocked",
        NAMES["demo-lone"]: "failed",
    }
    reason = run.row(NAMES["demo-http"])["reason"]
    assert reason == "does not build: ./more.go:3:9: undefined: nowhere"
    lacks = f"more.go:3:8: cannot find module providing package {HOST}/demo-base"
    assert lacks in run.row(NAMES["demo-lone"])["reason"]
    assert goproxy.forge.tags().keys() == {"demo-base/v1.0.0", "demo-more/v1.0.0"}


def test_uncommitted_code_is_never_published(
    goproxy: GoProxy, workspace: Path, program: Program
) -> None:
    (workspace / "demo-http" / "more.go").write_text("package demohttp\n")
    run = publish(program, workspace, goproxy)
    assert run.code == 1
    assert "demo-http/more.go is not committed" in run.row(NAMES["demo-http"])["reason"]
    assert run.outcomes[NAMES["demo-docs"]] == "blocked"
    assert run.outcomes[NAMES["demo-lone"]] == "published"


def test_the_example_can_be_installed(tmp_path: Path) -> None:
    """What is published has no `replace`, which `go install` would refuse, and a /v2."""
    require_tool("go")
    root = tmp_path / "polyglot"
    shutil.copytree(PROJECT / "examples" / "polyglot" / "go", root / "go")
    shutil.copy(PROJECT / "examples" / "polyglot" / "releasekit.toml", root)
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Start")
    (tmp_path / "home").mkdir()
    where = tmp_path / "served"
    run = Program(tmp_path / "home").run(
        "publish", root, "--ecosystem", "go", "--registry", f"dir:{where}"
    )
    assert run.code == 0, run.out + run.err
    environment = go_environment(tmp_path / "user", GOPROXY=(where / "go").as_uri())
    command = "github.com/example/polyglot/go/cmd/greet@v0.1.0"
    go(tmp_path, "install", command, environment=environment)
    greet = tmp_path / "user" / "go" / "bin" / "greet"
    assert subprocess.check_output([greet], text=True) == "hello from acme (acme)\n"
