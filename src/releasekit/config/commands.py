"""The commands: one row for each. The module that a row names carries the command out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Command = Literal[
    "init",
    "check",
    "version",
    "preview",
    "release-pr",
    "plan",
    "publish",
    "status",
    "approve",
    "reject",
    "report",
    "verify",
    "notes",
    "change",
    "trust",
    "doctor",
]

_EXIT_CODES: Final = """\
exit codes:
  0    every package is published or was before, or is staged for approval
  1    at least one package failed, is blocked, or is unknown
  2    the configuration or an input is wrong
  3    the plan is impossible: a cycle, an unknown dependency, no credentials;
       or one of its warnings counts as an error
  4    another run holds the lock
  130  cancelled
"""
_VERIFIED_CODES: Final = """\
exit codes:
  0    all files are verified
  1    at least one file is not verified, or has no attestation
  2    the configuration or an input is wrong
  130  cancelled
"""
_CHECK_CODES: Final = """\
exit codes, of what stands first among the things to do:
  0    nothing is missing
  1    an earlier run left something behind
  2    a tool is missing, or the configuration or an input is wrong
  3    credentials are missing
  4    with --fix: another run holds the lock
  130  cancelled
"""
_INIT_CODES: Final = """\
exit codes:
  0    the files are written, or were there
  2    the configuration or an input is wrong
  130  cancelled
"""
_VERSION_CODES: Final = """\
exit codes:
  0    the versions are written or shown, or there are none
  1    with --check: there is something to write
  2    the configuration or an input is wrong
  3    a version cannot be decided or written, or a warning counts as an error
  4    another run holds the lock
  130  cancelled
"""
_PREVIEW_CODES: Final = """\
exit codes:
  0    it is shown
  2    the configuration or an input is wrong
  3    a version cannot be decided, or a warning counts as an error
  130  cancelled
"""
_RELEASE_PR_CODES: Final = """\
exit codes:
  0    the pull request is up to date, or there is none to open
  1    GitHub refuses, or does not answer
  2    the configuration or an input is wrong
  3    a version cannot be decided or written, or a warning counts as an error
  4    another run holds the lock
  130  cancelled
"""
_CHANGE_CODES: Final = """\
exit codes:
  0    the file is written, or with --check: none is missing
  1    with --check: nothing speaks for a package that changes
  2    a package is unknown, something is missing, or the configuration is wrong
  130  cancelled
"""
_STATUS_CODES: Final = """\
exit codes:
  0    everything is there; with --smoke: and each client resolves it
  1    something is missing, not resolved, or unknown
  2    the configuration or an input is wrong
  130  cancelled
"""
_TRUST_CODES: Final = """\
exit codes:
  0    it is shown; with --write: added where the registry lets a program do that
  1    with --check: a package does not trust the workflow, or cannot be asked about;
       with --write: a registry refuses
  2    the configuration or an input is wrong
  130  cancelled
"""
_TRUST_CREDENTIALS: Final = """\
credentials, as variables:
  RELEASEKIT_CARGO_TOKEN  a token of an owner with the scope trusted-publishing
  RELEASEKIT_NPM_TOKEN    default: the login of `npm login`

"""
_CREDENTIALS: Final = """\
credentials, as variables:
  RELEASEKIT_NPM_TOKEN    default: the login of `npm login`
  RELEASEKIT_NPM_OTP      a one-time code, where no terminal can ask for it
  RELEASEKIT_MAVEN_USERNAME, RELEASEKIT_MAVEN_PASSWORD
  GH_TOKEN                for --run: reads the artifacts of the run

"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Positional:
    """The input that needs no flag: its name, what help calls it, and what an error calls one of
    it. Of `several`, some may stand behind a flag.
    """

    input: str
    metavar: str
    help: str
    noun: str
    several: bool = False


_ROOT: Final = Positional(
    input="working-directory",
    metavar="ROOT",
    help="the workspace; default: here",
    noun="workspace",
)
_RESULTS: Final = Positional(
    input="results-file",
    metavar="RESULTS",
    help="results.json of the run that staged; default: the one in the state directory",
    noun="file of results",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRow:
    """`module` has `run`, from a Config and a Session to an exit code. `credentials` is the part of
    its help about them; by default, help lists the secrets among its inputs. Where it
    `summarizes_errors`, the job summary tells of one that ends it early; for the other commands,
    that of an earlier job does. The name of one that `is_old` still works; help leaves it out.
    """

    about: str
    module: str
    positional: Positional = _ROOT
    credentials: str = ""
    exit_codes: str = _EXIT_CODES
    summarizes_errors: bool = False
    is_old: bool = False


COMMANDS: Final[Mapping[Command, CommandRow]] = {
    "init": CommandRow(
        about="Write the workflow that releases this repository, and say what comes next.",
        module="releasekit.cli.init",
        exit_codes=_INIT_CODES,
    ),
    "check": CommandRow(
        about="Say what a release from here needs, and what earlier runs left. Asks no registry.",
        module="releasekit.cli.check",
        exit_codes=_CHECK_CODES,
    ),
    "version": CommandRow(
        about="Write the versions that the changes since the last release ask for.",
        module="releasekit.cli.version",
        exit_codes=_VERSION_CODES,
        summarizes_errors=True,
    ),
    "preview": CommandRow(
        about="Show what merging a pull request, or the branch at hand, would release.",
        module="releasekit.cli.preview",
        exit_codes=_PREVIEW_CODES,
        summarizes_errors=True,
    ),
    "release-pr": CommandRow(
        about="Open the pull request with the next versions, bring it up to date, or close it.",
        module="releasekit.cli.release_pr",
        exit_codes=_RELEASE_PR_CODES,
        summarizes_errors=True,
    ),
    "plan": CommandRow(
        about="Show what would be published, and in which order. Changes nothing.",
        module="releasekit.cli.plan",
        summarizes_errors=True,
    ),
    "publish": CommandRow(
        about="Publish every package that is not published yet, dependencies first.",
        module="releasekit.cli.publish",
        summarizes_errors=True,
    ),
    "status": CommandRow(
        about="Say what users can install now: what is there, missing, or needs what is missing.",
        module="releasekit.cli.status",
        positional=Positional(
            input="release",
            metavar="VERSION|RESULTS",
            help="a version that all packages have, or results.json of a run; default: the "
            "versions of the workspace",
            noun="release",
        ),
        exit_codes=_STATUS_CODES,
    ),
    "approve": CommandRow(
        about="Review the staged versions of a release, and approve them, dependencies first.",
        module="releasekit.cli.approve",
        positional=_RESULTS,
        credentials=_CREDENTIALS,
    ),
    "reject": CommandRow(
        about="Reject the staged versions of a release.",
        module="releasekit.cli.approve",
        positional=_RESULTS,
        credentials=_CREDENTIALS,
    ),
    "report": CommandRow(
        about="Join the results of several jobs into one summary.",
        module="releasekit.cli.report",
    ),
    "verify": CommandRow(
        about="Check which workflow signed a release. Needs no workspace, and no credentials.",
        module="releasekit.cli.verify",
        positional=Positional(
            input="files",
            metavar="PATH|URL",
            help="files, directories with releases, and addresses of files on registries",
            noun="file",
            several=True,
        ),
        exit_codes=_VERIFIED_CODES,
    ),
    "notes": CommandRow(
        about="Print the release notes of a version: its section of the CHANGELOG, or its commits.",
        module="releasekit.cli.notes",
        positional=Positional(
            input="subject",
            metavar="PACKAGE VERSION",
            help="what to tell of: npm:@acme/core 1.2.0",
            noun="package",
            several=True,
        ),
        summarizes_errors=True,
    ),
    "change": CommandRow(
        about="Write a change file: what a change asks of the next versions, and what it is.",
        module="releasekit.cli.change",
        exit_codes=_CHANGE_CODES,
    ),
    "trust": CommandRow(
        about="Say which packages let the workflow here publish without a token, and what is left.",
        module="releasekit.cli.trust",
        credentials=_TRUST_CREDENTIALS,
        exit_codes=_TRUST_CODES,
    ),
    "doctor": CommandRow(
        about="The part of `check` that is about earlier runs.",
        module="releasekit.cli.check",
        exit_codes=_CHECK_CODES,
        is_old=True,
    ),
}
# For users of packages, who have no workspace.
VERIFY: Final = frozenset[Command]({"verify"})
NOTES: Final = frozenset[Command]({"notes"})
CHANGE: Final = frozenset[Command]({"change"})
TRUST: Final = frozenset[Command]({"trust"})
ALL: Final = frozenset(COMMANDS) - VERIFY
VERSION: Final = frozenset[Command]({"version"})
PREVIEW: Final = frozenset[Command]({"preview"})
RELEASE_PR: Final = frozenset[Command]({"release-pr"})
PUBLISH: Final = frozenset[Command]({"publish"})
STATUS: Final = frozenset[Command]({"status"})
CHECK: Final = frozenset[Command]({"check", "doctor"})
# What a person does with what a run has left, on a machine of theirs.
DECIDE: Final = frozenset[Command]({"approve", "reject"})
RUNS: Final = DECIDE | {"plan", "publish", "status"}
# What has to know which packages there are, and where they go.
LOOKUPS: Final = frozenset[Command]({"plan", "publish", "check", "status"})
# What nobody can do who does not know where each package goes.
DESTINED: Final = LOOKUPS | DECIDE | TRUST | CHECK
REPORTS: Final = frozenset[Command]({"plan", "publish", "report"})
# What has outputs, a summary and annotations.
STEPS: Final = REPORTS | VERSION | PREVIEW | RELEASE_PR


def list_commands() -> list[Command]:
    """Those that help names."""
    return [name for name, row in COMMANDS.items() if not row.is_old]
