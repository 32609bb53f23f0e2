"""Writes what the declared inputs decide: the inputs of action.yml and the tables of README.md.

`python docs/generate.py` rewrites what stands between the marks of both files; with `--check` it
changes nothing and ends with status 1 when something would change.
"""

# ruff: noqa: INP001, T201 (a script)

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import yaml

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from releasekit.config.inputs import DECLARED, SECRETS  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

    from releasekit.config.declaration import Declaration


def action_inputs() -> Iterator[str]:
    for declaration in _of_the_action():
        yield f"  {declaration.name}:"
        yield f"    description: {json.dumps(declaration.description, ensure_ascii=False)}"
        yield f'    default: "{"plan" if declaration.name == "mode" else ""}"'


def action_environment() -> Iterator[str]:
    for declaration in _of_the_action():
        yield f"        {declaration.variable}: ${{{{ inputs.{declaration.name} }}}}"


def input_table() -> Iterator[str]:
    yield "| Input | Default | |"
    yield "| --- | --- | --- |"
    for each in _of_the_action():
        default = f"`{each.shown}`" if each.shown else ""
        yield f"| `{each.name}` | {default} | {_cell(each.help)} |"


def output_table(action: str) -> Iterator[str]:
    yield "| Output | |"
    yield "| --- | --- |"
    for name, output in yaml.safe_load(action)["outputs"].items():
        yield f"| `{name}` | {_cell(output['description'])} |"


def _of_the_action() -> Iterator[Declaration]:
    """In declared order, each secret behind the user name it belongs to, or else before the
    registry.
    """
    for declaration in DECLARED.values():
        ecosystem, _, what = declaration.name.partition("-")
        if what == "registry" and f"{ecosystem}-username" not in DECLARED:
            yield from _secrets(ecosystem)
        if "action" in declaration.places:
            yield declaration
        if what == "username":
            yield from _secrets(ecosystem)


def _secrets(ecosystem: str) -> Iterator[Declaration]:
    return (each for name, each in SECRETS.items() if name.startswith(f"{ecosystem}-"))


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


def generated() -> dict[Path, str]:
    """Each file as it should be."""
    action, readme = ROOT / "action.yml", ROOT / "README.md"
    text = action.read_text(encoding="utf-8")
    text = between(text, "inputs", action_inputs())
    text = between(text, "env", action_environment())
    page = readme.read_text(encoding="utf-8")
    page = between(page, "inputs", input_table())
    return {action: text, readme: between(page, "outputs", output_table(text))}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing, say what would be")
    check = parser.parse_args().check
    stale = [path for path, text in generated().items() if text != path.read_text(encoding="utf-8")]
    for path in stale:
        print(f"{path.relative_to(ROOT)} is stale; run python docs/generate.py")
        if not check:
            path.write_text(generated()[path], encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
