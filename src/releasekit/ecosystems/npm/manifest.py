"""One package.json, read: what it says of its package.

https://docs.npmjs.com/cli/configuring-npm/package-json
"""

from __future__ import annotations

import contextlib
import json
import re
import reprlib
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct, field

from releasekit.ecosystems.npm.reference import MAX_NUMBER
from releasekit.ecosystems.shared.documents import checked_table, table_in, text_in
from releasekit.ecosystems.shared.semver import Version
from releasekit.errors import ManifestError
from releasekit.host.files import read_parsed
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


MAX_BYTES: Final = 1024 * 1024
MAX_SPEC_CHARS: Final = 4_000
Field = Literal["dependencies", "optionalDependencies", "peerDependencies", "devDependencies"]
FIELDS: Final[tuple[Field, ...]] = (
    "dependencies", "optionalDependencies", "peerDependencies", "devDependencies",
)  # fmt: skip
# The keys that say what a package holds, or how to publish it.
_CONTENTS: Final = frozenset(
    {
        *("files", "main", "module", "exports", "bin", "browser", "types", "typings", "style"),
        *("directories", "publishConfig"),
    }
)
# What runs when a package is packed to be published, in this order.
# https://docs.npmjs.com/cli/using-npm/scripts#npm-publish
SCRIPTS: Final = ("prepublishOnly", "prepack", "prepare", "postpack")
# A command that publishes the packages of all platforms, and names them in package.json.
# https://napi.rs/docs/cli/pre-publish
_NAPI: Final = re.compile(r"\bnapi\s+pre-?publish\b")
# https://napi.rs/docs/cli/build, https://neon-rs.dev/docs/, https://github.com/rustwasm/wasm-pack
_COMPILING: Final = re.compile(
    r"\b(?:cargo(?:\s+\+\S+)?\s+(?:b|build|ndk|rustc|zigbuild)|cargo-cp-artifact|napi\s+build"
    r"|neon\s+(?:build|dist)|wasm-bindgen|wasm-pack\s+build)\b"
)
_WORD: Final = re.compile(r"[^\s\"'=;&|()]{1,255}")
_MOST_PLACES: Final = 200
# What runs once the registry has taken it.
# https://github.com/npm/cli/blob/latest/lib/commands/publish.js
FOLLOWING: Final = ("publish", "postpublish")
# Names that URLs and directories can hold. https://github.com/npm/validate-npm-package-name
_NAME: Final = re.compile(r"@[A-Za-z0-9~-][\w.~-]*/[\w~-][\w.~-]*|[A-Za-z0-9~-][\w.~-]*", re.ASCII)
_TAKEN: Final = frozenset({"node_modules", "favicon.ico"})
# Of Node.js, with those that every version has had: `require` finds them first.
# https://github.com/npm/validate-npm-package-name/blob/main/lib/builtin-modules.json
_BUILT_IN: Final = re.compile(
    "assert|async_hooks|buffer|child_process|cluster|console|constants|crypto|dgram"
    "|diagnostics_channel|dns|domain|events|fs|http2?|https|inspector|module|net|os|path"
    "|perf_hooks|process|punycode|querystring|readline|repl|stream|string_decoder|sys|timers|tls"
    "|trace_events|tty|url|util|v8|vm|wasi|worker_threads|zlib"
)
_MAX_URL_CHARS: Final = 1_000
_HOSTS: Final = {"github": "github.com", "gitlab": "gitlab.com", "bitbucket": "bitbucket.org"}
# Groups of GitLab may have groups in them.
_PATH: Final = r"(?P<owner>[\w-][\w.-]*(?P<nested>(?:/\w[\w.-]*)*))/(?P<name>[\w.-]+)"
_END: Final = r"/?(?:#(?P<commit>.*))?"
_SHORTHAND: Final = re.compile(rf"(?:(?P<host>{'|'.join(_HOSTS)}):)?{_PATH}{_END}", re.DOTALL)
_URL: Final = re.compile(
    r"(?:(?P<scheme>(?:git\+)?https|(?:git\+)?ssh|http|git)://(?:(?P<user>[^@/]+)@)?|[^@/:]+@)"
    rf"(?:www\.)?(?P<host>{'|'.join(map(re.escape, _HOSTS.values()))})[/:]{_PATH}{_END}",
    re.DOTALL | re.IGNORECASE,
)


UNVERSIONED: Final = "its package.json has no version"
# In place of a version, where semantic-release writes one only into what it publishes.
# https://semantic-release.gitbook.io/semantic-release/support/faq
_PLACEHOLDERS: Final = ("0.0.0-development", "0.0.0-semantically-released")
_PLACEHOLDER: Final = "its package.json has a placeholder as version"


class DeclaredDependency(Struct, frozen=True):
    """One entry of one of the four dependency tables."""

    field: Field
    key: str
    spec: str


class NpmPackage(Struct, frozen=True, kw_only=True):
    """`version` is empty only for an unpublishable package. `scripts` run when it is packed,
    `following` once it is published; `publishing` is one of them that would publish others.
    `bundled` are the packages in its tarball, `optional_peers` the peers that it works without,
    `repository` is the URL of its sources, as npm spells it, and `tag` is as `find_tag` has it.
    With napi, the names of its platform packages begin with `platforms`; `platform` says that the
    package is for one platform.
    `names_files` says that package.json names some files that the package is made of. `crates` are
    directories where its scripts may compile a crate.
    """

    name: str
    version: str
    manifest: Path
    declared: tuple[DeclaredDependency, ...] = ()
    scripts: frozenset[str] = frozenset()
    following: tuple[str, ...] = ()
    bundled: frozenset[str] = frozenset()
    optional_peers: frozenset[str] = frozenset()
    repository: str = ""
    publish_config: Mapping[str, object] = field(default_factory=dict)
    tag: tuple[str, str] = ("", "")
    publishing: str = ""
    platforms: str = ""
    platform: bool = False
    unpublishable: str = ""
    names_files: bool = True
    crates: tuple[str, ...] = ()

    @property
    def directory(self) -> Path:
        return self.manifest.parent

    @property
    def is_private(self) -> bool:
        """Whether it is never published, whatever its version is going to be."""
        return self.unpublishable not in {"", _PLACEHOLDER}

    def is_installed(self, declared: DeclaredDependency) -> bool:
        """Whether users install it: not what is for development, nor what the tarball bundles."""
        return declared.field != "devDependencies" and declared.key not in self.bundled


def read_manifest(path: Path) -> dict[str, object]:
    """The parsed file; raises ConfigError when it is too large, not UTF-8, or no JSON object."""
    return read_parsed(path, _parse_object, complaint="is not valid JSON", max_bytes=MAX_BYTES)


def parse_manifest(text: str) -> dict[str, object]:
    """Raises ValueError for a text that is not a JSON object, behind one byte order mark."""
    return _parse_object(text.removeprefix("\ufeff"))


def _parse_object(text: str) -> dict[str, object]:
    document = parse_json(text, max_bytes=None)
    if not isinstance(document, dict):
        raise ValueError("not an object")  # noqa: TRY004 (about the text)
    return document


def parse_package(document: Mapping[str, object], path: Path) -> NpmPackage | None:
    """None for a package.json without a name: it only marks a directory."""
    if not (name := _read_name(document, path)):
        return None
    unpublishable = _explain_unpublishable(document)
    # https://github.com/npm/package-json/blob/main/lib/normalize.js (fillTypes)
    if not unpublishable and document.get("main") and not isinstance(document["main"], str):
        raise ManifestError(
            f"{path}: main is {reprlib.repr(document['main'])}", hint='Write a path: "index.js".'
        )
    scripts = checked_table(document, "scripts", path=path)
    version = _read_version(document)
    if not (version or unpublishable):
        raise ManifestError(
            f"{path}: version is {document.get('version', '')!r}",
            hint='Write a version as semver has it, "1.2.3" or "2.0.0-beta.1"; npm drops build '
            "metadata (+…).",
        )
    # https://napi.rs/docs/cli/napi-config
    napi = table_in(document, "napi")
    prefix = napi.get("packageName") or table_in(napi, "package").get("name") or name
    return NpmPackage(
        name=name,
        version=version,
        manifest=path,
        declared=list_declared(document, path),
        scripts=frozenset(scripts) & frozenset(SCRIPTS),
        following=tuple(event for event in FOLLOWING if scripts.get(event)),
        bundled=list_bundled(document),
        optional_peers=frozenset(
            peer
            for peer, meta in checked_table(document, "peerDependenciesMeta", path=path).items()
            if isinstance(meta, dict) and meta.get("optional") is True
        ),
        repository=text_in(normalize_repository(document.get("repository")), "url"),
        publish_config=checked_table(document, "publishConfig", path=path),
        tag=find_tag(document),
        publishing=next((each for each in SCRIPTS if _NAPI.search(text_in(scripts, each))), ""),
        platforms=f"{prefix}-" if napi else "",
        platform="os" in document or "cpu" in document,
        unpublishable=unpublishable,
        names_files=not _CONTENTS.isdisjoint(document),
        crates=_list_crates(scripts, is_napi=bool(napi)),
    )


def _read_name(document: Mapping[str, object], path: Path) -> str:
    name = document.get("name")
    if name is None or name == "":
        return ""
    if (
        not isinstance(name, str)
        or len(name) > 214
        or not _NAME.fullmatch(name)
        or name.lower() in _TAKEN
    ):
        raise ManifestError(
            f"{path}: name is {name!r}", hint='Write a name like "acme-core" or "@acme/core".'
        )
    return name


def _explain_unpublishable(document: Mapping[str, object]) -> str:
    # Private is everything that JavaScript takes for true, even the text "false".
    # https://github.com/npm/cli/blob/latest/lib/commands/publish.js
    private = document.get("private")
    if private or isinstance(private, list | dict):
        return f"its package.json says private: {json.dumps(private)[:40]}"
    if "version" not in document:
        return UNVERSIONED
    return _PLACEHOLDER if document["version"] in _PLACEHOLDERS else ""


def _read_version(document: Mapping[str, object]) -> str:
    """Empty where npm takes it for none."""
    text = str(document.get("version", ""))
    with contextlib.suppress(ValueError):
        version = Version.parse(text)
        if not version.build and max(version.release) <= MAX_NUMBER:
            return text
    return ""


def find_tag(document: Mapping[str, object]) -> tuple[str, str]:
    """The dist-tag that it names, behind the key; both empty where it names none.
    https://github.com/npm/cli/blob/latest/workspaces/libnpmpublish/lib/publish.js (buildMetadata)
    """
    tags = {"tag": document.get("tag")}
    tags["publishConfig.tag"] = table_in(document, "publishConfig").get("tag")
    return next(((key, str(tag)) for key, tag in tags.items() if tag), ("", ""))


def find_name_fault(name: str) -> str:
    """Why npmjs.com takes no new package of this name, though it has older ones like it; empty
    where it does. https://docs.npmjs.com/cli/configuring-npm/package-json#name
    """
    if name != name.lower():
        return "contains capital letters"
    if _BUILT_IN.fullmatch(name):
        return "is the name of a Node.js module"
    if name.startswith("-"):
        return "begins with a hyphen"
    if "~" in name.rpartition("/")[2]:
        return "contains `~`"
    return ""


def _list_crates(scripts: Mapping[str, object], *, is_napi: bool) -> tuple[str, ...]:
    """The directory of the package, and all that may be one in the scripts that compile crates."""
    compiling = [text for text in map(str, scripts.values()) if _COMPILING.search(text)]
    if not compiling and not is_napi:
        return ()
    words = (word for text in compiling for word in _WORD.findall(text))
    places = (word.removesuffix("Cargo.toml") for word in words)
    return tuple(islice(dict.fromkeys((".", *places)), _MOST_PLACES))


def find_bundled(document: Mapping[str, object]) -> list[object] | None:
    """As it is written, None where nothing is said of it.
    https://docs.npmjs.com/cli/configuring-npm/package-json#bundledependencies
    """
    bundled = document.get("bundleDependencies")
    if bundled is None:
        bundled = document.get("bundledDependencies")
    if bundled is True:
        bundled = table_in(document, "dependencies")
    return [*bundled] if isinstance(bundled, list | dict) else None


def list_bundled(document: Mapping[str, object]) -> frozenset[str]:
    return frozenset(map(str, find_bundled(document) or ()))


def list_declared(document: Mapping[str, object], path: Path) -> tuple[DeclaredDependency, ...]:
    found = []
    for key in FIELDS:
        for name, spec in checked_table(document, key, path=path).items():
            if not isinstance(spec, str):
                raise ManifestError(
                    f"{path}: {key}.{name} is {spec!r}", hint='Write a range like "^1.2.0".'
                )
            if len(spec) > MAX_SPEC_CHARS:
                raise ManifestError(
                    f"{path}: {key}.{name} is longer than {MAX_SPEC_CHARS} characters"
                )
            found.append(DeclaredDependency(key, name, spec))
    return tuple(found)


class Hosted(Struct, frozen=True):
    """A repository at one of the hosts that npm knows: its `page`, and its `url` as npm spells it
    when it publishes, which its registry compares with where a job comes from.
    """

    page: str
    url: str

    @classmethod
    def parse(cls, text: str) -> Hosted | None:
        """None for a text that names no repository, and for one at another host."""
        if len(text) > _MAX_URL_CHARS:
            return None
        if found := _SHORTHAND.fullmatch(text):
            return cls._of(found, _HOSTS[found["host"] or "github"], "git+https://")
        if not (found := _URL.fullmatch(text)):
            return None
        scheme = (found["scheme"] or "ssh").lower()
        if scheme == "git":
            before = "git://"
        elif scheme.endswith("https"):
            before = f"git+https://{found['user']}@" if found["user"] else "git+https://"
        else:
            before = "git+ssh://git@"
        return cls._of(found, found["host"].lower(), before)

    @classmethod
    def _of(cls, found: re.Match[str], host: str, before: str) -> Hosted | None:
        if found["nested"] and host != _HOSTS["gitlab"]:
            return None
        place = f"{host}/{found['owner']}/{found['name'].removesuffix('.git')}"
        commit = f"#{found['commit']}" if found["commit"] else ""
        return cls(f"https://{place}", f"{before}{place}.git{commit}")


def normalize_repository(repository: object) -> object:
    """`repository` of a manifest as npm publishes it.
    https://github.com/npm/package-json/blob/main/lib/normalize.js (fixRepositoryField) and
    https://github.com/npm/hosted-git-info
    """
    if isinstance(repository, str) and repository:
        repository = {"type": "git", "url": repository}
    if not isinstance(repository, dict):
        return repository
    hosted = Hosted.parse(text_in(repository, "url"))
    found: dict[str, Any] = {**repository, "url": hosted.url} if hosted else repository
    return found
