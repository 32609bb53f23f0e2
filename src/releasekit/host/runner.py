"""What a step tells the CI that runs it: outputs, masks, groups, annotations, the job summary.

Only the formatting of `actions_toolkit` is used. The functions around it read and write
`os.environ`, print without flushing, and one of them ends the process; importing them costs 0.1 s.

The runner makes files before the step and obeys them after it: variables and a PATH for the steps
that follow, outputs, state, the summary. Their names are not secret, and only a sandbox can keep
what a build runs as the same user from writing there. So what others write there is taken out
again.
https://github.com/actions/runner/blob/258d6c85/src/Runner.Worker/FileCommandManager.cs
"""

from __future__ import annotations

import json
import os
import re
import selectors
import stat
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from actions_toolkit.command import Command  # type: ignore[import-untyped]
from actions_toolkit.file_command import (  # type: ignore[import-untyped]
    prepare_key_value_message,
)

from releasekit.errors import ConfigError
from releasekit.host import durable
from releasekit.host.ci import CI, COMMAND_FILES, OUTPUTS, SUMMARY
from releasekit.host.folder import Folder
from releasekit.host.secret_encodings import encode
from releasekit.problems import Problem
from releasekit.text.escape import break_commands, clip, visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import TextIO

Level = Literal["error", "warning", "notice"]

# https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands#job-summaries
MAX_SUMMARY_BYTES: Final = 1024 * 1024
MAX_OUTPUT_BYTES: Final = 1024 * 1024
# https://docs.github.com/en/rest/checks/runs has the limits of annotations.
MAX_ANNOTATIONS: Final = 10
MAX_MESSAGE_CHARS: Final = 4096
MIN_SECRET_CHARS: Final = 4
# The lowest limits of any GitLab: https://docs.gitlab.com/administration/instance_limits/#limit-dotenv-variables
MAX_DOTENV: Final = 20
MAX_DOTENV_BYTES: Final = 5 * 1024 - 1
# Not changed by a shell that reads it, nor by GitLab.
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./:@%+=,?#-]*")
_CUT: Final = "\n\n_Cut here: a job summary holds 1 MiB. The results file has everything._\n"
# The runner's own directory, which an action in a container has under another name. It also holds
# the files of the step around this one, where an action is made of steps, and these are obeyed too.
# https://github.com/actions/runner/blob/258d6c85/src/Runner.Worker/Handlers/ContainerActionHandler.cs
_DIRECTORIES: Final = frozenset({"_runner_file_commands", "file_commands"})
# More than it takes of any: a summary holds 1 MiB, all outputs together 1 MB.
MAX_FILE_BYTES: Final = 16 * 1024 * 1024
# A pipe that has no reader must not keep us waiting.
_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_NOCTTY
_PATIENCE_S: Final = 2.0


class CommandFiles:
    """What the files have to hold: what they held when this was made, and what `append` added."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Raises ConfigError for a file that cannot be watched."""
        self._expected = {path: _held(path) for path in _command_files(environment)}

    def append(self, path: str, text: str) -> None:
        """Raises OSError."""
        data = text.encode("utf-8", "replace")
        place = _real(path)
        if place not in self._expected:
            _write(path, data)
            return
        with durable.opened(place, os.O_WRONLY | os.O_APPEND | os.O_CREAT) as descriptor:
            size = os.fstat(descriptor).st_size
            try:
                durable.write_all(descriptor, data)
            except OSError:  # a full disk: half an output is of no use, and `restore` would miss it
                os.ftruncate(descriptor, size)
                raise
        self._expected[place] = (self._expected[place] or b"") + data

    def restore(self) -> list[str]:
        """Put back what the files have to hold; one sentence for each that held something else."""
        told = []
        for path, expected in self._expected.items():
            try:
                if _holds(path, expected):
                    continue
                _put(path, expected)
            except OSError as error:
                told.append(
                    f"{path}: written during the release, not by ReleaseKit, and cannot be "
                    f"put back: {error.strerror}"
                )
            else:
                told.append(f"{path}: written during the release, not by ReleaseKit; put back")
        return told


def _write(path: str, data: bytes) -> None:
    """To a file, a terminal or a pipe; raises OSError for a pipe without a reader."""
    descriptor = os.open(path, _FLAGS, 0o666)
    try:
        while data:
            try:
                data = data[os.write(descriptor, data) :]
            except BlockingIOError:
                with selectors.DefaultSelector() as full:
                    full.register(descriptor, selectors.EVENT_WRITE)
                    if not full.select(_PATIENCE_S):
                        raise
    finally:
        os.close(descriptor)


def _command_files(environment: Mapping[str, str]) -> Iterator[Path]:
    """Those that are regular files or not there yet. What this process prints to is not watched, as
    where a workflow redirects a command to the job summary.
    """
    ours = set()
    for descriptor in (1, 2):
        with suppress(OSError):  # it was closed
            ours.add(_identity(os.fstat(descriptor)))
    named = {_real(path) for path in map(environment.get, COMMAND_FILES) if path}
    beside = {
        folder / name
        for folder in {path.parent for path in named}
        if folder.name in _DIRECTORIES
        for name in durable.names(folder)
    }
    for path in sorted(named | beside):
        try:
            status = path.lstat()
        except OSError:
            yield path
        else:
            if stat.S_ISREG(status.st_mode) and _identity(status) not in ours:
                yield path


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _real(path: str) -> Path:
    """With the links above it resolved; a runner's directory may well be on another disk."""
    return Path(os.path.realpath(Path(path).parent), Path(path).name)


def _held(path: Path) -> bytes | None:
    try:
        with durable.reading(path) as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be read: {error.strerror}",
            hint="It is the runner's; what builds write there has to be told from what was there.",
            problem=Problem.RUNNER,
        ) from error
    if len(data) > MAX_FILE_BYTES:
        raise ConfigError(
            f"{path}: holds more than {MAX_FILE_BYTES} bytes, and the runner takes 1 MiB",
            hint="Let the steps before this one write less into it.",
            problem=Problem.RUNNER,
        )
    return data


def _holds(path: Path, expected: bytes | None) -> bool:
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return expected is None
    if expected is None or not stat.S_ISREG(mode):
        return False
    try:
        with durable.reading(path) as file:
            return file.read(len(expected) + 1) == expected
    except PermissionError:
        return False


def _put(path: Path, expected: bytes | None) -> None:
    """A new file in its place: a process that has the old one open cannot reach the runner."""
    with Folder.reached(path.parent, make=expected is not None):
        # A link, a pipe or another file goes; a directory stays, and is an OSError.
        path.unlink(missing_ok=True)
    if expected is not None:
        durable.replace(path, expected)


class Runner:
    """What a step tells the CI that runs it. This one obeys nothing that is printed: it reads no
    more than a file with outputs, and shows the log as it is.

    Its lines are `NAME=value` with neither quotes nor escapes. GitLab takes all behind the first
    `=`, and puts variables in the place of `$`; a shell takes the same for a word without spaces
    and quotes, so that `. FILE` works as well. Of what GitLab takes, the least is kept to: less
    than 5 kB and 20 variables; it has the job of a file with more fail.
    https://docs.gitlab.com/ci/yaml/artifacts_reports/#artifactsreportsdotenv
    https://gitlab.com/gitlab-org/gitlab/-/blob/master/app/services/ci/parse_dotenv_artifact_service.rb
    """

    def __init__(self, ci: CI, environment: Mapping[str, str], stream: TextIO) -> None:
        """`stream` is the log of the step; no environment is read but `environment`."""
        self.ci = ci
        self._environment = environment
        self._stream = stream
        self._files = CommandFiles({})
        self._restored: list[str] = []
        self._outputs: dict[str, str] = {}
        self.has_summary = False
        # From then on, no message may say that nothing was published.
        self.release_began = False

    def outputs_text(self) -> str:
        """The file with all outputs so far."""
        return "".join(f"{name}={value}\n" for name, value in self._outputs.items())

    def watch_files(self) -> None:
        """Watch the files that the runner obeys: `restore_files` undoes what others write there.

        Raises ConfigError for one that cannot be watched.
        """
        self._files = CommandFiles(self._environment)

    def restore_files(self, *, for_good: bool = False) -> list[str]:
        """Take out what others wrote into these files; one sentence for each time so far. With
        `for_good`, others may write there from now on, such as a reader of what is printed next.
        """
        self._restored += self._files.restore()
        if for_good:
            self._files = CommandFiles({})
        return self._restored

    def mask(self, value: str) -> None:
        """Hide `value`, and each line of it, in everything the runner shows from now on, where it
        can; our redactor hides it in what we print ourselves.
        """

    def output(self, name: str, value: str) -> bool:
        """Set an output; False where it does not fit, as a list, which the results file has."""
        variable = f"RK_{name.upper().replace('-', '_')}"
        after = {**self._outputs, variable: value}
        size = sum(len(f"{name}={value}\n") for name, value in after.items())
        if not _PLAIN.fullmatch(value) or size > MAX_DOTENV_BYTES or len(after) > MAX_DOTENV:
            return False
        self._outputs = after
        return True

    def summary(self, markdown: str) -> None:
        """Append to the job summary."""

    def annotate(self, level: Level, messages: Sequence[tuple[str, str]]) -> None:
        """Annotate with (title, message) each."""

    def log_text(self, text: str) -> str:
        """`text` for the step's log, as it is but for what the runner would take for commands."""
        return text

    @contextmanager
    def group(self, title: str) -> Iterator[None]:
        """Fold what is printed inside."""
        del title
        yield


class GitLabRunner(Runner):
    """GitLab reads the escapes of a terminal in the log, and marks of its own among them.

    https://docs.gitlab.com/ci/jobs/job_logs/#custom-collapsible-sections
    """

    _sections = 0

    def annotate(self, level: Level, messages: Sequence[tuple[str, str]]) -> None:
        """In color, which is found in a long log; GitLab shows a failed package from the JUnit file
        as well, and has nothing for others.
        """
        if level == "error":
            for title, text in messages:
                line = clip(visible(text.partition("\n")[0]), MAX_MESSAGE_CHARS)
                print(f"\x1b[31m{visible(title)}: {line}\x1b[0m", file=self._stream, flush=True)

    @contextmanager
    def group(self, title: str) -> Iterator[None]:
        self._sections += 1
        name = f"releasekit_{self._sections}"
        self._mark("start", f"{name}[collapsed=true]", visible(title))
        try:
            yield
        finally:
            self._mark("end", name, "")

    def _mark(self, end: str, name: str, title: str) -> None:
        line = f"\x1b[0Ksection_{end}:{int(time.time())}:{name}\r\x1b[0K{title}"
        print(line, file=self._stream, flush=True)


class ActionsRunner(Runner):
    """The runner of GitHub Actions, and those that obey the same commands."""

    def __init__(self, ci: CI, environment: Mapping[str, str], stream: TextIO) -> None:
        super().__init__(ci, environment, stream)
        self._masked: set[str] = set()
        self._annotated: dict[Level, int] = {}
        self._output_bytes = 0

    def mask(self, value: str) -> None:
        lines = [line.strip() for line in value.splitlines()]
        for secret in dict.fromkeys([value.strip(), *lines]):
            if _hideable(secret) and secret not in self._masked:
                self._masked.add(secret)
                self._command("add-mask", secret)

    def output(self, name: str, value: str) -> bool:
        """Set an output; False, and a warning, where the runner would drop it: it holds a masked
        value, or all outputs together would exceed 1 MB.
        """
        path = self._environment.get(OUTPUTS)
        if not path:
            return False
        reason = self._refused(name, value)
        if not reason:
            reason = self._append(path, prepare_key_value_message(name, value) + os.linesep)
        if reason:
            self.annotate("warning", [("ReleaseKit", f"output {name} is not set: {reason}")])
        return not reason

    def summary(self, markdown: str) -> None:
        """Append to the job summary; what exceeds 1 MiB is cut at a paragraph, with a word about
        it.
        """
        self.has_summary = True
        path = self._environment.get(SUMMARY)
        if not path:
            return
        taken = os.path.getsize(path) if os.path.exists(path) else 0  # noqa: PTH110, PTH202
        if reason := self._append(path, _fitting(markdown, MAX_SUMMARY_BYTES - taken)):
            self.annotate("warning", [("ReleaseKit", f"the job summary is not written: {reason}")])

    def annotate(self, level: Level, messages: Sequence[tuple[str, str]]) -> None:
        """Annotate with (title, message) each; the runner shows ten per level and step, so the
        last one says how many more there are. Those of Gitea and Forgejo would print the command;
        the log has said it all.
        """
        if self.ci.kind != "github":
            return
        room = MAX_ANNOTATIONS - self._annotated.get(level, 0)
        shown = messages if len(messages) <= room else messages[: max(room - 1, 0)]
        for title, text in shown:
            # Keep line ends, and spell out other characters that are not text.
            message = "\n".join(map(visible, text.split("\n")))
            self._command(
                level, message[:MAX_MESSAGE_CHARS], title=visible(title)[:MAX_MESSAGE_CHARS]
            )
        if len(shown) < len(messages) and room > 0:
            more = len(messages) - len(shown)
            self._command(level, "The job summary has them all.", title=f"and {more} more")
        self._annotated[level] = self._annotated.get(level, 0) + min(len(messages), max(room, 0))

    def log_text(self, text: str) -> str:
        return "\n".join(map(break_commands, text.split("\n")))

    @contextmanager
    def group(self, title: str) -> Iterator[None]:
        self._command("group", visible(title))
        try:
            yield
        finally:
            self._command("endgroup", "")

    def _append(self, path: str, text: str) -> str:
        """Returns why it failed, or nothing. A full disk must not hide how the release went."""
        try:
            self._files.append(path, text)
        except OSError as error:
            return f"{error.strerror} ({path})"
        return ""

    def _command(self, name: str, message: str, **properties: str) -> None:
        # The runner reads lines as they come, so what was printed before has to be flushed first.
        self._stream.flush()
        # The runner puts a mark in the place of each byte that is not UTF-8.
        command = encode(str(Command(name, properties, message))).decode("utf-8", "replace")
        self._stream.write(f"{command}\n")
        self._stream.flush()

    def _refused(self, name: str, value: str) -> str:
        # Inside JSON a secret may be escaped, which the runner recognizes as well.
        spellings = {form for secret in self._masked for form in (secret, json.dumps(secret)[1:-1])}
        if any(spelling in value for spelling in spellings):
            return "it holds a masked value, which the runner would silently drop"
        # Measured in UTF-16:
        # https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-syntax#jobsjob_idoutputs
        size = len(name.encode("utf-16-le")) + len(value.encode("utf-16-le", "surrogatepass"))
        if self._output_bytes + size > MAX_OUTPUT_BYTES:
            return "all outputs of a job together hold 1 MB; the results file has everything"
        self._output_bytes += size
        return ""


def open_runner(environment: Mapping[str, str], stream: TextIO) -> Runner:
    ci = CI.of(environment)
    kind = ActionsRunner if ci.is_actions else GitLabRunner if ci.kind == "gitlab" else Runner
    return kind(ci, environment, stream)


def _hideable(secret: str) -> bool:
    """A variable called …_AUTH may hold "true", a line of a private key may be "}". Hiding those
    would hide half of every log, and make the runner drop outputs that hold just that.
    """
    return len(secret) >= MIN_SECRET_CHARS and secret.lower() not in {"true", "false", "none"}


def _fitting(markdown: str, room: int) -> str:
    """`markdown`, or as many of its paragraphs as fit into `room` bytes and a word about it."""
    encoded = markdown.encode("utf-8", "replace")
    if len(encoded) <= room:
        return markdown
    kept = encoded[: max(room - len(_CUT), 0)].decode("utf-8", "ignore").rpartition("\n\n")[0]
    return kept + _CUT if room >= len(_CUT) else ""
