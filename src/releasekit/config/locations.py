"""Where the paths, directories and URLs of the configuration lead, and which are refused."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import urlsplit

from msgspec import Struct

from releasekit.config.declaration import declared_by
from releasekit.config.values import Directory, Dist, Name, Url
from releasekit.errors import ConfigError, PathError, did_you_mean
from releasekit.fields import replace
from releasekit.host.ci import FOREIGN_EVENTS
from releasekit.host.files import checkout_of
from releasekit.host.output_path import Written, find_link, require_free
from releasekit.problems import Problem
from releasekit.text.escape import clip

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from releasekit.config.declaration import Declaration, EcosystemDeclaration
    from releasekit.config.inputs import Inputs

Own = TypeVar("Own", bound=Struct)
# What Linux, macOS and Windows take in one component; and of a path, Linux takes 4,095 bytes, of
# which this leaves some to what lies below.
# https://man7.org/linux/man-pages/man0/limits.h.0p.html
MAX_NAME_BYTES: Final = 255
MAX_PATH_BYTES: Final = 3_000
FILENAME: Final = "releasekit.toml"
_GITHUB_PACKAGES: Final = ".pkg.github.com"
_HOST: Final = re.compile(r"(?:[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")


def resolved(path: Path, label: str) -> Path:
    """`path` without symlinks; `label` is where it was written."""
    try:
        return path.resolve()
    # A loop of symlinks is the one before Python 3.13 and the other since.
    except (RuntimeError, OSError) as error:
        raise PathError(f"{label}: {path} cannot be followed (a loop of symlinks?)") from error


def _require_place(path: Path, label: str) -> None:
    """Raises ConfigError for a directory that cannot be made, as far as one can see."""
    for name in path.parts:
        if len(os.fsencode(name)) > MAX_NAME_BYTES:
            raise PathError(
                f"{label}: the name {name[:20]}… has {len(os.fsencode(name))} bytes; write one of "
                f"{MAX_NAME_BYTES} at most"
            )
    if len(os.fsencode(path)) > MAX_PATH_BYTES:
        raise PathError(
            f"{label}: its path has {len(os.fsencode(path))} bytes; write one of "
            f"{MAX_PATH_BYTES} at most"
        )
    with contextlib.suppress(PermissionError):
        there = next(place for place in (path, *path.parents) if place.exists())
        if not there.is_dir():
            below = f", and {path} is below it" if there != path else ""
            raise PathError(f"{label}: {there} is a file{below}; write the path of a directory")


def require_path(path: Path, label: str) -> None:
    """Raises ConfigError for one that no file system takes, or that is not to be reached."""
    try:
        path.lstat()
    except OSError as error:
        instead = {errno.ENAMETOOLONG: "write less", errno.EACCES: "give the run the right to it"}
        if error.errno in instead:
            shown = clip(str(path), 200)
            raise PathError(
                f"{label}: {shown}: {error.strerror}; {instead[error.errno]}"
            ) from error


def existing_directory(path: Path, label: str) -> Path:
    found = resolved(path, label)
    require_path(found, label)
    if not found.is_dir():
        what = "is a file" if found.exists() else "does not exist"
        raise PathError(f"{label}: {found} {what}; write the path of a directory")
    return found


def _find_upload_address(url: str, ecosystem: EcosystemDeclaration) -> str:
    """What to write instead of an address that is only for reading; empty for any other."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    known = ecosystem.pages.get(host, ())
    if not known or f"https://{host}{parts.path}".rstrip("/") in {it.rstrip("/") for it in known}:
        return ""
    return known[0]


class Locations(Struct, frozen=True, kw_only=True):
    """`inputs` hold everything that was given, wherever; `in_file` are the attributes among them
    that releasekit.toml gave.
    """

    inputs: Inputs
    ecosystems: Mapping[str, EcosystemDeclaration]
    in_file: frozenset[str]
    root: Path
    cwd: Path

    def path(self, given: Path | None, attribute: str) -> Path | None:
        return self._resolve(given, attribute) if given else None

    def outlet(self, written: Path | None, attribute: str, kind: Written) -> Path | None:
        """Where a file is going to be put; raises ConfigError for what may not be replaced.

        The directories above the workspace are those of the machine, and may be links.
        """
        if not written:
            return None
        label, suffix = self._label(attribute), ".env" if kind == "outputs" else ".json"
        given = Path(os.path.normpath(self._base(attribute) / written))
        if link := find_link(given, self.root):
            raise PathError(
                f"{label}: {link} is a symbolic link in the workspace; write a path without one"
            )
        path = resolved(given.parent, label) / given.name
        require_free(path, label, kind)
        manifests = [each.manifests for each in self.ecosystems.values() if each.manifests]
        read_by_name = {FILENAME, *(name for each in manifests for name in each.names)}
        if path.name in read_by_name or ".git" in path.parts:
            raise PathError(
                f"{label}: {path} is where tools look for files of their own; write another name, "
                f"like {attribute.partition('_')[0]}{suffix}"
            )
        state = self.state_directory()
        if path.is_relative_to(state) and (path.parent != state or path.suffix != suffix):
            raise PathError(
                f"{label}: {path} is among the files of the state directory; write a path beside it"
            )
        return path

    def state_directory(self) -> Path:
        """May lie outside the root only when a flag or an input says so.

        It never holds the root: it ignores its whole content in git.
        """
        label = self._label("state_directory")
        given = self.inputs.state_directory
        found = self._resolve(given, "state_directory")
        require_path(found, label)
        if self.root.is_relative_to(found):
            raise PathError(
                f"{label}: {found} holds the workspace; write a separate directory, "
                "like .releasekit"
            )
        if self._rank("state_directory") < 2:
            if not found.is_relative_to(self.root):
                raise PathError(
                    f"{label}: {found} is outside the workspace",
                    hint="Give it as --state-directory or as an input if that is meant.",
                )
            if found != Path(os.path.normpath(self.root / given)):
                raise PathError(
                    f"{label}: {self.root / given} is a symbolic link, or below one, to {found}",
                    hint="Delete the link, or give its target as --state-directory.",
                )
        self._refuse_link(given, "state_directory")
        _require_place(found, label)
        return found

    def _refuse_link(self, path: Path, attribute: str) -> None:
        """What comes with the sources says of no place that the user names where it is."""
        if link := find_link(self._base(attribute) / path / "within", checkout_of(self.root)):
            raise PathError(
                f"{self._label(attribute)}: {link} is a symbolic link in the checkout; write a "
                "path without one"
            )

    def results_directory(self) -> Path | None:
        """The job that makes it may come later."""
        found = self.path(self.inputs.results_directory, "results_directory")
        if found is not None:
            label = self._label("results_directory")
            require_path(found, label)
            _require_place(found, label)
        return found

    def registries(self) -> dict[str, Directory | Url | Name]:
        """For each ecosystem that does not go to its default; paths are absolute.

        A `registry` flag or input beats what releasekit.toml says of one ecosystem: its
        author wants nothing to go anywhere else.
        """
        found: dict[str, Directory | Url | Name] = {}
        for name, ecosystem in self.ecosystems.items():
            attribute, location = self._registry_of(ecosystem)
            match location:
                case None:
                    continue
                case Directory(path):
                    base, shared = self._resolve(path, attribute), attribute == "registry"
                    _require_place(base, self._label(attribute))
                    found[name] = Directory(base / name if shared else base)
                case Url(url) if attribute == "registry":
                    first = next(iter(self.ecosystems.values()))
                    shown = url.split("?", maxsplit=1)[0].rpartition("@")[2]  # no credentials
                    raise ConfigError(
                        f'{self._label("registry")} = "{shown}" is not a directory; '
                        f"write dir:PATH, or give the URL as {first.registry.name}",
                        problem=Problem.REGISTRY_SETTINGS,
                    )
                case Url(url):
                    only_in = self._label(attribute) if self._rank(attribute) < 2 else ""
                    found[name] = Url(self._safe(url, attribute), only_in)
                    self._refuse_wrong(url, ecosystem, attribute)
                case Name():
                    found[name] = location
        return found

    def dist(self, table: Mapping[str, Sequence[str]]) -> tuple[Dist, ...]:
        """`table` is that of releasekit.toml, for which a flag or an input stands in."""
        label = self._label("dist")
        wanted = [replace(each, label=label) for each in self.inputs.dist]
        if self._rank("dist") < 2:
            wanted += [
                Dist(Path(text), f'releasekit.toml: [dist] "{owner}"', owner)
                for owner, texts in table.items()
                for text in texts
            ]
        base = self.cwd if self._rank("dist") == 2 else self.root
        state = self.state_directory()
        found = [
            replace(each, path=existing_directory(base / each.path, each.label)) for each in wanted
        ]
        for each in found:
            if each.path.is_relative_to(state):
                raise PathError(
                    f"{each.label}: {each.path} is in the state directory, which is written anew; "
                    "write the path of another directory"
                )
        return tuple(dict.fromkeys(found))

    def ecosystem_inputs(self) -> tuple[object, ...]:
        """An instance of the class that each ecosystem declares its inputs with."""
        return tuple(self.build(each.inputs, each) for each in self.ecosystems.values())

    def build(self, kind: type[Own], ecosystem: EcosystemDeclaration | None = None) -> Own:
        """The inputs that `kind` declares, of an `ecosystem` or of a command."""
        prefix = f"{ecosystem.name}-" if ecosystem else ""
        given = {}
        for name, declaration in declared_by(kind, prefix).items():
            value = self.inputs.further.get(name, declaration.default)
            if declaration.kind == "index" and isinstance(value, Directory | Url) and ecosystem:
                value = self._index(value, declaration, ecosystem)
            else:
                value = self._place(value, declaration)
            given[name.removeprefix(prefix).replace("-", "_")] = value
        return kind(**given)

    def _place(self, value: object, declaration: Declaration) -> object:
        """Where paths in it lead to."""
        attribute = declaration.attribute
        match value:
            case tuple():
                return tuple(self._place(each, declaration) for each in value)
            case Url(text):
                return Url(self._safe(text, attribute))
            case Path() if declaration.writes:
                return self.outlet(value, attribute, declaration.writes)
            case Path():
                return self._resolve(value, attribute)
            case str() if value and declaration.kind == "path":
                return str(self._resolve(value, attribute))
            case _:
                return value

    def _index(
        self, index: Directory | Url, declaration: Declaration, ecosystem: EcosystemDeclaration
    ) -> str:
        """Empty when it is the file's and belongs to another registry."""
        attribute = declaration.attribute
        goes_to, registry = self._registry_of(ecosystem)
        if self._rank(attribute) < self._rank(goes_to):
            return ""
        if isinstance(index, Directory) or isinstance(registry, Directory):
            raise ConfigError(
                f"{self._label(attribute)}: a directory is its own index; leave it out, or give "
                "URLs for both",
                problem=Problem.REGISTRY_SETTINGS,
            )
        return self._safe(index.text, attribute)

    def index_url(self) -> str:
        value = self.inputs.index_url
        return self._safe(value, "index_url") if value else ""

    def find_links(self) -> tuple[str, ...]:
        found = []
        for link in self.inputs.find_links:
            if "://" in link:
                found.append(self._safe(link, "find_links"))
                continue
            path = self._resolve(link, "find_links")
            if not path.exists():
                raise PathError(f"{self._label('find_links')}: {path} does not exist")
            found.append(str(path))
        return tuple(found)

    def insecure_hosts(self) -> tuple[str, ...]:
        for text in self.inputs.insecure_hosts:
            if not _HOST.fullmatch(text):
                raise ConfigError(
                    f"{self._label('insecure_hosts')}: {text[:200]!r} is not a host",
                    hint="Write it as in a URL, with its port or without: packages.lan:8081.",
                    problem=Problem.ADDRESS,
                )
        return tuple(text.lower() for text in self.inputs.insecure_hosts)

    def allow_events(self) -> tuple[str, ...]:
        for text in self.inputs.allow_events:
            if text not in FOREIGN_EVENTS:
                raise ConfigError(
                    f"{self._label('allow_events')}: {text[:200]!r} is not an event that "
                    f"`publish` refuses{did_you_mean(text, FOREIGN_EVENTS)}",
                    hint=f"Write one or more of {', '.join(FOREIGN_EVENTS)}.",
                )
        return self.inputs.allow_events

    def build_sandbox_paths(self) -> tuple[Path, ...]:
        """Each of them has to be there: what is not there cannot be given to a build."""
        label = self._label("build_sandbox_paths")
        found = []
        for given in self.inputs.build_sandbox_paths:
            try:
                written = given.expanduser()
            except RuntimeError as error:
                raise PathError(
                    f"{label}: {given} names no home directory; write the whole path"
                ) from error
            path = self._resolve(written, "build_sandbox_paths")
            if not path.exists():
                raise PathError(
                    f"{label}: {path} does not exist; write the path of a file or a directory",
                    hint="Make it in a step before, and builds can write below it.",
                )
            self._refuse_link(written, "build_sandbox_paths")
            found.append(path)
        return tuple(found)

    def uv_path(self) -> str:
        """A bare name stays one, to be looked for on PATH."""
        value = self.inputs.uv_path
        if "/" not in value and "\\" not in value:
            return value
        found = self._resolve(value, "uv_path")
        if not found.is_file():
            raise PathError(
                f"{self._label('uv_path')}: {found} is not a file; write the path of uv"
            )
        return str(found)

    def _registry_of(
        self, ecosystem: EcosystemDeclaration
    ) -> tuple[str, Directory | Url | Name | None]:
        """The attribute that says where its packages go, and what it says."""
        own = ecosystem.registry
        if self._rank("registry") > self._rank(own.attribute):
            return "registry", self.inputs.registry
        location = self.inputs.further.get(own.name)
        return own.attribute, location if isinstance(location, Directory | Url | Name) else None

    def _rank(self, attribute: str) -> int:
        """2: a flag or an input gave it, 1: releasekit.toml did, 0: a default."""
        if attribute in self.in_file:
            return 1
        return 2 if attribute in self.inputs.given else 0

    def _resolve(self, path: Path | str, attribute: str) -> Path:
        return resolved(self._base(attribute) / path, self._label(attribute))

    def _base(self, attribute: str) -> Path:
        return self.cwd if self._rank(attribute) == 2 else self.root

    def _safe(self, url: str, attribute: str) -> str:
        # Brings httpx, which takes longer to import than everything else here together.
        from releasekit.http.origins import require_safe  # noqa: PLC0415

        require_safe(url, name=self._label(attribute), insecure=self.insecure_hosts())
        return url

    def _refuse_wrong(self, url: str, ecosystem: EcosystemDeclaration, attribute: str) -> None:
        """Raises ConfigError for what is known to be a registry of another ecosystem, whose server
        would get the token of this one, and for what is known to take no uploads.
        """
        try:
            host = urlsplit(url).hostname or ""
        except ValueError:
            return  # no address: who asks says so
        owners = [
            each.name
            for each in self.ecosystems.values()
            if host == urlsplit(each.default_registry).hostname or host in each.pages
        ]
        # https://docs.github.com/en/packages/learn-github-packages/introduction-to-github-packages
        if host.endswith(_GITHUB_PACKAGES):
            owners = [host.removesuffix(_GITHUB_PACKAGES)]
        if owners and ecosystem.name not in owners:
            owner = self.ecosystems.get(owners[0])
            is_page = owner is not None and _find_upload_address(url, owner) != ""
            move = (
                f"Set {owner.registry.name} to it, and write" if owner and not is_page else "Write"
            )
            raise ConfigError(
                f"{self._label(attribute)}: {host} {'shows' if is_page else 'takes'} packages of "
                f"{owners[0]}, not of {ecosystem.name}",
                hint=f"{move} the address of a registry of {ecosystem.name} here.",
                problem=Problem.REGISTRY_SETTINGS,
            )
        if instead := _find_upload_address(url, ecosystem):
            or_none = f", or leave {ecosystem.registry.name} out: that is its default"
            raise ConfigError(
                f"{self._label(attribute)}: {host} takes no packages at this address",
                hint=f"Write {instead}{or_none * (instead == ecosystem.default_registry)}.",
                problem=Problem.REGISTRY_SETTINGS,
            )

    def _label(self, attribute: str) -> str:
        return self.inputs.given.get(attribute, attribute.replace("_", "-"))
