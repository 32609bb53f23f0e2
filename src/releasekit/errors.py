"""Everything that can go wrong on purpose: one tree, each class with the exit code it leads to."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from collections.abc import Iterable


def closest(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """The one of `known` that was probably meant; nothing when none comes close."""
    from difflib import get_close_matches  # noqa: PLC0415 (only mistakes pay for it)

    # Of a longer one the end is left out, because the comparison takes quadratic time.
    known, word = list(known), word[:100]
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


# The exit code of a run that was cancelled, which is no error of the tree below.
INTERRUPTED: Final = 130


class ReleasekitError(Exception):
    """`str(error)` is one line for the user: what, which package or key, which value.

    `hint` says what to do about it, and is printed below.
    """

    exit_code: ClassVar[int] = 1
    hint: str = ""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        if hint:
            self.hint = hint


class ConfigError(ReleasekitError):
    """An input, a flag, or a line of a configuration or manifest file that cannot be used."""

    exit_code = 2


class PlanError(ReleasekitError):
    """The plan is impossible: a cycle, an unknown dependency, a version that is not there."""

    exit_code = 3


class Cycle(PlanError):
    """`names` are the members in the order they need each other, starting with the smallest."""

    def __init__(self, message: str, *, names: tuple[str, ...], hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.names = names


class UnknownDependency(PlanError):
    """Something depends on a name that nothing in the plan has."""


class MissingCredentials(PlanError):
    """Something has to be uploaded and nothing says as whom."""


class DeadlinePassed(ReleasekitError):
    """The run's time was over before anything was begun."""

    exit_code = INTERRUPTED


class LockHeld(ReleasekitError):
    """Another run owns this ecosystem of this workspace."""

    exit_code = 4


class PackageError(ReleasekitError):
    """Ends one package; the others go on."""


class BuildFailed(PackageError):
    """`log` holds the last lines of the build's output, redacted. A `premature` build lacks nothing
    but what the release itself is going to publish.
    """

    def __init__(
        self, message: str, *, log: tuple[str, ...] = (), hint: str = "", premature: bool = False
    ) -> None:
        super().__init__(message, hint=hint)
        self.log = log
        self.premature = premature


class CommandFailed(BuildFailed):
    """A child process ended with a non-zero exit status or was killed."""


class Rejected(PackageError):
    """The registry said no and would say no again: final, never retried."""


class Denied(Rejected):
    """401 or 403: the registry does not accept our credentials for this."""


class StageOnly(Denied):
    """Whoever asks may not publish, but may stage, for a person to approve."""


class CodeWanted(Denied):
    """A person has to be there: no code was given, or one that the registry takes no longer.

    `page` is where that person can say so instead of typing a code, and `answer` where the registry
    then tells a code; both are empty where it has no such page.
    """

    def __init__(self, message: str, *, page: str = "", answer: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.page = page
        self.answer = answer


class DigestMismatch(PackageError):
    """The registry holds other bytes under this version: final, never retried."""


class Undecided(PackageError):
    """Nobody can say whether the registry has our bytes; the next run resolves it first."""


class Transient(PackageError):
    """Worth another attempt. `retry_after` is in seconds, None when the registry named no time;
    where only a part of it is the registry's own wish, `asked_s` is that part. `come_back` is what
    was added to the message because that is too long.

    `ambiguous` is True when the request may have taken effect anyway (the connection broke after
    the first byte was sent, a time-out, a 5xx): ask the registry before any verdict. A `crowded`
    request failed because of others beside it. `limited` is one that came too soon for the registry
    (or for what is known of its limits); it is, wherever a time was named.
    """

    def __init__(
        self,
        message: str,
        *,
        retry_after: float | None = None,
        ambiguous: bool = False,
        crowded: bool = False,
        hint: str = "",
    ) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after
        self.limited = retry_after is not None
        self.asked_s: float | None = None
        self.come_back = ""
        self.ambiguous = ambiguous
        self.crowded = crowded


class LeftAlone(Transient):
    """Nothing was asked: the registry is down, and gets a rest for `retry_after`. To wait for the
    end of that is no attempt.
    """


class UnderReview(Transient):
    """The registry still looks at what waits there, and takes no approval before it has done so."""


class JournalError(ReleasekitError):
    """The journal is damaged before its tail."""

    exit_code = 3


class JournalNewer(JournalError):
    """Written by a version that knew more than this one: sound, and not to be touched."""


class JournalUnwritable(JournalError):
    """The disk is full, broken or read-only: nothing new may begin."""

    exit_code = 1


class StateError(ReleasekitError):
    """What is on disk and what the journal says differ; nothing was changed."""

    exit_code = 3


class StateUnwritable(StateError):
    """The disk is full: nothing is wrong with what is on it."""

    exit_code = 1
