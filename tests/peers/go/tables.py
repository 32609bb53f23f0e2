"""The tables of x/mod's tests: paths, versions, names of files, and texts of go.mod and go.work."""

from __future__ import annotations

import functools
import itertools
import re
from typing import TYPE_CHECKING, Any, Final

from peers.go.asking import ask, build
from peers.scenarios import EQUAL, Case, Verdict
from releasekit.ecosystems.go import gomod, paths
from releasekit.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    Row = Sequence[Any]

_LOOKS_LIKE: Final = re.compile(
    r"^[ \t]*(?:module|go|require|replace|exclude|retract|use|tool|toolchain|godebug|ignore)\b",
    re.MULTILINE,
)


def read_tables(checkout: Path) -> Iterator[Case]:
    files = sorted(checkout.glob("[ms]*/*_test.go"))
    found = ask(build(checkout), "tables", *files)
    for table, check in _CHECKS.items():
        for number, row in enumerate(found[table]):
            judge = functools.partial(_judge_row, check, row)
            yield Case(name=f"{table}#{number}", judge=judge)
    ordered = [row[0] for row in found["tests"] if row[1]]
    for number, (one, other) in enumerate(itertools.pairwise(ordered)):
        judge = functools.partial(_judge_row, _check_order, [one, other])
        yield Case(name=f"order#{number}", judge=judge)


def _judge_row(check: Callable[[Row], str], row: Row, _directory: Path) -> Verdict:
    cells = [next(iter(each.values())) if isinstance(each, dict) else each for each in row]
    why = check([_text(each) for each in cells])
    return Verdict("fault", f"{cells}: {why}") if why else EQUAL


def _text(cell: object) -> object:
    """Bytes that are no UTF-8, as names of files have them."""
    if isinstance(cell, str) and cell.startswith("\0"):
        return cell[1:].encode("latin-1").decode(errors="surrogateescape")
    return cell


def _differ(own: object, theirs: object) -> str:
    return "" if own == theirs else f"ours is {own!r}, theirs {theirs!r}"


def _check_path(row: Row) -> str:
    path, is_module, _, is_file = row
    return _differ(not paths.trouble_with_path(path), is_module) or _differ(
        not paths.trouble_with_file(path), is_file
    )


def _check_version(row: Row) -> str:
    """ReleaseKit asks for versions of tags alone: no pseudo-version is one, nor is metadata."""
    path, version, ok = row
    wanted = ok and not re.search(r"[0-9]{14}-[0-9a-f]{12}|\+incompatible", version)
    own = not paths.trouble_with_path(path) and not paths.trouble_with_version(path, version)
    return _differ(own, wanted)


def _check_major(row: Row) -> str:
    prefix, suffix = row
    if suffix.startswith("."):
        return _differ(paths.split_major(f"{prefix}{suffix}"), (f"{prefix}{suffix}", ""))
    return _differ(paths.split_major(f"{prefix}{suffix}"), (prefix, suffix.removeprefix("/")))


def _check_escaped(row: Row) -> str:
    path, *escaped = row
    return _differ(paths.escape(path), escaped[0] if escaped else path)


def _check_private(row: Row) -> str:
    patterns, path, ok = row
    return _differ(paths.is_private(path, patterns), ok)


def _check_pseudo(row: Row) -> str:
    """The tests have a hash that is none."""
    version = row[2].replace("-hash", "-abcdef012345")
    return _differ(paths.is_release_version(version), False)


def _check_semver(row: Row) -> str:
    """ReleaseKit takes whole versions only, where x/mod puts zeros in their places."""
    version, canonical = row
    wanted = bool(canonical) and re.match(r"v\d+\.\d+\.\d+", version) is not None
    return _differ(paths.parse_version(version) != paths.parse_version("bad"), wanted)


def _check_order(row: Row) -> str:
    one, other = (each for each in row)
    if not all(re.match(r"v\d+\.\d+\.\d+", each) for each in row):
        return ""
    return _differ(paths.parse_version(one) <= paths.parse_version(other), True)


def _check_rationale(row: Row) -> str:
    """ReleaseKit says it in one line."""
    _, text, rationale = row
    text = text if re.search(r"^\s*module ", text, re.MULTILINE) else f"module m\n{text}"
    own = gomod.find_retraction(gomod.parse_mod(text, "go.mod"), "v1.0.0")
    return _differ(own, " ".join(rationale.split()))


_CHECKS: Final[dict[str, Callable[[Row], str]]] = {
    "checkPathTests": _check_path,
    "checkTests": _check_version,
    "splitPathVersionTests": _check_major,
    "escapeTests": _check_escaped,
    "TestMatchPrefixPatterns": _check_private,
    "pseudoTests": _check_pseudo,
    "tests": _check_semver,
    "retractRationaleTests": _check_rationale,
}


def read_texts(checkout: Path) -> Iterator[Case]:
    """Each text of a go.mod or go.work that a test has, beside what x/mod reads out of it."""
    program = build(checkout)
    texts: dict[str, dict[str, str]] = {"mod": {}, "work": {}}
    for path in sorted(checkout.glob("modfile/*_test.go")):
        kind = "work" if path.stem.startswith("work") else "mod"
        for table, rows in ask(program, "tables", path).items():
            for number, row in enumerate(rows):
                for place, text in enumerate(_list_texts(row)):
                    texts[kind][f"{table}#{number}.{place}"] = text
    for path in sorted(checkout.glob("modfile/testdata/**/*.*")):
        kind = "work" if path.parent.name == "work" else "mod"
        texts[kind][f"testdata::{path.name}"] = path.read_text()
    for kind, named in texts.items():
        for (name, text), theirs in zip(
            named.items(), ask(program, kind, questions=[*named.values()]), strict=True
        ):
            judge = functools.partial(_judge_text, kind, text, theirs)
            yield Case(name=f"{kind} {name}", judge=judge)


def _list_texts(cell: object) -> Iterator[str]:
    if isinstance(cell, str) and _LOOKS_LIKE.search(cell):
        yield cell
    elif isinstance(cell, (list, dict)):
        for each in cell.values() if isinstance(cell, dict) else cell:
            yield from _list_texts(each)


def _judge_text(kind: str, text: str, theirs: dict[str, Any], _directory: Path) -> Verdict:
    why = _compare_mod(text, theirs) if kind == "mod" else _compare_work(text, theirs)
    return Verdict("fault", f"{text}\n{theirs['Error']}\n{why}") if why else EQUAL


def _compare_mod(text: str, theirs: dict[str, Any]) -> str:
    try:
        mod = gomod.parse_mod(text, "go.mod")
        gomod.refuse_strange(mod, "go.mod")
    except ConfigError as error:
        # The go command refuses a module without a path, where x/mod reads on.
        refused = theirs["Error"] or not theirs["Module"]
        return "" if refused else f"ours refuses it: {error}"
    if theirs["Error"]:
        return "ours takes it"
    own = {
        "Module": mod.module,
        "Go": mod.go,
        "Require": [[each.path, each.version] for each in mod.requires],
        "Replace": [[each.path, each.target] for each in mod.replaces],
        "Indirect": [each.path for each in mod.requires if each.indirect] or None,
    }
    wrong = [_differ(own[key], theirs[key]) for key in own]
    wrong += [
        f"{version} is {'' if is_retracted else 'not '}retracted"
        for version, is_retracted in (theirs["Retracted"] or {}).items()
        if (gomod.find_retraction(mod, version) is not None) != is_retracted
    ]
    return "; ".join(filter(None, wrong))


def _compare_work(text: str, theirs: dict[str, Any]) -> str:
    try:
        uses = gomod.used_directories(text, "go.work")
        replaces = gomod.replaces_of_work(text, "go.work")
    except ConfigError as error:
        return "" if theirs["Error"] else f"ours refuses it: {error}"
    if theirs["Error"]:
        return "ours takes it"
    found = [[each.path, each.target] for each in replaces]
    return _differ([*uses], theirs["Use"]) or _differ(found, theirs["Replace"])
