"""The documents of this project and the code in them, and what is wrong with a block of it.

A block says what it is: yaml, toml, json, pycon, sh, mermaid, or markdown, which is a change file;
`text` is what a program prints, and nothing looks at it. Commands have no prompts, and what they
print is in a block of its own, because a button copies all of a block. A file of another tool
begins with its name: `# pyproject.toml`.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
import tomllib
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import yaml
from jsonschema import Draft4Validator

from fakes import DECLARED
from integration.tools import require_tool
from releasekit.cli.command_line import parse_command_line
from releasekit.config.file import read_config
from releasekit.errors import ConfigError, PlanError
from releasekit.versions.change_files import read_change_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT: Final = Path(__file__).parents[1]
BIN: Final = Path(sys.executable).parent
SCHEMA: Final = Draft4Validator(json.loads((ROOT / "docs/releasekit.schema.json").read_text()))
DOCUMENTS: Final = tuple(
    ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
) + tuple(sorted((ROOT / "docs").glob("*.md")))
OWN: Final = "org/releasekit-action@v1"
ACTION: Final[dict[str, Any]] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
TARGETS: Final = frozenset(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

_FENCE: Final = re.compile(r"^( *)```(\S*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
_INDENTED: Final = re.compile(r"(?<=\n\n)((?: {4}\S.*\n)+)")
_NAMED: Final = re.compile(r"# (\S+\.\w+)\n")
_INLINE: Final = re.compile(r"`(releasekit [a-z][^`…]*)`")
_ENDS: Final = frozenset({"|", "||", "&&", "&", ";", ">", ">>", "<", "<<<", ")", "("})
_ASSIGNMENT: Final = re.compile(r"[A-Z_][A-Z0-9_]*=")
_OUTPUT: Final = re.compile(r"steps\.([\w-]+)\.outputs\.([\w-]+)")


@dataclass(frozen=True)
class Block:
    """`line` is where its code begins in the document."""

    path: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.path.name}:{self.line}:{self.language}"

    @property
    def file(self) -> str:
        """The name in its first line, which says whose file it is."""
        named = _NAMED.match(self.text)
        return named[1] if named else ""


def blocks(path: Path, text: str | None = None) -> Iterator[Block]:
    """Those between fences, and the commands that are indented by four."""
    text = path.read_text(encoding="utf-8") if text is None else text
    for found in _FENCE.finditer(text):
        line = text.count("\n", 0, found.start(3)) + 1
        yield Block(path, line, found[2], textwrap.dedent(found[3]))
    for found in _INDENTED.finditer(_FENCE.sub(lambda each: "\n" * each[0].count("\n"), text)):
        line = text.count("\n", 0, text.index(found[1])) + 1
        yield Block(path, line, "sh", textwrap.dedent(found[1]))


def inline_commands(text: str) -> Iterator[str]:
    """What a sentence calls a command of ours: `releasekit plan ROOT`."""
    for found in _INLINE.finditer(_FENCE.sub("", text)):
        yield " ".join(found[1].split())


def complaints(block: Block) -> list[str]:
    """What is wrong with it; nothing if it can be copied."""
    try:
        match block.language:
            case "yaml":
                return yaml_complaints(block)
            case "toml":
                return toml_complaints(block)
            case "json":
                json.loads(block.text)
                return []
            case "pycon":
                compile(statements(block.text), str(block), "exec", flags=_AWAIT)
                return []
            case "sh":
                return shell_complaints(block.text)
            case "mermaid":
                first = block.text.split(maxsplit=1)[0]
                return [] if first == "flowchart" else [f"{first} is no diagram of ours"]
            case "markdown":
                read_change_file(str(block), block.text)
                return []
            case "text":
                return []
            case _:
                return [f"a block says what it is, not {block.language!r}; `text` is for output"]
    except (ValueError, SyntaxError, yaml.YAMLError, PlanError) as error:
        return [str(error)]


_AWAIT: Final = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


def statements(text: str) -> str:
    """The statements of an interactive session, with its empty lines."""
    lines = (line for line in text.splitlines() if not line or line.startswith((">>>", "...")))
    return "\n".join(line[4:] for line in lines)


def toml_complaints(block: Block) -> list[str]:
    document = tomllib.loads(block.text)
    if block.file not in {"", "releasekit.toml"}:
        return []
    with TemporaryDirectory() as directory:
        path = Path(directory, "releasekit.toml")
        path.write_text(block.text, encoding="utf-8")
        try:
            read = read_config(path, DECLARED)
            for name, text in read.texts.items():
                DECLARED.inputs[name].parse(text, name)
            for name in read.tables:
                options = DECLARED.ecosystems[name].options
                table = document[options.TABLE]
                if options.NAMED:
                    list(options.list_edges(table))
                else:
                    options.from_table(table)
        except ConfigError as error:
            return [str(error)]
    return schema_complaints(document)


def schema_complaints(document: object) -> list[str]:
    """What editors say of such a releasekit.toml."""
    return [error.message for error in SCHEMA.iter_errors(document)]


def yaml_complaints(block: Block) -> list[str]:
    if block.file:
        list(yaml.safe_load_all(block.text))
        return []
    # Gitea and Forgejo take the address of an action, too, which actionlint does not know.
    workflow = completed(yaml.safe_load(block.text.replace(f"https://github.com/{OWN}", OWN)))
    if not workflow:
        return ["neither a workflow nor a part of one; the file of another tool says its name"]
    found = [
        complaint
        for job in workflow["jobs"].values()
        for complaint in steps_complaints(job.get("steps", []), block.text)
    ]
    return found + _actionlint(workflow)


def completed(part: Any) -> dict[str, Any]:
    """The workflow that this is, or is a part of: jobs, one job, steps, or the inputs of ours."""
    if isinstance(part, list) and all(isinstance(step, dict) for step in part):
        part = {"steps": part}
    if not isinstance(part, dict):
        return {}
    part = {"on" if key is True else key: value for key, value in part.items()}
    if "jobs" in part:
        return {"on": "push", **part}
    if set(part) == {"on"}:
        part |= {"steps": [{"run": "true"}]}
        return {"on": part.pop("on"), "jobs": {"part": {"runs-on": "ubuntu-latest", **part}}}
    if set(part) == {"with"}:
        part = {"steps": [{"uses": OWN, **part}]}
    elif set(part) == {"permissions"}:
        part |= {"steps": [{"run": "true"}]}
    if "steps" in part:
        return {"on": "push", "jobs": {"part": {"runs-on": "ubuntu-latest", **part}}}
    return {}


def steps_complaints(steps: Sequence[dict[str, Any]], text: str) -> Iterator[str]:
    """Inputs and outputs of ours that there are not, and commands that we would not take."""
    ours = {step.get("id") for step in steps if str(step.get("uses", "")).startswith("org/")}
    for step in steps:
        uses = str(step.get("uses", ""))
        if uses.startswith("org/") and uses != OWN:
            yield f"{uses} is not {OWN}"
        if uses == OWN:
            for name, value in step.get("with", {}).items():
                yield from _input_complaints(name, value)
        for argv in commands(step.get("run", "")):
            yield from command_complaints(argv)
    for step_id, output in _OUTPUT.findall(text):
        if step_id in ours and output not in ACTION["outputs"]:
            yield f"there is no output {output}"


def _input_complaints(name: str, value: object) -> Iterator[str]:
    if name not in ACTION["inputs"]:
        yield f"there is no input {name}"
    elif "${{" not in (text := str(value).lower() if isinstance(value, bool) else str(value)):
        try:
            DECLARED.everything[name].parse(text.strip(), name)
        except ConfigError as error:
            yield str(error)


def _actionlint(workflow: dict[str, Any]) -> list[str]:
    """Steps may say nothing of where they run; nothing else of a workflow may be missing."""
    # What earlier jobs or steps of the real workflow would have is not there in a part of one.
    ignored = ["-ignore", 'property ".+" is not defined in object type {}']
    done = _run("actionlint", *ignored, "-", given=yaml.safe_dump(workflow, sort_keys=False))
    return [done.stdout + done.stderr] if done.returncode else []


def shell_complaints(script: str) -> list[str]:
    """A user's placeholders are no defect: unused or unset variables, `cd` that may fail, files
    that are not there yet.
    """
    checks = "--exclude=SC1091,SC2034,SC2154,SC2164"
    done = _run("shellcheck", "--shell=bash", checks, "-", given=script)
    found = [done.stdout + done.stderr] if done.returncode else []
    found += [f"{line} has a prompt" for line in script.splitlines() if line.startswith("$ ")]
    return found + [each for argv in commands(script) for each in command_complaints(argv)]


def commands(script: str) -> Iterator[list[str]]:
    """The arguments of each `releasekit` or `./entrypoint.sh`, and each `make TARGET`."""
    for line in script.replace("\\\n", " ").splitlines():
        words = shlex.shlex(line, posix=True, punctuation_chars=True)
        words.whitespace_split = True
        argv: list[str] = []
        for word in [*words, ";"]:
            if word in _ENDS or word.startswith("$("):
                if argv and (Path(argv[0]).name in {"releasekit", "entrypoint.sh"}):
                    yield ["releasekit", *argv[1:]]
                elif argv and argv[0] == "make":
                    yield argv
                argv = []
            elif argv or not _ASSIGNMENT.match(word):
                argv.append(word)


def command_complaints(argv: Sequence[str]) -> list[str]:
    if argv[0] == "make":
        named = [word for word in argv[1:] if "=" not in word and not word.startswith("-")]
        return [f"make has no target {name}" for name in named if name not in TARGETS]
    try:
        with redirect_stdout(StringIO()):
            parse_command_line(argv[1:], {}, DECLARED)
    except ConfigError as error:
        return [f"{' '.join(argv)}: {error}"]
    except SystemExit:  # --help, --version
        pass
    return []


def _run(tool: str, *arguments: str, given: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [require_tool(tool), *arguments],
        env={**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"},
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )
