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
]

_EXIT_CODES: Final = """\
exit codes:
  0    every package is published or was before, or is staged for approval
  1    at least one package failed, is blocked, or is unknown
  2    the configuration or an input is wrong, or a tool is missing
  3    the plan is impossible: a cycle, an unknown dependency, no credentials,
       a tool that is too old; or one of its warnings counts as an error
  4    another run holds the lock
  130  cancelled
"""
_PLAN_CODES: Final = """\
exit codes:
  0    it is shown
  2    the configuration or an input is wrong
  3    it is impossible: a cycle, an unknown dependency, no credentials, a tool
       that is too old; or one of its warnings counts as an error
  130  cancelled
"""
_NOTES_CODES: Final = """\
exit codes:
  0    they are printed
  2    the configuration or an input is wrong, or there is no such package
  130  cancelled
"""
_DECIDE_CODES: Final = """\
exit codes:
  0    all of it is decided, or nothing waits
  1    something still waits, or is refused
  2    the configuration or an input is wrong
  3    credentials are missing
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
  3    a tool is too old, or credentials are missing
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
    its long help about them; by default, help lists the secrets among its inputs. Where it
    `summarizes_errors`, the job summary tells of one that ends it early; for the other commands,
    that of an earlier job does.
    """

    about: str
    module: str
    examples: str = ""
    positional: Positional = _ROOT
    credentials: str = ""
    exit_codes: str = _EXIT_CODES
    summarizes_errors: bool = False


COMMANDS: Final[Mapping[Command, CommandRow]] = {
    "init": CommandRow(
        about="Write the workflow that releases this repository, and say what comes next.",
        examples="""\
  releasekit init                       write the workflow for what is here
  releasekit init --dry-run             print what would be written
  releasekit init path/to/repository    write it in another directory
  releasekit init --ecosystem npm,pypi  leave the other ecosystems out
  releasekit init --npm-registry https://npm.example.org/
""",
        module="releasekit.cli.init",
        exit_codes=_INIT_CODES,
    ),
    "check": CommandRow(
        about="Say what a release from here needs, and what earlier runs left. Asks no registry.",
        examples="""\
  releasekit check                    say what a release from here still needs
  releasekit check --fix              first repair what earlier runs left behind
  releasekit check --tag --announce   include what tags and releases need
  releasekit check --ecosystem cargo  leave the other ecosystems out
  releasekit check --registry dir:./registry
""",
        module="releasekit.cli.check",
        exit_codes=_CHECK_CODES,
    ),
    "version": CommandRow(
        about="Write the versions that the changes since the last release ask for.",
        examples="""\
  releasekit version --dry-run         show the next versions, and write nothing
  releasekit version                   write them, with changelogs
  releasekit version --check           exit 1 if there is something to write
  releasekit version --set core=2.0.0  decide the version of one package by hand
  releasekit version --snapshot pr-97  write versions of this commit alone
""",
        module="releasekit.cli.version",
        exit_codes=_VERSION_CODES,
        summarizes_errors=True,
    ),
    "preview": CommandRow(
        about="Show what merging a pull request, or the branch at hand, would release.",
        examples="""\
  releasekit preview                      what merging this branch would release
  releasekit preview --since origin/main  compare with a branch of your choice
  releasekit preview --branch next        as if the branch next released it
  releasekit preview --ecosystem cargo    leave the other ecosystems out
  releasekit preview path/to/repository   look at another clone
""",
        module="releasekit.cli.preview",
        exit_codes=_PREVIEW_CODES,
        summarizes_errors=True,
    ),
    "release-pr": CommandRow(
        about="Open the pull request with the next versions, bring it up to date, or close it.",
        examples="""\
  releasekit release-pr                  open it, or bring it up to date
  releasekit release-pr --branch next    for releases from the branch next
  releasekit release-pr --ecosystem npm  leave the other ecosystems out
  releasekit release-pr --verbose        log every request
  releasekit release-pr --forge github:https://github.com/acme/kit
""",
        module="releasekit.cli.release_pr",
        exit_codes=_RELEASE_PR_CODES,
        summarizes_errors=True,
    ),
    "plan": CommandRow(
        about="Show what would be published, and in which order. Changes nothing.",
        examples="""\
  releasekit plan                        show what would be published from here
  releasekit plan --packages 'acme-*'    only these packages
  releasekit plan --format mermaid       show it as a graph
  releasekit plan --plan-file plan.json  write it for the publishing jobs
  releasekit plan --registry dir:./registry
""",
        module="releasekit.cli.plan",
        exit_codes=_PLAN_CODES,
        summarizes_errors=True,
    ),
    "publish": CommandRow(
        about="Publish every package that is not published yet, dependencies first.",
        examples="""\
  releasekit publish --dry-run             build everything, and upload nothing
  releasekit publish --registry dir:./out  publish into directories
  releasekit publish --packages 'acme-*'   only these packages
  releasekit publish --tag --announce      then tag, and create releases
  RELEASEKIT_PYPI_TOKEN=... releasekit publish
""",
        module="releasekit.cli.publish",
        summarizes_errors=True,
    ),
    "status": CommandRow(
        about="Say what users can install now: what is there, missing, or needs what is missing.",
        examples="""\
  releasekit status                      whether users can install what is here
  releasekit status 1.4.0                whether they can install version 1.4.0
  releasekit status results.json         the same for what a run has published
  releasekit status --smoke              let uv, npm, cargo, go, mvn resolve it
  releasekit status --packages 'acme-*'  only these packages
""",
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
        examples="""\
  releasekit approve                  what the last run here has staged
  releasekit approve results.json     what another run has staged
  releasekit approve --ecosystem npm  leave the other ecosystems out
  releasekit approve --yes            do not ask for confirmation
  releasekit approve --run https://github.com/acme/kit/actions/runs/16
""",
        module="releasekit.cli.approve",
        positional=_RESULTS,
        credentials=_CREDENTIALS,
        exit_codes=_DECIDE_CODES,
    ),
    "reject": CommandRow(
        about="Reject the staged versions of a release.",
        examples="""\
  releasekit reject                  what the last run here has staged
  releasekit reject results.json     what another run has staged
  releasekit reject --ecosystem npm  leave the other ecosystems out
  releasekit reject --yes            do not ask for confirmation
  releasekit reject --run https://github.com/acme/kit/actions/runs/16
""",
        module="releasekit.cli.approve",
        positional=_RESULTS,
        credentials=_CREDENTIALS,
        exit_codes=_DECIDE_CODES,
    ),
    "report": CommandRow(
        about="Join the results of several jobs into one summary.",
        examples="""\
  releasekit report                              join results in .releasekit
  releasekit report --state-directory artifacts  where the artifacts of jobs are
  releasekit report --plan-file plan.json        name packages without results
  releasekit report --results-file joined.json   write the results there
  releasekit report --no-summary                 write no job summary
""",
        module="releasekit.cli.report",
    ),
    "verify": CommandRow(
        about="Check which workflow signed a release. Needs no workspace, and no credentials.",
        examples="""\
  releasekit verify dist --repository acme/kit
  releasekit verify *.whl --repository https://gitlab.com/acme/kit
  releasekit verify dist --repository acme/kit --workflow release.yml
  releasekit verify dist --repository acme/kit --ref refs/tags/v1.2
  releasekit verify dist --repository acme/kit --bundle provenance.jsonl
""",
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
        examples="""\
  releasekit notes npm:@acme/core 1.2.0    its section of the changelog
  releasekit notes acme-core 1.2.0         where one package has that name
  releasekit notes acme-core 1.2.0 >notes  for a release that you create
  releasekit notes --subject acme-core --subject 1.2.0
  releasekit notes acme-core 1.2.0 --forge gitlab:https://gitlab.com/acme/kit
""",
        module="releasekit.cli.notes",
        positional=Positional(
            input="subject",
            metavar="PACKAGE VERSION",
            help="the package and its version: npm:@acme/core 1.2.0",
            noun="package",
            several=True,
        ),
        exit_codes=_NOTES_CODES,
        summarizes_errors=True,
    ),
    "change": CommandRow(
        about="Write a change file: what a change asks of the next versions, and what it is.",
        examples="""\
  releasekit change          ask for packages, levels and text
  releasekit change --package core=minor --text 'Icons have titles.'
  releasekit change --package core --text 'Icons no longer flicker.'
  releasekit change --check  exit 1 if a change has no file
  releasekit change --check --since origin/main
""",
        module="releasekit.cli.change",
        exit_codes=_CHANGE_CODES,
    ),
    "trust": CommandRow(
        about="Say which packages let the workflow here publish without a token, and what is left.",
        examples="""\
  releasekit trust                      which packages let the workflow publish
  releasekit trust --check              exit 1 if one of them does not
  releasekit trust --write              add it where registries take it
  releasekit trust --packages 'acme-*'  only these packages
  releasekit trust --workflow release.yml --environment release
""",
        module="releasekit.cli.trust",
        credentials=_TRUST_CREDENTIALS,
        exit_codes=_TRUST_CODES,
    ),
}
OF_THE_ACTION: Final[tuple[Command, ...]] = (
    *("plan", "publish", "check", "version", "preview", "release-pr", "report"),
)
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
CHECK: Final = frozenset[Command]({"check"})
# What a person does with what a run has left, on a machine of theirs.
DECIDE: Final = frozenset[Command]({"approve", "reject"})
RUNS: Final = DECIDE | {"plan", "publish", "status"}
# What has to know which packages there are, and where they go.
LOOKUPS: Final = frozenset[Command]({"plan", "publish", "check", "status"})
# What says how a release would be, by the options of that.
FORESEES: Final = LOOKUPS - PUBLISH - STATUS
# What asks registries, or says where packages go.
REGISTRIES: Final = ALL - NOTES - {"report"}
# What nobody can do who does not know where each package goes.
DESTINED: Final = LOOKUPS | DECIDE | TRUST
REPORTS: Final = frozenset[Command]({"plan", "publish", "report"})
# What has outputs, a summary and annotations.
STEPS: Final = REPORTS | VERSION | PREVIEW | RELEASE_PR
