"""go.mod, go.work and go.sum: parsed with positions, so that an edit changes nothing else.

https://go.dev/ref/mod#go-mod-file-lexical
"""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from releasekit.ecosystems.go import paths
from releasekit.ecosystems.go.paths import parse_version
from releasekit.errors import ManifestError, PlanError, Unreadable
from releasekit.fields import replace
from releasekit.host import files
from releasekit.problems import Problem
from releasekit.text.splice import splice

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from releasekit.ecosystems.shared.semver import Version


# The largest that are known have some hundred kilobytes, two thousand lines, and ten words in one.
MAX_BYTES: Final = 1024 * 1024
MAX_DIRECTIVES: Final = 20_000
MAX_WORDS: Final = 100
MAX_LINE_CHARS: Final = 64 * 1024
# Those of a go.mod that this one says `go` of, or less. https://go.dev/ref/mod#go-mod-file-grammar,
# https://github.com/golang/mod/blob/master/modfile/rule.go
_NEWEST: Final = 1, 26
_VERBS: Final = frozenset(
    {"exclude", "go", "godebug", "ignore", "module", "replace", "require", "retract", "tool"}
    | {"toolchain"}
)
# Of a go.work. https://go.dev/ref/mod#go-work-file
_VERBS_OF_WORK: Final = frozenset({"go", "godebug", "replace", "toolchain", "use"})
_ONCE: Final = frozenset({"go", "module", "toolchain"})
# Those that a newer go is not going to read in another way.
_STABLE: Final = frozenset({"exclude", "go", "module", "replace", "require"})
# https://github.com/golang/mod/blob/master/modfile/rule.go, GoVersionRE and ToolchainRE
_NUMBER: Final = r"(?:0|[1-9][0-9]*)"
_PLAIN: Final = {
    "module": (re.compile(r".*"), "module example.com/m"),
    "go": (re.compile(rf"[1-9][0-9]*\.{_NUMBER}(?:\.{_NUMBER})?(?:[a-z]+[0-9]+)?"), "go 1.23.0"),
    "toolchain": (re.compile(r"default|go1(?:\..*)?"), "toolchain go1.23.0"),
    "godebug": (re.compile(r"""[^"`',= ]*=[^"`', ]*"""), "godebug default=go1.21"),
    # https://pkg.go.dev/golang.org/x/mod/module#CheckImportPath
    "tool": (
        re.compile(r"(?:(?!\.+(?:/|\Z))[-A-Za-z0-9._~+]+(?:/|\Z))+(?<!/)"),
        "tool example.com/m/cmd/t",
    ),
    "ignore": (re.compile(r".+"), "ignore ./static"),
    "use": (re.compile(r".+"), "use ./m"),
}
_PHYSICAL: Final = re.compile(r"[^\n]*\n|[^\n]+")
# https://github.com/golang/mod/blob/master/modfile/rule.go, isIndirect
_INDIRECT: Final = re.compile(r"[ \t]*//[ \t]*indirect(?:[ \t]*$|;(?:[ \t]|$))")
_ZERO: Final = re.compile(r"v[0-9]+\.0\.0-00010101000000-000000000000")
# Go takes no string in backquotes, although its reference says so (modfile/rule.go, parseString).
_TOKEN: Final = re.compile(
    r"""
      (?P<space>[ \t\r]+)
    | //.*
    | "(?P<quoted>(?:[^"\\]|\\.)*)"
    | (?P<arrow>=>)
    | (?P<mark>[()\[\]{},])
    | (?P<word>(?:(?!//)[^\s()\[\]{},"`])+)
    """,
    re.VERBOSE,
)


class Token(Struct, frozen=True):
    text: str
    start: int
    end: int


class Line(Struct, frozen=True, kw_only=True):
    """One directive, also one from a block. `start` and `end` are those of its physical line, with
    the line end; `block` those of the block around it.
    """

    verb: str
    arguments: tuple[Token, ...]
    start: int
    end: int
    block: tuple[int, int] | None = None

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(token.text for token in self.arguments)


class Require(Struct, frozen=True, kw_only=True):
    """`at` is where its version stands; `indirect` says that no package of the module imports it,
    as a comment beside it does. https://go.dev/ref/mod#go-mod-file-require
    """

    path: str
    version: str
    at: Token
    indirect: bool = False

    @property
    def is_placeholder(self) -> bool:
        """Whether it only works together with a `replace` or a go.work."""
        return self.version == "v0.0.0" or is_zero_version(self.version)


class Replace(Struct, frozen=True, kw_only=True):
    path: str
    target: str
    line: Line


class GoMod(Struct, frozen=True, kw_only=True):
    text: str
    module: str
    go: str
    requires: tuple[Require, ...]
    replaces: tuple[Replace, ...]
    lines: tuple[Line, ...]


class Sums(Struct, frozen=True):
    """The two hashes of a module in go.sum, as `h1:…`. https://go.dev/ref/mod#go-sum-files"""

    zip: str
    mod: str


def read_text(path: Path) -> str:
    """The text of a go.mod, go.work or version file; raises ConfigError where it is missing."""
    return files.read_text(path, max_bytes=MAX_BYTES)


def parse_mod(text: str, where: str) -> GoMod:
    """`where` names the file in errors; raises ConfigError for an invalid go.mod."""
    lines = tuple(_parse(text, where))
    modules = [line.words[0] for line in lines if line.verb == "module" and line.words]
    if len(modules) != 1:
        raise ManifestError(f"{where}: has {len(modules) or 'no'} module directives; write one")
    return GoMod(
        text=text,
        module=modules[0],
        go=next((line.words[0] for line in lines if line.verb == "go" and line.words), ""),
        requires=tuple(
            _parse_require(line, text, where) for line in lines if line.verb == "require"
        ),
        replaces=tuple(_parse_replace(line, where) for line in lines if line.verb == "replace"),
        lines=lines,
    )


def refuse_strange(mod: GoMod, where: str) -> None:
    """Raises ConfigError for directives that go refuses in the module that it builds; most of them
    are nothing to it in those that this one needs. What a newer go may know is left to that.
    """
    _refuse_strange(mod.lines, mod.text, _VERBS, where)


def _refuse_strange(lines: Sequence[Line], text: str, verbs: Collection[str], where: str) -> None:
    go = next((line.words[0] for line in lines if line.verb == "go" and line.words), "")
    language = tuple(map(int, re.findall("[0-9]{1,9}", go)[:2]))
    seen: set[str] = set()
    for line in lines:
        said = hint = ""
        is_unknown = line.verb not in verbs and language <= _NEWEST
        if is_unknown or (line.verb in _ONCE and line.verb in seen):
            trouble = "is not a directive that go knows" if is_unknown else "appears a second time"
            said, hint = f"`{line.verb}` {trouble}", "Correct or remove it."
        elif line.verb in _STABLE or language <= _NEWEST:
            said, hint = f"go cannot read `{' '.join((line.verb, *line.words))}`", _find_hint(line)
        if hint:
            number = text.count("\n", 0, line.start) + 1
            raise ManifestError(f"{where}:{number}: {said}", hint=hint)
        seen.add(line.verb)


def _find_hint(line: Line) -> str:
    """What to write in place of a directive whose words go refuses; empty where it does not."""
    words = line.words
    if line.verb in _PLAIN:
        pattern, example = _PLAIN[line.verb]
        fits = len(words) == 1 and pattern.fullmatch(words[0])
        return "" if fits else f"Write one like `{example}`."
    if line.verb in {"require", "exclude"}:
        if len(words) != 2:
            return f"Write one like `{line.verb} example.com/m v1.2.3`."
        return paths.trouble_with_requirement(*words)
    if line.verb != "replace" or "=>" not in words:
        return ""
    arrow = words.index("=>")
    target, *version = words[arrow + 1 :]
    is_path = is_directory(target)
    if bool(version) == is_path or (is_path and "\\" in target):
        return "Write a directory (`=> ../m`) without a version, or a module with one."
    return paths.trouble_with_requirement(*words[:arrow]) if arrow == 2 else ""


def find_retraction(mod: GoMod, version: str) -> str | None:
    """Why a go.mod retracts a version, which may be empty; None where it does not.

    https://go.dev/ref/mod#go-mod-file-retract
    """
    wanted = parse_version(version)
    for line in mod.lines:
        named = [parse_version(word) for word in line.words if word.startswith("v")]
        if line.verb == "retract" and named and named[0] <= wanted <= named[-1]:
            # Above it and beside it, or else above its block:
            # https://go.dev/ref/mod#go-mod-file-comments
            beside = mod.text[line.arguments[-1].end : line.end].strip()
            said = [*_find_comments(mod.text[: line.start]), *([beside] if beside else [])]
            if not said and line.block is not None:
                said = _find_comments(mod.text[: line.block[0]])
            return " ".join(filter(None, (each.lstrip("/ ") for each in said)))
    return None


def _find_comments(text: str) -> list[str]:
    """The lines at its end that have nothing but a comment."""
    lines = map(str.strip, reversed(text.splitlines()))
    return [*takewhile(lambda each: each.startswith("//"), lines)][::-1]


def used_directories(text: str, where: str) -> tuple[str, ...]:
    """The directories that a go.work uses; raises ConfigError for an invalid go.work."""
    lines = _parse(text, where)
    _refuse_strange(lines, text, _VERBS_OF_WORK, where)
    return tuple(line.words[0] for line in lines if line.verb == "use" and line.words)


def replaces_of_work(text: str, where: str) -> tuple[Replace, ...]:
    """What a go.work replaces; raises ConfigError for an invalid go.work."""
    return tuple(
        _parse_replace(line, where) for line in _parse(text, where) if line.verb == "replace"
    )


def is_zero_version(version: str) -> bool:
    """Whether it is what the go command writes without a version.

    https://pkg.go.dev/golang.org/x/mod/module#ZeroPseudoVersion
    """
    return _ZERO.fullmatch(version) is not None


def is_directory(target: str) -> bool:
    """Whether a replacement is a directory, not a module. https://go.dev/ref/mod#go-mod-file-replace"""
    is_path = target.startswith(("./", "../", "/")) or target in {".", ".."}
    return is_path or re.match(r"[A-Za-z]:", target) is not None


def _parse_require(line: Line, text: str, where: str) -> Require:
    if len(line.words) != 2:
        raise ManifestError(
            f"{where}: `require {' '.join(line.words)}`; write a path and a version"
        )
    version = line.arguments[1]
    comment = text[version.end : line.end].rstrip()
    indirect = _INDIRECT.match(comment) is not None
    return Require(path=line.words[0], version=version.text, at=version, indirect=indirect)


def _parse_replace(line: Line, where: str) -> Replace:
    words = line.words
    arrow = words.index("=>") if "=>" in words else 0
    if arrow not in {1, 2} or len(words) - arrow not in {2, 3}:
        raise ManifestError(f"{where}: `replace {' '.join(words)}`; write `replace OLD => NEW`")
    return Replace(path=words[0], target=words[arrow + 1], line=line)


def _parse(text: str, where: str) -> list[Line]:
    if "\0" in text:
        raise Unreadable(f"{where}: holds a NUL character")
    found: list[Line] = []
    verb, opened = "", 0
    inside: list[Line] = []
    offset = 0
    for number, physical in enumerate(_PHYSICAL.findall(text), start=1):
        start, end = offset, offset + len(physical)
        offset = end
        tokens = _split_line(physical, start, f"{where}:{number}")
        words = [token.text for token in tokens]
        if not words:
            continue
        if verb and words == [")"]:
            found += [replace(line, block=(opened, end)) for line in inside]
            verb = ""
        elif len(found) + len(inside) >= MAX_DIRECTIVES:
            raise Unreadable(f"{where}: has more than {MAX_DIRECTIVES} directives")
        elif verb:
            inside.append(Line(verb=verb, arguments=tuple(tokens), start=start, end=end))
        elif words[1:] == ["("]:
            verb, opened, inside = words[0], start, []
        elif words[1:] != ["(", ")"]:
            rest = tuple(tokens[1:])
            found.append(Line(verb=words[0], arguments=rest, start=start, end=end))
    if verb:
        raise Unreadable(f"{where}: `{verb} (` has no closing parenthesis")
    return found


def _split_line(physical: str, start: int, where: str) -> list[Token]:
    tokens: list[Token] = []
    position = 0
    line = physical.rstrip("\n")
    if len(line) > MAX_LINE_CHARS:
        raise Unreadable(f"{where}: has a line of more than {MAX_LINE_CHARS} characters")
    while position < len(line):
        match = _TOKEN.match(line, position)
        # https://github.com/golang/mod/blob/master/modfile/read.go, isComment
        if match and match["word"] and "/*" in match["word"]:
            raise Unreadable(f"{where}: Go accepts no `/* */` here: write the comment as `// …`")
        if match is None:
            raise Unreadable(f"{where}: {line[position:].strip()!r} is not understood")
        position = match.end()
        if match["space"] is None and not match[0].startswith("//"):
            shown = match[0] if match["quoted"] is None else match["quoted"]
            if len(tokens) == MAX_WORDS:
                raise Unreadable(f"{where}: has more than {MAX_WORDS} words in one line")
            tokens.append(Token(shown, start + match.start(), start + match.end()))
    return tokens


def check_requirements(mod: GoMod, versions: Mapping[str, str]) -> None:
    """Raises PlanError for a requirement above the planned version, and for a placeholder on a
    module that is not published from here.
    """
    for require in mod.requires:
        planned = versions.get(require.path)
        if planned is None and is_zero_version(require.version):
            raise PlanError(
                f"go:{mod.module} requires {require.path} {require.version}, a placeholder, and "
                "no such module is published from here",
                hint=f"Require a published version: `go get {require.path}@latest`.",
                problem=Problem.GO_REPLACED,
            )
        if planned is not None and parse_version(require.version) > parse_version(planned):
            raise PlanError(
                f"go:{mod.module} requires {require.path} {require.version}, but the workspace has "
                f"{planned}",
                hint="A requirement is a lower bound: release that version first, or lower it.",
                problem=Problem.EXCLUDES_VERSION,
            )


def edit_mod(
    mod: GoMod, versions: Mapping[str, str], *, needed: Iterable[str], local: Iterable[Replace]
) -> str:
    """The go.mod with requirements at the planned `versions`, also on `needed` modules that it does
    not name yet, and without the `local` replacements.

    Everything else is kept to the byte.
    """
    edits = [
        ((require.at.start, require.at.end), versions[require.path])
        for require in mod.requires
        if require.path in versions and require.version != versions[require.path]
    ]
    dropped = {(replaced.path, replaced.target) for replaced in local}
    lines = {each.line.start for each in mod.replaces if (each.path, each.target) in dropped}
    edits += [(span, "") for span in _find_spans(mod, lines)]
    missing = sorted(set(needed) - {require.path for require in mod.requires})
    text = splice(mod.text, edits)
    if not missing:
        return text
    end = "\r\n" if "\r\n" in text else "\n"
    added = [f"\t{path} {versions[path]} // indirect{end}" for path in missing]
    block = [f"{end}require ({end}", *added, f"){end}"]
    return text + ("" if text.endswith("\n") else end) + "".join(block)


def _find_spans(mod: GoMod, starts: set[int]) -> set[tuple[int, int]]:
    """The spans of these lines, or of a whole block that has no others."""
    blocks: dict[tuple[int, int], set[int]] = {}
    for line in mod.lines:
        if line.block is not None:
            blocks.setdefault(line.block, set()).add(line.start)
    whole = {block for block, lines in blocks.items() if lines <= starts}
    return {
        line.block if line.block in whole else (line.start, line.end)
        for line in mod.lines
        if line.start in starts
    }


def edit_sum(text: str, sums: Mapping[tuple[str, str], Sums | None]) -> str:
    """`text` with the hashes of these modules (path and version), in the order of the go command;
    without lines for modules whose hashes are None.
    """
    kept = []
    for line in filter(str.strip, text.splitlines()):
        words = line.split()
        if len(words) != 3 or (words[0], words[1].removesuffix("/go.mod")) not in sums:
            kept.append(line)
    for (path, version), hashes in sums.items():
        if hashes is not None:
            kept += [f"{path} {version} {hashes.zip}", f"{path} {version}/go.mod {hashes.mod}"]
    return "".join(f"{line}\n" for line in sorted(kept, key=_sort_key))


def add_sums(
    text: str,
    others: Iterable[str],
    mod: GoMod,
    versions: Mapping[str, str],
    *,
    ours: Collection[str],
) -> str:
    """`text` with the hashes that it lacks and a go.sum of `others` has: of each go.mod, which all
    count for the versions that are chosen, and of modules that are compiled. Since go 1.17 go.mod
    names these; some are going to be at other `versions`. Those of `ours` are no matter of others.

    https://go.dev/ref/mod#go-sum-files, https://go.dev/ref/mod#graph-pruning
    """
    required = {each.path: versions.get(each.path, each.version) for each in mod.requires}
    names_all = tuple(map(int, re.findall("[0-9]{1,9}", mod.go)[:2])) >= (1, 17)
    there = {tuple(line.split()[:2]) for line in text.splitlines()}
    added: dict[tuple[str, ...], str] = {}
    for line in (line for each in others for line in each.splitlines()):
        words = line.split()
        if len(words) != 3 or words[0] in ours:
            continue
        path, version, _ = words
        is_compiled = required.get(path, "" if names_all else version) == version
        if (path, version) not in there and (version.endswith("/go.mod") or is_compiled):
            added.setdefault((path, version), line)
    if not added:
        return text
    lines = sorted([*filter(str.strip, text.splitlines()), *added.values()], key=_sort_key)
    return "".join(f"{line}\n" for line in lines)


def read_sums(text: str) -> dict[tuple[str, str], Sums]:
    """Modules (path and version) of which a go.sum has both hashes."""
    lines = (line.split() for line in text.splitlines())
    found = {(words[0], words[1]): words[2] for words in lines if len(words) == 3}
    return {
        (path, version): Sums(value, found[path, f"{version}/go.mod"])
        for (path, version), value in found.items()
        if (path, f"{version}/go.mod") in found
    }


def find_raised_requirements(
    mod: GoMod, needed: Iterable[tuple[GoMod, str]], ours: Collection[str]
) -> dict[str, tuple[str, Sums | None]]:
    """Modules from elsewhere that one of the `needed` modules (go.mod and go.sum) requires at a
    higher version than this go.mod: that version, which counts for both, and its hashes.

    The go command builds nothing until go.mod says so. https://go.dev/ref/mod#minimal-version-selection
    """
    versions = {require.path: require.version for require in mod.requires}
    raised: dict[str, tuple[str, Sums | None]] = {}
    for other, sums in needed:
        known: Mapping[tuple[str, str], Sums] | None = None
        for path, version in ((require.path, require.version) for require in other.requires):
            if path not in versions or path in ours:
                continue
            if parse_version(version) > parse_version(versions[path]):
                versions[path] = version
                known = read_sums(sums) if known is None else known
                raised[path] = version, known.get((path, version))
    return raised


def _sort_key(line: str) -> tuple[str, Version, str]:
    path, version, *_ = [*line.split(), "", ""]
    base, slash, name = version.partition("/")
    return path, parse_version(base), slash + name
