"""A manifest as npm spells it where it publishes: in the one way that clients and the pages of a
registry read. Files count where they are in the tarball.

https://github.com/npm/package-json/blob/main/lib/normalize.js and
https://github.com/npm/package-json/blob/main/lib/normalize-data.js
"""

from __future__ import annotations

import itertools
import posixpath
import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from releasekit.ecosystems.npm.manifest import Hosted, find_bundled, normalize_repository
from releasekit.ecosystems.shared.documents import table_in, text_in

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_SCRIPTS_PATH: Final = re.compile(r"\A(?:\.[/\\])?node_modules[/\\].bin[\\/]")
_MAN: Final = re.compile(r".*\.[0-9]", re.DOTALL)
_NAME: Final = re.compile(r"[^(<]+")
_EMAIL: Final = re.compile(r"<([^<>]+)>")
_URL: Final = re.compile(r"\(([^()]+)\)")


def normalize(document: Mapping[str, Any], names: Collection[str], readme: str) -> dict[str, Any]:
    """`names` are all files of the tarball, `readme` is what its README says."""
    found = {key: value for key, value in document.items() if not key.startswith("_")}
    _normalize_bundled(found)
    _normalize_scripts(found, {name for name in names if "/" not in name})
    _normalize_man(found, names)
    _normalize_programs(found, names)
    _normalize_files(found, names)
    if isinstance(several := found.get("repositories"), list) and several:
        found["repository"] = several[0]
    if "repository" in found:
        found["repository"] = normalize_repository(found["repository"])
    _normalize_links(found)
    _normalize_words(found, readme)
    if "npm-shrinkwrap.json" in names:
        found["_hasShrinkwrap"] = True
    return found


def _normalize_bundled(found: dict[str, Any]) -> None:
    bundled = find_bundled(found)
    found.pop("bundledDependencies", None)
    found.pop("bundleDependencies", None)
    if bundled is not None:
        listed = [name for name in bundled if name and isinstance(name, str)]
        found["bundleDependencies"] = listed
        own = table_in(found, "dependencies")
        known = own.keys() | table_in(found, "optionalDependencies").keys()
        if missing := [name for name in listed if name not in known]:
            found["dependencies"] = {**own, **dict.fromkeys(missing, "*")}


def _normalize_scripts(found: dict[str, Any], top: Collection[str]) -> None:
    """`top` are the files beside the manifest."""
    given = table_in(found, "scripts")
    scripts = {
        name: _SCRIPTS_PATH.sub("", text) for name, text in given.items() if isinstance(text, str)
    }
    is_native = any(name.endswith(".gyp") for name in top) and found.get("gypfile") is not False
    if is_native and not {"install", "preinstall"} & scripts.keys():
        scripts["install"] = "node-gyp rebuild"
        found["gypfile"] = True
    if "server.js" in top:
        scripts.setdefault("start", "node server.js")
    if isinstance(found.pop("scripts", None), dict) or scripts:
        found["scripts"] = scripts


def _normalize_man(found: dict[str, Any], names: Collection[str]) -> None:
    man = found.pop("man", None)
    if not man:
        man = [name for name in _list_below(found, "man", names) if _MAN.fullmatch(name)]
    pages = [_secure(each) for each in _as_list(man) if isinstance(each, str) and each]
    if pages:
        found["man"] = pages


def _normalize_programs(found: dict[str, Any], names: Collection[str]) -> None:
    programs = found.pop("bin", None) or _list_below(found, "bin", names)
    if isinstance(programs, str):
        programs = {text_in(found, "name").rpartition("/")[2]: programs}
    elif isinstance(programs, list):
        programs = {posixpath.basename(each): each for each in programs if isinstance(each, str)}
    kept = {
        base: target
        for name, path in (programs if isinstance(programs, dict) else {}).items()
        if isinstance(path, str)
        and (base := _secure(posixpath.basename(re.sub(r"[\\:]", "/", name))))
        and (target := _secure(path))
    }
    if kept:
        found["bin"] = kept


def _normalize_files(found: dict[str, Any], names: Collection[str]) -> None:
    main = found.get("main") or "index.js"
    if isinstance(main, str) and not {"types", "typings"} & found.keys():
        typed = f"{posixpath.splitext(posixpath.normpath(main))[0]}.d.ts"
        if typed in names:
            found["types"] = f"./{typed}"
    if isinstance(files := found.get("files"), list):
        found["files"] = [name for name in files if name and isinstance(name, str)]
    elif "files" in found:
        del found["files"]


def _list_below(found: Mapping[str, Any], key: str, names: Collection[str]) -> list[str]:
    """The visible files of one of its `directories`."""
    if not (directory := text_in(table_in(found, "directories"), key)):
        return []
    above = f"{_secure(directory)}/".removeprefix("/")
    return sorted(
        name
        for name in names
        if name.startswith(above)
        and not any(part[:1] == "." for part in name[len(above) :].split("/"))
    )


def _secure(path: str) -> str:
    """Relative, and leading nowhere else."""
    return posixpath.normpath("/" + re.sub(r"[\\:]", "/", path)).lstrip("/")


def _as_list(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def _normalize_links(found: dict[str, Any]) -> None:
    hosted = Hosted.parse(text_in(table_in(found, "repository"), "url"))
    bugs = found.pop("bugs", None) or (hosted and {"url": f"{hosted.page}/issues"})
    if isinstance(bugs, str):
        bugs = {"email" if _is_email(bugs) else "url": bugs}
    elif isinstance(bugs, dict):
        bugs = {**bugs, "url": bugs.get("name") or bugs.get("web") or bugs.get("url")}
    known = {"url": _is_url, "email": _is_email}
    kept = {key: text for key, is_valid in known.items() if is_valid(text := text_in(bugs, key))}
    if kept:
        found["bugs"] = kept
    homepage = found.pop("homepage", None)
    if not homepage and hosted:
        homepage = f"{hosted.page}#readme"
    if homepage and isinstance(homepage, str):
        found["homepage"] = homepage if _is_url(homepage) else f"http://{homepage}"


def _is_email(text: str) -> bool:
    return 0 <= text.find("@") < text.rfind(".")


def _is_url(text: str) -> bool:
    try:
        return bool(urlsplit(text).scheme)
    except ValueError:
        return False


def _normalize_words(found: dict[str, Any], readme: str) -> None:
    """What people read."""
    description = found.pop("description", None)
    if not description and (readme := text_in(found, "readme") or readme):
        description = _find_description(readme)
    if isinstance(description, str):
        found["description"] = description
    keywords = found.pop("keywords", None)
    if isinstance(keywords, str):
        keywords = re.split(r",\s+", keywords)
    if isinstance(keywords, list):
        found["keywords"] = [word for word in keywords if word and isinstance(word, str)]
    if found.get("author"):
        found["author"] = _parse_person(found["author"])
    for key in ("maintainers", "contributors"):
        if isinstance(people := found.get(key), list):
            found[key] = [*map(_parse_person, people)]
    if found.get("modules"):
        del found["modules"]


def _find_description(readme: str) -> str:
    """The first paragraph that is no heading."""
    lines = readme.strip().split("\n")
    below = itertools.dropwhile(lambda line: line.strip()[:1] in {"", "#"}, lines)
    return " ".join(itertools.takewhile(str.strip, below)).strip()


def _parse_person(person: object) -> dict[str, str]:
    if isinstance(person, dict):
        url = person.get("url") or person.get("web")
        email = person.get("email") or person.get("mail")
        name = str(person.get("name") or "")
        person = f"{name}{f' <{email}>' if email else ''}{f' ({url})' if url else ''}"
    text = str(person)
    found: dict[str, str] = {}
    if (match := _NAME.match(text)) and match[0].strip():
        found["name"] = match[0].strip()
    for key, pattern in (("email", _EMAIL), ("url", _URL)):
        if match := pattern.search(text):
            found[key] = match[1]
    return found
