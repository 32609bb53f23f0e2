"""The results that a workflow run has left as an artifact.

https://docs.github.com/en/rest/actions/artifacts
"""

from __future__ import annotations

import asyncio
import io
from typing import TYPE_CHECKING, Any, Final, Self

from msgspec import Struct

from releasekit.aio import uncancellable
from releasekit.ecosystems.shared.archives import BAD_ZIP, opened_entry, opened_zip
from releasekit.errors import ConfigError, Denied, PackageError
from releasekit.host.ci import PULL_REQUEST_EVENTS
from releasekit.host.forges import RUN_PATH, SERVER, page_of_run
from releasekit.http.github import GitHub, api_of, tokens_for
from releasekit.http.origins import require_safe
from releasekit.problems import Problem
from releasekit.report.results import MAX_BYTES
from releasekit.text.escape import clip, visible
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import httpx

    from releasekit.http.client import RetryPolicy
    from releasekit.http.credentials import Secret

RESULTS: Final = "results.json"
# Looked into alone where a run has one of that name; docs/examples/staged.yml makes it.
ARTIFACT: Final = "releasekit-results"
# A state directory has what was built beside the results, and may be large.
MAX_ARTIFACT_BYTES: Final = 64 * 1024 * 1024
_MAX_ARTIFACTS: Final = 100  # one page
_MAX_FILES: Final = 100_000


class WorkflowRun(Struct, frozen=True):
    """One run of a workflow. `api` is where its GitHub answers, `token` what that is asked with."""

    api: str
    repository: str
    number: str
    token: Secret

    @classmethod
    def named(cls, url: str, secrets: Callable[[str], Secret | None]) -> Self:
        """By the address that a browser shows for it. Raises ConfigError."""
        place = require_safe(url, name="--run")
        matched = RUN_PATH.fullmatch(place.path)
        if matched is None:
            raise ConfigError(
                f"--run: {clip(visible(url), 200)} is not the address of a workflow run",
                hint="Write it as the browser shows it: "
                f"{page_of_run(f'{SERVER}/OWNER/REPOSITORY', 'NUMBER')}",
                problem=Problem.APPROVAL,
            )
        api = api_of(place)
        names = tokens_for(api)
        token = next((found for name in names if (found := secrets(name))), None)
        if token is None:
            raise ConfigError(
                f"--run: {' or '.join(names)} has to hold a token that may read the repository's "
                "artifacts",
                hint="GH_TOKEN=$(gh auth token), or download the artifact and name the file in it.",
                problem=Problem.APPROVAL,
            )
        return cls(api, f"{matched[1]}/{matched[2]}", matched[3], token)

    async def results(
        self, http: httpx.AsyncClient, policy: RetryPolicy
    ) -> list[tuple[str, bytes]]:
        """Where each results file was found, and its text; the newest artifact first.

        Raises ConfigError for a run without any, and what `GitHub.read` raises.
        """
        listed = await self._listed(http, policy)
        named = [each for each in listed if each["name"] == ARTIFACT]
        found: list[tuple[str, bytes]] = []
        left = MAX_BYTES
        for artifact in named[:1] or listed:
            name = clip(visible(str(artifact["name"])), 100)
            if artifact["size_in_bytes"] > MAX_ARTIFACT_BYTES:
                continue
            data = await self._get(http, policy, f"actions/artifacts/{artifact['id']}/zip")
            inside = await uncancellable(asyncio.to_thread(_results_in, data, name, left))
            left -= sum(len(text) for _, text in inside)
            found += [(f"{name}: {path}", text) for path, text in inside]
        if not found:
            raise ConfigError(
                f"--run: none of the {len(listed)} artifacts of run {self.number} of "
                f"{self.repository} holds a {RESULTS} of up to {MAX_ARTIFACT_BYTES} bytes",
                hint=f"Let the workflow upload it as {ARTIFACT!r} (upload-artifact), or name "
                f"a {RESULTS} on this machine.",
                problem=Problem.RESULTS,
            )
        return found

    async def describe(self, http: httpx.AsyncClient, policy: RetryPolicy) -> dict[str, str]:
        """Whose run it is, as GitHub says it, for the person who approves; the text is that of
        strangers. Raises what `GitHub.read` raises.

        https://docs.github.com/en/rest/actions/workflow-runs#get-a-workflow-run
        """
        try:
            found = parse_json(await self._get(http, policy, f"actions/runs/{self.number}"))
        except ValueError:
            found = None
        match found:
            case {
                "id": int(number),
                "repository": {"full_name": str(repository)},
                "path": str(workflow),
                "event": str(event),
                "head_sha": str(commit),
            } if str(number) == self.number:
                pass
            case _:
                raise PackageError(
                    f"{self.api}: not the workflow run {self.number}", problem=Problem.RUN_ARTIFACTS
                )
        branch = _text_at(found, "head_branch") or "unknown"
        source = _text_at(found, "head_repository", "full_name") or repository
        actor = _text_at(found, "actor", "login") or "unknown"
        again = _text_at(found, "triggering_actor", "login") or actor
        anybody = ", of a pull request, which anybody may open"
        return {
            "repository": repository,
            "workflow": workflow,
            "event": event + anybody * (event in PULL_REQUEST_EVENTS),
            "ref": f"{branch} of {source}" if source != repository else branch,
            "commit": commit,
            "started by": f"{actor}, and again by {again}" if again != actor else actor,
            "title": _text_at(found, "display_title") or "none",
        }

    async def _listed(self, http: httpx.AsyncClient, policy: RetryPolicy) -> list[dict[str, Any]]:
        path = f"actions/runs/{self.number}/artifacts?per_page={_MAX_ARTIFACTS}"
        try:
            document = parse_json(await self._get(http, policy, path))
            artifacts = document["artifacts"]
            usable = [each for each in artifacts if _is_usable(each)]
        except (ValueError, KeyError, TypeError) as error:
            raise PackageError(
                f"{self.api}: not a list of artifacts", problem=Problem.RUN_ARTIFACTS
            ) from error
        return sorted(usable, key=lambda each: int(each["id"]), reverse=True)

    async def _get(self, http: httpx.AsyncClient, policy: RetryPolicy, path: str) -> bytes:
        github = GitHub(http=http, api=self.api, token=self.token, redact=policy.redact)
        try:
            response = await github.read(github.at(f"{self.repository}/{path}"), policy)
        except Denied as error:
            hint = "The token has to be one that may read the repository's artifacts."
            raise error.with_(hint=hint) from error.__cause__
        return response.content


def _text_at(found: object, *names: str) -> str:
    """Empty where there is none, as of what somebody has deleted since."""
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, str) else ""


def _is_usable(artifact: Mapping[str, object]) -> bool:
    """Not expired, and as the documentation says it is. Raises KeyError, TypeError."""
    number, size = artifact["id"], artifact["size_in_bytes"]
    if type(number) is not int or type(size) is not int or type(artifact["name"]) is not str:
        raise TypeError
    return artifact.get("expired") is not True


def _results_in(data: bytes, name: str, left: int) -> list[tuple[str, bytes]]:
    """Path and text of each, of so many bytes in all; blocks."""
    found = []
    try:
        with opened_zip(io.BytesIO(data), max_files=_MAX_FILES) as archive:
            for entry in archive.infolist():
                if entry.filename.rpartition("/")[2] != RESULTS:
                    continue
                with opened_entry(archive, entry) as file:
                    text = file.read(left + 1)
                left -= len(text)
                if left < 0:
                    raise PackageError(
                        f"{name}: its {RESULTS} is over {MAX_BYTES} bytes",
                        problem=Problem.RUN_ARTIFACTS,
                    )
                found.append((visible(entry.filename), text))
    except (*BAD_ZIP, ValueError) as error:
        raise PackageError(
            f"{name}: not an archive that can be read: {error}", problem=Problem.RUN_ARTIFACTS
        ) from error
    return found
