"""npmjs.com with staged publishing, as far as its clients see it, and without a network.

https://docs.npmjs.com/staged-publishing, https://docs.npmjs.com/cli/v11/commands/npm-stage and
https://github.com/npm/api-documentation/tree/main/api/registry.npmjs.com (stage,
package-version-status). The words of refusals are as users met them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from harness.npm.accounts import Accounts
from harness.npm.documents import Answer, Release, Request, as_json, error, pack, parsed, release_of

PLACEHOLDER = "0.0.0-stage"


@dataclass
class Npmjs:
    """What is staged and published. Tests look at all of it, and change it.

    `unknown` is how staging a package ends that does not exist, of which npm's pages say all three:
    refused, taken beside a public placeholder, taken. With `reviewing` what is staged can only be
    approved after `review`; with `scanning` what is approved is shown after `show` only.
    """

    origin: str = ""
    accounts: Accounts = field(default_factory=Accounts)
    unknown: Literal["refuse", "placeholder", "create"] = "refuse"
    reviewing: bool = False
    scanning: bool = False
    page_limit: int = 100
    staged: dict[str, Release] = field(default_factory=dict)
    published: dict[tuple[str, str], Release] = field(default_factory=dict)
    tags: dict[str, dict[str, str]] = field(default_factory=dict)
    burnt: set[tuple[str, str]] = field(default_factory=set)
    # What clients did, as `name@version`, in order.
    stagings: list[str] = field(default_factory=list)
    publishings: list[str] = field(default_factory=list)
    approvals: list[str] = field(default_factory=list)
    rejections: list[str] = field(default_factory=list)

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
                return self.accounts.id_token(request)
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
                return self.accounts.exchange(request, name, exists=name in self.tags)
            case "GET", ["v1", "done"]:
                return self.accounts.done(request.query.get("authId", ""))
            case "GET", ["whoami"]:
                refusal = self.accounts.denied(request, "look")
                return refusal or as_json(200, {"username": "releaser"})
            case "GET", ["package", name, "version", version, "status"]:
                return self._status(request, name, version)
            case _:
                return error(404, "Not found")

    def _staging(self, request: Request, path: list[str]) -> Answer:
        match request.method, path:
            case "POST", ["package", name]:
                return self._stage(name, request)
            case "GET", []:
                return self._list(request)
            case "GET", [stage_id, *rest]:
                return self._look(request, stage_id, rest)
            case "POST", [stage_id, "approve"]:
                return self._absent(request, "decide") or self._approve(stage_id)
            case "DELETE", [stage_id]:
                return self._absent(request, "decide") or self._reject(stage_id)
            case _:
                return error(404, "Not found")

    def _absent(self, request: Request, action: str, name: str = "") -> Answer | None:
        return self.accounts.absent(request, action, self.origin, name)

    # What is staged.

    def _stage(self, name: str, request: Request) -> Answer:
        release = parsed(name, request.body)
        if refusal := self.accounts.denied(request, "stage", name):
            return refusal
        if isinstance(release, Answer):
            return release
        if self.accounts.kind(request) == "oidc":
            release.actor, release.actor_type = "GitHub Actions", "trusted automation"
        key = (name, release.version)
        if key in self.published or key in self.burnt or self._waiting(key):
            # Said of staged ones too: https://github.com/npm/cli/issues/9519
            return error(409, f'Cannot stage previously published version "{release.version}".')
        if name not in self.tags:
            if self.unknown == "refuse":
                return error(404, f'Package "{name}" not found')
            if self.unknown == "placeholder":
                self.publish(pack({"name": name, "version": PLACEHOLDER}))
        release.status = "validating" if self.reviewing else "staged"
        self.staged[release.id] = release
        self.stagings.append(str(release))
        words = "Package version staged successfully."
        return as_json(201, {"message": words, "stageId": release.id})

    def _waiting(self, key: tuple[str, str]) -> bool:
        return any((release.name, release.version) == key for release in self.staged.values())

    def _list(self, request: Request) -> Answer:
        if refusal := self.accounts.denied(request, "look"):
            return refusal
        wanted = request.query.get("package")
        page = int(request.query.get("page", "0"))
        size = min(int(request.query.get("perPage", "10")), self.page_limit)
        rows = [item.row() for item in self.staged.values() if wanted in {None, item.name}]
        rows.reverse()  # the latest first
        items = rows[page * size : (page + 1) * size]
        return as_json(200, {"items": items, "page": page, "perPage": size, "total": len(rows)})

    def _look(self, request: Request, stage_id: str, rest: list[str]) -> Answer:
        if refusal := self.accounts.denied(request, "look"):
            return refusal
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
        return as_json(201, {"message": "Package version approved and published successfully."})

    def _reject(self, stage_id: str) -> Answer:
        if stage_id not in self.staged:
            return _gone(stage_id)
        self.rejections.append(str(self.staged.pop(stage_id)))
        return Answer(204)

    def _status(self, request: Request, name: str, version: str) -> Answer:
        if self.accounts.kind(request) is None:
            return error(401, "Unauthorized")
        found = "blocked" if (name, version) in self.burnt else ""
        for release in (*self.staged.values(), *self.published.values()):
            if (release.name, release.version) == (name, version):
                found = "validating" if release.status == "approved" else release.status
        if not found or self.accounts.denied(request, "look"):
            return error(404, "Not found")
        return as_json(200, {"packageName": name, "version": version, "status": found})

    # What is public.

    def _publish(self, name: str, request: Request) -> Answer:
        release = parsed(name, request.body)
        if refusal := self._absent(request, "publish", name):
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
            tags = self.tags[release.name]
            tags[release.tag] = release.version
            tags.setdefault("latest", release.version)  # no package is without

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
    return error(404, f"staged version {stage_id} not found")
