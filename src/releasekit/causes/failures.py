"""Why single packages fail while a release goes on, one class for each cause that users look up.

They mean to the program what the class of `errors` above them means.
"""

from __future__ import annotations

from releasekit.errors import (
    BuildFailed,
    CommandFailed,
    Denied,
    PackageError,
    Rejected,
    Transient,
    Undecided,
)
from releasekit.problems import Problem


class CommandTimedOut(CommandFailed):
    """A child process was killed because it took too long."""

    problem = Problem.BUILD_TIMED_OUT


class CannotStart(CommandFailed):
    """A child process did not even begin."""

    problem = Problem.CANNOT_START


class BuildTimedOut(BuildFailed):
    """The time of a task was over before the build was."""

    problem = Problem.BUILD_TIMED_OUT


class BuildToolMissing(BuildFailed):
    """What builds is not installed."""

    problem = Problem.BUILD_TOOL


class BuiltOtherwise(BuildFailed):
    """A build has ended, and not with what was planned."""

    problem = Problem.BUILT_OTHERWISE


class NoPlaceToBuild(BuildFailed):
    """The disk is full, or a file of a build cannot be read or written."""

    problem = Problem.NO_PLACE_TO_BUILD


class NotCommitted(BuildFailed):
    """What is published from a commit is in none."""

    problem = Problem.NOT_COMMITTED


class NotPublishable(BuildFailed):
    """What was built is no package that others could install."""

    problem = Problem.NOT_A_PACKAGE


class FollowUpFailed(BuildFailed):
    """The package is published; what was to follow has not happened."""

    problem = Problem.FOLLOW_UP


class NotAPackage(PackageError):
    """A file is no package of its kind."""

    problem = Problem.NOT_A_PACKAGE


class ChangedMeanwhile(PackageError):
    """Files or sources are not what they were; nothing was sent."""

    problem = Problem.CHANGED_MEANWHILE


class GoesTogether(PackageError):
    """It is of no use without another package, which has failed."""

    problem = Problem.GOES_TOGETHER


class HeldBack(PackageError):
    """It needs what waits for a person's approval."""

    problem = Problem.WAITS_FOR_APPROVAL


class NotPublishedElsewhere(PackageError):
    """Another job was to publish it, and has not."""

    problem = Problem.OTHER_JOB


class NotAsBegun(PackageError):
    """An earlier run began to send other files than this one would."""

    problem = Problem.OTHER_BYTES


class WrongAddress(Rejected):
    """The answer leads to another place, or to none."""

    problem = Problem.WRONG_ADDRESS


class StrangeAnswer(Rejected):
    """No registry answers like that."""

    problem = Problem.STRANGE_ANSWER


class DirectoryUnusable(Rejected):
    """A registry that is a directory cannot be read or written."""

    problem = Problem.DIRECTORY


class VersionGone(Rejected):
    """The registry had the version, and never takes it again."""

    problem = Problem.VERSION_GONE


class UntrustedCertificate(Rejected):
    """Nobody who is trusted vouches for the server."""

    problem = Problem.CERTIFICATE


class TagRefused(Rejected):
    """A tag cannot be pushed, or would be of no use."""

    problem = Problem.TAG_REFUSED


class CannotApprove(Rejected):
    """What waits is not there, or nothing can come of it."""

    problem = Problem.CANNOT_APPROVE


class NotTrusted(Denied):
    """The registry issues no token to this job."""

    problem = Problem.NOT_TRUSTED


class WaitsDifferent(PackageError):
    """What waits for approval is not what the run staged."""

    problem = Problem.WAITS_DIFFERENT


class NotVisible(Undecided):
    """The registry took it, and did not show it in time."""

    problem = Problem.NOT_VISIBLE


class Garbled(Transient):
    """An answer that no registry gives; the next one may be better."""

    problem = Problem.STRANGE_ANSWER


class NotSentInTime(Transient):
    """The time of a task was over before the upload was."""

    problem = Problem.NOT_SENT_IN_TIME


class NotSigned(Transient):
    """There is no attestation of a file, and so the file is not sent."""

    problem = Problem.NOT_SIGNED


class RunArtifacts(PackageError):
    """What a workflow run has left cannot be read."""

    problem = Problem.RUN_ARTIFACTS


class ResultsUnfit(Rejected):
    """Results name what the registry has no such name for."""

    problem = Problem.CANNOT_APPROVE


class NotThere(Rejected):
    """What it needs was neither published nor staged."""

    problem = Problem.CANNOT_APPROVE


class InputChanged(BuildFailed):
    """A file that was built elsewhere is not what it was."""

    problem = Problem.CHANGED_MEANWHILE


class TooSoon(Transient):
    """What is known of the registry's limits says to wait."""

    problem = Problem.RATE_LIMITED


class DirectoryLocked(Transient):
    """Another process writes to the same directory."""

    problem = Problem.DIRECTORY


class GoSumMissing(BuildFailed):
    """Nobody vouches for what a Go module requires."""

    problem = Problem.GO_SUM


class SigningFailed(BuildFailed):
    """gpg made no signature."""

    problem = Problem.SIGNING


class RequirementsUnavailable(BuildFailed):
    """The environment for a build cannot be made."""

    problem = Problem.BUILD_REQUIREMENTS


class WarnedBuild(BuildFailed):
    """What was built has a warning that is an error."""

    problem = Problem.WARNING_OF_BUILD


class HoldsState(BuildFailed):
    """What was built holds what runs keep for themselves."""

    problem = Problem.STATE_IN_PACKAGE


class NoPlaceForOutput(CommandFailed):
    """What a child process printed cannot be kept."""

    problem = Problem.NO_PLACE_TO_BUILD


class TooLarge(PackageError):
    """More than the registry takes at once."""

    problem = Problem.REFUSED


class ForeignTag(Rejected):
    """Another tag has the name, and keeps it."""

    problem = Problem.TAG_FOREIGN


class NotTagged(PackageError):
    """A published version has no tag yet."""

    problem = Problem.TAG_OWED


class NotAnnounced(PackageError):
    """A tag has no release at the forge yet."""

    problem = Problem.NOT_ANNOUNCED
