"""The files that `init` writes are read by our own parser, and by the schema that editors use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
import yaml

from fakes import DECLARED
from releasekit.__main__ import main
from releasekit.config.file import ConfigFile, read_config
from releasekit.text.bounds import parse_toml
from workspaces import git

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA = json.loads((Path(__file__).parents[3] / "docs/releasekit.schema.json").read_text())
NPM = '{"name": "%s", "version": "1.2.0"}'
PYPI = '[project]\nname = "%s"\nversion = "1.2.0"\n[build-system]\nrequires = []\n'


@pytest.fixture(name="root")
def _root(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet")
    return tmp_path


def write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def read_written(root: Path) -> ConfigFile:
    path = root / "releasekit.toml"
    jsonschema.validate(parse_toml(path.read_text()), SCHEMA)
    assert path.read_text().startswith("#:schema https://")
    return read_config(path, DECLARED)


def read_workflow(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((root / ".github/workflows/release.yml").read_text())
    return found


def test_it_writes_what_the_repository_needs_and_never_over_what_is_there(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is in no workspace stays unpublished, and what hardly anybody means to publish does."""
    write(
        root,
        {
            "package.json": '{"private": true, "workspaces": ["packages/*", "demo/*"]}',
            "packages/ui/package.json": NPM % "@acme/ui",
            "demo/app/package.json": (NPM % "acme-app")[:-1]
            + ', "dependencies": {"acme-lib": "*"}}',
            "demo/lib/package.json": NPM % "acme-lib",
            "tools/lint/pyproject.toml": PYPI % "acme-lint",
            "go.mod": "module acme.example/sdk\n",
        },
    )
    assert main(["init", str(root), "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert f"{root}/.github/workflows/release.yml would be written:\n    # Publishes" in said
    assert not (root / ".github").exists()
    assert main(["init", str(root)]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"{root}/.github/workflows/release.yml is written\n")
    assert (
        "\ngo: nothing to publish, and so nothing written for it: go:acme.example/sdk: its" in said
    )
    assert "https://www.npmjs.com/package/@acme/ui/access." in said
    assert "\n3. Push a tag: git tag v1.2.0 && git push origin v1.2.0\n" in said
    job = read_workflow(root)["jobs"]["publish"]
    assert job["permissions"] == dict.fromkeys(("id-token", "attestations"), "write") | {
        "contents": "read"
    }
    assert [step["uses"].partition("@")[0] for step in job["steps"]] == [
        *("actions/checkout", "actions/setup-node", "org/releasekit-action")
    ]
    assert job["steps"][-1]["with"] == {"mode": "publish"}
    config = read_written(root)
    assert config.texts == {"exclude-packages": "npm:acme-app\nnpm:acme-lib"}
    assert config.tables == {"pypi": {}}
    written = (root / "releasekit.toml").read_text()
    assert '\n# packages = ["tools/lint"]\n' in written

    (root / "releasekit.toml").write_text("# mine\n")
    workflow = root / ".github/workflows/release.yml"
    workflow.write_text(workflow.read_text().replace("lts/*", "20"))
    before = workflow.read_text()
    assert main(["init", str(root)]) == 0
    said = capsys.readouterr().out
    assert f"{workflow} is there already, and stays as it is:\n--- as it is\n" in said
    assert "\n-          node-version: 20\n+          node-version: lts/*\n" in said
    assert workflow.read_text() == before
    assert (root / "releasekit.toml").read_text() == "# mine\n"

    workflow.unlink()
    workflow.symlink_to("nowhere")
    assert main(["init", str(root)]) == 0
    assert f"{workflow} is there already, and stays as it is: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("files", "tables"),
    [
        (
            {
                "js/package.json": '{"private": true, "workspaces": ["*"]}',
                "js/ui/package.json": NPM % "acme-ui",
                "py/pyproject.toml": PYPI % "acme" + '[tool.uv.workspace]\nmembers = ["core"]\n',
                "py/core/pyproject.toml": PYPI % "acme-core",
            },
            {"pypi": {"workspaces": ["py"]}, "npm": {"workspaces": ["js"]}},
        ),
        ({"backend/pyproject.toml": PYPI % "acme"}, {"pypi": {"packages": ["backend"]}}),
    ],
)
def test_below_a_root_without_a_manifest_it_names_what_is_there(
    root: Path,
    files: Mapping[str, str],
    tables: Mapping[str, Mapping[str, object]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Also where that root is a directory of a larger repository."""
    place = root / "products"
    write(place, files)
    assert main(["init", str(place)]) == 0
    assert read_written(place).tables == tables
    several = "\n   pypi (for each of acme, acme-core): Register this repository"
    assert (several in capsys.readouterr().out) is ("workspaces" in tables["pypi"])
    inputs = read_workflow(root)["jobs"]["publish"]["steps"][-1]["with"]
    assert inputs["working-directory"] == "products"
    assert main(["plan", str(place), f"--registry=dir:{root / 'registry'}"]) == 0


@pytest.mark.parametrize(
    ("remote", "page"),
    [
        ("https://gitlab.com/acme/tools/mono.git", "gitlab.md"),
        ("git@codeberg.org:acme/mono.git", "gitea.md"),
        ("git@github.com:acme/mono.git", ""),
        ("https://git.acme.example/acme/mono", ""),
    ],
)
def test_for_another_forge_it_names_the_page_with_the_file_and_writes_no_workflow(
    root: Path, capsys: pytest.CaptureFixture[str], remote: str, page: str
) -> None:
    git(root, "remote", "add", "origin", remote)
    write(root, {"backend/pyproject.toml": PYPI % "acme"})
    assert main(["init", str(root)]) == 0
    said = capsys.readouterr().out
    assert read_written(root).tables == {"pypi": {"packages": ["backend"]}}
    assert (root / ".github").exists() is (page == "")
    assert ("release.yml" in said) is (page == "")
    if page:
        assert f"https://github.com/org/releasekit-action/blob/v1/docs/{page}" in said
        assert (Path(__file__).parents[3] / "docs" / page).is_file()
    assert "\n3. Push a tag: git tag v" in said


def test_where_there_is_nothing_to_publish_nothing_is_written(root: Path) -> None:
    assert main(["init", str(root)]) == 2
    assert not (root / ".github").exists()


def test_the_tag_of_a_module_of_go_has_one_v(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R68: its version begins with one already."""
    module = "module example.com/m\n\ngo 1.22\n"
    write(root, {"go.mod": module, "m.go": "package m\n"})
    write(root, {"releasekit.toml": '[go]\nversion = "1.4.0"\n'})
    assert main(["init", str(root), "--dry-run"]) == 0
    assert "git tag v1.4.0 &&" in capsys.readouterr().out
