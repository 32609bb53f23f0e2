"""One function per kind of input: the text a user wrote → the value, or what to write instead."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from releasekit.errors import closest
from releasekit.host.forges import NESTED_REPOSITORY, REPOSITORY, ForgePlace

if TYPE_CHECKING:
    from collections.abc import Sequence

# What happens to requirements on packages of the same workspace.
PinMode = Literal["auto", "exact", "none"]
# Whether it is signed where files come from.
AttestationMode = Literal["auto", "required", "off"]
# Whether the identity of this job stands in for a token.
TrustedPublishing = Literal["auto", "always", "never"]
# Whether versions wait, out of everybody's reach, until a person approves them.
StageMode = Literal["auto", "always", "never"]
# An input longer than this is a mistake; releasekit.toml as a whole has its own limit.
MAX_CHARS: Final = 64 * 1024
MAX_ITEMS: Final = 1000
_SECONDS: Final = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*([smh]?)")
_DIRECTORY: Final = "dir:"
_LABEL: Final = re.compile(r"(?!latest$|v*x$|v+[0-9])(?=.{1,50}$)[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
# As it stands in an address bar, in package.json, or in what git clones.
_REPOSITORY_URL: Final = re.compile(
    rf"(?:git\+)?(?i:https://github\.com/|git@github\.com:|github:)({REPOSITORY.pattern}?)(?:\.git)?/?"
)
_REPOSITORY_PAGE: Final = re.compile(
    rf"(https://(?!(?i:(?:www\.)?github\.com)[:/])[A-Za-z0-9.-]+(?::[0-9]{{1,5}})?)"
    rf"(/{NESTED_REPOSITORY.pattern})"
)
# Of GitLab, the CI file may be in any directory.
_CI_FILE: Final = re.compile(r"(?!/|.*\.\./)[^\\\x00-\x20\x7f@]{1,250}\.ya?ml")
WORKFLOW: Final = re.compile(r"(?:\.github/workflows/)?([^/\\\x00-\x20\x7f]{1,250}\.ya?ml)")
# The index of a registry, as cargo's own configuration writes it.
_SPARSE: Final = "sparse+"
_URL: Final = re.compile(rf"(?:{re.escape(_SPARSE)})?https?://.")


class Directory(Struct, frozen=True):
    """A static directory that serves as a registry."""

    path: Path

    def __str__(self) -> str:
        """As inputs, messages, the journal and reports have it."""
        return f"{_DIRECTORY}{self.path}"


class Url(Struct, frozen=True):
    """A registry on a server. `only_in` says which file names it where no input does: a file
    need not come from the owner of the credentials, so none are sent there.
    """

    text: str
    only_in: str = ""

    def __str__(self) -> str:
        return self.text


class Name(Struct, frozen=True):
    """A registry that the configuration of the ecosystem's own tool knows by this name."""

    text: str

    def __str__(self) -> str:
        return self.text


class Dist(Struct, frozen=True):
    """A directory of files that were built elsewhere, as `label` names it. All of them belong to
    `owner`, an ecosystem or ECOSYSTEM:NAME; to any where it is empty.
    """

    path: Path
    label: str = ""
    owner: str = ""


class InvalidValue(ValueError):
    """`str(error)` completes the sentence `concurrency = "x" …`."""


def bounded(value: str) -> str:
    if len(value) > MAX_CHARS:
        raise InvalidValue(f"is longer than {MAX_CHARS} characters; write less")
    return value


def text(value: str) -> str:
    """Any one line without control characters: paths and names go into messages and commands."""
    if not value.isprintable():
        raise InvalidValue("holds a line break or a control character; write one plain line")
    return value


def choice(value: str, choices: Sequence[str]) -> str:
    if value not in choices:
        listed = " or ".join([", ".join(choices[:-1]), choices[-1]] if choices[1:] else choices)
        near = closest(value, choices, cutoff=0.5)
        meant = f'; did you mean "{near}"?' if near else ""
        raise InvalidValue(f"is not known; write {listed}{meant}")
    return value


def boolean(value: str) -> bool:
    """`true` or `false` alone: "yes", "1" and "on" mean different things in different files."""
    if value not in {"true", "false"}:
        raise InvalidValue("is neither true nor false; write true or false")
    return value == "true"


def integer(value: str, minimum: int, maximum: int) -> int:
    wanted = f"write a whole number from {minimum} to {maximum}"
    if not re.fullmatch(r"[0-9]{1,9}", value):
        raise InvalidValue(f"is not a whole number; {wanted}")
    if not minimum <= int(value) <= maximum:
        raise InvalidValue(f"is out of range; {wanted}")
    return int(value)


def duration(value: str, minimum_s: float, maximum_s: float) -> float:
    """Seconds, of `30`, `30s`, `20m`, `1.5h`."""
    match = _DURATION.fullmatch(value)
    if not match:
        raise InvalidValue("is not a duration; write one like 30, 30s, 20m or 1h")
    seconds = float(match[1]) * _SECONDS[match[2]]
    if not minimum_s <= seconds <= maximum_s:
        raise InvalidValue(f"is out of range; write {minimum_s:g}s to {maximum_s:g}s")
    return seconds


def items(value: str, separator: str, choices: Sequence[str] = ()) -> tuple[str, ...]:
    """What `separator` (a regular expression) leaves of `value`, trimmed, without the empty."""
    found = tuple(text(item.strip()) for item in re.split(separator, value) if item.strip())
    if len(found) > MAX_ITEMS:
        raise InvalidValue(f"has more than {MAX_ITEMS} entries; write globs instead")
    for item in found if choices else ():
        choice(item, choices)
    return found


def snapshot_label(value: str) -> str:
    """A part of versions, and a dist-tag, which npm tells apart from ranges such as `v1` and `x`.

    https://docs.npmjs.com/cli/v11/commands/npm-dist-tag#caveats
    """
    if not _LABEL.fullmatch(value):
        raise InvalidValue("is no label; write a word such as pr-97, not latest and no range")
    return value


def branch(value: str) -> str:
    """The name alone, as `branches` has it: CIs tell it as a ref, and Jenkins with its remote."""
    name = value.removeprefix("refs/heads/")
    told = re.sub(r"\A(?:refs/remotes/)?origin/", "", name)
    if told != name:
        raise InvalidValue(f"names a remote, too; write {told}")
    if name.startswith("refs/"):
        raise InvalidValue("is not a branch; write the name of one, such as main")
    return name


def repository(value: str) -> str:
    """OWNER/NAME at github.com, or the page of a project at a GitLab; or empty."""
    url = _REPOSITORY_URL.fullmatch(value)
    if not value or REPOSITORY.fullmatch(value):
        return value
    page = _REPOSITORY_PAGE.fullmatch(value.removesuffix("/").removesuffix(".git"))
    if page:
        return f"{page[1].lower()}{page[2]}"  # an issuer is compared as it is
    way = url[1] if url else "OWNER/NAME, or of GitLab https://gitlab.com/GROUP/PROJECT"
    raise InvalidValue(f"is not the name of a repository; write {way}")


def forge(value: str) -> ForgePlace:
    try:
        return ForgePlace.parse(text(value))
    except ValueError as error:
        raise InvalidValue(str(error)) from error


def web_address(value: str) -> str:
    """Of a page. Reports link to one without encryption on this machine alone."""
    if text(value).startswith(("https://", "http://")):
        return value
    raise InvalidValue("is not the address of a page; write one like https://ci.example.com/17")


def workflow(value: str) -> str:
    """The name of its file, or of GitLab its path."""
    if found := WORKFLOW.fullmatch(value):
        return found[1]
    if _CI_FILE.fullmatch(value):
        return value
    raise InvalidValue("is not the file of a workflow; write its name, like release.yml")


def path_or_url(value: str) -> Path | Url:
    return Url(value) if "://" in value else Path(value)


def version_or_path(value: str) -> str | Path:
    """A path has a slash, or names a file of JSON."""
    return Path(value) if "/" in value or value.endswith(".json") else text(value)


def registry(value: str) -> Directory | Url:
    """The shape only: which URLs and names are good, and where a relative directory starts, is
    decided by the code that knows the other inputs.
    """
    if _URL.match(value):
        if "?" in value or "#" in value:
            raise InvalidValue("has a query or a fragment; write the address up to its ? or #")
        return Url(text(value.removeprefix(_SPARSE)))
    if not value.startswith(_DIRECTORY) or value == _DIRECTORY:
        raise InvalidValue("is neither an address nor dir:PATH; write https://… or dir:PATH")
    return Directory(Path(text(value.removeprefix(_DIRECTORY))))


def named_registry(value: str) -> Directory | Url | Name:
    """As `registry`, or a name."""
    # https://github.com/rust-lang/cargo/blob/master/crates/cargo-util-schemas/src/restricted_names.rs
    if re.fullmatch(r"[A-Za-z_][\w-]*", value, re.ASCII):
        return Name(value)
    if _URL.match(value):
        return registry(value)
    try:
        return registry(value)
    except InvalidValue as error:
        raise InvalidValue(
            "is neither a URL, a directory nor a name; write https://…, dir:PATH or NAME"
        ) from error
