"""What pypi.org refuses of the metadata and the files of a distribution, known before the upload:
by then, others of the release are there for good.

https://github.com/pypi/warehouse/blob/main/warehouse/forklift/metadata.py and legacy.py
"""

from __future__ import annotations

import configparser
import csv
import functools
import re
import sys
import sysconfig
from email.utils import getaddresses
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, cast

from packaging.metadata import Metadata, RawMetadata
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from releasekit.ecosystems.shared.archives import (
    MAX_UNPACKED_BYTES,
    opened_archive,
    opened_entry,
    opened_zip,
)
from releasekit.ecosystems.shared.documents import table_in, text_in
from releasekit.text.escape import one_line

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

# https://github.com/pypi/warehouse/blob/main/warehouse/forklift/metadata.py (August 2026)
MAX_SUMMARY_CHARS: Final = 512
MAX_LABEL_CHARS: Final = 32
# Of a message, about a value from a manifest.
_SHOWN: Final = 200
# Of an email address. https://www.rfc-editor.org/rfc/rfc5321#section-4.5.3.1
_MAX_ADDRESS_CHARS: Final = 254
# Of a list of addresses, whose parser may take the square of its length.
_MAX_EMAIL_CHARS: Final = 4_000
# A line of RECORD for each of 200,000 files.
_MAX_RECORD_BYTES: Final = 32 * 1024 * 1024
_MAX_POINTS_BYTES: Final = 1024 * 1024
_MAX_TAGS: Final = 10_000

# No server is asked, and nothing else of a URL is looked at.
# https://github.com/pypi/warehouse/blob/main/warehouse/utils/http.py (is_valid_uri)
_URL: Final = re.compile(
    r"https?:(?!//[^/?#]*:(?:[7-9]\d{4}|6[6-9]\d{3})(?:[/?#]|$))", re.IGNORECASE
)
_LOCAL_PART: Final = re.compile(r"[\w!#$%&'*+\-/=?^`{|}~]+(?:\.[\w!#$%&'*+\-/=?^`{|}~]+)*")
_LABEL: Final = re.compile(r"[^\W_](?:[^\W_]|-){0,61}[^\W_]|[^\W_]")
# https://www.iana.org/assignments/special-use-domain-names/
_NO_DOMAINS: Final = frozenset({"arpa", "invalid", "local", "localhost", "onion", "test"})

# https://packaging.python.org/en/latest/specifications/platform-compatibility-tags/ and
# https://github.com/pypi/warehouse/blob/main/warehouse/forklift/legacy.py (_valid_platform_tag,
# August 2026); of macOS, versions that are still to come count as known.
_LINUX: Final = "x86_64|i686|aarch64|armv7l|ppc64le|s390x|riscv64"
_PLATFORM: Final = re.compile(
    r"any|win32|win_(?:amd64|arm64|ia64)|linux_armv[67]l"
    r"|manylinux(?:1|2010)_(?:x86_64|i686)"
    r"|manylinux2014_(?:x86_64|i686|aarch64|armv7l|ppc64|ppc64le|s390x)"
    rf"|manylinux_\d+_\d+_(?:{_LINUX}|ppc64)|musllinux_\d+_\d+_(?:{_LINUX})"
    r"|macosx_(?:10_\d+|(?:1[1-5]|2[6-9]|[3-9]\d)_0)"
    r"_(?:ppc|ppc64|i386|x86_64|arm64|intel|fat|fat3|fat64|universal|universal2)"
    r"|ios_\d+_\d+_(?:arm64|x86_64)_(?:iphoneos|iphonesimulator)"
    r"|android_\d+_(?:armeabi_v7a|arm64_v8a|x86|x86_64)"
    r"|pyemscripten_\d+_\d+_wasm32"
)
# What some Python from 2.6 to 3.14 has at the top of its library, and others do not.
# https://docs.python.org/3/py-modindex.html, for each of them
_OTHER_MODULES: Final = """
abcoll aepack aetools aetypes aifc al annotationlib anydbm applesingle asynchat asyncore
audiodev audioop autogil basehttpserver bastion binhex bootlocale bsddb buildtools builtin
canvas carbon cd cfmfile cgi cgihttpserver cgitb chunk colorize colorpicker commands compiler
compression cookie cookielib cpickle crypt cstringio dbhash device dialog dircache distutils dl
docxmlrpcserver dumbdbm easydialogs exceptions filedialog findertools fixtk fl flp fm formatter
fpectl fpformat framework gensuitemodule gl hotshot htmlentitydefs htmllib htmlparser httplib ic
icopen ihooks imageop imgfile imghdr imp imputil interpchannels interpqueues interpreters jpeg
lib lib2to3 linuxaudiodev lwpcookiejar macerrors macos macostools macpath macresource
macurl2path mailcap main mhlib mimetools mimewriter mimify miniaeframe mozillacookiejar msilib
multifile mutex nav new nis nntplib os2emxpath ossaudiodev parser phello pipes pixmapwrapper
popen2 posixfile pydatetime pylong pyrepl repr rexec rfc822 robotparser scrolledtext sets
sgmllib sha sha2 simpledialog simplehttpserver simplexmlrpcserver smtpd sndhdr spwd statvfs
stringio stringold strop suggestions sunau sunaudio sunaudiodev symbol sysconfigdata telnetlib
testbuffer testcapi testimportmultiple testinternalcapi testmultiphase tix tkcolorchooser
tkcommondialog tkconstants tkdnd tkfiledialog tkfont tkmessagebox tksimpledialog toaiff ttk
urllib2 urlparse user userdict userlist userstring uu videoreader w whichdb wmi xdrlib xmllib
xmlrpclib xxlimited xxsubinterpreters xxsubtype xxtestfuzz zstd
"""
# https://packaging.python.org/en/latest/specifications/entry-points/#data-model
_SCRIPT: Final = re.compile(r"[\w.-]+")


def read_declared(project: Mapping[str, object]) -> RawMetadata:
    """The core metadata that every build backend makes of the [project] table of a manifest. What
    has another type, and licenses and versions of Python, some of them read in their own way.

    https://packaging.python.org/en/latest/specifications/pyproject-toml/
    """
    found: dict[str, object] = {"metadata_version": "2.4", "version": "0"}
    found |= {key: project[key] for key in ("name", "version") if isinstance(project.get(key), str)}
    if isinstance(summary := project.get("description"), str):
        found["summary"] = " ".join(summary.split())
    if isinstance(kind := table_in(project, "readme").get("content-type"), str):
        found["description_content_type"] = kind
    for key in ("authors", "maintainers"):
        people = project.get(key)
        named = people if isinstance(people, list) else []
        if emails := [*filter(None, (text_in(each, "email") for each in named))]:
            found[f"{key[:-1]}_email"] = ", ".join(emails)
    classifiers = project.get("classifiers")
    if isinstance(classifiers, list) and all(isinstance(each, str) for each in classifiers):
        found["classifiers"] = classifiers
    urls = project.get("urls")
    if isinstance(urls, dict) and all(isinstance(each, str) for each in urls.values()):
        found["project_urls"] = {key.strip(): value.strip() for key, value in urls.items()}
    return cast("RawMetadata", found)


def find_invalid(raw: RawMetadata) -> Iterator[str]:
    """What is not valid in core metadata, each a sentence about a field."""
    try:
        Metadata.from_raw(raw, validate=True)
    except ExceptionGroup as group:
        yield from map(str, group.exceptions)


def find_refused(raw: RawMetadata, classifiers: Collection[str] = ()) -> Iterator[str]:
    """Why pypi.org refuses valid metadata, each the end of a sentence about a package.
    `classifiers` are those that it takes, if they are known.
    """
    summary = raw.get("summary", "")
    if len(summary) > MAX_SUMMARY_CHARS:
        yield f"has a summary of {len(summary)} characters; the limit is {MAX_SUMMARY_CHARS}"
    for role in ("author", "maintainer"):
        address = _find_checked_address(str(raw.get(f"{role}_email", "")))
        if address and not is_address(address):
            said = f"has {_show(address)} as the email address of its {role}"
            yield f"{said}, which is not a valid address"
    for classifier in raw.get("classifiers", []) if classifiers else ():
        if classifier not in classifiers:
            yield f"has the classifier {_show(classifier)}, which is unknown or deprecated"
    yield from _find_refused_urls(raw)
    for text in (*raw.get("provides_dist", ()), *raw.get("obsoletes_dist", ())):
        try:
            is_valid = Requirement(text).url is None
        except (InvalidRequirement, RecursionError):
            is_valid = False
        if not is_valid:
            said = f"has {_show(text)} in Provides-Dist or Obsoletes-Dist"
            yield f"{said}, which is not a valid project name"
    if raw.get("license") and raw.get("license_expression"):
        yield "has both a License and a License-Expression"


def _find_checked_address(emails: str) -> str:
    """Empty where PyPI checks none: if there are several, or one with a bracket, as its parser is
    strict. https://docs.python.org/3/library/email.utils.html#email.utils.parseaddr
    """
    try:
        found = getaddresses([emails[:_MAX_EMAIL_CHARS]])
    except RecursionError:  # comments in comments
        return ""
    return found[0][1] if len(found) == 1 and "[" not in found[0][1] else ""


def _find_refused_urls(raw: RawMetadata) -> Iterator[str]:
    for place in ("home_page", "download_url"):
        url = str(raw.get(place, ""))
        if place in raw and not _URL.match(url):
            said = f"has {_show(url)} as its {place.replace('_', ' ')}"
            yield f"{said}, which is not an http or https URL"
    for label, url in raw.get("project_urls", {}).items():
        if not label:
            yield f"has the URL {_show(url)} without a label"
        elif len(label) > MAX_LABEL_CHARS:
            yield f"has a URL with the label {_show(label)}; the limit is {MAX_LABEL_CHARS}"
        elif not _URL.match(url):
            said = f"has {_show(url)} as the URL of {_show(label)}"
            yield f"{said}, which is not an http or https URL"


def is_address(text: str) -> bool:
    """As PyPI takes an email address, which asks no server. True where that takes the rules for
    other characters than those of ASCII.
    https://github.com/JoshData/python-email-validator#what-email-validator-checks
    """
    local, at, domain = text.rpartition("@")
    labels = domain.split(".")
    if at and (not text.isascii() or "--" in domain):
        return True
    return bool(
        at
        and len(text) <= _MAX_ADDRESS_CHARS
        and _LOCAL_PART.fullmatch(local)
        and len(labels) > 1
        and all(map(_LABEL.fullmatch, labels))
        and not labels[-1][-1].isdigit()
        and labels[-1].lower() not in _NO_DOMAINS
    )


def _show(text: str) -> str:
    return repr(one_line(text, _SHOWN))


def is_platform(tag: str) -> bool:
    """Whether pypi.org takes wheels with this platform tag."""
    return _PLATFORM.fullmatch(tag) is not None


def find_refused_name(filename: str, raw: RawMetadata) -> str:
    """Why pypi.org refuses a file of this name, as the end of a sentence about it; else empty.

    https://packaging.python.org/en/latest/specifications/source-distribution-format/ and
    https://packaging.python.org/en/latest/specifications/binary-distribution-format/
    """
    name = canonicalize_name(raw.get("name", "")).replace("-", "_")
    version = Version(raw.get("version", ""))
    if not filename.endswith(".whl"):
        wanted = f"{name}-{version}.tar.gz"
        return "" if filename == wanted else f"is not named {wanted}"
    tags = 1
    for part in filename.removesuffix(".whl").split("-")[-3:]:
        tags *= part.count(".") + 1
    if tags > _MAX_TAGS:
        return f"has more than {_MAX_TAGS} tags"
    try:
        _, built, _, _ = parse_wheel_filename(filename)
    except InvalidWheelFilename as error:
        return f"does not have a valid wheel file name: {one_line(str(error), _SHOWN)}"
    if filename.partition("-")[0] != name:
        return f"does not begin with {name}-"
    return "" if built == version else f"does not have the version {version} in its name"


def find_refused_content(file: IO[bytes], filename: str, raw: RawMetadata) -> str:
    """Why pypi.org refuses what a file holds, as the end of a sentence about it; else empty.
    Blocks; raises as `opened_zip` and `opened_archive`.
    """
    licenses = raw.get("license_files", [])
    file.seek(0)
    if filename.endswith(".whl"):
        return _find_refused_wheel(file, "-".join(filename.split("-", 2)[:2]), licenses)
    with opened_archive(file, max_bytes=MAX_UNPACKED_BYTES) as members:
        names = {member.name for member in members}
    top = min(names, default="").partition("/")[0]
    if f"{top}/PKG-INFO" not in names or not all(each.startswith(f"{top}/") for each in names):
        return "does not consist of a single top-level directory with a PKG-INFO"
    return _find_lacking([f"{top}/{each}" for each in licenses], names)


def _find_refused_wheel(file: IO[bytes], stem: str, licenses: Collection[str]) -> str:
    info = f"{stem}.dist-info"
    with opened_zip(file) as archive:
        entries = {entry.filename: entry for entry in archive.infolist()}

        def read(name: str, max_bytes: int) -> bytes:
            with opened_entry(archive, entries[f"{info}/{name}"]) as member:
                return member.read(max_bytes)

        for name in ("METADATA", "RECORD", "WHEEL"):
            if f"{info}/{name}" not in entries:
                return f"lacks {info}/{name}"
        try:
            for _ in csv.reader(read("RECORD", _MAX_RECORD_BYTES).decode().splitlines()):
                pass
        except (UnicodeError, csv.Error):
            return f"has an unreadable {info}/RECORD"
        if f"{info}/entry_points.txt" in entries and (
            why := _explain_entry_points(read("entry_points.txt", _MAX_POINTS_BYTES))
        ):
            return f"has the file {info}/entry_points.txt {why}"
    return _find_lacking([f"{info}/licenses/{each}" for each in licenses], entries)


def _find_lacking(wanted: Collection[str], names: Collection[str]) -> str:
    """https://peps.python.org/pep-0639/#add-license-file-field"""
    missing = next((each for each in wanted if each not in names), "")
    return (
        f"lists a license file that it does not contain: {one_line(missing, _SHOWN)}"
        if missing
        else ""
    )


class _CaseSensitiveParser(configparser.ConfigParser):
    optionxform = staticmethod(str)  # type: ignore[assignment]


def _explain_entry_points(content: bytes) -> str:
    parser = _CaseSensitiveParser(delimiters=("=",))
    try:
        parser.read_string(content.decode())
        names = [
            name
            for section in ("console_scripts", "gui_scripts")
            if parser.has_section(section)
            for name in parser[section]
        ]
    except (UnicodeError, configparser.Error) as error:
        return f"that cannot be read: {one_line(str(error), _SHOWN)}"
    bad = next((name for name in names if not _SCRIPT.fullmatch(name)), "")
    return f"with the script name {_show(bad)}, which is not valid" if bad else ""


def is_prohibited(name: str) -> bool:
    """Whether pypi.org makes no project of this name, as a module of Python's standard library has
    it. Blocks. https://github.com/pypi/warehouse/blob/main/warehouse/packaging/services.py
    """
    return name in _list_modules()


@functools.cache
def _list_modules() -> frozenset[str]:
    """Of this Python with those in packages, and the top ones of all others."""
    names = {*sys.stdlib_module_names, *_OTHER_MODULES.split(), "test"}
    top = Path(sysconfig.get_path("stdlib"))
    for package in sys.stdlib_module_names:
        for path in (top / package).rglob("*.py"):
            parts = path.relative_to(top).with_suffix("").parts
            names.add(".".join(each for each in parts if each != "__init__"))
    return frozenset(canonicalize_name(each.strip("-_.")) for each in names)
