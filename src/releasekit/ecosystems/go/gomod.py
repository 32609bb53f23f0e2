"""The syntax of go.mod and go.work: parsed with positions, so that an edit changes nothing else.

https://go.dev/ref/mod#go-mod-file-lexical
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from releasekit.errors import ManifestError, Unreadable
from releasekit.host import files

if TYPE_CHECKING:
    from pathlib import Path

# The largest that are known have some hundred kilobytes, two thousand lines, and ten words in one.
MAX_BYTES: Final = 1024 * 1024
MAX_DIRECTIVES: Final = 20_000
MAX_WORDS: Final = 100
MAX_LINE_CHARS: Final = 64 * 1024
_PHYSICAL: Final = re.compile(r"[^\n]*\n|[^\n]+")
# https://github.com/golang/mod/blob/master/modfile/rule.go, isIndirect
_INDIRECT: Final = re.compile(r"[ \t]*//[ \t]*indirect(?:[ \t]*$|;(?:[ \t]|$))")
_ZERO: Final = re.compile(r"v[0-9]+\.0\.0-00010101000000-000000000000")
_TOKEN: Final = re.compile(
    r"""
      (?P<space>[ \t\r]+)
    | //.*
    | "(?P<quoted>(?:[^"\\]|\\.)*)"
    | `(?P<raw>[^`]*)`
    | (?P<arrow>=>)
    | (?P<mark>[()\[\]{},])
    | (?P<word>(?:(?!//)[^\s()\[\]{},"`])+)
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Token:
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Require:
    """`at` is where its version stands; `indirect` says that no package of the module imports it,
    as a comment beside it does. https://go.dev/ref/mod#go-mod-file-require
    """

    path: str
    version: str
    at: Token
    indirect: bool = False

    @property
    def placeholder(self) -> bool:
        """Whether nobody could require it like that: a `replace` or a go.work is meant to count."""
        return self.version == "v0.0.0" or is_zero_version(self.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replace:
    path: str
    target: str
    line: Line


@dataclass(frozen=True, slots=True, kw_only=True)
class GoMod:
    text: str
    module: str
    go: str
    requires: tuple[Require, ...]
    replaces: tuple[Replace, ...]
    lines: tuple[Line, ...]


def read_text(path: Path) -> str:
    """The text of a go.mod, go.work or version file; raises ConfigError when there is none."""
    return files.read_text(path, max_bytes=MAX_BYTES)


def parse_mod(text: str, where: str) -> GoMod:
    """`where` names the file in errors; raises ConfigError for what is no go.mod."""
    lines = tuple(_lines(text, where))
    modules = [line.words[0] for line in lines if line.verb == "module" and line.words]
    if len(modules) != 1:
        raise ManifestError(f"{where}: has {len(modules) or 'no'} module directives; write one")
    return GoMod(
        text=text,
        module=modules[0],
        go=next((line.words[0] for line in lines if line.verb == "go" and line.words), ""),
        requires=tuple(_require(line, text, where) for line in lines if line.verb == "require"),
        replaces=tuple(_replace(line, where) for line in lines if line.verb == "replace"),
        lines=lines,
    )


def used_directories(text: str, where: str) -> tuple[str, ...]:
    """The directories a go.work uses; raises ConfigError for what is no go.work."""
    return tuple(line.words[0] for line in _lines(text, where) if line.verb == "use" and line.words)


def replaces_of_work(text: str, where: str) -> tuple[Replace, ...]:
    """What a go.work replaces; raises ConfigError for what is no go.work."""
    return tuple(_replace(line, where) for line in _lines(text, where) if line.verb == "replace")


def is_zero_version(version: str) -> bool:
    """Whether it is what the go command writes for a version that there is none of.

    https://pkg.go.dev/golang.org/x/mod/module#ZeroPseudoVersion
    """
    return _ZERO.fullmatch(version) is not None


def is_directory(target: str) -> bool:
    """Whether a replacement is a directory, not a module. https://go.dev/ref/mod#go-mod-file-replace"""
    return target.startswith(("./", "../", "/")) or target in {".", ".."}


def _require(line: Line, text: str, where: str) -> Require:
    if len(line.words) != 2:
        raise ManifestError(
            f"{where}: `require {' '.join(line.words)}`; write a path and a version"
        )
    version = line.arguments[1]
    comment = text[version.end : line.end].rstrip()
    indirect = _INDIRECT.match(comment) is not None
    return Require(path=line.words[0], version=version.text, at=version, indirect=indirect)


def _replace(line: Line, where: str) -> Replace:
    words = line.words
    arrow = words.index("=>") if "=>" in words else 0
    if arrow not in {1, 2} or len(words) - arrow not in {2, 3}:
        raise ManifestError(f"{where}: `replace {' '.join(words)}`; write `replace OLD => NEW`")
    return Replace(path=words[0], target=words[arrow + 1], line=line)


def _lines(text: str, where: str) -> list[Line]:
    if "\0" in text:
        raise Unreadable(f"{where}: holds a NUL character")
    found: list[Line] = []
    verb, opened = "", 0
    inside: list[Line] = []
    offset = 0
    for number, physical in enumerate(_PHYSICAL.findall(text), start=1):
        start, end = offset, offset + len(physical)
        offset = end
        tokens = _tokens(physical, start, f"{where}:{number}")
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


def _tokens(physical: str, start: int, where: str) -> list[Token]:
    tokens: list[Token] = []
    position = 0
    line = physical.rstrip("\n")
    if len(line) > MAX_LINE_CHARS:
        raise Unreadable(f"{where}: has a line of more than {MAX_LINE_CHARS} characters")
    while position < len(line):
        match = _TOKEN.match(line, position)
        if match is None:
            raise Unreadable(f"{where}: {line[position:].strip()!r} is not understood")
        position = match.end()
        if match["space"] is None and not match[0].startswith("//"):
            text = match["quoted"] if match["quoted"] is not None else match["raw"]
            shown = match[0] if text is None else text
            if len(tokens) == MAX_WORDS:
                raise Unreadable(f"{where}: has more than {MAX_WORDS} words in one line")
            tokens.append(Token(shown, start + match.start(), start + match.end()))
    return tokens
