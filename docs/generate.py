"""Writes what is declared once, at the inputs of a run and in the folders of the ecosystems: the
inputs of action.yml, the tables of docs/inputs.md and docs/outputs.md, the list of problems, and
what `make demo` looks for.

`python docs/generate.py` rewrites what stands between the marks of these files; with `--check` it
changes nothing and ends with status 1 when something would change.
"""

# ruff: noqa: T201 (a script)

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import yaml

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from releasekit.config.inputs import Declared  # noqa: E402
from releasekit.ecosystems import ECOSYSTEMS  # noqa: E402
from releasekit.problems import Problem  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

    from releasekit.config.declaration import Declaration


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
    yield "| Input | Default | |"
    yield "| --- | --- | --- |"
    for each in _of_the_action(declared):
        default = f"`{each.shown}`" if each.shown else ""
        yield f"| `{each.name}` | {default} | {_cell(each.help)} |"


def demo_rows(declared: Declared) -> Iterator[str]:
    """One word each: a list of make is separated by spaces."""
    yield "DEMO :="
    for ecosystem in declared.ecosystems.values():
        if demo := ecosystem.demo:
            followers = ",".join(demo.followers)
            yield f"DEMO += {ecosystem.name}|{demo.tool}|{demo.version}|{followers}"


def output_table(action: str) -> Iterator[str]:
    yield "| Output | |"
    yield "| --- | --- |"
    for name, output in yaml.safe_load(action)["outputs"].items():
        yield f"| `{name}` | {_cell(output['description'])} |"


def problem_table() -> Iterator[str]:
    yield "| Id | |"
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
    names = ("action.yml", "docs/inputs.md", "docs/outputs.md", "Makefile", "docs/problems.md")
    files = {ROOT / name: (ROOT / name).read_text(encoding="utf-8") for name in names}
    action, inputs, outputs, makefile, problems = files.values()
    action = between(action, "inputs", action_inputs(declared))
    action = between(action, "env", action_environment(declared))
    inputs = between(inputs, "inputs", input_table(declared))
    outputs = between(outputs, "outputs", output_table(action))
    makefile = between(makefile, "demo", demo_rows(declared))
    problems = between(problems, "problems", problem_table())
    return dict(zip(files, (action, inputs, outputs, makefile, problems), strict=True))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing, say what would be")
    check = parser.parse_args().check
    made = generated(Declared.for_ecosystems(ECOSYSTEMS))
    stale = [path for path, text in made.items() if text != path.read_text(encoding="utf-8")]
    for path in stale:
        print(f"{path.relative_to(ROOT)} is stale; run python docs/generate.py")
        if not check:
            path.write_text(made[path], encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
