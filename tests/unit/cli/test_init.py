"""The files that `init` writes are read by our own parser, and by the schema that editors use."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
import yaml

from fakes import DECLARED
from integration.tools import require_tool
from releasekit.__main__ import main
from releasekit.cli.init.workflow import WORKFLOW
from releasekit.config.file import ConfigFile, read_config
from releasekit.text.bounds import parse_toml
from workspaces import git

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
    assert (
        "\npypi packages in no workspace here are not published: tools/lint; to publish them too, "
        'uncomment `packages = ["tools/lint"]` in releasekit.toml\n'
    ) in said

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
    assert "here: tools/lint; to plan them too, write `[pypi] packages = " in said

    workflow.unlink()
    workflow.symlink_to("nowhere")
    assert main(["init", str(root)]) == 0
    said = capsys.readouterr().out
    assert f"{workflow} is there already, and stays as it is: " in said
    assert (
        "\n1. .github/workflows/release.yml stays as it is, and publishes nothing with Re" in said
    )


@pytest.mark.parametrize("tag", ["", "acme-b@1.1.0"])
@pytest.mark.parametrize("config", ["", "release-please-config.json"])
def test_what_is_released_already_is_taken_in(
    root: Path, capsys: pytest.CaptureFixture[str], tag: str, config: str
) -> None:
    """R68: what has tags, or is in the configuration of release-please, is never left out, though
    it lies in no workspace.
    """
    write(
        root,
        {
            "package.json": NPM % "acme",
            "a/package.json": NPM % "acme-a",
            "b/package.json": NPM % "acme-b",
            "py/c/pyproject.toml": PYPI % "acme-c",
        },
    )
    if config:
        told = {"packages": {"./py/c": {}, "a/../../x": {}, "\0": 1}}
        write(root, {config: json.dumps(told)})
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message", "x")
    if tag:
        git(root, "tag", tag)
    where = [str(root), f"--registry=dir:{root / 'registry'}"]
    assert main(["init", *where]) == 0
    said = capsys.readouterr().out
    npm, pypi = ({"packages": ["b"]} if tag else {}), ({"packages": ["py/c"]} if config else {})
    assert read_written(root).tables == {"npm": npm, "pypi": pypi}
    assert f"\n`releasekit plan` with that: {1 + bool(tag) + bool(config)} package" in said
    others = '["a", "b"]'
    left = "a" if tag else "a, b"
    assert f"not published: {left}; to publish them too, uncomment `packages = {others}` in" in said
    assert ("not published: py/c; " in said) is not bool(config)
    text = (root / "releasekit.toml").read_text()
    assert (f"without this in place of that line:\n# packages = {others}\n" in text) is bool(tag)


def test_a_package_that_does_not_go_with_the_others_is_left_in_a_comment(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R68: it is no reason to write nothing, and it is named."""
    write(root, {"package.json": NPM % "acme", "a/package.json": NPM % "acme"})
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message", "x")
    git(root, "tag", "acme-a-v1")
    assert main(["init", str(root), f"--registry=dir:{root / 'registry'}"]) == 0
    said = capsys.readouterr().out
    assert "\nit is unknown whether packages in a have tags: " in said
    assert '\n# packages = ["a"]\n' in (root / "releasekit.toml").read_text()


OTHER_JOB = """\
name: publish
on: {push: {tags: ["v*"]}}
jobs:
  publish:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - run: npm publish
"""


@pytest.mark.parametrize("job", [OTHER_JOB, "jobs: [", "jobs: {a: {steps: 1}, b: 2}", ""])
def test_where_another_job_is_in_its_place_no_tag_starts_it(
    root: Path, capsys: pytest.CaptureFixture[str], job: str
) -> None:
    """R68: nor is anybody told to read what is not written."""
    path = ".github/workflows/release.yml"
    write(root, {"package.json": NPM % "acme", path: job})
    where = [str(root), f"--registry=dir:{root / 'registry'}"]
    assert main(["init", *where]) == 0
    said = capsys.readouterr().out
    assert (root / path).read_text() == job
    move = (
        "Move or remove it, and run `releasekit init` again for one that does.\n2. Once, for each"
    )
    assert f"\n1. {path} stays as it is, and publishes nothing with ReleaseKit. {move}" in said
    assert f"\n3. Push no tag before that, which may start {path} as it is\n" in said
    assert "Read what is written" not in said
    assert "git push" not in said.partition("\nnext:")[2]

    (root / path).rename(root / ".github/workflows/old.yml")
    assert main(["init", *where]) == 0
    said = capsys.readouterr().out
    assert "\n1. Read what is written there" in said
    remove = "Remove what publishes with another tool from .github/workflows/old.yml, as said"
    assert (f"\n3. {remove} above\n4. Push a tag: git tag v1.2.0 " in said) is (job == OTHER_JOB)


@pytest.mark.parametrize(
    "step",
    [
        "- uses: me/releasekit-action@v1\n        with: {mode: publish}",
        "- run: uvx releasekit publish",
    ],
)
def test_a_job_of_ours_that_is_there_is_no_other_tool(
    root: Path, capsys: pytest.CaptureFixture[str], step: str
) -> None:
    """R68: somebody has set it up already."""
    job = OTHER_JOB.replace("- run: npm publish", step)
    write(root, {"package.json": NPM % "acme", ".github/workflows/release.yml": job})
    assert main(["init", str(root), f"--registry=dir:{root / 'registry'}"]) == 0
    said = capsys.readouterr().out
    assert "\n1. Read what is written there" in said
    assert "\n3. Push a tag: git tag v1.2.0" in said


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
    "name",
    [
        *("it's", 'a "b"', "a #b", "a: b", "- a", "*a", "{a}", "$(id)", "a\\nb", "}} a"),
        *("ä\U0001f600", "${{ github.token }}", "a ${{", "a\nb", "a\u2028b"),
    ],
)
def test_the_name_of_the_root_is_no_more_than_a_name_in_the_workflow(
    root: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """R69: a value of YAML that GitHub does not evaluate, or it is refused by name."""
    place = root / name / "products"
    write(place, {"pyproject.toml": PYPI % "acme"})
    code = main(["init", str(place)])
    if "${{" in name or not name.isprintable():
        assert code == 2
        assert name.encode("unicode_escape").decode() in capsys.readouterr().err
        assert not (root / WORKFLOW).exists()
        assert not (place / "releasekit.toml").exists()
        return
    assert code == 0
    inputs = read_workflow(root)["jobs"]["publish"]["steps"][-1]["with"]
    assert inputs["working-directory"] == f"{name}/products"
    subprocess.run([require_tool("actionlint"), root / WORKFLOW], check=True)


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


def test_go_modules_get_their_last_versions_and_a_tag_that_is_none_of_theirs(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R68: of a repository whose versions are its tags, the plan and `check` are right as well."""
    require_tool("go")
    go = "module example.com/h%s\n\ngo 1.22\n"
    write(root, {"go.mod": go % "", "sub/go.mod": go % "/sub", "v2/go.mod": go % "/v2"})
    write(root, {"tools/go.mod": go % "/tools", "h.go": "package h\n"})
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message", "feat: one")
    for tag in ("v0.9.0", "v1.24.0", "v1.25.0-rc.1", "sub/v0.2.0", "v2.1.0", "release-1"):
        git(root, "tag", tag)
    assert main(["check", str(root)]) == 2
    assert "\nto do  go: nothing to publish\n" in capsys.readouterr().out
    where = [str(root), f"--registry=dir:{tmp_path / 'registry'}"]
    assert main(["init", *where]) == 0
    said = capsys.readouterr().out
    assert read_written(root).tables == {
        "go": {"versions": {".": "1.24.0", "sub": "0.2.0", "v2": "2.1.0"}}
    }
    why = "example.com/h/tools has no tag, and is not published without this"
    assert f'\n# "tools" = "0.1.0"  # {why}\n' in (root / "releasekit.toml").read_text()
    path = root / ".github/workflows/release.yml"
    assert '    tags: ["release-*"]  # ' in path.read_text()
    job = read_workflow(root)["jobs"]["publish"]
    assert job["permissions"] == {"contents": "write"}
    assert [step["uses"].partition("@")[0] for step in job["steps"]][1] == "actions/setup-go"
    assert "git tag release-2 && git push origin release-2" in said
    assert "v1.24.1 after v1.24.0, sub/v0.2.1 after sub/v0.2.0, v2.1.1 after v2.1.0" in said
    assert "`releasekit plan` with that: 3 packages: " in said
    assert main(["plan", *where, "--format=json"]) == 0
    made = json.loads(capsys.readouterr().out)["packages"]
    assert sorted(each["version"] for each in made) == ["v0.2.0", "v1.24.0", "v2.1.0"]
    for right, wrong, told in [
        ("contents: write", "contents: read", "Write `contents: write` below its permissions."),
        ("credentials: true", "credentials: false", "Write `persist-credentials: true` at"),
    ]:
        text = path.read_text()
        path.write_text(text.replace(right, wrong))
        assert main(["check", str(root)]) == 3
        said = capsys.readouterr().out
        assert "\nto do  go: the job publish of .github/workflows/release.yml may not push" in said
        assert told in said
        path.write_text(text)
    assert main(["check", str(root)]) == 3  # for want of a remote
    assert "may not push" not in capsys.readouterr().out


def test_first_versions_of_go_modules_are_for_somebody_to_write(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R68: no tag names one, and none is made up."""
    write(root, {"go.mod": "module example.com/m/v3\n", "m.go": "package m\n"})
    assert main(["init", str(root), f"--registry=dir:{root / 'registry'}"]) == 0
    said = capsys.readouterr().out
    assert read_written(root).tables == {"go": {"versions": {}}}
    assert '\n# "." = "3.0.0"  # ' in (root / "releasekit.toml").read_text()
    assert (
        "\n3. Give a version to each package that is to be published. None has one now: go:example"
        in said
    )
    assert "git tag v1" not in said
    (root / "releasekit.toml").write_text('[go]\nremote = "origin"\n')
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message", "x")
    git(root, "tag", "v3.0.0")
    assert main(["init", str(root), f"--registry=dir:{root / 'registry'}"]) == 0
    told = 'stays as it is. Write below [go.versions] `"." = "3.0.0"`'
    assert told in capsys.readouterr().out


def test_packages_that_are_never_published_are_no_reason_to_write(root: Path) -> None:
    """R68: nothing is written, as where there is no package."""
    write(root, {"package.json": '{"name": "acme", "private": true}'})
    assert main(["init", str(root)]) == 2
    assert not (root / ".github").exists()


MATURIN = '[build-system]\nrequires = ["maturin"]\nbuild-backend = "maturin"\n[project]\n'
CRATE = '[package]\nname = "%s"\nversion = "1.0.0"\nedition = "2021"\nlicense = "MIT"\n'


def test_what_it_writes_is_planned_first_and_leaves_out_what_hardly_anybody_means(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R68: the crate of a wheel, and a workspace of examples; not what has tags for all that."""
    require_tool("cargo")
    write(
        root,
        {
            "core/Cargo.toml": CRATE % "acme-core" + 'description = "x"\n',
            "core/src/lib.rs": "",
            "py/Cargo.toml": CRATE % "acme-python" + '[lib]\ncrate-type = ["cdylib"]\n',
            "py/src/lib.rs": "",
            "py/pyproject.toml": MATURIN + 'name = "acme"\nversion = "1.0.0"\n',
            "acme-examples/package.json": '{"private": true, "workspaces": ["*"]}',
            "acme-examples/app/package.json": NPM % "acme-app",
        },
    )
    where = [str(root), f"--registry=dir:{root / 'registry'}"]
    assert main(["init", *where]) == 0
    said = capsys.readouterr().out
    config = read_written(root)
    assert config.texts == {"exclude-packages": "cargo:acme-python"}
    assert config.tables == {"pypi": {"packages": ["py"]}, "cargo": {"workspaces": ["core", "py"]}}
    assert "`releasekit plan` with that: 2 packages: 2 to build and publish" in said
    why = "is a library for other languages alone, which no crate can use"
    left = f"`exclude-packages` in releasekit.toml leaves out cargo:acme-python, which {why}\n"
    assert left in said
    assert main(["plan", *where]) == 0
    # A wheel and a crate of one version.
    assert "\n3. Push a tag: git tag v1.0.0 && git push origin v1.0.0\n" in said


def test_an_ecosystem_whose_packages_are_all_left_out_has_a_reason(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R68: and nobody says that nothing was written for it, as `exclude-packages` was."""
    write(
        root,
        {
            "pyproject.toml": PYPI % "acme",
            "package.json": '{"private": true, "workspaces": ["examples/*"]}',
            "examples/ui/package.json": NPM % "acme-ui",
            "examples/web/package.json": NPM % "acme-web",
        },
    )
    assert main(["init", str(root), f"--registry=dir:{root / 'registry'}"]) == 0
    said = capsys.readouterr().out
    assert (
        "`exclude-packages` in releasekit.toml leaves out npm:acme-ui, npm:acme-web, each of "
        "which lies in a directory called `examples`\n"
    ) in said
    assert "nothing to publish" not in said


def test_a_package_with_tags_is_not_left_out_for_where_it_lies(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R68: somebody has released it."""
    write(
        root,
        {
            "package.json": '{"private": true, "workspaces": ["examples/*", "lib"]}',
            "lib/package.json": NPM % "acme-lib",
            "examples/ui/package.json": NPM % "acme-ui",
            "examples/web/package.json": NPM % "acme-web",
        },
    )
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message", "x")
    git(root, "tag", "acme-ui@1.1.0")
    assert main(["init", str(root), f"--registry=dir:{root / 'registry'}"]) == 0
    assert read_written(root).texts == {"exclude-packages": "npm:acme-web"}
    assert "`releasekit plan` with that: 2 packages: " in capsys.readouterr().out


def test_a_refusal_of_the_plan_is_said(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """R68: in the words of the plan, and the files are written all the same."""
    write(
        root,
        {
            "package.json": '{"private": true, "workspaces": ["*"]}',
            "a/package.json": (NPM % "acme-a")[:-1] + ', "dependencies": {"acme-b": "*"}}',
            "b/package.json": (NPM % "acme-b")[:-1] + ', "private": true}',
        },
    )
    where = [str(root), f"--registry=dir:{root / 'registry'}"]
    assert main(["init", *where]) == 0
    said = capsys.readouterr().out
    assert main(["plan", *where]) == 3
    refusal = capsys.readouterr().err.partition("error: ")[2].partition("\n")[0]
    assert f"`releasekit plan` refuses it: {refusal} Publish acme-b too" in said
    assert "\n3. Correct what `releasekit plan` refuses, as said above\n4. Push a tag" in said
    assert (root / ".github/workflows/release.yml").is_file()


def test_no_tag_is_proposed_that_says_what_is_there(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R68: a version with a tag, in whatever form, is released."""
    write(root, {"package.json": NPM % "acme"})
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message", "x")
    for tag in ("v1.2.0", "acme@1.2.0", "1.2.0"):
        git(root, "tag", tag)
        assert main(["init", str(root), f"--registry=dir:{root / 'registry'}"]) == 0
        said = capsys.readouterr().out
        assert f"commit them. Tagged already: {tag}\n" in said
        assert "git tag v1" not in said.partition("\nnext:")[2]
        git(root, "tag", "--delete", tag)


@pytest.mark.parametrize(
    ("files", "command"),
    [
        (["package-lock.json"], "npm ci && npm run build"),
        (["js/pnpm-lock.yaml"], "cd js && npx pnpm install --frozen-lockfile && npx pnpm run"),
        (["yarn.lock"], "yarn install --frozen-lockfile && yarn run build"),
        (["yarn.lock", ".yarnrc.yml"], "yarn install --immutable && yarn run build"),
        (["bun.lock"], "npx bun install --frozen-lockfile && npx bun run build"),
        ([], "cd js && npm install && npm run build"),
    ],
)
def test_the_workflow_builds_with_the_tool_whose_lock_file_is_there(
    root: Path, files: list[str], command: str
) -> None:
    """R68: `npm ci` refuses to run without a lock file of npm. Submodules are checked out, too."""
    write(root, {"js/package.json": NPM % "acme", **dict.fromkeys(files, "")})
    write(root, {".gitmodules": ""})
    assert main(["init", str(root), f"--registry=dir:{root / 'registry'}"]) == 0
    assert f"      # - run: {command}" in (root / ".github/workflows/release.yml").read_text()
    checkout = read_workflow(root)["jobs"]["publish"]["steps"][0]
    assert checkout["with"]["submodules"] == "recursive"


def test_the_name_of_a_directory_adds_no_step_to_the_workflow(root: Path) -> None:
    """R68: what follows its line break would be no comment."""
    place = "x\n- run: other #"
    write(root, {f"{place}/package.json": NPM % "acme", f"{place}/package-lock.json": ""})
    assert main(["init", str(root), f"--registry=dir:{root / 'registry'}"]) == 0
    steps = read_workflow(root)["jobs"]["publish"]["steps"]
    assert not any("run" in step for step in steps)


@pytest.mark.parametrize("place", ["x\n- run: other #", "a: b", "$(id)", "a #b"])
def test_a_build_is_no_step_below_a_directory_with_a_strange_name(root: Path, place: str) -> None:
    """R68: GitHub would read something else in it."""
    write(root, {f"{place}/package.json": BUILT % ("acme", '"main": "dist/a.js"')})
    write(root, {f"{place}/package-lock.json": ""})
    assert main(["init", str(root), f"--registry=dir:{root / 'registry'}"]) == 0
    assert list_commands(root) == []


def test_the_next_tag_has_the_form_of_the_last_ones(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R68: a tag of another form would be the first of its kind."""
    write(root, {"package.json": NPM % "acme"})
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message", "x")
    for tag in ("1.1.0", "nightly"):
        git(root, "tag", tag)
    assert main(["init", str(root), f"--registry=dir:{root / 'registry'}"]) == 0
    assert "\n3. Push a tag: git tag 1.2.0 && git push origin 1.2.0\n" in capsys.readouterr().out
    assert '    tags: ["[0-9]*"]  # `git tag 1.2.3 && ' in (
        (root / ".github/workflows/release.yml").read_text()
    )


def test_examples_do_not_take_the_place_of_what_waits_for_a_version(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R68: a package between two releases is meant, and what lies in `examples` is not."""
    pom = (
        "<project><modelVersion>4.0.0</modelVersion><groupId>org.acme</groupId>"
        "<artifactId>%s</artifactId><version>%s</version>%s</project>"
    )
    parent = "<packaging>pom</packaging><modules><module>core</module><module>examples/a</module>"
    write(
        root,
        {
            "pom.xml": pom % ("acme", "1-SNAPSHOT", f"{parent}</modules>"),
            "core/pom.xml": pom % ("core", "1-SNAPSHOT", ""),
            "examples/a/pom.xml": pom % ("a", "1", ""),
        },
    )
    assert main(["init", str(root), f"--registry=dir:{root / 'registry'}"]) == 0
    said = capsys.readouterr().out
    assert read_written(root).texts == {"exclude-packages": "maven:org.acme:a"}
    assert "\n3. Give a version to each package that is to be published. None has one now: " in said


NATIVE = """\
[project]
name = "acme"
version = "1.2.0"
[build-system]
requires = ["maturin>=1"]
build-backend = "maturin"
"""


@pytest.mark.parametrize("registry", ["", "dir:registry", "set"])
def test_wheels_of_many_platforms_come_from_other_jobs(
    root: Path, capsys: pytest.CaptureFixture[str], registry: str
) -> None:
    """R63: PyPI refuses what one job builds; other registries take it, and so does PyPI where the
    settings let maturin name a standard.
    """
    write(root, {"pyproject.toml": NATIVE, "src/lib.rs": ""})
    if registry == "set":
        text = '[pypi.config-settings]\nbuild-args = "--compatibility pypi"\n'
        write(root, {"releasekit.toml": text})
    where = [str(root), *([f"--registry={registry}"] if registry.startswith("dir:") else [])]
    assert main(["init", *where]) == 0
    said = capsys.readouterr().out
    build = "\n3. Build the wheels of pypi:acme in jobs before `publish`, for each platform, and"
    assert (build in said) is (not registry)
    workflow = (root / ".github/workflows/release.yml").read_text()
    assert ("\n          # dist: ${{ runner.temp }}/dist  # with the wheels" in workflow) is (
        not registry
    )


PUBLISHED = {
    "releasekit.toml": '[maven]\ndirectories = ["build/repo"]\n',
    "build/repo/g/a/1.2.0/a-1.2.0.pom": "<project><modelVersion>4.0.0</modelVersion><groupId>g"
    "</groupId><artifactId>a</artifactId><version>1.2.0</version></project>",
    "build/repo/g/a/1.2.0/a-1.2.0.jar": "",
}


@pytest.mark.parametrize(
    ("files", "commands"),
    [
        (
            ("build.gradle",),
            ['gradle publishToMavenLocal "-Dmaven.repo.local=$PWD/build/repo"'],
        ),
        (
            ("settings.gradle.kts", "gradlew", "build.sbt"),
            [
                './gradlew publishToMavenLocal "-Dmaven.repo.local=$PWD/build/repo"',
                "sbt +publish",
            ],
        ),
        (("build.mill", "mill"), ["./mill __.publishM2Local --m2RepoPath out/repo"]),
        ((), []),
    ],
)
@pytest.mark.parametrize("below", ["", "a b"])
def test_the_job_runs_the_tools_that_fill_a_directory_first(
    root: Path, files: Sequence[str], commands: Sequence[str], below: str
) -> None:
    """R63, R66"""
    write(root / below, PUBLISHED | dict.fromkeys(files, ""))
    assert main(["init", str(root / below)]) == 0
    assert list_commands(root) == [(each, below) for each in commands]
    text = (root / ".github/workflows/release.yml").read_text()
    line = "\n      # - run: ...  # publishes into maven.directories"
    assert (line in text) is (not files)
    assert text.index("setup-java") < text.index("maven.directories")


def test_a_directory_that_is_not_filled_yet_says_how_to(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R63, R66: its packages are not known before."""
    write(root, {"releasekit.toml": PUBLISHED["releasekit.toml"], "build.gradle": ""})
    assert main(["init", str(root)]) == 2
    said = capsys.readouterr().err
    assert "directories: 'build/repo' is not there, or no directory [RK-218]\n" in said
    assert "  Publish into it before this, for example by `gradle publishToMavenLocal " in said


BUILT = '{"name": "%s", "version": "1.2.0", "scripts": {"build": "tsc"}, %s}'


def list_commands(root: Path) -> list[tuple[str, str]]:
    steps = read_workflow(root)["jobs"]["publish"]["steps"]
    assert steps[-1]["uses"].startswith("org/releasekit-action@")
    return [(it["run"], it.get("working-directory", "")) for it in steps if "run" in it]


@pytest.mark.parametrize(
    ("fields", "missing"),
    [
        ('"main": "dist/index.js", "files": ["dist"]', "dist/index.js"),
        ('"main": "./src/index", "types": "dist/index.d.ts"', "dist/index.d.ts"),
        ('"exports": {".": {"import": "./dist/a.js", "default": "./src/index.js"}}', "dist/a.js"),
        ('"bin": {"acme": "bin/acme.js"}', "bin/acme.js"),
        ('"main": "src/index.js", "publishConfig": {"main": "dist/index.js"}', "dist/index.js"),
        ('"files": ["lib/**", "!lib/x"]', "lib/**"),
        ('"main": "src/index.js", "files": ["src", "dist"]', ""),
        ('"main": "src", "exports": {"./*": "./src/*.js", "./package.json": "./package.json"}', ""),
        ('"files": ["/src/*.js"], "types": null, "exports": [1, {"x": null}]', ""),
    ],
)
def test_the_job_builds_what_git_does_not_have(
    root: Path, capsys: pytest.CaptureFixture[str], fields: str, missing: str
) -> None:
    """R68: a package without its files is published for good. What lies here and is ignored is not
    in a checkout of the job.
    """
    write(root, {"package.json": BUILT % ("acme", fields), "package-lock.json": "{}"})
    write(root, {".gitignore": "dist\n", "dist/index.js": "", "src/index.js": ""})
    git(root, "add", "package.json")
    assert main(["init", str(root), f"--registry=dir:{root / 'registry'}"]) == 0
    said = capsys.readouterr().out
    command = ("npm ci && npm run build", "")
    assert list_commands(root) == ([command] if missing else [])
    assert (f"git does not have {missing} of npm:acme, which package.json names" in said) is (
        missing != ""
    )


@pytest.mark.parametrize("has_script", [False, True])
def test_packages_are_built_one_after_another_where_the_workspace_has_no_script(
    root: Path, has_script: bool
) -> None:
    """R68: `run build` would fail in its root."""
    scripts = '{"build": "x"}' if has_script else "{}"
    on = '"main": "dist/a.js", "dependencies": {"acme-z": "1.2.0"}'
    write(
        root,
        {
            "js/package.json": f'{{"private": true, "workspaces": ["*"], "scripts": {scripts}}}',
            "js/package-lock.json": "{}",
            "js/a/package.json": BUILT % ("acme-a", on),
            "js/b/package.json": NPM % "acme-b",
            "js/z/package.json": BUILT % ("acme-z", '"main": "dist/z.js"'),
        },
    )
    assert main(["init", str(root), f"--registry=dir:{root / 'registry'}"]) == 0
    apart = [("cd js && npm ci", ""), ("npm run build", "js/z"), ("npm run build", "js/a")]
    together = [("cd js && npm ci && npm run build", "")]
    assert list_commands(root) == (together if has_script else apart)


def test_a_prerelease_mode_is_to_be_settled_before_a_tag(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R68: and the access that changesets gives packages is named."""
    write(
        root,
        {
            "package.json": '{"private": true, "workspaces": ["packages/*"]}',
            "packages/ui/package.json": NPM % "@acme/ui",
            ".changeset/config.json": '{"access": "public"}',
            ".changeset/pre.json": '{"mode": "pre", "tag": "beta"}',
        },
    )
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message", "x")
    git(root, "checkout", "--quiet", "-b", "next")
    where = [str(root), f"--registry=dir:{root / 'registry'}"]
    assert main(["init", *where]) == 0
    said = capsys.readouterr().out
    assert "\n3. Settle the prerelease mode of .changeset/pre.json, as said above\n4. Push" in said
    cure = '`branches = { "next" = "beta" }` for mode'
    assert cure in said
    assert 'write above the tables of releasekit.toml `npm-access = "public"`' in said
    (root / "releasekit.toml").write_text('npm-access = "public"\n')
    assert main(["init", *where]) == 0
    assert "npm-access" not in capsys.readouterr().out


BACKEND = """\
from pathlib import Path
def prepare_metadata_for_build_wheel(directory, config_settings=None):
    place = Path(directory, "acme-1.2.0.dist-info")
    place.mkdir()
    (place / "METADATA").write_text("Metadata-Version: 2.1\\nName: acme\\nVersion: 1.2.0\\n")
    return place.name
"""


COMPUTED = """\
[project]
name = "acme"
dynamic = ["version"]
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""


def test_it_says_that_a_version_comes_from_a_tag(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R68: what it plans is right for this commit, and for none after it."""
    write(root, {"pyproject.toml": COMPUTED + "[tool.setuptools_scm]\n", "backend.py": BACKEND})
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message", "x")
    git(root, "tag", "v1.2.0")
    assert main(["init", str(root), f"--registry=dir:{root / 'registry'}"]) == 0
    said = capsys.readouterr().out
    assert "\n3. Decide on the next version. Tagged already: v1.2.0. No manifest has the " in said
    assert "pypi:acme: it comes from the tag, so `plan` may refuse each commit" in said


def test_it_says_nothing_of_tags_where_a_build_takes_the_version_from_a_file(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R68: as maturin does from Cargo.toml, and a backend of one's own from anywhere."""
    write(root, {"pyproject.toml": f"{COMPUTED}# no setuptools-scm\n", "backend.py": BACKEND})
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message", "x")
    git(root, "tag", "v1.2.0")
    assert main(["init", str(root), f"--registry=dir:{root / 'registry'}"]) == 0
    said = capsys.readouterr().out
    assert "\n3. Give packages their next versions, and commit them. Tagged already: v1." in said
    assert "No manifest has" not in said


@pytest.mark.parametrize("version", ["1.2.1.dev1", "1.2.1.dev1+gd0ae90d96", "1.2.0+dirty"])
def test_a_version_between_tags_is_no_tag_to_push(
    root: Path, capsys: pytest.CaptureFixture[str], version: str
) -> None:
    """R68: the build has computed it of the last tag, which is named in its place."""
    backend = BACKEND.replace("1.2.0", version)
    write(root, {"pyproject.toml": COMPUTED, "backend.py": backend})
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message", "x")
    for tag in ("v1.2.0", "v1.10.0", "latest"):
        git(root, "tag", tag)
    assert main(["init", str(root), f"--registry=dir:{root / 'registry'}"]) == 0
    said = capsys.readouterr().out
    assert (
        f"\n3. Decide on the next version. The last tag is v1.10.0, and pypi:acme {version} is "
        in said
    )
    assert "\n4. Push a tag of that version: git tag vVERSION && git push origin vVER" in said
    assert "git tag v1" not in said
