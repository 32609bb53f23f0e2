"""Which programs git would start with a login, and whether a build could write one of them."""

from __future__ import annotations

import itertools
import os
import re
import shlex
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

# What a shell does with them is not known before it does it.
_OPERATORS: Final = re.compile(r"[;&|()<>`\n]")
# What may stand before and after a path, in an option or in a script.
_EDGES: Final = re.compile(r"[\s;&|()<>`'\"{}=,:%#]+")
_VARIABLE: Final = re.compile(r"\$\{(\w+)\}|\$\{?(\w+)")
_ABSOLUTE: Final = re.compile(r"(?:~?/).*", re.DOTALL)
_DEVICES: Final = frozenset({"/dev/null", "/dev/tty"})
# Of a text that quotes a text that quotes one, and so on.
_MOST_QUOTED: Final = 4
# Options whose file is a key, or no more than read. https://man.openbsd.org/ssh_config
_DATA: Final = {
    "ssh": re.compile(
        r"(?:-i|-o)?(?:(?:IdentityFile|CertificateFile|(?:User|Global)KnownHostsFile)[=\s]\s*)?",
        re.IGNORECASE,
    ),
    # https://git-scm.com/docs/git-credential-store, https://git-scm.com/docs/git-credential-cache
    "store": re.compile(r"--file=?"),
    "cache": re.compile(r"--socket=?"),
}


def find_open_program(
    named: Iterable[tuple[str, str]],
    top: Path,
    environment: Mapping[str, str],
    can_change: Callable[[Path], bool],
) -> tuple[str, str] | None:
    """The name of a command, and the path in it that builds can write or that is relative to `top`,
    where git does not run. The shell that gets the command has this `environment`.

    Nobody runs the shell to learn what it does: each path counts that a command has in any option,
    variable or script, but for keys and the like, whose options are known.
    """
    for name, command in named:
        for path in _list_paths(_drop_data(command.removeprefix("!"), environment), environment):
            if path in _DEVICES:
                continue
            if path.startswith("/"):
                if can_change(Path(path)):
                    return name, path
            elif "/" in path and os.path.isfile(top / path):  # noqa: PTH113 - raises nothing
                return name, path
    return None


def _list_paths(command: str, environment: Mapping[str, str]) -> Iterator[str]:
    for text in _list_texts(command, _MOST_QUOTED):
        expanded = _expand(text, environment)
        yield expanded  # a path may have any character
        for piece in _EDGES.split(expanded):
            yield piece
            if found := _ABSOLUTE.search(piece):
                yield _expand(found[0], environment)


def _list_texts(text: str, depth: int) -> Iterator[str]:
    """It, and what a shell makes of its quotes; each of these may be a script of another shell."""
    yield text
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        words = list(lexer)
    except ValueError:
        return  # quotes are open: its pieces are looked at all the same
    for word in words:
        if depth and word != text:
            yield from _list_texts(word, depth - 1)


def _expand(text: str, environment: Mapping[str, str]) -> str:
    known = _VARIABLE.sub(lambda each: environment.get(each[1] or each[2], ""), text)
    home = environment.get("HOME", "")
    return home + known[1:] if home and (known == "~" or known.startswith("~/")) else known


def _drop_data(command: str, environment: Mapping[str, str]) -> str:
    """The command without the absolute paths of files that its program does not obey."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    data = _DATA.get(PurePath(words[0]).name) if words else None
    if data is None or _OPERATORS.search(command):
        return command
    kept = words[:1]
    for before, word in itertools.pairwise(words):
        option = data.match(word)
        rest = word[option.end() :] if option else word
        is_named = bool(option and option[0]) or bool(before and data.fullmatch(before))
        if not (is_named and _expand(rest, environment).startswith("/")):
            kept.append(word)
    return shlex.join(kept)
