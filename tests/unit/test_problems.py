"""Every error and every warning has an id that users can look up, and every id a section."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.act import OWN_NAME
from releasekit import errors
from releasekit.approval import decide
from releasekit.errors import PackageError, ReleasekitError
from releasekit.model import WarningName
from releasekit.problems import OWN_REPOSITORY, Problem, mark

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/problems.md").read_text(encoding="utf-8")
WARNINGS = (ROOT / "docs/warnings.md").read_text(encoding="utf-8")
SOURCES = {
    path: ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted((ROOT / "src").rglob("*.py"))
}
ERRORS = [problem for problem in Problem if not problem.is_warning]


def classes() -> Iterator[type[ReleasekitError]]:
    pending = [ReleasekitError]
    while pending:
        found = pending.pop()
        if found.__module__.startswith("releasekit."):
            yield found
        pending += found.__subclasses__()


CLASSES = {each.__name__: each for each in classes()}


def made() -> Iterator[tuple[str, Problem | None]]:
    """The place and the problem of every error that the source makes; None for one that takes its
    problem from another error.
    """
    for path, tree in SOURCES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
                name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
                if name in CLASSES:
                    given = [each.value for each in node.keywords if each.arg == "problem"]
                    problem = _named(given[0]) if given else CLASSES[name].general
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", problem


def _named(value: ast.expr) -> Problem | None:
    owner, _, name = ast.unparse(value).partition(".")
    return Problem.__members__.get(name) if owner == "Problem" else None


def sections() -> dict[str, str]:
    """The text of each section, by its heading."""
    parts = re.split(r"^### (.+)\n", PAGE, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_ids_are_given_once_and_in_order() -> None:
    assert [*Problem] == sorted({str(problem) for problem in Problem})
    assert all(re.fullmatch(r"RK-[1-5]\d\d", problem) for problem in Problem)
    assert len({problem.headline for problem in Problem}) == len(Problem)


def test_every_error_that_is_raised_has_an_id() -> None:
    """One that stands for too much to be looked up may be inherited from, and not raised."""
    found = list(made())
    assert len(found) > 300
    nameless = [place for place, problem in found if problem is Problem.PACKAGE]
    assert nameless == []


@pytest.mark.parametrize("kind", CLASSES.values(), ids=CLASSES)
def test_the_first_digit_is_the_exit_code(kind: type[ReleasekitError]) -> None:
    if kind is ReleasekitError or issubclass(kind, errors.DeadlinePassed):
        return
    assert kind.general[3] == str(kind.exit_code)


def test_an_error_ends_the_run_as_the_first_digit_of_its_problem_says() -> None:
    for path, tree in SOURCES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                kind = CLASSES.get(node.func.id)
                given = [_named(each.value) for each in node.keywords if each.arg == "problem"]
                if kind and given and given[0]:
                    assert given[0][3] == str(kind.exit_code), f"{path}:{node.lineno}"


def test_no_id_is_unused() -> None:
    named = {
        node.attr
        for tree in SOURCES.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "Problem"
    }
    used = named | {warning.name for warning in WarningName} | {Problem.NO_ENVIRONMENT.name}
    assert used == {problem.name for problem in Problem}
    assert Problem.NO_ENVIRONMENT.url in (ROOT / "entrypoint.sh").read_text(encoding="utf-8")
    assert decide.NoCode.general is Problem.CODE_WANTED


def test_every_id_has_a_section_and_every_section_an_id() -> None:
    """Its heading is the id alone, so that the anchor is the same wherever the page is shown."""
    assert list(sections()) == [str(problem) for problem in ERRORS]
    for problem in ERRORS:
        assert sections()[problem].lstrip().startswith(f"**{problem.headline}.**"), problem
        assert problem.url.endswith(f"/blob/v1/docs/problems.md#{problem.lower()}")


@pytest.mark.parametrize("warning", WarningName)
def test_every_warning_has_its_id_in_its_section(warning: WarningName) -> None:
    text = WARNINGS.split(f"\n## {warning}\n")[1]
    assert text.lstrip().startswith(f"**{warning.problem}: {warning.problem.headline}.**")
    assert warning.problem.url.endswith(f"/blob/v1/docs/warnings.md#{warning}")


def test_the_list_on_top_is_that_of_the_program() -> None:
    rows = re.findall(r"^\| \[(RK-\d{3})\]\(([^)]+)\) \| (.+) \|$", PAGE, re.MULTILINE)
    assert rows == [
        (str(problem), _shown_at(problem), problem.headline.replace("|", "\\|"))
        for problem in Problem
    ]


def _shown_at(problem: Problem) -> str:
    page, _, anchor = problem.url.rpartition("/")[2].partition("#")
    return f"{page}#{anchor}" if problem.is_warning else f"#{anchor}"


@cache
def templates() -> list[re.Pattern[str]]:
    """Each message of the source, with anything in the place of what is put in."""
    found = set()
    for tree in SOURCES.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                pieces = [v.value if isinstance(v, ast.Constant) else None for v in node.values]
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                pieces = [node.value]
            else:
                continue
            if sum(len(str(piece)) for piece in pieces if piece is not None) >= 8:
                found.add("".join(".*" if p is None else re.escape(str(p)) for p in pieces))
    return [re.compile(text, re.DOTALL) for text in found]


# Said by nobody here (the base of all others), by the system, by OpenSSL.
NOT_OURS = {Problem.PACKAGE, Problem.NO_PLACE_TO_BUILD, Problem.CERTIFICATE}
# Behind the name of an input, or of a warning.
TOLD_AFTER_A_NAME = {Problem.VALUE, Problem.WARNING_OF_BUILD}


@pytest.mark.parametrize("problem", [each for each in ERRORS if each not in NOT_OURS])
def test_a_section_shows_a_message_that_the_program_prints(problem: Problem) -> None:
    (example,) = re.findall(r"^```text\n(.*?)\n```$", sections()[problem], re.DOTALL | re.MULTILINE)
    assert len(example.splitlines()) == 1
    assert example.startswith("error: ") == example.endswith(mark(problem))
    message = example.removeprefix("error: ").removesuffix(mark(problem))
    if problem is Problem.NO_ENVIRONMENT:
        assert message in (ROOT / "entrypoint.sh").read_text(encoding="utf-8")
        return
    if problem in TOLD_AFTER_A_NAME:
        message = message[message.index(" is " if problem is Problem.VALUE else " its ") + 1 :]
    assert any(template.fullmatch(message) for template in templates()), message


def test_the_repository_is_named_once() -> None:
    assert f"{OWN_REPOSITORY}@v1" == OWN_NAME


def test_an_error_may_have_a_finer_problem_than_its_class() -> None:
    finer = PackageError("a: it could not be packed", problem=Problem.BUILD_TIMED_OUT)
    assert finer.problem is Problem.BUILD_TIMED_OUT
    assert PackageError("b").problem is Problem.PACKAGE
