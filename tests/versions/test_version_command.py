"""The command version, from a real repository to its lines, outputs and exit codes."""

from __future__ import annotations

import fcntl
import json
import os
import re
from datetime import UTC, datetime
from pathlib import PurePath
from typing import TYPE_CHECKING

import pytest

from integration.tools import require_tool
from releasekit.__main__ import main
from releasekit.ecosystems.interface import WrittenVersions
from releasekit.ecosystems.pypi.versioning import PyPIVersioning
from releasekit.state import locks
from workspaces import git

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from releasekit.host.edits import Edits


@pytest.fixture(autouse=True)
def bare_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith(("RELEASEKIT_", "GITHUB_", "ACTIONS_", "RUNNER_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("RELEASEKIT_REGISTRY", f"dir:{tmp_path / 'registry'}")


def write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def repository(root: Path, files: Mapping[str, str], *tags: str) -> Path:
    """Its first commit released what has a tag."""
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "--quiet", "--initial-branch=main")
    commit(root, "chore: start", files)
    for tag in tags:
        git(root, "tag", tag)
    return root


def commit(root: Path, message: str, files: Mapping[str, str]) -> None:
    if any(PurePath(name).name == "Cargo.toml" for name in files):
        require_tool("cargo")  # which reads it
    write(root, files)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", message)


def member(name: str, version: str, *needs: str) -> str:
    return (
        f'[project]\nname = "{name}"\nversion = "{version}"\ndependencies = {json.dumps(needs)}\n'
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
    )


PYTHON = {
    "pyproject.toml": '[tool.uv.workspace]\nmembers = ["packages/*"]\n',
    "packages/core/pyproject.toml": member("acme-core", "1.2.0"),
    "packages/cli/pyproject.toml": member("acme-cli", "0.4.1", "acme-core>=1.2,<2"),
    "packages/web/pyproject.toml": member("acme-web", "0.3.0", "acme-core"),
}
PYTHON_TAGS = ("acme-core-v1.2.0", "acme-cli-v0.4.1", "acme-web-v0.3.0")


@pytest.mark.parametrize("command", ["version", "preview", "init"])
def test_versions_need_no_destination(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
) -> None:
    """R68: npmjs.com is not asked about what goes elsewhere, so that no answer is taken for it."""
    monkeypatch.delenv("RELEASEKIT_REGISTRY")
    config = {"registry": "https://npm.corp.example/"}
    manifest = {"name": "@acme/p", "version": "1.0.0", "publishConfig": config}
    root = repository(tmp_path / "w", {"package.json": json.dumps(manifest)})
    commit(root, "feat: more", {"index.js": "1\n"})
    flags = ("--since", "HEAD~1") if command == "preview" else ("--dry-run",)
    assert main([command, str(root), *flags]) == 0
    if command != "init":
        assert "1.1.0" in capsys.readouterr().out
    assert main(["plan", str(root)]) == 2
    assert "`packages: npm:@acme/p` and `npm-registry: https://npm." in capsys.readouterr().err


@pytest.fixture
def uv_workspace(tmp_path: Path) -> Path:
    """Example A: a feature, a fix, and a typo."""
    root = repository(tmp_path / "w", PYTHON, *PYTHON_TAGS)
    commit(root, "feat: read parquet files (#41)", {"packages/core/src/parquet.py": "1\n"})
    commit(root, "fix: exit 1 when nothing matches (#42)", {"packages/cli/src/main.py": "2\n"})
    commit(root, "docs: typo (#43)", {"packages/web/src/web.py": "3\n"})
    return root


def hatch_vcs_project(root: Path) -> Path:
    """A tag says its version; a feature came after it."""
    text = member("acme", "1.2.0").replace('version = "1.2.0"', 'dynamic = ["version"]')
    text = text.replace('["hatchling"]', '["hatchling", "hatch-vcs"]')
    text += '[tool.hatch.version]\nsource = "vcs"\n'
    root = repository(root, {"pyproject.toml": text, "acme.py": "1\n"}, "v1.2.0")
    commit(root, "feat: more", {"acme.py": "2\n"})
    return root


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


A = [
    "acme-core  1.2.0 → 1.3.0  minor  feat: read parquet files (#41)",
    "acme-cli   0.4.1 → 0.4.2  patch  fix: exit 1 when nothing matches (#42)",
    "acme-web   0.3.0 → 0.3.1  patch  when packed, 0.3.0 requires acme-core==1.2.0",
    "",
    "3 packages to release",
    "3 CHANGELOG.md, 3 pyproject.toml",
]


def test_a_pin_releases_a_dependent_and_a_range_does_not(
    uv_workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["version", str(uv_workspace), "--dry-run"]) == 0
    assert lines(capsys) == A
    assert git(uv_workspace, "status", "--porcelain") == ""
    assert main(["version", str(uv_workspace), "--check"]) == 1
    assert lines(capsys) == A


def test_what_a_package_takes_in_by_a_link_releases_it(
    uv_workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R64: wherever it lies in the workspace."""
    (uv_workspace / "packages/web/src").mkdir(exist_ok=True)
    (uv_workspace / "packages/web/src/shared").symlink_to("../../../shared")
    commit(uv_workspace, "chore: share", {"shared/one.py": "1\n"})
    commit(uv_workspace, "feat: one is two", {"shared/one.py": "2\n"})
    assert main(["version", "--dry-run", str(uv_workspace)]) == 0
    told = capsys.readouterr().out
    assert re.search(r"^acme-web .* feat: one is two$", told, re.MULTILINE)


def test_what_is_decided_is_written_once(
    uv_workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Deciding again changes nothing, although nothing is tagged yet."""
    assert main(["version", str(uv_workspace)]) == 0
    assert lines(capsys) == A
    written = git(uv_workspace, "diff", "--unified=0", "HEAD", "--", "*.toml")
    assert [line for line in written.splitlines() if re.match(r"[-+][^-+]", line)] == [
        '-version = "0.4.1"',
        '-dependencies = ["acme-core>=1.2,<2"]',
        '+version = "0.4.2"',
        '+dependencies = ["acme-core>=1.3,<2"]',
        '-version = "1.2.0"',
        '+version = "1.3.0"',
        '-version = "0.3.0"',
        '+version = "0.3.1"',
    ]
    for message in ("", "chore: release"):
        if message:
            commit(uv_workspace, message, {})
        assert main(["version", str(uv_workspace), "--check"]) == 0
        assert lines(capsys)[-1] == "3 packages to release, 3 of them already written"


def test_packages_in_no_workspace_are_named(
    uv_workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They get no versions, and their changes would wait unseen."""
    manifest = {"js/package.json": '{"name": "acme-js", "version": "1.0.0"}\n'}
    commit(uv_workspace, "feat: a package beside (#44)", manifest)
    assert main(["version", str(uv_workspace), "--dry-run"]) == 0
    *told, note = lines(capsys)
    assert told == A
    assert note == (
        "npm packages in no workspace here: js; to plan them too, write "
        '`[npm] packages = ["js"]` in releasekit.toml'
    )


def test_why_nothing_can_get_a_version_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As for Go modules of which nobody has said where their versions are."""
    files = {"go.mod": "module example.com/acme\n\ngo 1.22\n", "a.go": "package acme\n"}
    root = repository(tmp_path / "w", files, "v1.0.0")
    assert main(["version", str(root), "--dry-run"]) == 0
    headline, why = lines(capsys)
    assert headline == "No package gets a new version"
    assert why.startswith("never published: go:example.com/acme: ")


@pytest.mark.parametrize("command", [("version", "--dry-run"), ("status",)])
def test_a_root_beside_packages_names_them(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
) -> None:
    """R66: as a plan does; a root is not without packages where an option would take some in."""
    files = {"a/Cargo.toml": '[package]\nname = "a"\nversion = "0.1.0"\n'}
    root = repository(tmp_path / "w", files, "v0.1.0")
    monkeypatch.chdir(root)
    assert main([*command]) == 2
    told = capsys.readouterr().err
    assert "no package to publish here: cargo packages in no workspace here: a" in told
    assert '`[cargo] workspaces = ["a"]`' in told


def test_snapshots_beside_the_root_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R66: a plan of what has no version yet is no error, and misses nothing in silence."""
    pom = "<groupId>g</groupId><artifactId>{}</artifactId><version>1.0-SNAPSHOT</version>"
    poms = {
        name: f"<project><modelVersion>4.0.0</modelVersion>{pom.format(name)}</project>"
        for name in ("top", "beside")
    }
    files = {"pom.xml": poms["top"], "beside/pom.xml": poms["beside"]}
    root = repository(tmp_path / "w", files, "v0.9")
    assert main(["plan", str(root)]) == 0
    *_, note = lines(capsys)
    assert note == (
        "maven packages in no workspace here: beside; to plan them too, write "
        '`[maven] reactors = [".", "beside"]` in releasekit.toml'
    )


def test_a_change_file_that_names_nobody_goes_with_the_others(uv_workspace: Path) -> None:
    """`changeset add --empty` writes one for a change that needs no release."""
    commit(uv_workspace, "chore: tidy (#44)", {".changeset/quiet-cats-nap.md": "---\n---\n"})
    assert main(["version", str(uv_workspace)]) == 0
    assert not (uv_workspace / ".changeset/quiet-cats-nap.md").exists()


def test_a_trial_in_a_directory_goes_on_with_what_is_published_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing tags a trial, so that registry alone knows."""
    require_tool("npm")
    monkeypatch.delenv("RELEASEKIT_REGISTRY")
    there = ("--registry", f"dir:{tmp_path / 'registry'}")
    manifest = {"package.json": '{"name": "acme-js", "version": "1.0.0"}\n'}
    root = repository(tmp_path / "w", manifest, "acme-js-v1.0.0")
    commit(root, "feat: one", {"index.js": "1\n"})
    assert main(["version", str(root), *there]) == 0
    commit(root, "chore: release", {})
    assert main(["publish", str(root), *there]) == 0
    commit(root, "fix: two", {"index.js": "2\n"})
    capsys.readouterr()
    assert main(["version", str(root), "--dry-run", *there]) == 0
    assert lines(capsys)[0] == "acme-js  1.1.0 → 1.1.1  patch  fix: two"


@pytest.mark.parametrize("is_tagged", [False, True])
def test_a_major_change_of_what_nobody_shows_as_released_is_pointed_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, is_tagged: bool
) -> None:
    """R68: `publish` may have been given another registry."""
    tags = ("acme-v1.0.0",) if is_tagged else ()
    root = repository(tmp_path / "w", {"pyproject.toml": member("acme", "1.0.0")}, *tags)
    commit(root, "feat!: drop the old names", {"acme.py": "1\n"})
    for command in (["version", "--dry-run"], ["preview", "--since", "HEAD~1"]):
        assert main([command[0], str(root), *command[1:]]) == 0
        told = "name the registry that `publish` was given" in capsys.readouterr().out
        assert told is not is_tagged


def test_ranges_can_be_kept(uv_workspace: Path) -> None:
    commit(uv_workspace, "chore: keep", {"releasekit.toml": '[version]\nranges = "keep"\n'})
    assert main(["version", str(uv_workspace)]) == 0
    assert "acme-core>=1.2,<2" in (uv_workspace / "packages/cli/pyproject.toml").read_text()


def test_a_file_with_changes_of_its_own_is_not_touched(
    uv_workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = uv_workspace / "packages/cli/pyproject.toml"
    path.write_text(path.read_text() + "# mine\n")
    assert main(["version", str(uv_workspace)]) == 3
    told = capsys.readouterr().err
    assert "packages/cli/pyproject.toml: changed since the last commit" in told
    assert git(uv_workspace, "status", "--porcelain") == " M packages/cli/pyproject.toml\n"


def test_what_does_not_read_as_decided_is_taken_back(
    uv_workspace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def edit_wrongly(
        _: object, versions: Mapping[str, str], edits: Edits, _ranges: str
    ) -> WrittenVersions:
        path = uv_workspace / "packages/core/pyproject.toml"
        edits.write(path, (edits.read(path) or "").replace("1.2.0", f"{versions['acme-core']}1"))
        return WrittenVersions()

    monkeypatch.setattr(PyPIVersioning, "edit", edit_wrongly)
    assert main(["version", str(uv_workspace)]) == 3
    assert "pypi:acme-cli should have 0.4.2, and reads as 0.4.1" in capsys.readouterr().err
    assert git(uv_workspace, "status", "--porcelain") == ""


def test_another_run_in_this_checkout_is_not_disturbed(
    uv_workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held = locks.lock_file(uv_workspace / ".releasekit", "pypi")
    held.parent.mkdir()
    with held.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert main(["version", str(uv_workspace)]) == 4
    assert "publishes from this workspace (pypi)" in capsys.readouterr().err
    held.unlink()
    assert git(uv_workspace, "status", "--porcelain") == ""


def test_a_version_that_a_tag_says_is_decided_and_nothing_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = hatch_vcs_project(tmp_path / "w")
    assert main(["version", str(root)]) == 0
    assert lines(capsys)[0] == "acme  1.2.0 → 1.3.0  minor  feat: more"


def test_nothing_new_is_nothing_to_release(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = repository(tmp_path / "w", PYTHON, *PYTHON_TAGS)
    assert main(["version", str(root), "--check"]) == 0
    assert lines(capsys) == ["No package gets a new version"]


def test_steps_that_follow_get_outputs_and_a_summary(
    uv_workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, file in (("GITHUB_OUTPUT", "out"), ("GITHUB_STEP_SUMMARY", "summary")):
        (tmp_path / file).touch()
        monkeypatch.setenv(name, str(tmp_path / file))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("RELEASEKIT_MODE", "version")
    monkeypatch.setenv("RELEASEKIT_DRY_RUN", "true")
    monkeypatch.setenv("RELEASEKIT_WORKING_DIRECTORY", str(uv_workspace))
    assert main([]) == 0
    told = (tmp_path / "out").read_text()
    assert "\nbumped" in f"\n{told}"
    rows = json.loads(next(line for line in told.splitlines() if line.startswith("[")))
    assert [(row["directory"], row["to"]) for row in rows] == [
        ("packages/core", "1.3.0"),
        ("packages/cli", "0.4.2"),
        ("packages/web", "0.3.1"),
    ]
    assert "| <code>acme-core</code> | 1.2.0 | 1.3.0 |" in (tmp_path / "summary").read_text()


def test_a_version_can_be_decided_by_hand(
    uv_workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--dry-run", "--set", "acme-core=2.0.0", "--set", "pypi:acme-cli=1.0.0"]
    assert main(["version", str(uv_workspace), *flags]) == 0
    shown = [line.split()[:4] for line in lines(capsys) if "→" in line]
    assert shown == [
        ["acme-core", "1.2.0", "→", "2.0.0"],
        ["acme-cli", "0.4.1", "→", "1.0.0"],
        ["acme-web", "0.3.0", "→", "0.3.1"],
    ]


@pytest.mark.parametrize(
    ("flag", "says"),
    [
        ("acme-cor=2.0.0", "there is no package 'acme-cor' here, did you mean 'acme-core'?"),
        ("acme-core", "--set acme-core has no version"),
        ("acme-core=1.1.0", "1.1.0 is not higher than 1.2.0, which is released"),
        ("acme-core=two", "--set acme-core=two: 'two' is not a version"),
    ],
)
def test_what_cannot_be_set_is_refused(
    uv_workspace: Path, capsys: pytest.CaptureFixture[str], flag: str, says: str
) -> None:
    assert main(["version", str(uv_workspace), "--dry-run", "--set", flag]) == 2
    assert says in capsys.readouterr().err


def test_verbose_says_what_was_left_alone(
    uv_workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["version", str(uv_workspace), "--dry-run", "--verbose"]) == 0
    shown = lines(capsys)
    left = shown[shown.index("left alone:") + 1 :]
    assert any(line.startswith("acme-web") and "docs: typo (#43)" in line for line in left)


def test_a_package_that_is_left_out_gives_its_name_to_one_that_gets_versions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As where changesets has a package.json beside each pyproject.toml, docs/moving.md."""
    files = {
        "pyproject.toml": member("measure", "1.2.0"),
        "package.json": '{"name": "measure", "version": "1.2.0"}',
        "releasekit.toml": 'exclude-packages = ["npm:*"]\n',
    }
    root = repository(tmp_path / "w", files, "measure@1.2.0")
    text = '---\n"measure": minor\n---\nRead parquet files.\n'
    commit(root, "Read parquet files", {".changeset/bright-owls-sing.md": text})
    assert main(["version", str(root)]) == 0
    assert lines(capsys) == [
        "pypi:measure  1.2.0 → 1.3.0  minor  bright-owls-sing: Read parquet files.",
        "",
        "1 package to release",
        "CHANGELOG.md, pyproject.toml, - .changeset/bright-owls-sing.md",
    ]


def test_verbose_shows_the_last_version_of_what_gets_none_and_what_never_gets_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever moves here sees by it whether the tags were understood."""
    files = {
        "package.json": '{"name": "root", "private": true, "workspaces": ["packages/*"]}',
        "packages/core/package.json": '{"name": "@acme/core", "version": "1.2.0"}',
    }
    root = repository(tmp_path / "w", files, "@acme/core@1.2.0")
    assert main(["version", str(root), "--dry-run", "--verbose"]) == 0
    assert lines(capsys) == [
        "left alone:",
        "@acme/core  stays at 1.2.0",
        "root        never published: its package.json says private: true",
        "",
        "No package gets a new version",
    ]


def test_a_fixed_group_goes_together_and_a_peer_follows_what_excludes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Example B."""
    files = {
        "pnpm-workspace.yaml": "packages: ['packages/*']\n",
        "releasekit.toml": (
            '[version.groups]\nui = { packages = ["@acme/ui", "@acme/icons"], kind = "fixed" }\n'
        ),
        "packages/icons/package.json": '{"name": "@acme/icons", "version": "2.4.1"}',
        "packages/ui/package.json": json.dumps(
            {
                "name": "@acme/ui",
                "version": "2.4.1",
                "dependencies": {"@acme/icons": "workspace:^"},
            }
        ),
        "packages/theme/package.json": json.dumps(
            {
                "name": "@acme/theme",
                "version": "1.0.3",
                "peerDependencies": {"@acme/ui": "^2.0.0"},
                "devDependencies": {"@acme/ui": "workspace:*"},
            }
        ),
    }
    tags = ("@acme/icons@2.4.1", "@acme/ui@2.4.1", "@acme/theme@1.0.3")
    root = repository(tmp_path / "w", files, *tags)
    text = '---\n"@acme/icons": major\n---\nIcons are ES modules only.\n'
    commit(root, "Drop CommonJS", {".changeset/bright-owls-sing.md": text})
    assert main(["version", str(root)]) == 0
    written = json.loads((root / "packages/theme/package.json").read_text())
    assert written["version"] == "1.0.4"
    assert written["peerDependencies"] == {"@acme/ui": "^3.0.0"}
    assert written["devDependencies"] == {"@acme/ui": "workspace:*"}
    shown = lines(capsys)
    assert shown[-1] == "3 CHANGELOG.md, 3 package.json, - .changeset/bright-owls-sing.md"
    assert not (root / ".changeset/bright-owls-sing.md").exists()
    assert shown[:4] == [
        "@acme/icons  2.4.1 → 3.0.0  major  bright-owls-sing: Icons are ES modules only.",
        "@acme/ui     2.4.1 → 3.0.0  major  fixed group ui",
        "                            patch  when packed, 2.4.1 requires @acme/icons ^2.4.1",
        "@acme/theme  1.0.3 → 1.0.4  patch  its peer ^2.0.0 excludes @acme/ui 3.0.0",
    ]


@pytest.mark.parametrize(
    ("message", "files", "why"),
    [
        ("fix: leak", {"packages/core/index.js": "2"}, "fix: leak"),
        ("feat: deep", {"packages/inner/index.js": "2"}, "feat: deep"),
        (
            "Close files",
            {".changeset/a.md": '---\n"@acme/core": patch\n---\nClose files.\n'},
            "when packed, 1.0.0 requires @acme/core 1.0.0",
        ),
        ("fix: test", {"packages/core/test/a.js": "2"}, ""),
        ("fix: beside", {"packages/beside/index.js": "2"}, ""),
    ],
)
def test_a_change_of_a_bundled_package_releases_the_one_that_holds_it(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    message: str,
    files: Mapping[str, str],
    why: str,
) -> None:
    """R64: its users have a copy, of public and of private packages."""

    def manifest(name: str, **keys: object) -> str:
        return json.dumps({"name": f"@acme/{name}", "version": "1.0.0", **keys})

    members = {
        "web": manifest(
            "web",
            dependencies={"@acme/core": "^1.0.0", "@acme/beside": "^1.0.0"},
            bundleDependencies=["@acme/core"],
        ),
        "core": manifest("core", dependencies={"@acme/inner": "^1.0.0"}),
        "inner": manifest("inner", private=True),
        "beside": manifest("beside"),
    }
    start = {
        "package.json": '{"private": true, "workspaces": ["packages/*"]}',
        **{f"packages/{name}/package.json": text for name, text in members.items()},
    }
    tags = [f"@acme/{name}@1.0.0" for name in ("web", "core", "beside")]
    root = repository(tmp_path / "w", start, *tags)
    commit(root, message, files)
    assert main(["version", "--dry-run", str(root)]) == 0
    told = capsys.readouterr().out
    found = re.search(r"^@acme/web .*  (?:patch|minor)  (.+)$", told, re.MULTILINE)
    assert (found[1] if found else "") == why


def test_a_placeholder_gets_a_version_and_is_never_published(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """semantic-release writes versions only into what it publishes."""
    manifests = {
        name: json.dumps({"name": name, "version": "0.0.0-development", "dependencies": needs})
        for name, needs in (("acme", {}), ("acme-web", {"acme": "0.0.0-development"}))
    }
    files = {f"packages/{name}/package.json": text for name, text in manifests.items()}
    files["pnpm-workspace.yaml"] = "packages: ['packages/*']\n"
    root = repository(tmp_path / "w", files, "acme@1.1.0", "acme-web@3.0.0")
    assert main(["plan", str(root)]) == 0
    assert "its package.json has a placeholder as version" in capsys.readouterr().out
    commit(root, "feat: more (#44)", {"packages/acme/index.js": "1\n"})
    assert main(["version", str(root)]) == 0
    assert [line.split()[:4] for line in lines(capsys)[:2]] == [
        ["acme", "1.1.0", "→", "1.2.0"],
        ["acme-web", "3.0.0", "→", "3.0.1"],
    ]
    written = json.loads((root / "packages/acme-web/package.json").read_text())
    assert (written["version"], written["dependencies"]) == ("3.0.1", {"acme": "1.2.0"})


def test_a_wheel_takes_the_level_of_the_crate_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Example C."""
    require_tool("cargo")
    files = {
        "releasekit.toml": (
            '[pypi]\npackages = ["python/*"]\n[dependencies]\n'
            '"pypi:acme-measure" = [{ on = "cargo:acme-measure", bump = "same" }]\n'
        ),
        "Cargo.toml": '[workspace]\nmembers = ["crates/*"]\nresolver = "2"\n',
        "crates/measure/Cargo.toml": (
            '[package]\nname = "acme-measure"\nversion = "0.5.0"\nedition = "2021"\n'
        ),
        "crates/measure/src/lib.rs": "pub fn measure() {}\n",
        "crates/bench/Cargo.toml": (
            '[package]\nname = "bench"\nversion = "0.1.0"\nedition = "2021"\npublish = false\n'
            '[dependencies]\nacme-measure = { path = "../measure", version = "0.5" }\n'
        ),
        "crates/bench/src/main.rs": "fn main() {}\n",
        "python/measure/pyproject.toml": member("acme-measure", "0.5.0"),
    }
    root = repository(tmp_path / "w", files, "v0.5.0")
    change = {"crates/measure/src/lib.rs": "pub fn measure() -> Result<(), ()> { Ok(()) }\n"}
    commit(root, "feat!: return errors instead of panicking (#88)", change)
    assert main(["version", str(root)]) == 0
    shown = lines(capsys)
    assert shown[-1] == ("2 Cargo.toml, 2 CHANGELOG.md, python/measure/pyproject.toml")
    assert 'version = "0.6"' in (root / "crates/bench/Cargo.toml").read_text()
    cells = [re.split(" {2,}", line) for line in shown[:2]]
    assert cells == [
        [
            "cargo:acme-measure",
            "0.5.0 → 0.6.0",
            "breaking, minor below 1.0",
            "feat!: return errors instead of panicking (#88)",
        ],
        [
            "pypi:acme-measure",
            "0.5.0 → 0.6.0",
            "the same level",
            "follows cargo:acme-measure 0.6.0",
        ],
    ]


def crate(name: str, *needs: str, more: str = "") -> str:
    head = f'[package]\nname = "{name}"\nversion = "0.1.0"\nedition = "2021"\n{more}'
    return head + "[dependencies]\n" + "".join(f"{each}\n" for each in needs)


def pom(name: str, argument: str) -> str:
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        f"<groupId>org.acme</groupId><artifactId>{name}</artifactId><version>0.1.0</version>"
        f"<properties><native>{argument}</native></properties></project>"
    )


def test_what_follows_a_package_of_another_ecosystem_is_what_contains_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R67: by where it lies and what manifests name; all others only come later."""
    require_tool("cargo")
    greet, private = 'greet = { path = "../../crates/greet", version = "0.1" }', "publish = false\n"
    contain = ["maven:org.acme:jni", "npm:inside", "npm:napi", "npm:wasm", "pypi:mixed", "pypi:own"]
    follow = ["maven:org.acme:far", "npm:far", "pypi:far"]
    files = {
        "releasekit.toml": (
            '[pypi]\npackages = ["python/*"]\n[maven]\nreactors = ["java/jni", "java/far"]\n'
            "[dependencies]\n"
            + "".join(f'"{each}" = ["cargo:greet"]\n' for each in [*contain, *follow])
        ),
        "Cargo.toml": (
            '[workspace]\nmembers = ["crates/*", "npm/napi", "npm/inside/rust"]\nresolver = "2"\n'
            'exclude = ["python"]\n'
        ),
        "package.json": '{"private": true, "workspaces": ["npm/*"]}',
        "crates/greet/Cargo.toml": crate("greet"),
        "crates/py/Cargo.toml": crate("py", greet, more=private),
        # The crate of a wheel, a member of the workspace.
        "python/mixed/pyproject.toml": (
            member("mixed", "0.1.0")
            + '[tool.maturin]\nmanifest-path = "../../crates/py/Cargo.toml"\n'
        ),
        # One that is in no workspace.
        "python/own/pyproject.toml": member("own", "0.1.0"),
        "python/own/rust/Cargo.toml": crate("own", 'greet = { path = "../../../crates/greet" }'),
        "python/far/pyproject.toml": member("far", "0.1.0"),
        "npm/napi/package.json": '{"name": "napi", "version": "0.1.0"}',
        "npm/napi/Cargo.toml": crate("napi", greet, more=private),
        "npm/inside/package.json": '{"name": "inside", "version": "0.1.0"}',
        "npm/inside/rust/Cargo.toml": crate(
            "inside", greet.replace("..", "../..", 1), more=private
        ),
        "npm/wasm/package.json": (
            '{"name": "wasm", "version": "0.1.0", "scripts": '
            '{"build": "wasm-pack build ../../crates/greet --out-dir ../../npm/wasm/pkg"}}'
        ),
        # It needs what contains the crate, and says that it shares a licence.
        "npm/far/package.json": (
            '{"name": "far", "version": "0.1.0", "dependencies": {"wasm": "^0.1.0"}, '
            '"license": "SEE LICENSE IN ../../LICENSE"}'
        ),
        "java/jni/pom.xml": pom("jni", "${project.basedir}/../../crates/greet/Cargo.toml"),
        "java/far/pom.xml": pom("far", "../../LICENSE"),
    }
    files |= {f"{each.rpartition('/')[0]}/src/lib.rs": "" for each in files if "/Cargo" in each}
    root = repository(tmp_path / "w", files, "v0.1.0")
    latin = f"<?xml version='1.0' encoding='ISO-8859-1'?><!-- é -->{files['java/jni/pom.xml']}"
    (root / "java/jni/pom.xml").write_text(latin, encoding="latin-1")
    commit(root, "chore: encode", {})
    commit(root, "fix: greet", {"crates/greet/src/lib.rs": "pub fn greet() {}\n"})
    assert main(["version", str(root), "--verbose"]) == 0
    bumps, _, left_alone = capsys.readouterr().out.partition("left alone:")
    names = re.findall(r"^(\S+) +0\.1\.0 → 0\.1\.1", bumps, re.MULTILINE)
    assert [each.rpartition(":")[2] for each in names] == [
        *("greet", "jni", "inside", "napi", "wasm", "mixed", "own")
    ], bumps
    assert left_alone.count("does not follow cargo:greet 0.1.1: no manifest says") == len(follow)
    assert not (root / "npm/far/CHANGELOG.md").exists()


RUST = {
    "Cargo.toml": '[workspace]\nmembers = ["crates/*"]\nresolver = "2"\n',
    "crates/hop/Cargo.toml": crate("hop", more="publish = false\n"),
    "crates/core/Cargo.toml": crate("core", 'hop = { path = "../hop" }', more="publish = false\n"),
    "crates/other/Cargo.toml": crate("other", more="publish = false\n"),
    "crates/root/Cargo.toml": crate(
        "root", 'core = { path = "../core" }', more="publish = false\n"
    ),
}
NAPI = '{"name": "wasm", "version": "0.1.0", "scripts": {"build": "%s"}}'


@pytest.mark.parametrize(
    ("manifest", "text"),
    [
        (
            "python/wheel/pyproject.toml",
            (
                '[project]\nname = "wheel"\nversion = "0.1.0"\n[build-system]\n'
                'requires = ["maturin"]\n'
                'build-backend = "maturin"\n[tool.maturin]\n'
                'manifest-path = "../../crates/root/Cargo.toml"\n'
            ),
        ),
        (
            "python/ext/pyproject.toml",
            (
                '[project]\nname = "ext"\nversion = "0.1.0"\n[build-system]\n'
                'requires = ["setuptools-rust"]\nbuild-backend = "setuptools.build_meta"\n'
                '[[tool.setuptools-rust.ext-modules]]\npath = "../../crates/root/Cargo.toml"\n'
            ),
        ),
        ("npm/wasm/package.json", NAPI % "wasm-pack build ../../crates/root --target web"),
        ("npm/napi/package.json", NAPI % "napi build --manifest-path=../../crates/root/Cargo.toml"),
        ("npm/neon/package.json", NAPI % "cd ../../crates/root && cargo build --release"),
    ],
)
def test_what_is_compiled_in_releases_what_it_is_compiled_into(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], manifest: str, text: str
) -> None:
    """R64: crates that its own one depends on by a path, and no others."""
    require_tool("cargo")
    files = {
        "releasekit.toml": '[pypi]\npackages = ["python/*"]\n' if "python" in manifest else "",
        "package.json": '{"private": true, "workspaces": ["npm/*"]}',
        manifest: text,
        **RUST,
    }
    files |= {f"{each.rpartition('/')[0]}/src/lib.rs": "" for each in RUST if "/" in each}
    root = repository(tmp_path / "w", files, "v0.1.0")
    commit(root, "fix: other", {"crates/other/src/lib.rs": "pub fn f() {}\n"})
    assert main(["version", str(root), "--dry-run"]) == 0
    assert "0.1.1" not in capsys.readouterr().out
    commit(root, "fix: hop", {"crates/hop/src/lib.rs": "pub fn f() {}\n"})
    assert main(["version", str(root), "--dry-run"]) == 0
    assert re.search(
        r"^\S+ +0\.1\.0 → 0\.1\.1 +patch +fix: hop", capsys.readouterr().out, re.MULTILINE
    )


def test_a_bump_for_what_gets_no_version_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R68: it releases nothing."""
    require_tool("cargo")
    line = '"pypi:wheel" = [{ on = "cargo:core", bump = "patch" }]'
    files = {
        "releasekit.toml": f'[pypi]\npackages = ["python/*"]\n[dependencies]\n{line}\n',
        "python/wheel/pyproject.toml": member("wheel", "0.1.0"),
        **RUST,
    }
    files |= {f"{each.rpartition('/')[0]}/src/lib.rs": "" for each in RUST if "/" in each}
    root = repository(tmp_path / "w", files, "v0.1.0")
    assert main(["version", str(root), "--dry-run"]) == 0
    assert lines(capsys)[-1] == (
        f"releasekit.toml: [dependencies] {line} releases nothing, since cargo:core gets no "
        'version, as its `publish` is false: write "pypi:wheel" = ["crates/core/**"] below '
        "[version.paths] instead"
    )
    config = (root / "releasekit.toml").read_text()
    (root / "releasekit.toml").write_text(config.replace('"patch"', '"none"'))
    assert main(["version", str(root), "--dry-run"]) == 0
    assert "releases nothing" not in capsys.readouterr().out


def test_a_private_project_that_shares_a_version_file_moves_along(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R67: and is named."""
    project = (
        '[project]\nname = "{}"\ndynamic = ["version"]\nclassifiers = [{}]\n[build-system]\n'
        'requires = ["{}"]\nbuild-backend = "{}"\n{}\n'
    )
    hatch = "hatchling", "hatchling.build", '[tool.hatch.version]\npath = "../version.py"'
    setuptools = (
        *("setuptools", "setuptools.build_meta"),
        (
            '[tool.setuptools.dynamic]\nversion = { attr = "version.__version__" }\n'
            '[tool.setuptools.package-dir]\n"" = ".."'
        ),
    )
    private = '"Private :: Do Not Upload"'
    files = {
        "releasekit.toml": '[pypi]\npackages = ["a", "b", "c", "d"]\n',
        "version.py": '__version__ = "0.4.0"\n',
        "a/pyproject.toml": project.format("a", "", *hatch),
        "b/pyproject.toml": project.format("b", private, *hatch),
        "c/pyproject.toml": project.format("c", private, *setuptools),
        "d/pyproject.toml": member("d", "0.4.0"),
    }
    root = repository(tmp_path / "w", files, "a-v0.4.0", "d-v0.4.0")
    commit(root, "fix: more", {"a/a/__init__.py": "1\n"})
    assert main(["version", str(root)]) == 0
    assert lines(capsys)[-1] == "moved along, and not released: b 0.4.1, c 0.4.1"
    assert (root / "version.py").read_text() == '__version__ = "0.4.1"\n'


@pytest.mark.parametrize("flags", [(), ("--dry-run",)])
def test_what_moves_along_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: tuple[str, ...]
) -> None:
    """R67, R68: a private crate that has the version of the workspace gets the new one."""
    require_tool("cargo")
    private = '[package]\nname = "{}"\n{}\nedition = "2021"\npublish = {}\n'
    files = {
        "Cargo.toml": (
            '[workspace]\nmembers = ["a", "own", "xtask"]\nresolver = "2"\n'
            '[workspace.package]\nversion = "1.2.0"\n'
        ),
        "a/Cargo.toml": private.format("a", "version.workspace = true", "true"),
        "own/Cargo.toml": private.format("own", 'version = "1.2.0"', "false"),
        "xtask/Cargo.toml": private.format("xtask", "version.workspace = true", "false"),
        **{f"{name}/src/lib.rs": "" for name in ("a", "own", "xtask")},
    }
    root = repository(tmp_path / "w", files, "a-v1.2.0")
    commit(root, "feat: more", {"a/src/lib.rs": "pub fn a() {}\n"})
    assert main(["version", str(root), *flags]) == 0
    assert lines(capsys)[-1] == "moved along, and not released: xtask 1.3.0"


def test_versions_of_go_modules_are_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = "example.com/acme"
    files = {
        "releasekit.toml": '[go]\nversion-file = "VERSION"\n',
        "go.work": "go 1.24\nuse (\n\t.\n\t./sdk\n\t./cmd/kit\n)\n",
        "go.mod": f"module {path}\n",
        "VERSION": "v1.8.0\n",
        "sdk/go.mod": f"module {path}/sdk\n",
        "sdk/VERSION": "v1.2.0\n",
        "sdk/sdk.go": "package sdk\n",
        "cmd/kit/go.mod": f"module {path}/cmd/kit\n\nrequire {path}/sdk v1.2.0\n",
        "cmd/kit/VERSION": "v0.3.0\n",
    }
    root = repository(tmp_path / "w", files, "v1.8.0", "sdk/v1.2.0", "cmd/kit/v0.3.0")
    commit(root, "feat(sdk): more", {"sdk/sdk.go": "package sdk // ctx\n"})
    assert main(["version", str(root)]) == 0
    told = capsys.readouterr().out
    assert told.startswith(f"{path}/sdk  v1.2.0 → v1.3.0  minor  feat(sdk): more\n")
    assert (root / "sdk/VERSION").read_text() == "v1.3.0\n"
    assert (root / "cmd/kit/VERSION").read_text() == "v0.3.0\n"


def test_a_commit_that_says_nothing_is_pointed_out(
    uv_workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(uv_workspace, "Update stuff", {"packages/web/src/web.py": "4\n"})
    assert main(["version", str(uv_workspace), "--dry-run"]) == 0
    shown = "\n".join(lines(capsys))
    assert "warning: unread-commit: pypi:acme-web: " in shown
    assert "Update stuff" in shown
    write(uv_workspace, {"releasekit.toml": '[warnings]\nunread-commit = "error"\n'})
    assert main(["version", str(uv_workspace), "--dry-run"]) == 3
    assert "unread-commit: pypi:acme-web" in capsys.readouterr().err


def test_all_troubles_are_told_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {
        **PYTHON,
        "packages/core/pyproject.toml": member("acme-core", "2026.11.0"),
        "packages/web/pyproject.toml": member("acme-web", "2025.1"),
    }
    root = repository(tmp_path / "w", files, "acme-core-v2026.11.0", "acme-web-v2025.1")
    change = {"packages/core/src/a.py": "1\n", "packages/web/src/a.py": "1\n"}
    commit(root, "fix: both", change)
    assert main(["version", str(root), "--dry-run"]) == 3
    told = capsys.readouterr().err
    assert "pypi:acme-core" in told
    assert "pypi:acme-web" in told
    assert told.count("[RK-332]") == 2


def test_outside_of_git_there_is_no_history(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, PYTHON)
    assert main(["version", str(tmp_path), "--dry-run"]) == 2
    assert "is in no git repository" in capsys.readouterr().err


FILES = """\
[version.files]
acme-core = ["src/version.h", { path = "../../README.md", match = 'acme-core==(\\S+)' }]
"""


def test_further_files_say_the_version_too(uv_workspace: Path) -> None:
    files = {
        "releasekit.toml": FILES,
        "packages/core/src/version.h": '#define VERSION "v1.2.0" // not 11.2.0, 1.2.0.1\r\n',
        "README.md": "pip install acme-core==1.2.0\nIn 1.2.0, …\n",
    }
    commit(uv_workspace, "chore: say it", files)
    assert main(["version", str(uv_workspace)]) == 0
    header = (uv_workspace / "packages/core/src/version.h").read_bytes()
    assert header == b'#define VERSION "v1.3.0" // not 11.2.0, 1.2.0.1\r\n'
    assert (uv_workspace / "README.md").read_text().splitlines() == [
        "pip install acme-core==1.3.0",
        "In 1.2.0, …",
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1.2.1\n", "has 1.2.0 nowhere"),
        ("1.2.0, 1.2.0\n", "has 1.2.0 in 2 places"),
        ("core-v1.2.0 & v1.2.0\n", "has 1.2.0 in 2 places"),
        (None, "has 1.2.0 nowhere"),
    ],
)
def test_a_further_file_that_does_not_say_it_once_is_refused(
    uv_workspace: Path, capsys: pytest.CaptureFixture[str], text: str | None, told: str
) -> None:
    files = {"releasekit.toml": '[version.files]\nacme-core = ["VERSION"]\n'}
    if text is not None:
        files["packages/core/VERSION"] = text
    commit(uv_workspace, "chore: say it", files)
    assert main(["version", str(uv_workspace)]) == 3
    assert f"VERSION {told}" in capsys.readouterr().err
    assert git(uv_workspace, "status", "--porcelain") == ""


def test_changes_are_listed_in_the_changelogs_of_their_packages(uv_workspace: Path) -> None:
    assert main(["version", str(uv_workspace)]) == 0
    time_s = int(git(uv_workspace, "log", "-1", "--format=%ct"))
    day = datetime.fromtimestamp(time_s, UTC).date()
    logs = {
        name: (uv_workspace / f"packages/{name}/CHANGELOG.md").read_text()
        for name in ("core", "web")
    }
    assert logs == {
        "core": f"# Changelog\n\n## 1.3.0 - {day}\n\n### Features\n\n- read parquet files (#41)\n",
        "web": f"# Changelog\n\n## 0.3.1 - {day}\n\n### Dependencies\n\n- acme-core 1.3.0\n",
    }


@pytest.mark.parametrize("where", ["root", "none"])
def test_changelogs_may_be_one_or_none(uv_workspace: Path, where: str) -> None:
    commit(uv_workspace, "chore: x", {"releasekit.toml": f'[version]\nchangelog = "{where}"\n'})
    assert main(["version", str(uv_workspace)]) == 0
    logs = [path.relative_to(uv_workspace) for path in uv_workspace.rglob("CHANGELOG.md")]
    assert [*map(str, logs)] == (["CHANGELOG.md"] if where == "root" else [])
    if logs:
        told = (uv_workspace / logs[0]).read_text().splitlines()
        headings = [line.partition(" - ")[0] for line in told if line.startswith("## ")]
        assert sorted(headings) == ["## acme-cli 0.4.2", "## acme-core 1.3.0", "## acme-web 0.3.1"]


def test_what_lands_before_a_written_version_is_published_is_listed_too(
    uv_workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And what somebody reworded stays as it is."""
    assert main(["version", str(uv_workspace)]) == 0
    log = uv_workspace / "packages/cli/CHANGELOG.md"
    log.write_text(log.read_text().replace("exit 1 when nothing matches", "Better exit codes"))
    commit(uv_workspace, "chore: release", {})
    assert main(["version", str(uv_workspace), "--check"]) == 0
    commit(uv_workspace, "fix: exit 2 when all match (#44)", {"packages/cli/src/main.py": "3\n"})
    assert main(["version", str(uv_workspace)]) == 0
    assert log.read_text().split("\n\n")[3].splitlines() == [
        "- Better exit codes (#42)",
        "- exit 2 when all match (#44)",
    ]
    assert "CHANGELOG.md" in lines(capsys)[-1]


def test_a_section_moves_to_the_higher_version_that_a_later_change_asks_for(
    uv_workspace: Path,
) -> None:
    assert main(["version", str(uv_workspace)]) == 0
    commit(uv_workspace, "chore: release", {})
    commit(uv_workspace, "feat!: no more Python 3.11", {"packages/core/src/a.py": "3\n"})
    assert main(["version", str(uv_workspace)]) == 0
    told = (uv_workspace / "packages/core/CHANGELOG.md").read_text()
    assert [line.partition(" - ")[0] for line in told.splitlines() if line.startswith("#")] == [
        "# Changelog",
        "## 2.0.0",
        "### Features",
        "### Breaking changes",
    ]


def test_a_version_in_another_configuration_file_is_written_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        "go.mod": "module example.com/acme\n",
        "acme.go": "package acme\n",
        "ci/kit.toml": '[go.versions]\n"example.com/acme" = "v1.8.0" # the next one\n',
    }
    root = repository(tmp_path / "w", files, "v1.8.0")
    commit(root, "feat: more", {"acme.go": "package acme // more\n"})
    monkeypatch.chdir(root / "ci")
    assert main(["version", str(root), "--config-file", "kit.toml"]) == 0
    assert (root / "ci/kit.toml").read_text() == files["ci/kit.toml"].replace("1.8.0", "1.9.0")


def test_one_changelog_for_all_has_them_in_their_order_once(uv_workspace: Path) -> None:
    commit(uv_workspace, "chore: x", {"releasekit.toml": '[version]\nchangelog = "root"\n'})
    log = uv_workspace / "CHANGELOG.md"
    assert main(["version", str(uv_workspace)]) == 0
    first = log.read_text()
    headings = [line.partition(" - ")[0] for line in first.splitlines() if line.startswith("## ")]
    assert headings == ["## acme-core 1.3.0", "## acme-cli 0.4.2", "## acme-web 0.3.1"]
    assert main(["version", str(uv_workspace)]) == 0
    assert log.read_text() == first


POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>com.acme</groupId>
  <artifactId>a</artifactId>
  <version>${revision}</version>
  <properties><revision>0-SNAPSHOT</revision></properties>
</project>
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("releasekit.toml", '[maven]\nproperties = { revision = "%s" }\n'),
        (".mvn/maven.config", "-Drevision=%s\n"),
    ],
)
def test_a_tag_counts_where_an_override_beats_the_pom(tmp_path: Path, name: str, text: str) -> None:
    """The POM of the tagged commit says a version that nobody has released."""
    root = repository(tmp_path / "w", {"pom.xml": POM, name: text % "1.2.0"}, "v1.2.0")
    commit(root, "feat: read parquet files", {"src/main/java/A.java": "class A {}\n"})
    assert main(["version", str(root)]) == 0
    assert (root / name).read_text() == text % "1.3.0"
    assert main(["version", str(root), "--check"]) == 0


def test_packages_share_the_changelog_that_their_links_lead_to(uv_workspace: Path) -> None:
    """Its headings name them, as those of any file with several versions."""
    for name in ("core", "cli"):
        (uv_workspace / f"packages/{name}/CHANGELOG.md").symlink_to("../../CHANGELOG.md")
    commit(uv_workspace, "chore: link", {"CHANGELOG.md": "# Changelog\n"})
    assert main(["version", str(uv_workspace)]) == 0
    log = (uv_workspace / "CHANGELOG.md").read_text()
    assert re.findall(r"^## (\S+ \S+)", log, re.MULTILINE) == ["acme-core 1.3.0", "acme-cli 0.4.2"]
    assert main(["version", str(uv_workspace), "--check"]) == 0


def test_nothing_is_written_into_the_directory_of_git(
    uv_workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A changelog has what commits say, which would become settings of git."""
    settings = (uv_workspace / ".git/config").read_bytes()
    (uv_workspace / "packages/core/CHANGELOG.md").symlink_to("../../.git/config")
    commit(uv_workspace, "chore: link", {})
    assert main(["version", str(uv_workspace)]) == 2
    assert "w/.git/config: no version is written into" in capsys.readouterr().err
    assert (uv_workspace / ".git/config").read_bytes() == settings


def test_the_tags_of_go_modules_begin_with_their_place_in_the_repository(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a directory that is named after the major version."""
    files = {"w/releasekit.toml": '[go]\nversion-file = "VERSION"\n'}
    for place, version in (("core", "1.2.0"), ("lib/v2", "2.0.0")):
        files[f"w/{place}/go.mod"] = f"module example.com/acme/w/{place}\n"
        files[f"w/{place}/VERSION"] = f"{version}\n"
    top = repository(tmp_path / "top", files, "w/core/v1.2.0", "w/lib/v2.0.0")
    commit(top, "feat: x", {"w/core/a.go": "package core\n", "w/lib/v2/a.go": "package lib\n"})
    assert main(["version", str(top / "w"), "--dry-run"]) == 0
    assert [line.split()[1:4] for line in lines(capsys)[:2]] == [
        ["v1.2.0", "→", "v1.3.0"],
        ["v2.0.0", "→", "v2.1.0"],
    ]


def test_python_packages_that_share_a_file_share_their_version(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {"pyproject.toml": PYTHON["pyproject.toml"], "VERSION.py": '__version__ = "1.2.0"\n'}
    for name in ("a", "b"):
        text = member(f"acme-{name}", "1.2.0").replace('version = "1.2.0"', 'dynamic = ["version"]')
        text += '[tool.hatch.version]\npath = "../../VERSION.py"\n'
        files |= {f"packages/{name}/pyproject.toml": text, f"packages/{name}/acme_{name}.py": ""}
    root = repository(tmp_path / "w", files, "v1.2.0")
    commit(root, "feat: more", {"packages/a/acme_a.py": "1\n"})
    assert main(["version", str(root)]) == 0
    assert (root / "VERSION.py").read_text() == '__version__ = "1.3.0"\n'
    shown = lines(capsys)
    assert shown[1].startswith("acme-b  1.2.0 → 1.3.0")
    assert "one version for 2 packages, in VERSION.py" in shown[1]


def test_change_files_wait_for_ecosystems_that_a_run_is_not_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    icons = {
        "package.json": '{"private": true, "workspaces": ["js/*"]}',
        "js/icons/package.json": '{"name": "icons", "version": "2.4.1"}',
    }
    icons["releasekit.toml"] = (
        '[version.groups]\nui = { packages = ["icons"], kind = "fixed" }\n'
        '[version.paths]\n"npm:icons" = ["art/**"]\n'
    )
    root = repository(tmp_path / "w", PYTHON | icons, *PYTHON_TAGS, "icons-v2.4.1")
    of_both = '---\n"acme-cli": minor\n"icons": minor\n---\nFurther.\n'
    of_one = of_both.replace('"icons": minor\n', "")
    commit(root, "chore: words", {".changeset/both.md": of_both, ".changeset/one.md": of_one})
    assert main(["version", str(root), "--ecosystem", "pypi"]) == 0
    assert lines(capsys)[0].startswith("acme-cli  0.4.1 → 0.4.2 ")
    assert [path.name for path in (root / ".changeset").iterdir()] == ["both.md"]
    assert (root / ".changeset/both.md").read_text() == '---\n"icons": minor\n---\nFurther.\n'
    commit(root, "chore: release", {})
    git(root, "tag", "acme-cli-v0.4.2")
    assert main(["version", str(root), "--ecosystem", "npm"]) == 0
    assert lines(capsys)[0].startswith("icons  2.4.1 → 2.5.0  minor")


def test_a_heading_of_a_release_in_a_change_file_begins_no_section(uv_workspace: Path) -> None:
    text = '---\n"acme-core": minor\n---\nNew.\n\n## 2.0.0\n\nSoon.\n\nUnreleased\n---\n\nMore.\n'
    commit(uv_workspace, "feat: more", {".changeset/new.md": text})
    assert main(["version", str(uv_workspace)]) == 0
    told = (uv_workspace / "packages/core/CHANGELOG.md").read_text()
    assert [line for line in told.splitlines() if line.startswith("#")][1:3] == [
        told.splitlines()[2],
        "### Features",
    ]
    assert "  **2.0.0**" in told
    assert "  **Unreleased**" in told


def test_a_further_file_with_both_versions_needs_a_match(
    uv_workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        "releasekit.toml": '[version.files]\nacme-core = ["VERSION"]\n',
        "packages/core/VERSION": "now 1.2.0, next 1.3.0\n",
    }
    commit(uv_workspace, "chore: say it", files)
    assert main(["version", str(uv_workspace)]) == 3
    assert "VERSION has 1.3.0 already" in capsys.readouterr().err


def test_settings_of_another_tool_are_settled_or_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R61, R68: what changesets would do otherwise is written, or nothing is decided."""
    files = {
        "package.json": '{"private": true, "workspaces": ["a", "b"]}',
        "a/package.json": '{"name": "a", "version": "1.2.0"}',
        "b/package.json": '{"name": "b", "version": "1.0.0"}',
        ".changeset/config.json": '{"fixed": [["a", "b"]]}',
        ".changeset/pre.json": '{"mode": "pre", "tag": "rc"}',
    }
    root = repository(tmp_path / "w", files, "a@1.2.0", "b@1.0.0")
    commit(root, "chore: ask", {".changeset/x.md": '---\n"a": minor\n---\n\nMore.\n'})
    assert main(["version", str(root)]) == 3
    assert main(["preview", str(root), "--since", "HEAD~1"]) == 3
    said = capsys.readouterr().err
    assert said.count("[RK-340]") == 4
    init = ["init", str(root), "--dry-run"]
    assert main(init) == 0
    said = capsys.readouterr().out
    assert 'groups = { "fixed-1" = { packages = ["a", "b"], kind = "fixed" } }' in said
    settings = (
        'groups = { "fixed-1" = { packages = ["a", "b"], kind = "fixed" } }\n'
        'branches = { "main" = "rc" }\n'
    )
    write(root, {"releasekit.toml": f"[version]\n{settings}"})
    note = (
        "ReleaseKit decides versions without .changeset/config.json: "
        "below [version] in releasekit.toml "
    )
    assert main(["version", str(root), "--dry-run"]) == 0
    told = lines(capsys)
    assert [each for each in told if "→" in each] == [
        "a  1.2.0 → 1.3.0-rc.1  minor  x: More.",
        "b  1.0.0 → 1.3.0-rc.1  minor  fixed group fixed-1",
    ]
    assert [each for each in told if each.startswith(note)] == told[-1:]
    assert main(["preview", str(root), "--since", "HEAD~1"]) == 0
    assert lines(capsys)[-1].startswith(note)
    write(root, {"releasekit.toml": f'[version]\nchanges = "both"\n{settings}'})
    assert main(["version", str(root), "--dry-run"]) == 0
    assert "decided without" not in capsys.readouterr().out


@pytest.mark.parametrize("arguments", ["version", "preview", "change --check", "plan"])
def test_a_repository_without_commits_is_told_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: str
) -> None:
    """R68: not by a git command that failed."""
    write(tmp_path, {"package.json": '{"name": "a", "version": "1.0.0"}'})
    git(tmp_path, "init", "--quiet")
    command, *flags = arguments.split()
    code = main([command, str(tmp_path), *flags])
    told = "".join(capsys.readouterr())
    assert "rev-list" not in told
    assert code == (0 if command == "plan" else 2)
    assert ("has no commit yet" in told) is (command != "plan")


@pytest.mark.parametrize(
    ("files", "place"),
    [
        ({"releasekit.toml": '[go]\nverify = false\nversions."kit" = "1.0.0"\n'}, "kit"),
        ({"releasekit.toml": '[go]\nverify = false\nversion = "1.0.0"\n'}, "kit"),
        (
            {
                "releasekit.toml": '[go]\nverify = false\nversion-file = "VERSION"\n',
                "kit/VERSION": "1.0.0\n",
            },
            "kit",
        ),
    ],
)
def test_what_came_since_a_go_module_went_out_counts_without_its_tag(
    files: dict[str, str], place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R68: as where the tag was pushed, and not fetched."""
    module = f"{place}/go.mod", f"module example.com/{place}\n\ngo 1.22\n"
    root = repository(tmp_path / "w", dict([module]) | {f"{place}/a.go": "package kit\n"} | files)
    assert main(["publish", str(root)]) == 0
    commit(root, "feat: more", {f"{place}/b.go": "package kit\n"})
    capsys.readouterr()
    assert main(["version", str(root), "--dry-run"]) == 0
    assert "v1.0.0 → v1.1.0  minor  feat: more" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("manifest", "source"),
    [
        ("pyproject.toml", "src/acme_kit/examples/a.py"),
        ("pyproject.toml", "acme_kit/docs/a.py"),
        ("package.json", "lib/docs/a.js"),
        ("package.json", "lib/test/a.js"),
        ("Cargo.toml", "src/examples/mod.rs"),
        ("go.mod", "test/a.go"),
        ("pom.xml", "src/main/java/com/example/A.java"),
    ],
)
def test_what_users_get_counts_whatever_its_directory_is_called(
    manifest: str, source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R64: what a plan warns of as changed is what gets a version."""
    manifests = {
        "pyproject.toml": member("acme-kit", "1.0.0"),
        "package.json": '{"name": "kit", "version": "1.0.0", "main": "lib/index.js"}',
        "Cargo.toml": '[package]\nname = "kit"\nversion = "1.0.0"\nedition = "2021"\n',
        "go.mod": "module example.com/kit\n\ngo 1.22\n",
        "pom.xml": "<project><modelVersion>4.0.0</modelVersion><groupId>com.example</groupId>"
        "<artifactId>kit</artifactId><version>1.0.0</version></project>",
    }
    files = {manifest: manifests[manifest], "lib/index.js": "", "src/lib.rs": "", source: "\n"}
    files |= {"releasekit.toml": '[go]\nversion = "1.0.0"\n'} if manifest == "go.mod" else {}
    root = repository(tmp_path / "w", files, "v1.0.0")
    commit(root, "fix: less", {source: "\n\n"})
    assert main(["version", str(root), "--dry-run"]) == 0
    assert "1.0.1  patch  fix: less" in capsys.readouterr().out


def test_a_tag_of_a_tag_is_read_as_what_it_leads_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R64: git 2.39 peels one of them alone."""
    root = repository(tmp_path / "w", PYTHON, *PYTHON_TAGS)
    commit(root, "fix: it", {"packages/core/acme_core/a.py": "\n"})
    git(root, "tag", "--annotate", "--message=x", "acme-core-1.2.1", "HEAD")
    git(root, "tag", "--annotate", "--message=y", "acme-core-v1.2.1", "acme-core-1.2.1")
    git(root, "tag", "--delete", "acme-core-1.2.1")
    commit(root, "feat: more", {"packages/core/acme_core/b.py": "\n"})
    assert main(["version", str(root), "--dry-run"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "acme-core 1.2.1 → 1.3.0 minor feat: more" in told
