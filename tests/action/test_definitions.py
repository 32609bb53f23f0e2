"""action.yml, workflows, scripts and lock files: true, current, and clean by every linter."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from documents import blocks
from fakes import DECLARED
from harness.act import OWN_NAME, PROJECT
from integration.tools import require_tool
from releasekit.cli.init.workflow import write_workflow
from releasekit.decided import Decision
from releasekit.ecosystems import ECOSYSTEMS
from releasekit.report import outputs, plan_outputs
from releasekit.report.preview import Preview, preview_outputs
from releasekit.report.release_pr import Kept, release_pr_outputs
from releasekit.report.versions import VersionsView, versions_outputs
from sample_runs import mixed_plan, partial_report

if TYPE_CHECKING:
    from collections.abc import Sequence

BIN = Path(sys.executable).parent
WORKFLOWS = sorted((PROJECT / ".github/workflows").glob("*.yml"))
EXAMPLES = sorted((PROJECT / "docs/examples").glob("*.yml"))
ACTION: dict[str, Any] = yaml.safe_load((PROJECT / "action.yml").read_text(encoding="utf-8"))
FORM_CONFIG = PROJECT / ".github/ISSUE_TEMPLATE/config.yml"
FORMS = sorted({*FORM_CONFIG.parent.glob("*.yml")} - {FORM_CONFIG})
SCHEMAS = ["docs/releasekit.schema.json", "docs/results.schema.json"]
COMPONENTS = sorted((PROJECT / "templates").glob("*.yml"))
SCRIPTS = ["entrypoint.sh", ".ci/run", "tests/machines/run"]


def run(argv: Sequence[str | Path]) -> subprocess.CompletedProcess[str]:
    """A tool of this environment, which finds the others of it: actionlint uses shellcheck."""
    return subprocess.run(
        [BIN / argv[0], *argv[1:]],
        cwd=PROJECT,
        env={**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_action_is_made_of_no_other_one() -> None:
    """The host of actions that a Forgejo or a Gitea has set may lack them, and its runner fetches
    them before it looks at `if`.
    """
    assert not [step for step in ACTION["runs"]["steps"] if "uses" in step]


@pytest.mark.parametrize(
    "argv",
    [
        ["actionlint", *WORKFLOWS, *EXAMPLES],
        [
            "zizmor",
            "--offline",
            "--persona=pedantic",
            "--config=.github/zizmor.yml",
            "action.yml",
            ".github",
            *EXAMPLES,
        ],
        ["check-jsonschema", "--builtin-schema=vendor.github-actions", "action.yml"],
        ["check-jsonschema", "--builtin-schema=vendor.github-workflows", *WORKFLOWS, *EXAMPLES],
        ["check-jsonschema", "--builtin-schema=vendor.dependabot", ".github/dependabot.yml"],
        ["check-jsonschema", "--builtin-schema=vendor.github-issue-forms", *FORMS],
        ["check-jsonschema", "--builtin-schema=vendor.github-issue-config", FORM_CONFIG],
        ["check-jsonschema", "--check-metaschema", *SCHEMAS],
        ["shellcheck", *SCRIPTS],
        ["python", "docs/generate.py", "--check"],
        ["uv", "lock", "--check"],
    ],
    ids=lambda argv: " ".join(map(str, argv[:2])),
)
def test_it_is_clean(argv: list[str | Path]) -> None:
    require_tool(str(argv[0]))
    done = run(argv)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_init_writes_is_clean(tmp_path: Path) -> None:
    """For each ecosystem alone, and for all of them."""
    setups = {name: [each.setup] for name, each in ECOSYSTEMS.items() if each.setup}
    setups["all"] = [setup for own in setups.values() for setup in own]
    paths = [tmp_path / f"{name}.yml" for name in setups]
    for path, own in zip(paths, setups.values(), strict=True):
        path.write_text(write_workflow(own, Path("products")), encoding="utf-8")
    require_tool("actionlint")
    for argv in (["actionlint"], ["check-jsonschema", "--builtin-schema=vendor.github-workflows"]):
        done = run([*argv, *paths])
        assert done.returncode == 0, done.stdout + done.stderr


def test_what_gitlab_reads_is_clean(tmp_path: Path) -> None:
    """The components, and the pipelines of docs/gitlab.md, by GitLab's own schema. A file of two
    documents is one of each here: GitLab fills in the first what the second asks for.
    """
    texts = [path.read_text(encoding="utf-8") for path in COMPONENTS]
    texts += [block.text for block in blocks(PROJECT / "docs/gitlab.md") if block.file]
    documents = [text for whole in texts for text in re.split(r"^---$", whole, flags=re.MULTILINE)]
    assert len(documents) == 13
    paths = []
    for number, text in enumerate(documents):
        paths.append(tmp_path / f"{number}.yml")
        paths[-1].write_text(text, encoding="utf-8")
    done = run(["check-jsonschema", "--builtin-schema=vendor.gitlab-ci", *paths])
    assert done.returncode == 0, done.stdout + done.stderr


def test_all_components_start_the_same_program_in_the_same_way() -> None:
    require_tool("shellcheck")
    scripts = set()
    for path in COMPONENTS:
        text = path.read_text(encoding="utf-8")
        spec, body = yaml.safe_load_all(text)
        job = body["$[[ inputs.job ]]"]
        assert job["variables"]["RELEASEKIT_MODE"] == path.stem
        used = set(re.findall(r"\$\[\[ inputs\.([\w-]+) \]\]", text))
        assert used == set(spec["spec"]["inputs"])
        for each in body.values():
            (script,) = each["script"]
            checked = subprocess.run(
                [BIN / "shellcheck", "--shell=sh", "-"],
                input=re.sub(r"\$\[\[.*?\]\]", "x", script),
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert checked.returncode == 0, checked.stdout
        # A preview has something to do after it.
        scripts.add(job["script"][0].partition('git -C "$home" checkout')[0])
    assert len(scripts) == 1


@pytest.mark.parametrize(
    ("name", "most"), [("requirements.lock", 24), ("requirements-verify.lock", 40)]
)
def test_a_requirements_lock_is_what_uv_lock_says(name: str, most: int) -> None:
    path = PROJECT / name
    text = path.read_text(encoding="utf-8")
    command = re.search(r"^#    uv (export .*)$", text, re.MULTILINE)
    assert command
    exported = run(["uv", *command[1].split()])
    assert exported.stdout == text, "run make lock"
    assert len(re.findall(r"^\S+==", text, re.MULTILINE)) <= most
    assert all("--hash=sha256:" in line for line in text.splitlines() if line.startswith("    -"))


def test_inputs_of_the_action_are_the_declared_ones() -> None:
    wanted = {name: each for name, each in DECLARED.everything.items() if "action" in each.places}
    assert set(ACTION["inputs"]) == set(wanted)
    for name, entry in ACTION["inputs"].items():
        assert entry["description"] == wanted[name].description
        # Another default could not be told from a choice, which beats releasekit.toml; secrets are
        # not in there.
        given = name == "mode" or wanted[name].kind == "secret"
        assert entry["default"] == (wanted[name].shown if given else "")


def test_each_input_is_passed_on_by_an_environment_variable() -> None:
    """INPUT_* is not set for the steps of a composite action."""
    environment = ACTION["runs"]["steps"][-1]["env"]
    assert environment == {
        DECLARED.everything[name].variable: f"${{{{ inputs.{name} }}}}" for name in ACTION["inputs"]
    }


def test_scripts_hold_no_expressions_and_the_last_one_execs() -> None:
    """R28, R35: a pasted input would be code, and a shell in between would swallow signals."""
    steps = ACTION["runs"]["steps"]
    assert not any("${{" in step.get("run", "") for step in steps)
    assert steps[-1]["run"] == 'exec "$GITHUB_ACTION_PATH/entrypoint.sh"'
    assert "\nexec " in (PROJECT / "entrypoint.sh").read_text(encoding="utf-8")


def test_outputs_of_the_action_are_the_ones_that_are_set() -> None:
    said = {*outputs(partial_report()), *plan_outputs(mixed_plan()), "plan-file", "results-file"}
    view = VersionsView(Decision(), {})
    said |= versions_outputs(view, {}, PROJECT).keys()
    said |= release_pr_outputs(Kept("none", "")).keys()
    said |= {"preview-file", *preview_outputs(Preview(view, view, ()))}
    assert set(ACTION["outputs"]) == said
    for name, entry in ACTION["outputs"].items():
        assert entry["value"] == f"${{{{ steps.run.outputs.{name} }}}}"


def test_the_action_needs_no_other() -> None:
    """R28: where one cannot be fetched, or is not allowed, its job would fail."""
    assert not any("uses" in step for step in ACTION["runs"]["steps"])


def test_uv_has_one_version() -> None:
    lock = tomllib.loads((PROJECT / "uv.lock").read_text(encoding="utf-8"))
    (locked,) = (each["version"] for each in lock["package"] if each["name"] == "uv")
    makefile = (PROJECT / "Makefile").read_text(encoding="utf-8")
    assert f"UV_VERSION := {locked}\n" in makefile


def test_the_parallel_jobs_run_all_tests() -> None:
    """A room of tests/ that no row names, and `make test` leaves out, would be run by none."""
    workflow = yaml.safe_load((PROJECT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    rows = workflow["jobs"]["slow"]["strategy"]["matrix"]["tests"]
    tests = (path.relative_to(PROJECT) for path in (PROJECT / "tests").rglob("test_*.py"))
    rooms = {f"tests/{each.parts[1]}" for each in tests} - {"tests/unit", "tests/simulation"}
    assert sorted(" ".join(rows).split()) == sorted({"below", *rooms})


def test_actions_of_others_are_pinned_to_a_commit() -> None:
    for path in [PROJECT / "action.yml", *WORKFLOWS, *EXAMPLES]:
        for used in re.findall(r"uses: (.+)", path.read_text(encoding="utf-8")):
            own = used in {"./", OWN_NAME}
            assert own or re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v[\d.]+", used), used


def test_every_example_can_be_copied() -> None:
    """One name and one reference for this action, wherever it is written down; other servers than
    GitHub need its whole address.
    """
    for path in [*EXAMPLES, PROJECT / "README.md", *(PROJECT / "docs").glob("*.md")]:
        text = path.read_text(encoding="utf-8")
        for used in re.findall(r"uses: (\S+/releasekit-action[^\s`]*)", text):
            assert used.removeprefix("https://github.com/") == OWN_NAME, path


def test_documents_and_examples_use_the_same_versions_of_actions() -> None:
    """`actions/checkout@v7` in a document is the v7.0.1 that the examples pin."""
    pinned = {
        (name, version.split(".")[0])
        for path in [*EXAMPLES, PROJECT / "action.yml"]
        for name, version in re.findall(
            r"uses: (\S+)@[0-9a-f]{40} # (v[\d.]+)", path.read_text(encoding="utf-8")
        )
    }
    known = {name for name, _ in pinned}
    said = {
        (name, version)
        for path in [PROJECT / "README.md", *(PROJECT / "docs").glob("*.md")]
        for name, version in re.findall(r"uses: (\S+)@(v\d+)\b", path.read_text(encoding="utf-8"))
        if name in known
    }
    assert {"actions/checkout", "actions/download-artifact"} <= {name for name, _ in said}
    assert said <= pinned


def test_init_pins_what_it_writes_as_the_examples_do() -> None:
    """A tag may be moved to another commit. Our own action has the tag that its documents have."""
    setups = [each.setup for each in ECOSYSTEMS.values() if each.setup]
    written = re.findall(r"uses: (\S+)@(\S+)(?: # (v[\d.]+))?", write_workflow(setups, Path()))
    others = [each for each in written if each[0] != OWN_NAME.partition("@")[0]]
    assert {"actions/checkout", "actions/setup-node", "actions/setup-java"} <= {
        name for name, _, _ in others
    }
    assert all(re.fullmatch("[0-9a-f]{40}", commit) and tag for _, commit, tag in others)
    examples = "".join(path.read_text(encoding="utf-8") for path in EXAMPLES)
    for name, commit, tag in others:
        assert f"{name}@" not in examples or f"{name}@{commit} # {tag}" in examples


def test_each_example_says_why_it_needs_its_permissions() -> None:
    """The table in docs/workflows.md has each permission of each job, and no other."""
    text = (PROJECT / "docs" / "workflows.md").read_text(encoding="utf-8")
    said = set(
        re.findall(r"^\| (\S+\.yml) \| `(\S+)` \| `([\w-]+: \w+)` \| .+ \|$", text, re.MULTILINE)
    )
    granted = set()
    for path in EXAMPLES:
        workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert workflow["permissions"] == {}
        granted |= {
            (path.name, name, f"{scope}: {level}")
            for name, job in workflow["jobs"].items()
            for scope, level in job["permissions"].items()
        }
    assert said == granted


def test_the_schema_of_results_is_a_schema() -> None:
    document = json.loads((PROJECT / "docs/results.schema.json").read_text(encoding="utf-8"))
    assert document["$schema"].startswith("https://json-schema.org/")


def test_a_search_has_all_that_other_runs_leave_to_it() -> None:
    told = subprocess.run(
        ["make", "--dry-run", "search"], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    searched = [PROJECT / word for word in told.stdout.split() if word.startswith("tests/")]
    left = [
        path
        for path in (PROJECT / "tests").rglob("test_*.py")
        if "\nfrom effort import" in (text := path.read_text(encoding="utf-8"))
        or "\nfrom mutation import sample" in text
    ]
    assert left
    assert [path for path in left if not {path, *path.parents} & {*searched}] == []
