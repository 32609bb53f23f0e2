"""An ecosystem that is a folder and a line, and published with like any other."""

from __future__ import annotations

import hashlib
import hmac
import importlib.util
import json
import os
import tarfile
from typing import TYPE_CHECKING, Any, Final

import pytest

from releasekit import ecosystems
from releasekit.__main__ import main
from releasekit.cli.commands import COMMANDS
from releasekit.config.inputs import Declared
from releasekit.ecosystems.folders import table
from workspaces import PROJECT, git

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from releasekit.config.declaration import EcosystemDeclaration

FOLDERS: Final = (
    *ecosystems.FOLDERS,
    "sixth.bundle",
)
SEAL: Final = "wax-and-ribbon"


@pytest.fixture(scope="module")
def known() -> Mapping[str, EcosystemDeclaration]:
    return table(FOLDERS)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in os.environ:
        if name.startswith(("RELEASEKIT_", "GITHUB_", "ACTIONS_", "RUNNER_", "BUNDLE_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CI", "true")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Three bundles: web needs text needs core."""
    root = tmp_path / "w"
    every = {"core": {}, "text": {"core": "*"}, "web": {"text": "1", "core": "*"}}
    for name, needs in every.items():
        (root / name).mkdir(parents=True)
        (root / name / "page.txt").write_text(f"This is {name}.\n")
        (root / name / "page.tmp").write_text("not for anybody\n")
        document = {"name": name, "version": "1.0.0", "needs": needs}
        (root / name / "bundle.json").write_text(json.dumps(document) + "\n")
    (root / "releasekit.toml").write_text("[bundle]\nexclude = ['*.tmp']\n")
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Start")
    return root


def results(root: Path) -> dict[str, str]:
    document = json.loads((root / ".releasekit" / "results.json").read_text())
    return {row["name"]: row["outcome"] for row in document["packages"]}


def preparing(root: Path, script: str) -> None:
    manifest = root / "core" / "bundle.json"
    prepare = ["sh", "-c", script]
    manifest.write_text(json.dumps({"name": "core", "version": "1.0.0", "prepare": prepare}))


def test_it_publishes_in_order_and_once(
    known: Mapping[str, EcosystemDeclaration], workspace: Path, tmp_path: Path
) -> None:
    """R1, R19"""
    (tmp_path / "notes.txt").write_text("What is new.\n")
    argv = ["publish", "w", "--registry=dir:r", "--bundle-channel=beta", "--bundle-notes=notes.txt"]
    assert main(argv, known) == 0
    assert results(workspace) == dict.fromkeys(("core", "text", "web"), "published")
    channel = tmp_path / "r" / "bundle" / "beta"
    with tarfile.open(channel / "web" / "web-1.0.0.tar") as archive:
        assert archive.getnames() == ["bundle.json", "page.txt", "NOTES"]
        manifest = archive.extractfile("bundle.json")
        assert manifest is not None
        assert json.load(manifest)["needs"] == {"text": "1", "core": "1.0.0"}
    before = {path: path.stat().st_mtime_ns for path in channel.rglob("*")}
    assert main(argv, known) == 0
    assert results(workspace) == dict.fromkeys(("core", "text", "web"), "already-published")
    assert {path: path.stat().st_mtime_ns for path in channel.rglob("*")} == before
    assert git(workspace, "status", "--porcelain") == ""


def test_the_others_do_not_know_it(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", str(workspace), "--bundle-channel=beta"]) == 2
    assert "--bundle-channel is not a flag" in capsys.readouterr().err
    assert main(["plan", str(workspace)]) == 2
    assert "releasekit.toml: bundle says how one run goes" in capsys.readouterr().err


def test_its_flag_is_in_the_help_and_its_values_are_checked(
    known: Mapping[str, EcosystemDeclaration], workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R40"""
    with pytest.raises(SystemExit, match="0"):
        main(["publish", "--help-all"], known)
    printed = capsys.readouterr().out
    assert "--bundle-channel stable|beta" in printed
    assert "--ecosystem pypi|npm|cargo|go|maven|step|bundle" in printed
    assert main(["plan", str(workspace), "--bundle-channel=betta"], known) == 2
    assert 'is not known; write stable or beta; did you mean "beta"?' in capsys.readouterr().err


def test_an_unknown_key_of_its_table_is_refused(
    known: Mapping[str, EcosystemDeclaration], workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R40"""
    (workspace / "releasekit.toml").write_text("[bundle]\nexclud = []\n")
    assert main(["plan", str(workspace)], known) == 2
    said = capsys.readouterr().err
    assert "[bundle] has an unknown key 'exclud', did you mean 'exclude'?" in said


def test_its_secret_is_masked_and_seen_by_no_build(
    known: Mapping[str, EcosystemDeclaration],
    workspace: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """R34, R38: although nothing about its name or value says that it is one."""
    preparing(workspace, f"env; echo it was {SEAL}")
    monkeypatch.setenv("RELEASEKIT_BUNDLE_SEAL", SEAL)
    monkeypatch.setenv("BUNDLE_COLOUR", "red")
    monkeypatch.setenv("BUNDLE_OWNER", "me")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert main(["publish", str(workspace), f"--registry=dir:{tmp_path / 'r'}"], known) == 0
    assert f"::add-mask::{SEAL}" in capsys.readouterr().out
    log = (workspace / ".releasekit" / "logs" / "build-core.log").read_text()
    assert "BUNDLE_COLOUR=red" in log
    assert "BUNDLE_OWNER" not in log
    assert "RELEASEKIT_BUNDLE_SEAL" not in log
    assert "it was ***" in log
    held = tmp_path / "r" / "bundle" / "stable" / "core"
    data = (held / "core-1.0.0.tar").read_bytes()
    sealed = hmac.new(SEAL.encode(), data, hashlib.sha256).digest()
    assert (held / "core-1.0.0.tar.seal").read_bytes() == sealed


@pytest.mark.parametrize(
    ("flag", "says"),
    [
        ("--bundle-seal=x", "--bundle-seal is a secret, and arguments can be read by every"),
        ("--bundle-registry=https://a.example/", "bundles go into a directory; write dir:PATH"),
    ],
)
def test_what_cannot_be_used_is_refused(
    known: Mapping[str, EcosystemDeclaration],
    workspace: Path,
    capsys: pytest.CaptureFixture[str],
    flag: str,
    says: str,
) -> None:
    """R40"""
    assert main(["publish", str(workspace), flag], known) == 2
    assert says in capsys.readouterr().err


def test_a_build_that_fails_ends_with_its_log(
    known: Mapping[str, EcosystemDeclaration], workspace: Path, tmp_path: Path
) -> None:
    """R6"""
    preparing(workspace, "echo nothing to eat; exit 7")
    assert main(["publish", str(workspace), f"--registry=dir:{tmp_path / 'r'}"], known) == 1
    assert results(workspace) == {"core": "failed", "text": "blocked", "web": "blocked"}


def test_documents_are_made_from_the_same_table(
    known: Mapping[str, EcosystemDeclaration],
) -> None:
    written = {path.name: text for path, text in generated(Declared.of(COMMANDS, known)).items()}
    action, inputs, makefile = (written[name] for name in ("action.yml", "inputs.md", "Makefile"))
    assert '\n  bundle-channel:\n    description: "Who gets bundles' in action
    assert "\n        RELEASEKIT_BUNDLE_SEAL: ${{ inputs.bundle-seal }}\n" in action
    assert "\n| `bundle-channel` | `stable` | Who gets bundles" in inputs
    assert "`maven`, `step`, `bundle`. Default" in inputs
    assert "maven|mvn|3.6.3|\n" in makefile


def generated(declared: Declared) -> dict[Path, str]:
    """What docs/generate.py would write."""
    spec = importlib.util.spec_from_file_location("generate", PROJECT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    write: Callable[[Declared], dict[Path, str]] = module.generated
    return write(declared)
