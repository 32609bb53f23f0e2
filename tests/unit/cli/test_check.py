"""What `check` says of a workspace, its tools, its logins and its job, without asking anybody."""

from __future__ import annotations

import io
import platform
import shutil
from typing import TYPE_CHECKING

import pytest

from releasekit.__main__ import main
from releasekit.errors import ConfigError
from trusted_index import make_token
from workspaces import git

if TYPE_CHECKING:
    from pathlib import Path

MANIFESTS = {
    "package.json": '{"name": "acme-ui", "version": "1.0.0"}',
    "pyproject.toml": '[project]\nname = "acme"\nversion = "1.0"\n[build-system]\nrequires = []\n',
    "Cargo.toml": '[package]\nname = "acme"\nversion = "1.0.0"\nedition = "2021"\n',
}


@pytest.fixture(name="root")
def _root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository on a machine with git, node and npm, and whose network nobody may use."""
    programs, root = tmp_path / "bin", tmp_path / "acme"
    programs.mkdir()
    root.mkdir()
    for name in ("node", "npm"):
        (programs / name).write_text("#!/bin/sh\necho v10.9.2\n")
        (programs / name).chmod(0o755)
    (programs / "git").symlink_to(shutil.which("git") or "git")
    (programs / "sh").symlink_to("/bin/sh")
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.setattr("httpx.AsyncClient.send", None)
    for name, text in MANIFESTS.items():
        (root / name).write_text(text)
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Begin")
    git(root, "tag", "v1.0.0")
    return root


@pytest.mark.parametrize("job", [{}, {"GITLAB_CI": "true"}])
def test_a_link_beside_the_workspace_stops_no_check(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    job: dict[str, str],
) -> None:
    (root / ".tmp").symlink_to(root)
    monkeypatch.chdir(root)
    for name, value in job.items():
        monkeypatch.setenv(name, value)
    main(["check", "."])
    assert "of the type File" not in capsys.readouterr().out


def test_files_of_gitlab_that_builds_can_read_are_named(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """R52: not those that GitLab itself puts there. The disk of a runner may hang on a link."""
    beside = root.with_name(f"{root.name}.tmp")
    (beside / "git-template").mkdir(parents=True)
    own = ("CI_SERVER_TLS_CA_FILE", ".gitlab_runner.ext.conf", "gitlab_runner_env")
    for name in ("SIGNING_KEY", "kubeconfig", "CI_KEY", *own):
        (beside / name).write_text("x")
    builds = tmp_path / "builds"
    builds.symlink_to(root.parent)
    for name in ("CI_PROJECT_DIR", "GITHUB_WORKSPACE"):
        monkeypatch.setenv(name, str(builds / root.name))
    main(["check", str(root)])
    assert "of the type File" not in capsys.readouterr().out
    monkeypatch.setenv("GITLAB_CI", "true")
    main(["check", str(root)])
    said = capsys.readouterr().out
    assert "variables of the type File: CI_KEY, SIGNING_KEY, kubeconfig\n" in said


def test_a_clone_of_gitlab_needs_a_token_of_gitlab(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    git(root, "remote", "add", "origin", "git@gitlab.com:acme/tools/kit.git")
    main(["check", str(root), "--ecosystem=pypi", "--announce"])
    said = capsys.readouterr().out
    assert "to do  there is no token for gitlab.com, and `announce` needs one" in said


def test_an_image_without_git_is_told(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    main(["check", str(root), "--ecosystem=pypi"])
    assert "note   git: it is not on PATH\n       Without git, " in capsys.readouterr().out


def test_what_is_there_comes_first_and_what_is_to_be_done_with_its_cure_last(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One ecosystem that cannot be discovered keeps no other one from being looked at."""
    monkeypatch.setenv("RELEASEKIT_PYPI_TOKEN", "pypi-hunter2")
    (root / "README.md").write_text("not committed\n")
    assert main(["check", str(root)]) == 2
    said = capsys.readouterr().out
    lines = [line.partition(": RELEASEKIT_")[0] for line in said.splitlines()]
    commit = git(root, "rev-parse", "--short=12", "HEAD").strip()
    assert [line for line in lines if not line.startswith("       ")] == [
        f"ok     git: commit {commit}, 1 tag",
        "note   git: 1 file is not committed: README.md [RK-512]",
        f"ok     pypi: 1 package, packed by Python {platform.python_version()}",
        (
            "ok     pypi: goes to https://upload.pypi.org/legacy/; "
            "login: the token of RELEASEKIT_PYPI_TOKEN"
        ),
        "ok     npm: 1 package, packed by npm 10.9.2",
        f"ok     {root / '.releasekit'}: nothing was left behind",
        f"to do  {root / 'Cargo.toml'}: cargo is not on PATH [RK-213]",
        "to do  npm: no credentials for https://registry.npmjs.org/",
        "to do  cargo: no credentials for https://index.crates.io/",
        "3 things to do",
    ]
    assert "       Install Rust 1.90 or later (https://rustup.rs; " in said
    assert not (root / ".releasekit").exists()
    assert "hunter2" not in said


def test_a_token_is_shown_with_what_it_says_of_itself(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    token = make_token([1, ["acme-core", "acme-io"]], [0, 1_800_000_000, 0])
    monkeypatch.setenv("RELEASEKIT_PYPI_TOKEN", token)
    main(["check", str(root), "--ecosystem", "pypi"])
    said = capsys.readouterr().out
    assert (
        "login: the token of RELEASEKIT_PYPI_TOKEN, for acme-core, acme-io only, until "
        "2027-01-15T08:00+00:00"
    ) in said
    assert token not in said


def test_what_would_not_be_published_is_noted(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "Cargo.toml").unlink()
    (root / "pyproject.toml").unlink()
    (root / "tools").mkdir()
    (root / "tools" / "pyproject.toml").write_text(MANIFESTS["pyproject.toml"])
    (root / "go.mod").write_text("module acme.example/acme\n")
    assert main(["check", str(root), "--registry", f"dir:{root.parent / 'r'}"]) == 0
    said = capsys.readouterr().out
    assert (
        "note   pypi packages in no workspace here: tools\n"
        '       to plan them too, write `[pypi] packages = ["tools"]` in releasekit.toml\n'
    ) in said
    assert (
        "note   go: nothing to publish\n       go:acme.example/acme: its version is unknown" in said
    )


NPMJS = "https://registry.npmjs.org/"
NO_PERMISSION = "this job has no `id-token: write` permission"
IDENTITY = {
    "ACTIONS_ID_TOKEN_REQUEST_URL": "https://id.example/",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "x" * 20,
    "RELEASEKIT_FORGE_TOKEN": "y" * 20,
}


@pytest.mark.parametrize(
    ("given", "code", "says"),
    [
        (
            IDENTITY,
            0,
            [
                "note   tag: `check` does not test whether git may push tags to origin",
                "ok     announce: there is a token for GitHub",
                "ok     job: it may ask for an ID token, so files can be attested",
                f"ok     npm: goes to {NPMJS}; login: trusted publishing, as this job",
                "nothing missing",
            ],
        ),
        (
            {},
            3,
            [
                f"note   job: nothing is attested: {NO_PERMISSION}",
                "to do  there is no token for GitHub, and `announce` needs one [RK-303]",
                "2 things to do",
            ],
        ),
        (
            {"RELEASEKIT_ATTESTATIONS": "required"},
            3,
            [
                f"to do  attestations are required, and cannot be made: {NO_PERMISSION} [RK-315]",
                "3 things to do",
            ],
        ),
    ],
)
def test_in_a_job_it_says_what_the_job_may_do(
    root: Path,
    given: dict[str, str],
    code: int,
    says: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    git(root, "remote", "add", "origin", "https://github.com/acme/kit")
    here = {"GITHUB_ACTIONS": "true", "RELEASEKIT_MODE": "check", "RELEASEKIT_ANNOUNCE": "true"}
    for name, value in (here | given).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("RELEASEKIT_WORKING_DIRECTORY", str(root))
    monkeypatch.setenv("RELEASEKIT_ECOSYSTEM", "npm")
    assert main([]) == code
    assert set(says) <= set(capsys.readouterr().out.splitlines())


def test_the_token_is_looked_for_that_is_for_the_forge_of_the_job(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RELEASEKIT_ANNOUNCE", "true")
    monkeypatch.setenv("GITLAB_CI", "true")
    monkeypatch.setenv("CI_SERVER_URL", "https://git.acme.example")
    monkeypatch.setenv("CI_PROJECT_PATH", "acme/tools/mono")
    main(["check", str(root), "--ecosystem", "npm"])
    said = capsys.readouterr().out
    assert "there is no token for git.acme.example" in said
    assert "the scope `api`" in said
    monkeypatch.setenv("CI_JOB_TOKEN", "glcbt-64_zzzzzzzzzzzz")
    main(["check", str(root), "--ecosystem", "npm"])
    assert "ok     announce: there is a token for git.acme.example\n" in capsys.readouterr().out
    monkeypatch.setenv("RELEASEKIT_FORGE", "gitlab:https://gitlab.com/acme/mono")
    main(["check", str(root), "--ecosystem", "npm"])
    assert "there is no token for gitlab.com" in capsys.readouterr().out


def test_a_closed_place_and_a_shallow_clone_are_told(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    git(root, "commit", "--quiet", "--allow-empty", "--message", "Go on")
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{root}", "clone")
    clone = tmp_path / "clone"
    (clone / "releasekit.toml").write_text('[npm]\nstage = "so"\n')
    monkeypatch.setattr("releasekit.cli.check.find_closed", lambda _: tmp_path)  # root may write
    assert main(["check", str(clone), "--ecosystem=npm"]) == 3
    said = capsys.readouterr().out
    assert "ok     releasekit.toml can be read" in said
    assert "0 tags, and the clone is shallow\n       Older tags and commits are missing: " in said
    closed = (
        f"to do  {clone / '.releasekit'} cannot be written: this user may not write to {tmp_path}"
    )
    assert f"{closed} [RK-322]" in said
    assert 'to do  releasekit.toml: [npm] stage is "so" [RK-201]' in said
    assert said.endswith("\n2 things to do\n")


def test_a_reader_may_write_what_it_says_into_the_job_summary_whatever_it_found(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As with `releasekit check | tee -a "$GITHUB_STEP_SUMMARY"`."""
    summary = root.parent / "summary"

    class Tee(io.StringIO):
        def write(self, text: str) -> int:
            with summary.open("a") as file:
                return file.write(text)

    async def open_workspace(*_: object) -> None:
        raise ConfigError("no sandbox")

    monkeypatch.setattr("releasekit.cli.check.open_workspace", open_workspace)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    monkeypatch.setattr("sys.stdout", Tee())
    assert main(["check", str(root)]) == 2
    assert "to do  no sandbox" in summary.read_text()
    assert "written during the release" not in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["packages", "exclude-packages"])
def test_what_leaves_packages_out_is_named(
    root: Path, capsys: pytest.CaptureFixture[str], flag: str
) -> None:
    """R68"""
    names = {"packages": "npm:*", "exclude-packages": "pypi:*"}
    main(["check", str(root), "--ecosystem=npm,pypi", f"--{flag}={names[flag]}"])
    assert f"pypi:acme: `{flag}` leaves it out\n" in capsys.readouterr().out


def test_a_go_release_needs_go_a_remote_and_the_right_to_push(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R68: none of these was among what is missing."""
    (root / "go.mod").write_text("module example.com/acme/kit\n\ngo 1.21\n")
    (root / "releasekit.toml").write_text('[go]\nversion = "v1.0.0"\n')
    assert main(["check", str(root), "--ecosystem=go"]) != 0
    said = capsys.readouterr().out
    assert "to do  go: go is not on PATH [RK-213]" in said
    assert "to do  go: there is no git remote origin to push tags to [RK-" in said
    assert "nothing missing" not in said
    git(root, "remote", "add", "origin", "https://github.com/acme/kit")
    main(["check", str(root), "--ecosystem=go"])
    said = capsys.readouterr().out
    assert "note   go: `check` does not test whether git may push tags to origin" in said
    assert "`permissions: contents: write`" in said


def test_a_submodule_that_is_not_checked_out_is_missing(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R64: `plan` refuses it."""
    vendored = tmp_path / "vendored"
    vendored.mkdir()
    git(vendored, "init", "--quiet")
    git(vendored, "commit", "--quiet", "--allow-empty", "--message", "Begin")
    commit = git(vendored, "rev-parse", "HEAD").strip()
    (root / ".gitmodules").write_text('[submodule "v"]\n\tpath = vendor\n\turl = ../vendored\n')
    git(root, "update-index", "--add", "--cacheinfo", f"160000,{commit},vendor")
    git(root, "add", ".gitmodules")
    git(root, "commit", "--quiet", "--message", "Vendor")
    (root / "vendor").mkdir()
    assert main(["check", str(root), "--ecosystem=npm"]) != 0
    said = capsys.readouterr().out
    assert "the submodule vendor is not checked out [RK-325]" in said
    assert "nothing missing" not in said
