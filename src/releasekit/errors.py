"""Everything that can go wrong on purpose. The program tells errors apart by their class; users
look up the `problem`, which is finer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, Self, TypedDict, TypeVar, Unpack

from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

E = TypeVar("E", bound="ReleasekitError")
T = TypeVar("T")
R = TypeVar("R")

# What many call an ecosystem that goes by the name of its registry or its tool here.
_CALLED: Final = {
    "rust": "cargo",
    "crates": "cargo",
    "python": "pypi",
    "pip": "pypi",
    "node": "npm",
    "nodejs": "npm",
    "javascript": "npm",
    "typescript": "npm",
    "golang": "go",
    "java": "maven",
    "kotlin": "maven",
}


def closest(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """The one of `known` that was probably meant; nothing when none comes close."""
    from difflib import get_close_matches  # noqa: PLC0415 (only mistakes pay for it)

    # Of a longer one the end is left out, because the comparison takes quadratic time.
    known, word = list(known), word[:100]
    if (called := _CALLED.get(word.lower())) in known:
        return called
    letters = sorted(word)
    # Two letters that changed places count twice there, and are the commonest slip of all.
    if swapped := [each for each in known if sorted(each) == letters]:
        return swapped[0]
    near = get_close_matches(word, known, n=1, cutoff=cutoff)
    return near[0] if near else ""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a message: `, did you mean 'x'?`, or nothing when nothing comes close."""
    near = closest(word, known, cutoff=0.5)
    return f", did you mean {near!r}?" if near else ""


def describe_os_error(error: OSError) -> str:
    """Where and what, of those that the system raises; what the others say."""
    if error.filename is None or error.strerror is None:
        return str(error.strerror or error)
    return f"{error.filename}: {error.strerror}"


MOST_TOLD: Final = 25
# The exit code of a run that was cancelled, which has no error class below.
INTERRUPTED: Final = 130


class ErrorFields(TypedDict, total=False):
    """What `ReleasekitError.with_` can change."""

    message: str
    problem: Problem
    hint: str
    others: tuple[ReleasekitError, ...]


class ReleasekitError(Exception):
    """`str(error)` is one line for the user: what, which package or key, which value.

    `hint` says what to do about it in one line or more, and is printed below. `problem` is where
    users read more; a class has a `general` one, which an error may replace by a finer one.
    `status` is that of the HTTP response, or of the process, that the error is about, or 0.
    `others` are further errors found with this one. None of them changes: `with_` makes another.
    """

    exit_code: ClassVar[int] = 1
    general: ClassVar[Problem] = Problem.PACKAGE

    def __init__(
        self, message: str, *, problem: Problem | None = None, hint: str = "", status: int = 0
    ) -> None:
        super().__init__(message)
        self.problem: Final = problem or self.general
        self.hint: Final = hint
        self.status: Final = status
        self.others: Final[tuple[ReleasekitError, ...]] = ()

    def with_(self, **changes: Unpack[ErrorFields]) -> Self:
        """An error like this one, with the same cause, but for `changes`."""
        return _copy(self, changes)


class ConfigError(ReleasekitError):
    """An input, a flag, or a line of a configuration or manifest file that cannot be used."""

    exit_code = 2
    general = Problem.VALUE


class PathError(ConfigError):
    """A path that leads nowhere, elsewhere, or to the wrong kind of thing."""

    general = Problem.PATH


class Unreadable(ConfigError):
    """A file of the workspace that cannot be read for what it should be."""

    general = Problem.UNREADABLE


class ManifestError(ConfigError):
    """A value in a manifest that cannot be used."""

    general = Problem.MANIFEST


class MembersError(ConfigError):
    """A workspace that names what is not there, or too much."""

    general = Problem.MEMBERS


class UnnamedRegistry(ConfigError):
    """Credentials would go to a registry that no input names."""

    general = Problem.UNNAMED_REGISTRY


class PlanError(ReleasekitError):
    """The plan is impossible: a cycle, an unknown dependency, a version that is not there."""

    exit_code = 3
    general = Problem.PLAN


def _copy(error: E, changes: Mapping[str, object]) -> E:
    fields = {**vars(error), **changes}
    copy = type(error).__new__(type(error), fields.pop("message", str(error)))
    vars(copy).update(fields)
    copy.__cause__ = error.__cause__
    return copy.with_traceback(error.__traceback__)


def told_of(error: ReleasekitError) -> list[ReleasekitError]:
    """It and those found with it, as many as anybody reads."""
    found = [error, *error.others]
    if len(found) > MOST_TOLD:
        rest = len(found) - MOST_TOLD
        found[MOST_TOLD:] = [ConfigError(f"and {rest} more like these", problem=error.problem)]
    return found


def map_all(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """`function` of each. Where it refuses some, raises the first refusal, which holds the others:
    a user who sees one at a time needs a run for each.
    """
    found: list[R] = []
    refused: list[ReleasekitError] = []
    for item in items:
        try:
            found.append(function(item))
        except (ConfigError, PlanError) as error:
            refused.append(error)
    raise_all(refused)
    return found


def join_errors(errors: Sequence[E]) -> E:
    """The first, which holds the others without repeats: each is told in a line of its own."""
    found: dict[str, ReleasekitError] = {}
    for error in errors:
        told: list[ReleasekitError] = [error, *error.others]
        for each in told:
            found.setdefault(str(each), each)
    _, *others = found.values()
    return errors[0].with_(others=tuple(others))


def raise_all(errors: Sequence[ReleasekitError]) -> None:
    """Raises what `join_errors` makes of them, if there are any."""
    if errors:
        raise join_errors(errors)


class Cycle(PlanError):
    """`names` are the members in the order they need each other, starting with the smallest."""

    general = Problem.CYCLE

    def __init__(
        self,
        message: str,
        *,
        names: tuple[str, ...],
        problem: Problem | None = None,
        hint: str = "",
    ) -> None:
        super().__init__(message, problem=problem, hint=hint)
        self.names: Final = names


class UnknownDependency(PlanError):
    """Something depends on a name that nothing in the plan has."""

    general = Problem.UNKNOWN_DEPENDENCY


class MissingCredentials(PlanError):
    """Something has to be uploaded and nothing says as whom."""

    general = Problem.NO_CREDENTIALS


class DeadlinePassed(ReleasekitError):
    """The run's time was over before anything was begun."""

    exit_code = INTERRUPTED
    general = Problem.DEADLINE


class LockHeld(ReleasekitError):
    """Another run owns this ecosystem of this workspace."""

    exit_code = 4
    general = Problem.LOCKED


class PackageError(ReleasekitError):
    """Ends one package; the others go on."""


class ChangedMeanwhile(PackageError):
    """Files or sources are not what they were; nothing was sent."""

    general = Problem.CHANGED_MEANWHILE


class BuildFailed(PackageError):
    """`log` holds the last lines of the build's output, redacted. A `premature` build lacks nothing
    but what the release itself is going to publish, or was to build.
    """

    general = Problem.BUILD_FAILED

    def __init__(
        self,
        message: str,
        *,
        log: tuple[str, ...] = (),
        premature: bool = False,
        problem: Problem | None = None,
        hint: str = "",
        status: int = 0,
    ) -> None:
        super().__init__(message, problem=problem, hint=hint, status=status)
        self.log: Final = log
        self.premature: Final = premature


class CommandFailed(BuildFailed):
    """A child process ended with a non-zero exit status or was killed."""


class Rejected(PackageError):
    """The registry said no and would say no again: final, never retried."""

    general = Problem.REFUSED


class Denied(Rejected):
    """401 or 403: the registry does not accept our credentials for this."""

    general = Problem.DENIED


class StageOnly(Denied):
    """The identity may not publish, but may stage, for a person to approve."""

    general = Problem.STAGE_ONLY


class CodeWanted(Denied):
    """A person has to be there: no code was given, or one that the registry takes no longer.

    `page` is where that person can say so instead of typing a code, and `answer` where the registry
    then tells a code; both are empty where it has no such page.
    """

    general = Problem.CODE_WANTED

    def __init__(self, message: str, *, page: str = "", answer: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.page: Final = page
        self.answer: Final = answer


class DigestMismatch(PackageError):
    """The registry holds other bytes under this version: final, never retried."""

    general = Problem.OTHER_BYTES


class Undecided(PackageError):
    """It is unknown whether the registry has our bytes; the next run resolves that first."""

    general = Problem.UNDECIDED


class TransientFields(ErrorFields, total=False):
    """What `Transient.with_` can change."""

    ambiguous: bool
    retry_after: float
    asked_s: float
    retry_at: str


class Transient(PackageError):
    """Worth another attempt. `retry_after` is in seconds, None when the registry named no time;
    where only a part of it is the registry's own wish, `asked_s` is that part. `retry_at` is what
    was added to the message because that is too long.

    `ambiguous` is True when the request may have taken effect anyway (the connection broke after
    the first byte was sent, a time-out, a 5xx): ask the registry before any verdict. A `contended`
    request failed because of others beside it. A `limited` one came too soon for the registry, or
    for what is known of its limits: one with a `retry_after`, unless told otherwise. Where all
    requests to that server are `slowed_down` for it, it says little about this one.
    """

    general = Problem.UNREACHABLE

    def __init__(
        self,
        message: str,
        *,
        retry_after: float | None = None,
        ambiguous: bool = False,
        contended: bool = False,
        limited: bool | None = None,
        slowed_down: bool = False,
        asked_s: float | None = None,
        problem: Problem | None = None,
        hint: str = "",
        status: int = 0,
    ) -> None:
        super().__init__(message, problem=problem, hint=hint, status=status)
        self.retry_after: Final = retry_after
        self.limited: Final = retry_after is not None if limited is None else limited
        self.slowed_down: Final = slowed_down
        self.asked_s: Final = asked_s
        self.retry_at: Final = ""
        self.ambiguous: Final = ambiguous
        self.contended: Final = contended

    def with_(self, **changes: Unpack[TransientFields]) -> Self:
        return _copy(self, changes)


class CircuitOpen(Transient):
    """Nothing was sent: the registry is down, and the circuit stays open for `retry_after`. Waiting
    for the end of that does not count as an attempt.
    """

    general = Problem.DOWN


class UnderReview(Transient):
    """The registry still looks at what waits there, and takes no approval before it has done so."""

    general = Problem.UNDER_REVIEW


class JournalError(ReleasekitError):
    """The journal is damaged before its tail."""

    exit_code = 3
    general = Problem.JOURNAL_DAMAGED


class JournalNewer(JournalError):
    """Written by a version that knew more than this one: sound, and not to be touched."""

    general = Problem.JOURNAL_NEWER


class JournalUnwritable(JournalError):
    """The disk is full, broken or read-only: nothing new may begin."""

    exit_code = 1
    general = Problem.DISK


class StateError(ReleasekitError):
    """What is on disk and what the journal says differ; nothing was changed."""

    exit_code = 3
    general = Problem.STATE


class StateUnwritable(StateError):
    """The disk is full or read-only: nothing is wrong with what is on it."""

    exit_code = 1
    general = Problem.DISK
