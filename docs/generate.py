"""Writes what is declared once, at the inputs of a run and in the folders of the ecosystems: the
inputs of action.yml, the tables of docs/inputs.md and docs/outputs.md, the schema of
releasekit.toml, the list of problems, and the tools that check and `make demo` look for.

`python docs/generate.py` rewrites what stands between the marks of these files; with `--check` it
changes nothing and ends with status 1 when something would change.
"""

# ruff: noqa: T201 (a script)

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, get_args, get_origin

import yaml

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from releasekit.cli.commands import COMMANDS  # noqa: E402
from releasekit.config import levels  # noqa: E402
from releasekit.config.inputs import Declared  # noqa: E402
from releasekit.config.levels import WarningLevel  # noqa: E402
from releasekit.config.tag_options import (  # noqa: E402
    AnnounceOptions,
    ExtraFiles,
    Latest,
    TagOptions,
)
from releasekit.config.version_options import FurtherFile, GroupOptions, VersionOptions  # noqa: E402
from releasekit.decided import Carry, Level  # noqa: E402
from releasekit.ecosystems import ECOSYSTEMS  # noqa: E402
from releasekit.ecosystems.pypi import UV  # noqa: E402
from releasekit.model import PackageId, WarningName  # noqa: E402
from releasekit.problems import Problem  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

    from releasekit.config.declaration import Declaration
    from releasekit.config.tables import OptionTable

STRINGS: Final = {"type": "array", "items": {"type": "string"}}
ONE_OR_MORE: Final = {"type": ["string", "array"], "items": {"type": "string"}}
# Of what options hold, as Python and as JSON Schema have it.
TYPES: Final[dict[object, dict[str, object]]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    bool | str: {"type": ["boolean", "string"]},
    tuple[str, ...]: STRINGS,
    Mapping[str, str]: {"type": "object", "additionalProperties": {"type": "string"}},
    Mapping[str, tuple[str, ...]]: {"type": "object", "additionalProperties": STRINGS},
    ExtraFiles: {"anyOf": [STRINGS, {"type": "object", "additionalProperties": STRINGS}]},
    Latest: {"type": "string"},
    Mapping[str, Level]: {
        "type": "object",
        "additionalProperties": {"enum": [str(each) for each in Level]},
    },
    # Of a step.
    PackageId | FurtherFile | None: {
        "type": ["string", "object"],
        "properties": {"path": {"type": "string"}, "match": {"type": "string"}},
        "required": ["path", "match"],
        "additionalProperties": False,
    },
    tuple[PackageId, ...]: STRINGS,
    Mapping[str, tuple[FurtherFile, ...]]: {
        "type": "object",
        "additionalProperties": {
            "type": "array",
            "items": {
                "type": ["string", "object"],
                "properties": {"path": {"type": "string"}, "match": {"type": "string"}},
                "required": ["path"],
                "additionalProperties": False,
            },
        },
    },
    Mapping[str, GroupOptions]: {
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "properties": {"packages": STRINGS, "kind": {"enum": ["fixed", "linked"]}},
            "required": ["packages"],
            "additionalProperties": False,
        },
    },
}
# Of the entries below `[dependencies]`.
NEEDED: Final[dict[str, object]] = {
    "type": ["string", "object"],
    "properties": {
        "on": {"type": "string"},
        "bump": {"enum": [each for each in get_args(Carry) if each]},
    },
    "required": ["on"],
    "additionalProperties": False,
}


def action_inputs(declared: Declared) -> Iterator[str]:
    for declaration in _of_the_action(declared):
        yield f"  {declaration.name}:"
        yield f"    description: {json.dumps(declaration.description, ensure_ascii=False)}"
        # An empty one is not given, so that releasekit.toml can say it.
        given = declaration.name == "mode" or declaration.kind == "secret"
        yield f'    default: "{declaration.shown if given else ""}"'


def action_environment(declared: Declared) -> Iterator[str]:
    for declaration in _of_the_action(declared):
        yield f"        {declaration.variable}: ${{{{ inputs.{declaration.name} }}}}"


def input_table(declared: Declared) -> Iterator[str]:
    yield "| Input | Default | Meaning |"
    yield "| --- | --- | --- |"
    for each in _of_the_action(declared):
        default = f"`{each.shown}`" if each.shown else ""
        yield f"| `{each.name}` | {default} | {_cell(each.meaning)} |"


def option_tables(declared: Declared) -> Iterator[str]:
    for title, options in _tables(declared):
        yield ""
        yield f"### [{options.TABLE}{'.NAME' * options.NAMED}]: {title}"
        yield ""
        yield "| Option | Default | Meaning |"
        yield "| --- | --- | --- |"
        for key, (_, option, default) in options.declared().items():
            shown = f"`{_toml(default)}`" if default not in ("", (), {}, None) else ""
            yield f"| `{key}` | {shown} | {_cell(option.help)} |"


def _tables(declared: Declared) -> Iterator[tuple[str, type[OptionTable]]]:
    """With what each is about."""
    for ecosystem in declared.ecosystems.values():
        yield ecosystem.title, ecosystem.options
    yield "tags of what is published", TagOptions
    yield "releases on GitHub", AnnounceOptions
    yield "what asks for a new version", VersionOptions


def _toml(value: object) -> str:
    match value:
        case tuple():
            return json.dumps(list(value), ensure_ascii=False)
        case Mapping():
            return (
                f"{{ {', '.join(f'{key} = {_toml(str(each))}' for key, each in value.items())} }}"
            )
    return json.dumps(value, ensure_ascii=False)


def schema(declared: Declared) -> dict[str, object]:
    """Of releasekit.toml, in draft 4: what completes and checks TOML in editors reads no later one.
    https://taplo.tamasfe.dev/configuration/developing-schemas.html
    """
    keys: dict[str, object] = {
        each.name: {"description": each.description, **_type_of_input(each)}
        for each in declared.inputs.values()
        if "file" in each.places
    }
    keys["dist"] = {
        "description": declared.inputs["dist"].description,
        "type": ["string", "array", "object"],
        "items": {"type": "string"},
        "additionalProperties": ONE_OR_MORE,
    }
    keys["dependencies"] = {
        "description": "The order that no manifest states: a package, and those it has to follow; "
        "`bump` says what a new version of one asks of the package, across ecosystems by default "
        "nothing unless the package contains that one.",
        "type": "object",
        "additionalProperties": {"type": "array", "items": NEEDED},
    }
    choices = {"enum": [str(each) for each in WarningLevel]}
    keys[levels.TABLE] = {
        "description": "What becomes of each warning; it overrides `strict`.",
        **_table({str(each): choices for each in WarningName}),
    }
    for title, options in _tables(declared):
        own = _table(
            {
                key: {"description": option.help, **_type_of(kind)}
                for key, (kind, option, _) in options.declared().items()
            }
        )
        named = {"type": "object", "additionalProperties": own}
        keys[options.TABLE] = {
            "description": f"Options for {title}.",
            **(named if options.NAMED else own),
        }
    head = {"$schema": "http://json-schema.org/draft-04/schema#", "title": "releasekit.toml"}
    return {**head, **_table(dict(sorted(keys.items())))}


def _table(keys: dict[str, object]) -> dict[str, object]:
    return {"type": "object", "properties": keys, "additionalProperties": False}


def _type_of(kind: object) -> dict[str, object]:
    if get_origin(kind) is Literal:
        return {"enum": [each for each in get_args(kind) if each]}
    return TYPES[kind]


def _type_of_input(declaration: Declaration) -> dict[str, object]:
    match declaration.kind:
        case "bool":
            return {"type": "boolean"}
        case "int":
            limits = {"minimum": declaration.minimum, "maximum": declaration.maximum}
            number = {"type": "integer", **{key: int(limit) for key, limit in limits.items()}}
            return {"anyOf": [number, {"enum": [declaration.word]}]} if declaration.word else number
        case "duration":
            return {"type": ["number", "string"]}
        case "choice":
            return {"enum": list(declaration.choices)}
        case "names" | "lines":
            return ONE_OR_MORE
        case _:
            return {"type": "string"}


def demo_rows(declared: Declared) -> Iterator[str]:
    """One word each: a list of make is separated by spaces."""
    yield "DEMO :="
    for ecosystem in declared.ecosystems.values():
        if tool := ecosystem.tool:
            followers = ",".join(tool.followers)
            yield f"DEMO += {ecosystem.name}|{tool.program}|{tool.version}|{followers}"


def tool_table(declared: Declared) -> Iterator[str]:
    yield "| ecosystem | tool | oldest version |"
    yield "| --- | --- | --- |"
    for ecosystem in declared.ecosystems.values():
        if tool := ecosystem.tool:
            yield f"| {ecosystem.title} | `{tool.program}` | {tool.version} |"
    yield f"| Python packages | `{UV.program}`, where there is one | {UV.version} |"


def output_table(action: str) -> Iterator[str]:
    yield "| Output | Meaning |"
    yield "| --- | --- |"
    for name, output in yaml.safe_load(action)["outputs"].items():
        yield f"| `{name}` | {_cell(output['description'])} |"


def problem_table() -> Iterator[str]:
    yield "| Id | Problem |"
    yield "| --- | --- |"
    for problem in Problem:
        page, _, anchor = problem.url.rpartition("/")[2].partition("#")
        place = f"{page}#{anchor}" if problem.is_warning else f"#{anchor}"
        yield f"| [{problem}]({place}) | {_cell(problem.headline)} |"


def _of_the_action(declared: Declared) -> Iterator[Declaration]:
    return (each for each in declared.everything.values() if "action" in each.places)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def between(text: str, mark: str, lines: Iterator[str]) -> str:
    """`text` with `lines` between the lines that hold `mark`:begin and `mark`:end."""
    kept: list[str] = []
    inside = False
    for line in text.splitlines(keepends=True):
        inside = inside and f"{mark}:end" not in line
        if not inside:
            kept.append(line)
        if f"{mark}:begin" in line:
            inside = True
            kept.extend(f"{new}\n" for new in lines)
    return "".join(kept)


def generated(declared: Declared) -> dict[Path, str]:
    """Each file as it should be."""
    names = (
        *("action.yml", "docs/inputs.md", "docs/outputs.md", "Makefile", "docs/problems.md"),
        "docs/getting-started.md",
    )
    files = {ROOT / name: (ROOT / name).read_text(encoding="utf-8") for name in names}
    action, inputs, outputs, makefile, problems, started = files.values()
    action = between(action, "inputs", action_inputs(declared))
    action = between(action, "env", action_environment(declared))
    inputs = between(inputs, "inputs", input_table(declared))
    inputs = between(inputs, "options", option_tables(declared))
    outputs = between(outputs, "outputs", output_table(action))
    makefile = between(makefile, "demo", demo_rows(declared))
    problems = between(problems, "problems", problem_table())
    started = between(started, "tools", tool_table(declared))
    made = dict(zip(files, (action, inputs, outputs, makefile, problems, started), strict=True))
    written = json.dumps(schema(declared), indent=2, ensure_ascii=False)
    return {**made, ROOT / "docs/releasekit.schema.json": f"{written}\n"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing, say what would be")
    check = parser.parse_args().check
    made = generated(Declared.of(COMMANDS, ECOSYSTEMS))
    stale = [
        path
        for path, text in made.items()
        if not path.exists() or text != path.read_text(encoding="utf-8")
    ]
    for path in stale:
        print(f"{path.relative_to(ROOT)} is stale; run python docs/generate.py")
        if not check:
            path.write_text(made[path], encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
