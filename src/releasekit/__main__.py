"""Where a run starts and ends: the environment read once, one command, one exit code."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
import traceback
from contextlib import suppress
from functools import partial
from importlib import import_module
from itertools import zip_longest
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Final

from releasekit import __version__
from releasekit.cli import command_line
from releasekit.cli.commands import COMMANDS
from releasekit.cli.outputs_file import OutputsFile
from releasekit.config.config import load
from releasekit.config.inputs import Declared
from releasekit.ecosystems import ECOSYSTEMS
from releasekit.errors import INTERRUPTED, ConfigError, PathError, ReleasekitError, told_of
from releasekit.host.reexec import reexec_without_secrets
from releasekit.host.runner import open_runner
from releasekit.http.credentials import Credentials, require_text, snapshot
from releasekit.problems import Problem, mark
from releasekit.text.escape import clip, log_line, redact_urls
from releasekit.text.output import ignore_write_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, MutableMapping, Sequence
    from types import TracebackType

    from releasekit.config.config import Config
    from releasekit.config.declaration import EcosystemDeclaration
    from releasekit.host.runner import Runner

# So many new objects are looked through for garbage at once: hardly any of a plan is.
_YOUNG: Final = 10_000
# The names of a cycle of some hundred packages. Nothing that is longer says more.
MAX_CHARS: Final = 16_384
# Where distributions of Linux have the certificates that the machine trusts. macOS has its own in
# keychains, and a file here would keep uv from looking there.
# https://go.dev/src/crypto/x509/root_linux.go
_STORES: Final = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Arch, Alpine
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora, RHEL
    "/etc/ssl/ca-bundle.pem",  # openSUSE
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  # newer Fedora
)


def start() -> int:
    """`main` for a new process; `releasekit.start` ran before."""
    sys.stdout, sys.stderr = ignore_write_errors(sys.stdout), ignore_write_errors(sys.stderr)
    return main()


def main(
    argv: Sequence[str] | None = None, ecosystems: Mapping[str, EcosystemDeclaration] = ECOSYSTEMS
) -> int:
    """Run one command; never raises for what a user, a registry or a signal can cause."""
    declared = Declared.of(COMMANDS, ecosystems)
    trust_as_machine(os.environ)
    taken = snapshot(os.environ, {each.variable for each in declared.secrets.values()})
    runner = open_runner(taken.environment, sys.stdout)
    # Before anything else is printed, the runner has to know what to hide.
    credentials = Credentials(taken, mask=runner.mask)
    code, config = 1, None
    sys.excepthook = partial(_print_bug, credentials.redact)
    try:
        require_text(taken, {each.variable for each in declared.secrets.values()})
        # The names of secrets are looked at too, for misspelt ones; their values are not.
        variables = {**taken.environment, **dict.fromkeys(taken.secrets, "")}
        inputs = command_line.parse_command_line(
            sys.argv[1:] if argv is None else argv, variables, declared
        )
        config = load(inputs, _here(), declared)
        what = log_line(f"ReleaseKit {__version__}: {config.mode} {config.root}")
        print(what, file=sys.stderr, flush=True)
        code = _carry_out(config, credentials, runner, ecosystems)
    except ReleasekitError as error:
        _say(error, runner, credentials)
        given = sys.argv[1:] if argv is None else argv
        if _wants_summary(config, given, taken.environment):
            _summarize(error, runner, credentials, config)
        code = error.exit_code
    except KeyboardInterrupt:
        told = f"cancelled before anything was published{mark(Problem.CANCELLED)}"
        # A terminal has shown ^C, and waits behind it.
        line = "\n" if sys.stderr.isatty() else ""
        print(f"{line}error: {told}\n  Run the same command again.", file=sys.stderr)
        runner.output("result", "cancelled")
        code = INTERRUPTED
    finally:
        code = _untouched(code, runner)
        _write_outputs(config, taken.environment, runner)
    return code


def trust_as_machine(
    environment: MutableMapping[str, str], stores: Sequence[str] = _STORES
) -> None:
    """Name the certificates that curl, git and pip trust here to httpx, uv and cargo as well: each
    brings its own list, and keeps it where the machine has none.

    https://www.python-httpx.org/environment_variables/#ssl_cert_file
    https://docs.astral.sh/uv/concepts/authentication/certificates/
    https://requests.readthedocs.io/en/latest/user/advanced/#ssl-cert-verification
    """
    if environment.get("SSL_CERT_FILE") or environment.get("SSL_CERT_DIR"):
        return
    store = environment.get("REQUESTS_CA_BUNDLE") or next(filter(os.path.isfile, stores), "")
    if store:
        environment["SSL_CERT_DIR" if Path(store).is_dir() else "SSL_CERT_FILE"] = store


def _here() -> Path:
    try:
        return Path.cwd()
    except OSError as error:
        raise PathError(
            f"the current directory: {error.strerror}; start in one that is there"
        ) from error


def _carry_out(
    config: Config,
    credentials: Credentials,
    runner: Runner,
    ecosystems: Mapping[str, EcosystemDeclaration],
) -> int:
    """Raises KeyboardInterrupt for a command that was cancelled."""
    # These take 0.3 s to import, which --help and a mistyped flag should not wait for.
    import asyncio  # noqa: PLC0415

    from releasekit.cli.session import Session  # noqa: PLC0415

    if file := OutputsFile.of_config(config, runner.ci):
        file.forget()
    command = import_module(config.command.module)
    if not gc.isenabled():  # `start` has seen to that
        gc.freeze()
        gc.set_threshold(_YOUNG)
        gc.enable()
    # Found once, before any build could put a link in its place.
    tempfile.tempdir = os.path.realpath(tempfile.gettempdir())
    session = Session(
        credentials=credentials,
        runner=runner,
        ci=runner.ci.with_inputs(config.forge, config.run_url),
        ecosystems=ecosystems,
        out=sys.stdout,
    )
    try:
        code: int = asyncio.run(command.run(config, session))
    except asyncio.CancelledError as error:
        raise KeyboardInterrupt from error
    return code


def _untouched(code: int, runner: Runner) -> int:
    """`code`, or 1 in place of 0 where a build has tried to tell the runner something."""
    told = runner.restore_files()
    if not told:
        return code
    problem = Problem.RUNNER_FILES_WRITTEN
    for line in told:
        print(f"error: {log_line(line)}{mark(problem)}", file=sys.stderr, flush=True)
    print(f"  {problem.url}", file=sys.stderr, flush=True)
    runner.annotate("error", [(f"ReleaseKit{mark(problem)}", log_line(line)) for line in told])
    if code == 0:
        runner.output("result", "failure")
    return code or 1


def _write_outputs(config: Config | None, environment: Mapping[str, str], runner: Runner) -> None:
    """What is in the way of them is told, and how the run went stays as it is."""
    text = runner.outputs_text()
    with suppress(ConfigError):  # it was raised before
        if config is not None:
            file = OutputsFile.of_config(config, runner.ci)
        else:
            file = OutputsFile.of_variables(environment, _here(), runner.ci)
        told = file.write(text) if file and text else ""
        if told:
            print(f"warning: {log_line(told)}", file=sys.stderr)


def _say(error: ReleasekitError, runner: Runner, credentials: Credentials) -> None:
    annotations = []
    told = told_of(error)
    for each, following in zip_longest(told, told[1:]):
        message = clip(log_line(credentials.redact(redact_urls(str(each)))), MAX_CHARS)
        print(f"error: {message}{mark(each.problem)}", file=sys.stderr, flush=True)
        lines = credentials.redact(each.hint).splitlines()
        hint = clip("\n".join(map(log_line, lines)), MAX_CHARS)
        # Errors of one kind have it in common.
        if hint and (following is None or following.hint != each.hint):
            print(indent(hint, "  "), file=sys.stderr, flush=True)
        # An annotation stands alone, on the page of the run.
        text = "\n".join(filter(None, (message, hint, each.problem.url)))
        annotations.append((f"ReleaseKit{mark(each.problem)}", text))
    print(f"  {error.problem.url}", file=sys.stderr, flush=True)
    if runner.ci.is_actions:  # elsewhere they would stand in the log a second time
        runner.annotate("error", annotations)
    runner.output("result", "cancelled" if error.exit_code == INTERRUPTED else "failure")


def _wants_summary(
    config: Config | None, argv: Sequence[str], environment: Mapping[str, str]
) -> bool:
    """Where the run publishes or plans, as far as is known by then."""
    if config is not None:
        return config.summary and config.command.summarizes_errors
    mode = argv[0] if argv else environment.get("RELEASEKIT_MODE", "plan")
    off = "--summary=false" in argv or environment.get("RELEASEKIT_SUMMARY", "").lower() == "false"
    # For an unknown command, too.
    quiet = {name for name, row in COMMANDS.items() if not row.summarizes_errors}
    return mode not in quiet and not off


def _summarize(
    error: ReleasekitError, runner: Runner, credentials: Credentials, config: Config | None
) -> None:
    """What it adds to the log may fail: the error has been told there."""
    if runner.has_summary or not runner.ci.is_actions:
        return
    from releasekit.report.summary import early_summary  # noqa: PLC0415 - for errors alone

    with suppress(OSError, ValueError):
        root = config.root if config else Path(runner.ci.checkout or ".")
        rows = [(redact_urls(str(each)), each.hint) for each in told_of(error)]
        text = early_summary(
            [(credentials.redact(said), credentials.redact(hint)) for said, hint in rows],
            error.problem,
            runner.ci.origin(root),
            published=runner.release_began,
        )
        runner.summary(text)


def _print_bug(
    redact: Callable[[str], str],
    kind: type[BaseException],
    error: BaseException,
    trace: TracebackType | None,
) -> None:
    """As Python does, but without secrets: a traceback shows values too."""
    text = "".join(traceback.format_exception(kind, error, trace))
    print("\n".join(map(log_line, redact(text).splitlines())), file=sys.stderr, flush=True)


if __name__ == "__main__":
    reexec_without_secrets()  # `python -m` has not passed `releasekit.start`
    sys.exit(start())
