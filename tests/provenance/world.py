"""A job at GitHub with all that it speaks to, on loopback: Sigstore, PyPI and npm, which verify
what they are sent, and GitHub's own attestations; and a workspace that the job releases.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import re
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.github import TOKEN, serving_github
from harness.npm import documents, registry
from harness.npm.documents import pack
from harness.npm.npmjs import Npmjs
from provenance import sigstore_double
from provenance.npmjs import Examiner
from provenance.warehouse import Warehouse
from trusted_index import served
from workspaces import git, write_json, write_member

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from harness.github import GitHubDouble
    from harness.npm.registry import Registry
    from provenance.sigstore_double import Answer as SigstoreAnswer
    from provenance.sigstore_double import Request, Sigstore
    from trusted_index import Answer

PYTHON = {"acme-core": (), "acme-cli": ("acme-core",)}
NODE = {"tokens": (), "format": ("tokens",)}
FILES = 2 * len(PYTHON) + len(NODE)
_REPOSITORY = {"type": "git", "url": "git+https://github.com/acme/widgets.git"}


@dataclass
class Index(Warehouse):
    """PyPI, with the pages of its index. `around` is told of each upload, before and after it."""

    around: Callable[[str, str], None] = lambda moment, what: None

    def answer(self, method: str, target: str, authorization: str, body: bytes) -> Answer:
        if found := re.fullmatch(r"/simple/([^/]+)/", target):
            return self._page(found[1])
        if target != "/legacy/":
            return super().answer(method, target, authorization, body)
        named = re.search(rb'name="content"; filename="([^"]+)"', body)
        what = f"upload {named[1].decode() if named else ''}"
        self.around("before", what)
        answer = super().answer(method, target, authorization, body)
        self.around("after", what)
        return answer

    def _page(self, project: str) -> Answer:
        files = [
            {
                "filename": name,
                "url": name,
                "hashes": {"sha256": hashlib.sha256(content).hexdigest()},
            }
            for name, content in self.stored.items()
            if name.startswith(project.replace("-", "_"))
        ]
        if not files:
            return 404, b"", "text/plain"
        page = {"meta": {"api-version": "1.0"}, "name": project, "files": files}
        return 200, json.dumps(page).encode(), "application/vnd.pypi.simple.v1+json"


@dataclass
class World:
    """`around` is told of everything that a run does to the world, as "before" or "after" and what:
    it may end the run, and then raises HangUp. One request is answered at a time.
    """

    sigstore: Sigstore
    index: Index
    pypi: str
    npm: Registry
    github: GitHubDouble
    around: Callable[[str, str], None] = lambda moment, what: None
    _turn: threading.RLock = field(default_factory=threading.RLock)

    @property
    def environment(self) -> dict[str, str]:
        """Of the job."""
        return {
            **self.sigstore.environment,
            "GITHUB_API_URL": self.github.api,
            "RELEASEKIT_FORGE_TOKEN": TOKEN,
        }

    @property
    def inputs(self) -> dict[str, str]:
        """Both registries trust the job, and it signs whatever it sends them."""
        return {
            "pypi-registry": f"{self.pypi}/legacy/",
            "npm-registry": self.npm.url,
            "trusted-publishing": "always",
            "attestations": "required",
            "trust-config": str(self.sigstore.trust_config),
        }

    @property
    def attested(self) -> dict[str, bool]:
        """Every file that the registries hold, by name, and whether it came with an attestation."""
        python = {name: bool(kinds) for name, kinds in self.index.attested.items()}
        published = self.npm.npm.published
        node = {
            str(release): bool(release.provenance)
            for (_, version), release in published.items()
            if version != "0.9.0"
        }
        return python | node

    def told(self, moment: str, what: str) -> None:
        with self._turn:
            self.around(moment, what)


@contextlib.contextmanager
def serving_all(directory: Path) -> Iterator[World]:
    """Nothing is published, but an earlier version of each npm package, which trusted publishing
    wants there.
    """
    npmjs = Npmjs()
    with contextlib.ExitStack() as stack:
        sigstore = stack.enter_context(sigstore_double.serving(directory / "sigstore"))
        index = Index(sigstore=sigstore)
        pypi = stack.enter_context(served(index))
        npm = stack.enter_context(registry.serving(npmjs))
        github = stack.enter_context(serving_github(directory, "acme/widgets"))
        world = World(sigstore, index, pypi, npm, github)
        for name in NODE:
            npmjs.publish(pack({"name": f"@acme/{name}", "version": "0.9.0"}))
        npmjs.accounts.github = index
        npmjs.accounts.allowed = frozenset({"publish"})
        _connect(world)
        yield world


def _connect(world: World) -> None:
    examiner = Examiner(world.sigstore)

    def before_npm(request: documents.Request) -> documents.Answer | None:
        if request.method == "PUT":
            world.told("before", f"publish {request.target}")
        return examiner(request)

    def after_npm(request: documents.Request, answer: documents.Answer) -> documents.Answer:
        if request.method == "PUT":
            world.told("after", f"publish {request.target}")
        return answer

    def before_sigstore(request: Request) -> None:
        world.told("before", _named(request))

    def after_sigstore(request: Request, answer: SigstoreAnswer) -> None:
        if request.service == "tokens" and answer.status == 200:
            world.index.id_tokens.append(json.loads(answer.body)["value"])
        world.told("after", _named(request))

    world.index.around = world.told
    world.npm.before, world.npm.after = before_npm, after_npm
    world.sigstore.before, world.sigstore.after = before_sigstore, after_sigstore


def _named(request: Request) -> str:
    """What it is for: of an entry of the log, the first file that it is about."""
    if request.service != "log" or request.method != "POST":
        return f"{request.service} {request.target}"
    entry = json.loads(request.body)["spec"]["proposedContent"]["envelope"]
    statement = json.loads(base64.b64decode(json.loads(entry)["payload"]))
    return f"sign {len(statement['subject'])} {statement['subject'][0]['name']}"


def workspace(root: Path) -> Path:
    """Two Python packages and two of npm's, each of which needs the one before it."""
    root.mkdir(parents=True)
    (root / "pyproject.toml").write_text('[tool.uv.workspace]\nmembers = ["python/*"]\n')
    for name, needs in PYTHON.items():
        write_member(root / "python" / name, name, needs)
    write_json(root / "package.json", {"private": True, "workspaces": ["node/*"]})
    for name, needs in NODE.items():
        document = {
            "name": f"@acme/{name}",
            "version": "1.0.0",
            "repository": _REPOSITORY,
            "publishConfig": {"access": "public"},
            "dependencies": {f"@acme/{need}": "1.0.0" for need in needs},
        }
        write_json(root / "node" / name / "package.json", document)
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Start")
    return root
