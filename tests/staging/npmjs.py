"""npmjs.com with staged publishing, as far as its clients see it, and without a network.

https://docs.npmjs.com/staged-publishing, https://docs.npmjs.com/cli/v11/commands/npm-stage and
https://github.com/npm/cli/tree/latest/lib/commands/stage; what these leave open is as users met it,
and says where.
"""

from __future__ import annotations

import itertools
import uuid
from dataclasses import dataclass, field
from typing import Any, Literal

from staging.documents import Answer, Release, Request, as_json, error, pack, parsed, release_of
from trusted_index import TrustedIndex

Kind = Literal["oidc", "stage-only", "bypass", "session"]
PLACEHOLDER = "0.0.0-stage"
# Of an account; trusted publishing makes those of kind "oidc".
TOKENS: dict[str, Kind] = {
    "npm_stage-only": "stage-only",
    "npm_bypass": "bypass",
    "npm_session": "session",
}
_MAY: dict[Kind, frozenset[str]] = {
    "stage-only": frozenset({"stage", "look"}),
    "bypass": frozenset({"stage", "look", "publish"}),
    "session": frozenset({"stage", "look", "publish", "decide"}),
}
_NO_CODE = (
    "You must provide a one-time pass. Upgrade your client to npm@latest in order to use 2FA."
)


@dataclass
class Npmjs:
    """What is staged and published, and who may do what. Tests look at all of it and change it.

    `codes` are the one-time codes that are good now; `allowed` what a trusted publisher may do;
    `unknown` how staging a package ends that does not exist: npm's pages say both. With `reviewing`
    what is staged can only be approved after `review`; with `scanning` what is approved is shown
    after `show` only. `agrees_after` is how often a client may ask whether the person has signed in
    on the web before that is so; None for never.
    """

    origin: str = ""
    tokens: dict[str, Kind] = field(default_factory=lambda: dict(TOKENS))
    codes: set[str] = field(default_factory=lambda: {"123456"})
    allowed: frozenset[str] = frozenset({"stage"})
    unknown: Literal["refuse", "placeholder"] = "refuse"
    reviewing: bool = False
    scanning: bool = False
    agrees_after: int | None = None
    retry_after_s: int = 1
    page_limit: int = 100
    # A program may count on no order of these.
    staged: dict[str, Release] = field(default_factory=dict)
    published: dict[tuple[str, str], Release] = field(default_factory=dict)
    tags: dict[str, dict[str, str]] = field(default_factory=dict)
    burnt: set[tuple[str, str]] = field(default_factory=set)
    # What clients did, as `name@version`, in order.
    stagings: list[str] = field(default_factory=list)
    publishings: list[str] = field(default_factory=list)
    approvals: list[str] = field(default_factory=list)
    rejections: list[str] = field(default_factory=list)
    logins: dict[str, int] = field(default_factory=dict)
    github: TrustedIndex = field(default_factory=TrustedIndex)
    _packages: dict[str, str] = field(default_factory=dict)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    # What a test does past the wire.

    def publish(self, tarball: bytes, *, tag: str = "latest") -> Release:
        release = release_of(tarball, tag)
        self._take(release, shown=True)
        return release

    def stage(self, tarball: bytes, *, tag: str = "latest", actor: str = "releaser") -> Release:
        """As somebody does whom the test knows nothing of."""
        release = release_of(tarball, tag)
        release.actor = actor
        self.staged[release.id] = release
        return release

    def approve(self, release: Release) -> None:
        """As another maintainer does on the website."""
        del self.staged[release.id]
        self._take(release, shown=not self.scanning)

    def review(self) -> None:
        """npm is done with what is staged by now."""
        for release in self.staged.values():
            release.status = "staged"

    def show(self) -> None:
        """npm is done with what is approved by now."""
        for release in self.published.values():
            self._show(release)

    def drop(self, release: Release) -> None:
        """Gone without anybody's rejection, and its number with it; this has happened.

        https://github.com/npm/cli/issues/9889
        """
        del self.staged[release.id]
        self.burnt.add((release.name, release.version))

    def answer(self, request: Request) -> Answer:
        match request.method, request.parts:
            case _, ["-", "stage", *rest]:
                return self._staging(request, rest)
            case _, ["-", *rest]:
                return self._service(request, rest)
            case "GET", ["idtoken"]:
                authorization = request.headers.get("authorization", "")
                status, body, _ = self.github.answer("GET", request.target, authorization, b"")
                return Answer(status, body)
            case "GET", ["auth", "cli", _]:
                return Answer(200, b"sign in", (("Content-Type", "text/html"),))
            case "PUT", [name]:
                return self._publish(name, request)
            case "GET", [name, *rest]:
                return self._public(name, rest)
            case _:
                return error(404, "Not found")

    def _service(self, request: Request, path: list[str]) -> Answer:
        match request.method, path:
            case "POST", ["npm", "v1", "oidc", "token", "exchange", "package", name]:
                return self._exchange(name, request)
            case "GET", ["v1", "done"]:
                return self._done(request.query.get("authId", ""))
            case "GET", ["whoami"]:
                return self._denied(request, "look") or as_json(200, {"username": "releaser"})
            case _:
                return error(404, "Not found")

    def _staging(self, request: Request, path: list[str]) -> Answer:
        match request.method, path:
            case "POST", ["package", name]:
                return self._denied(request, "stage", name) or self._stage(name, request)
            case "GET", []:
                return self._denied(request, "look") or self._list(request)
            case "GET", [stage_id, *rest]:
                return self._denied(request, "look") or self._look(stage_id, rest)
            case "POST", [stage_id, "approve"]:
                return self._not_present(request, "decide") or self._approve(stage_id)
            case "DELETE", [stage_id]:
                return self._not_present(request, "decide") or self._reject(stage_id)
            case _:
                return error(404, "Not found")

    # Who may do what.

    def _exchange(self, name: str, request: Request) -> Answer:
        if request.token not in self.github.id_tokens:
            return as_json(401, {"message": "Invalid or expired identity token"})
        if name not in self.tags:
            return as_json(404, {"message": "OIDC token exchange error - package not found"})
        token = f"npm_oidc-{next(self._numbers)}"
        self.tokens[token] = "oidc"
        self._packages[token] = name
        return as_json(201, {"token": token})

    def _denied(self, request: Request, action: str, name: str = "") -> Answer | None:
        kind = self.tokens.get(request.token)
        if kind is None:
            return error(401, "You must be logged in to publish packages.")
        if kind == "oidc":
            if action in self.allowed and name == self._packages[request.token]:
                return None
            # https://github.com/software-mansion/pulsar/pull/288
            return error(403, "OIDC permission denied for this action")
        if action not in _MAY[kind]:
            return error(403, "You may not perform that action with these credentials.")
        return None

    def _not_present(self, request: Request, action: str, name: str = "") -> Answer | None:
        """Whatever else is wrong, without a code it is that: npm asks for one first."""
        denied = self._denied(request, action, name)
        skips = self.tokens.get(request.token) in {"oidc", "bypass"}
        if denied or skips or request.headers.get("npm-otp") in self.codes:
            return denied
        words: dict[str, str] = {"error": _NO_CODE}
        headers = request.headers
        if (
            headers.get("npm-auth-type") == "web"
            and "npm-command" in headers
            and headers.get("user-agent", "").startswith("npm/")
        ):
            login = str(uuid.uuid4())
            self.logins[login] = 0
            words["authUrl"] = f"{self.origin}/auth/cli/{login}"
            words["doneUrl"] = f"{self.origin}/-/v1/done?authId={login}"
        refusal = as_json(401, words)
        return Answer(401, refusal.body, (*refusal.headers, ("WWW-Authenticate", "OTP")))

    def _done(self, login: str) -> Answer:
        if login not in self.logins:
            return error(404, "Not found")
        if self.agrees_after is None or self.logins[login] < self.agrees_after:
            self.logins[login] += 1
            pending = as_json(202, {})
            return Answer(
                202, pending.body, (*pending.headers, ("Retry-After", str(self.retry_after_s)))
            )
        code = f"web-{login}"
        self.codes.add(code)
        return as_json(200, {"token": code})

    # What is staged.

    def _stage(self, name: str, request: Request) -> Answer:
        release = parsed(name, request.body)
        if isinstance(release, Answer):
            return release
        if self.tokens[request.token] == "oidc":
            release.actor, release.actor_type = "GitHub Actions", "trusted automation"
        key = (name, release.version)
        if key in self.published or key in self.burnt or self._waiting(key):
            # Said of staged ones too: https://github.com/npm/cli/issues/9519
            return error(409, f'Cannot stage previously published version "{release.version}".')
        if name not in self.tags:
            if self.unknown == "refuse":
                return error(404, f'Package "{name}" not found')
            self.publish(pack({"name": name, "version": PLACEHOLDER}))
        release.status = "validating" if self.reviewing else "staged"
        self.staged[release.id] = release
        self.stagings.append(str(release))
        return as_json(201, {"stageId": release.id})

    def _waiting(self, key: tuple[str, str]) -> bool:
        return any((release.name, release.version) == key for release in self.staged.values())

    def _list(self, request: Request) -> Answer:
        wanted = request.query.get("package")
        page = int(request.query.get("page", "0"))
        size = min(int(request.query.get("perPage", "10")), self.page_limit)
        rows = [item.row() for item in self.staged.values() if wanted in {None, item.name}]
        rows.reverse()
        items = rows[page * size : (page + 1) * size]
        return as_json(200, {"items": items, "page": page, "perPage": size, "total": len(rows)})

    def _look(self, stage_id: str, rest: list[str]) -> Answer:
        release = self.staged.get(stage_id)
        if release is None or rest not in ([], ["tarball"]):
            return _gone(stage_id)
        if rest:
            return Answer(200, release.tarball, (("Content-Type", "application/octet-stream"),))
        return as_json(200, release.row())

    def _approve(self, stage_id: str) -> Answer:
        release = self.staged.get(stage_id)
        if release is None:
            return _gone(stage_id)
        if release.status == "validating":
            words = "can't be approved yet because automated review hasn't finished."
            return error(409, f"{release} {words} Try again in a few minutes.")
        self.approve(release)
        self.approvals.append(str(release))
        return as_json(200, {"ok": True})

    def _reject(self, stage_id: str) -> Answer:
        if stage_id not in self.staged:
            return _gone(stage_id)
        self.rejections.append(str(self.staged.pop(stage_id)))
        return Answer(204)

    # What is public.

    def _publish(self, name: str, request: Request) -> Answer:
        release = parsed(name, request.body)
        if refusal := self._not_present(request, "publish", name):
            return refusal
        if isinstance(release, Answer):
            return release
        key = (name, release.version)
        if release.version in self._shown(name):
            words = "You cannot publish over the previously published versions"
            return error(403, f"{words}: {release.version}.")
        if key in self.published or key in self.burnt or self._waiting(key):
            # Said of what is published and scanned as well: https://github.com/npm/cli/issues/9889
            words = "Cannot publish over previously staged version"
            return error(409, f'{words} "{release.version}".')
        self._take(release, shown=not self.scanning)
        self.publishings.append(str(release))
        return as_json(202 if self.scanning else 201, {"success": True})

    def _take(self, release: Release, *, shown: bool) -> None:
        self.published[release.name, release.version] = release
        release.status = "approved"
        self.tags.setdefault(release.name, {})
        if shown:
            self._show(release)

    def _show(self, release: Release) -> None:
        if release.status != "published":
            release.status = "published"
            self.tags[release.name][release.tag] = release.version

    def _shown(self, name: str) -> dict[str, Release]:
        return {
            version: release
            for (owner, version), release in self.published.items()
            if owner == name and release.status == "published"
        }

    def _public(self, name: str, path: list[str]) -> Answer:
        match path:
            case []:
                return self._packument(name)
            case ["-", filename]:
                return self._tarball(name, filename)
            case [version]:
                return self._version(name, version)
            case _:
                return error(404, "Not found")

    def _packument(self, name: str) -> Answer:
        shown = self._shown(name)
        if not shown:
            return error(404, "Not found")
        versions = {version: self._entry(release) for version, release in shown.items()}
        return as_json(200, {"name": name, "dist-tags": self.tags[name], "versions": versions})

    def _version(self, name: str, version: str) -> Answer:
        release = self._shown(name).get(self.tags.get(name, {}).get(version, version))
        if release is None:
            return as_json(404, f"version not found: {version}")
        return as_json(200, self._entry(release))

    def _entry(self, release: Release) -> dict[str, Any]:
        stem = f"{release.name}/-/{release.name.rpartition('/')[2]}"
        place = f"{self.origin}/{stem}-{release.version}.tgz"
        return {**release.manifest, "dist": {**release.manifest["dist"], "tarball": place}}

    def _tarball(self, name: str, filename: str) -> Answer:
        stem = f"{name.rpartition('/')[2]}-"
        release = self._shown(name).get(filename.removeprefix(stem).removesuffix(".tgz"))
        if release is None:
            return error(404, "Not found")
        return Answer(200, release.tarball, (("Content-Type", "application/octet-stream"),))


def _gone(stage_id: str) -> Answer:
    return error(404, f"staged version with id {stage_id} not found")
