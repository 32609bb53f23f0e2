"""Every block of code in the documents can be copied: it is what it says, and we would take it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from documents import (
    DOCUMENTS,
    ROOT,
    Block,
    blocks,
    command_complaints,
    complaints,
    inline_commands,
    schema_complaints,
)

BLOCKS = [block for path in DOCUMENTS for block in blocks(path)]


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_it_can_be_copied(block: Block) -> None:
    assert complaints(block) == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_commands_in_sentences_are_ours(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    found = [
        each for command in inline_commands(text) for each in command_complaints(command.split())
    ]
    assert found == []


def test_blocks_of_every_kind_are_found() -> None:
    assert {block.language for block in BLOCKS} >= {
        "yaml", "toml", "json", "pycon", "sh", "mermaid", "text"
    }  # fmt: skip
    assert ["make", "demo"] in [block.text.split()[:2] for block in blocks(ROOT / "README.md")]


@pytest.mark.parametrize(
    ("language", "text", "says"),
    [
        ("", "x", "says what it is"),
        ("yaml", "a: [", "expected"),
        ("yaml", "a: 1", "neither a workflow"),
        ("yaml", "with:\n  modus: plan", "no input modus"),
        ("yaml", "with:\n  mode: publsh", "is not known"),
        ("yaml", "with:\n  max-wait: soon", "max-wait"),
        ("yaml", "- uses: org/releasekit-action@v2", "is not org/releasekit-action@v1"),
        ("yaml", "- run: releasekit publish --dryrun", "not a flag"),
        ("yaml", "- run: echo $(ls", "SC1"),
        ("yaml", "permissions:\n  contents: wriet", "wriet"),
        ("yaml", "on: pusch", "pusch"),
        (
            "yaml",
            "- uses: org/releasekit-action@v1\n  id: a\n- run: ${{ steps.a.outputs.publishd }}",
            "no output publishd",
        ),
        ("yaml", "- uses: actions/checkout@v4\n  with:\n    reff: main", "reff"),
        ("toml", "a = ", "Invalid value"),
        ("toml", "concurency = 8", "did you mean 'concurrency'"),
        ("toml", "concurrency = 'many'", "concurrency"),
        ("toml", "[npm]\nworkspaces = 'js'", 'workspaces is "js"'),
        ("toml", "# releasekit.toml\n[npm]\nworkspace = []", "unknown key"),
        ("json", "{'a': 1}", "Expecting"),
        ("pycon", ">>> x = = 1\n1", "invalid syntax"),
        ("console", "$ releasekit plan", "says what it is"),
        ("sh", "$ releasekit plan", "has a prompt"),
        ("sh", "releasekit pubish", "did you mean"),
        ("sh", "FOO=1 releasekit plan --max-retry 5 | less", "not a flag"),
        ("sh", "for x in 1; do\n  ./entrypoint.sh plan --formt x\ndone", "not a flag"),
        ("sh", 'echo "open', "No closing quotation"),
        ("sh", "if true; then echo", "SC1"),
        ("sh", "make tset", "no target tset"),
        ("mermaid", "flowchat LR", "no diagram"),
        ("markdown", "---\na: huge\n---\n", "names no level"),
    ],
)
def test_what_cannot_be_copied_is_noticed(language: str, text: str, says: str) -> None:
    assert says in " ".join(complaints(Block(Path("page.md"), 1, language, text)))


@pytest.mark.parametrize(
    "text",
    [
        "concurency = 8",
        "concurrency = 'many'",
        "concurrency = 0",
        "gate = 'visble'",
        "pypi-token = 'secret'",
        "[npm]\nworkspaces = 'js'",
        "[npm]\nworkspace = []",
        "[npm]\nstage = 'alway'",
        "[warnings]\nnew-nam = 'warn'",
        "[warnings]\nnew-name = 'warning'",
        "[dependencies]\n'pypi:a' = 'cargo:b'",
        "[tag]\nat-a-time = '3'",
    ],
)
def test_an_editor_refuses_what_the_program_refuses(text: str) -> None:
    assert complaints(Block(Path("page.md"), 1, "toml", text))
    assert schema_complaints(tomllib.loads(text))


@pytest.mark.parametrize(
    "text",
    [
        "build-concurrency = 'auto'",
        "build-concurrency = 8",
        "task-timeout = 30",
        "dist = 'dist'",
        "[dist]\npypi = 'dist'\n'cargo:a' = ['a', 'b']",
        "[maven]\nsign = true",
        "[maven]\nsign = 'KEY'",
    ],
)
def test_an_editor_takes_what_the_program_takes(text: str) -> None:
    assert complaints(Block(Path("page.md"), 1, "toml", text)) == []


def test_files_of_other_tools_are_only_read() -> None:
    other = Block(Path("page.md"), 1, "toml", '# pyproject.toml\n[project]\nname = "a"\n')
    assert complaints(other) == []
    other = Block(Path("page.md"), 1, "yaml", "# pnpm-workspace.yaml\npackages: [a]\n")
    assert complaints(other) == []


def test_commands_in_sentences_are_found_across_lines() -> None:
    text = "Say `releasekit plan\nx`, not `releasekit` alone.\n```text\n`releasekit no`\n```\n"
    assert list(inline_commands(text)) == ["releasekit plan x"]
