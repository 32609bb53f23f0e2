"""The git remote that tags are pushed to, spoken to by git with git's own credentials."""

from __future__ import annotations

import asyncio
import itertools
import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from releasekit.errors import (
    CommandFailed,
    Denied,
    PackageError,
    PlanError,
    Rejected,
    Transient,
)
from releasekit.git.commits import parse_id, parse_ref_name
from releasekit.git.settings import OVER_HTTP
from releasekit.host.ci import JOB_BEARER
from releasekit.http.answers import PASSING, is_passing, remedy
from releasekit.http.client import RetryPolicy, retry
from releasekit.problems import Problem
from releasekit.text.escape import clip, one_line, visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from releasekit.git.settings import GitSettings
    from releasekit.host.process import Printed
    from releasekit.http.credentials import Secret


_ONCE: Final = RetryPolicy(max_retries=0)
_DENIED: Final = re.compile(
    r"Authentication failed|Permission denied|Permission to \S+ denied|could not read (User|Pass)"
    r"|terminal prompts disabled|returned error: 40[13]|Repository not found|access rights",
    re.IGNORECASE,
)
_NEVER_SENT: Final = re.compile(
    r"Could not resolve host|Connection refused|Failed to connect|Couldn't connect"
    r"|Network is unreachable|Connection timed out",
    re.IGNORECASE,
)
_PASSING: Final = re.compile(
    r"early EOF|hung up|RPC failed|timed out|reset by peer"
    r"|did not end within|Empty reply|already exists|cannot lock ref|unable to access",
    re.IGNORECASE,
)
# The user's own settings ask for signed pushes or push options; git hangs up by itself then.
_OF_SETTINGS: Final = re.compile(r"receiving end does not support|failed to sign the push")
# `remote: …` is the server's own message; the rest of its lines tells what git made of it.
_TELLING: Final = (
    re.compile(r"^remote: *(?=\S)(?!error: *$)"),
    re.compile(r"^(?=(?:fatal|error|ssh): )"),
    re.compile(r"^!.*(?=\[(?:remote )?rejected\])"),
)
_STATUS: Final = re.compile(r"returned error: (4\d\d|5\d\d)\b")
_USERINFO: Final = re.compile(r"://[^/\s@]+@")
_MAX_LINE: Final = 2_000
_MAX_PLACE: Final = 200
HINT: Final = (
    "Tags are pushed with git's own credentials. In a workflow: `permissions: contents: write`, "
    "and actions/checkout with `persist-credentials` as it is by default."
)
# https://docs.gitlab.com/ci/jobs/ci_job_token/#allow-git-push-requests-to-your-project-repository
_GITLAB_HINT: Final = (
    "Let job tokens push to this project: *Settings > CI/CD > Job token permissions > Allow Git "
    "push requests to the repository*, which it does not by default; or give the remote's URL a "
    "project access token. A job pushes as the user who started it."
)
_PROTECTED: Final = re.compile(
    # https://docs.github.com/repositories/configuring-branches-and-merges-in-your-repository/
    # managing-rulesets/troubleshooting-rules
    r"GH013|[Rr]epository rule violations|creations being restricted|it is protected"
)
_NO_REMOTE: Final = re.compile(r"does not appear to be a git repository|No such remote")
_TAKEN: Final = re.compile(r"\[rejected\].*already exists|would clobber existing tag")
NO_REMOTE_HINT: Final = (
    "`git remote` lists those there are. Add it with `git remote add NAME URL`, or name another "
    "one as `remote` in releasekit.toml."
)
_REFUSED: Final = (
    "Try it by hand with `git push --dry-run REMOTE TAG`. A rule or a hook of the server may "
    "protect tags: add an exception for the pushing user, "
    "https://docs.github.com/repositories/configuring-branches-and-merges-in-your-repository/"
    "managing-rulesets/about-rulesets"
)


# https://docs.gitlab.com/user/project/protected_tags/
_GITLAB_REFUSED: Final = (
    "A job pushes as the user who started it: let somebody start it who may create this tag, as "
    "*Settings > Repository > Protected tags* says."
)


class RemoteTag(Struct, frozen=True):
    """`object` is what the tag names there; `commit` what that leads to, the same for a lightweight
    tag.
    """

    object: str
    commit: str


class Remote:
    """One remote of a repository, which leads where its `settings` led when the run began. In a job
    of GitLab, git may need the `job_token`. Reads are tried again as the `policy` says.
    """

    def __init__(
        self,
        name: str,
        settings: GitSettings,
        job_token: Secret | None = None,
        policy: RetryPolicy = _ONCE,
    ) -> None:
        self._name = name
        self._settings = settings
        self._job_token = job_token
        self._policy = policy
        self._clock = itertools.count()
        self._turn = asyncio.Lock()
        self._looked_at = -1
        self._seen: dict[str, RemoteTag] | PackageError = {}

    async def list_tags(self) -> Mapping[str, RemoteTag]:
        """By name. One look at the remote answers all calls made before it began,
        also with an error: Transient, Denied or Rejected.
        """
        asked = next(self._clock)
        async with self._turn:
            if self._looked_at < asked:
                # Other tasks that are about to ask get this answer too.
                await asyncio.sleep(0)
                looked_at = next(self._clock)
                try:
                    self._seen = parse_tags(await retry(self._list_refs, self._policy))
                except PackageError as error:
                    self._seen = error
                except PlanError as error:  # once packages are published, it ends none of them
                    self._seen = Rejected(str(error), hint=error.hint, problem=error.problem)
                self._looked_at = looked_at
            if isinstance(self._seen, PackageError):
                raise self._seen
            return self._seen

    async def _list_refs(self) -> Printed:
        try:
            return await self._git("ls-remote", "--tags", self._name)
        except CommandFailed as error:
            raise self._explain(error, f"git remote {self._name}", writing=False) from error

    async def _find_places(self) -> dict[str, str]:
        """The URLs for `fetch` and for `push`, the first of each; empty without such a remote."""
        found: dict[str, str] = {}
        for use, url in await self._settings.list_addresses(self._name):
            found.setdefault(use, url)
        return found

    async def find_url(self) -> str:
        """Where a push goes, without the user and the password; empty without such a remote."""
        try:
            return strip_userinfo((await self._find_places()).get("push", ""))
        except (CommandFailed, Rejected):
            return ""

    async def push(self, tags: Mapping[str, str], *, objects: Path, what: str) -> None:
        """All of these tags (tag → object) or none; none of them is ever moved.

        `objects` is a directory of objects besides those of the repository; `what` starts the
        message of an error: Transient, Denied or Rejected.
        """
        specs = [f"{oid}:refs/tags/{name}" for name, oid in tags.items()]
        try:
            await self._push(specs, objects=objects)
        except CommandFailed as error:
            what = f"{what}: git remote {self._name}"
            await self._refuse_closed(what, error)
            raise self._explain(error, what, writing=True) from error

    async def try_push(self, tag: str) -> None:
        """Whether the remote lets these credentials push at all, which changes nothing; rules for
        tags and hooks of the server show only when they are pushed. Raises as `push`.
        """
        what = f"git remote {self._name}"

        async def attempt() -> None:
            try:
                head = await self._settings.read_head()
                await self._push([f"{head or 'HEAD'}:refs/tags/{tag}"], "--dry-run")
            except CommandFailed as error:
                raise self._explain(error, what, writing=False) from error

        await retry(attempt, self._policy)
        await self._refuse_closed(what)

    async def _push(self, specs: Sequence[str], *options: str, objects: Path | None = None) -> None:
        # Hooks are the user's own tests, not for tags of a commit that is pushed already.
        await self._git(
            *("push", "--atomic", "--no-verify", "--no-follow-tags", "--porcelain"),
            *("--recurse-submodules=no", *options, self._name, *specs),
            objects=objects,
        )

    def _explain(self, error: CommandFailed, what: str, *, writing: bool) -> PackageError:
        return explain(error, what, writing=writing, in_gitlab=bool(self._job_token))

    async def _refuse_closed(self, what: str, error: CommandFailed | None = None) -> None:
        """Raises Rejected where a push writes to a directory of this machine, and git may not. The
        settings of the repository name it, which an earlier run's build can have changed: so only
        the user opens it.

        https://git-scm.com/docs/git-push#URLS
        """
        url = (await self._find_places()).get("push", "")
        if not url or (":" in url.partition("/")[0] and not url.startswith("file://")):
            return  # a server
        place = self._settings.top / url.removeprefix("file://")
        can_write = self._settings.processes.sandbox.can_write
        if await asyncio.to_thread(lambda: place.is_dir() and not can_write(place)):
            closed = visible(clip(str(place.resolve()), _MAX_PLACE))
            raise Rejected(
                f"{what} is {closed}, where the sandbox does not let git write",
                hint=f"If tags belong there, name {closed} in `build-sandbox-paths`.",
                problem=Problem.TAG_REFUSED,
            ) from error

    async def _git(self, *arguments: str, objects: Path | None = None) -> Printed:
        places = await self._find_places()
        if not places:
            # Git takes any other name for a path, which may lead to what comes with the sources.
            raise CommandFailed(f"error: No such remote '{self._name}'")
        # For the credential helper that the runner sets up where URLs have no tokens.
        # https://docs.gitlab.com/runner/configuration/feature-flags/ (FF_GIT_URLS_WITHOUT_TOKENS)
        login = {}
        if self._job_token and all(OVER_HTTP.match(url) for url in places.values()):
            login = {JOB_BEARER: self._job_token.reveal()}
        return await self._settings.run_git(
            *arguments, remote=self._name, objects=objects, login=login
        )


def parse_tags(listed: Printed) -> dict[str, RemoteTag]:
    """Of what `git ls-remote --tags` prints, in which `v1^{}` is what the tag object v1 leads to.

    Names may hold what else ends a line, such as U+2028.

    https://git-scm.com/docs/git-ls-remote
    """
    objects = {ref.removeprefix("refs/tags/"): oid for ref, oid in listed.parse_rows(parse_ref)}
    return {
        name: RemoteTag(oid, objects.get(f"{name}^{{}}", oid))
        for name, oid in objects.items()
        if not name.endswith("^{}")
    }


def parse_ref(line: str) -> tuple[str, str]:
    """The reference of a line of `git ls-remote`, and its object."""
    oid, ref = line.split("\t", 1)
    return parse_ref_name(ref), parse_id(oid)


def strip_userinfo(url: str) -> str:
    """Of `https://me:secret@host/x` and of `git@host:x` alike."""
    scheme, separator, rest = url.rpartition("://")
    place, slash, path = rest.partition("/")
    return f"{scheme}{separator}{place.rpartition('@')[2]}{slash}{path}"


def _pick_reasons(log: Sequence[str]) -> Sequence[str]:
    """The lines that give the reason, each once, the server's own words first."""
    found = [pattern.sub("", line) for pattern in _TELLING for line in log if pattern.search(line)]
    return [*dict.fromkeys(found)][:3] or log[-2:]


def explain(
    error: CommandFailed, what: str, *, writing: bool, in_gitlab: bool = False
) -> PackageError:
    """What a failed git command means, which only its messages tell."""
    denied, refused = (_GITLAB_HINT, _GITLAB_REFUSED) if in_gitlab else (HINT, _REFUSED)
    log = [line[:_MAX_LINE] for line in error.log]
    text = "\n".join([*log, str(error)])
    words = one_line(_USERINFO.sub("://***@", "; ".join(_pick_reasons(log)) or str(error)))
    message = f"{what}: {words}"
    if _NEVER_SENT.search(text):
        return Transient(message, hint=PASSING)
    if _DENIED.search(text):
        return Denied(message, hint=denied)
    if _NO_REMOTE.search(text):
        return Rejected(
            f"{what}: git does not reach it: {words}",
            hint=NO_REMOTE_HINT,
            problem=Problem.TAG_REFUSED,
        )
    if _TAKEN.search(text):
        # If an answer is lost, curl may repeat the request; so it may be ours. Who looks again
        # sees whose it is.
        message = f"{what}: it has the tag by now: {words}"
        return Transient(message, ambiguous=writing, hint=PASSING)
    if _PROTECTED.search(text):
        return Rejected(
            f"{what}: a rule protects the tag: {words}", hint=refused, problem=Problem.TAG_REFUSED
        )
    match = _STATUS.search(text)
    status = int(match[1]) if match else 0
    if is_passing(status) or (_PASSING.search(text) and not _OF_SETTINGS.search(text)):
        ambiguous = writing and "error: 429" not in text
        return Transient(message, ambiguous=ambiguous, hint=PASSING)
    return Rejected(
        message, hint=remedy(status) if status else refused, problem=Problem.TAG_REFUSED
    )
