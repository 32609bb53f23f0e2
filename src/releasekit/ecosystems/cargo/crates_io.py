"""What crates.io refuses, of what the manifest of a crate shows; other registries take it.

The rules, unless a link says otherwise, are those of
https://github.com/rust-lang/crates.io/blob/main/src/controllers/krate/publish.rs (August 2026).
Cargo itself refuses versions, values of `rust-version` and names of features that are no such.
"""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from releasekit.ecosystems.cargo import spdx
from releasekit.ecosystems.shared.crates import read_toml
from releasekit.ecosystems.shared.documents import table_in
from releasekit.errors import did_you_mean
from releasekit.text.escape import clip

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


class Refusal(NamedTuple):
    """`what` begins with the key. crates.io raises a limit that `is_raised` for crates that it has,
    when their owners ask.
    """

    what: str
    cure: str
    is_raised: bool = False


# https://github.com/rust-lang/crates.io/blob/main/crates/crates_io_validation/src/lib.rs
_MAX_NAME: Final = 64
_MAX_VERSION: Final = 150
_CRATE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_ALIAS: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_MAX_DESCRIPTION: Final = 1000
_MAX_KEYWORDS: Final = 5
_MAX_KEYWORD: Final = 20
# https://github.com/rust-lang/crates.io/blob/main/crates/crates_io_database/src/models/keyword.rs
_KEYWORD: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_+-]*")
_MAX_CATEGORIES: Final = 5
# https://github.com/rust-lang/crates.io/blob/main/src/config/publish_limits.rs
MAX_FEATURES: Final = 300
_MAX_DEPENDENCIES: Final = 500
# https://github.com/rust-lang/crates.io/tree/main/migrations (reserved_crate_names)
_RESERVED: Final = frozenset(
    """alloc arena ast builtins collections compiler_builtins compiler_rt compiletest core coretest
    debug driver flate fmt_macros grammar graphviz macro macros proc_macro rbml rust_installer
    rustbook rustc rustc_back rustc_borrowck rustc_driver rustc_llvm rustc_resolve rustc_trans
    rustc_typeck rustdoc rustllvm rustuv serialize std syntax test unicode nul con prn aux com0 com1
    com2 com3 com4 com5 com6 com7 com8 com9 lpt0 lpt1 lpt2 lpt3 lpt4 lpt5 lpt6 lpt7 lpt8 lpt9
    """.split()  # noqa: SIM905 # a line for each would hide the rules
)
# https://github.com/rust-lang/crates.io/blob/main/src/boot/categories.toml
_CATEGORIES: Final = frozenset(
    """accessibility aerospace aerospace::drones aerospace::protocols aerospace::simulation
    aerospace::space-protocols aerospace::unmanned-aerial-vehicles algorithms api-bindings
    artificial-intelligence asynchronous authentication automotive caching command-line-interface
    command-line-utilities compilers compression computer-vision concurrency config cryptography
    cryptography::cryptocurrencies data-structures database database-implementations date-and-time
    development-tools development-tools::build-utils development-tools::cargo-plugins
    development-tools::debugging development-tools::ffi
    development-tools::procedural-macro-helpers development-tools::profiling
    development-tools::testing email embedded emulators encoding external-ffi-bindings filesystem
    finance game-development game-engines games graphics gui hardware-support internationalization
    localization mathematics memory-management multimedia multimedia::audio multimedia::encoding
    multimedia::images multimedia::video network-programming no-std no-std::no-alloc os
    os::android-apis os::freebsd-apis os::linux-apis os::macos-apis os::unix-apis os::windows-apis
    parser-implementations parsing rendering rendering::data-formats rendering::engine
    rendering::graphics-api rust-patterns science science::bioinformatics
    science::bioinformatics::genomics science::bioinformatics::proteomics
    science::bioinformatics::sequence-analysis science::computational-biology
    science::computational-biology::structural-modeling
    science::computational-biology::systems-biology science::computational-chemistry
    science::computational-chemistry::cheminformatics
    science::computational-chemistry::electronic-structure
    science::computational-chemistry::molecular-simulation science::geo science::materials
    science::neuroscience science::quantum-computing science::robotics security simulation
    template-engine text-editors text-processing value-formatting virtualization visualization wasm
    web-programming web-programming::http-client web-programming::http-server
    web-programming::websocket
    """.split()  # noqa: SIM905 # a line for each would hide the rules
)
# What https://url.spec.whatwg.org/#host-parsing takes at least.
_URL: Final = re.compile(
    r"https?://[/\\]*(?:[^/\\?#]*@)?(?:\[[0-9A-Fa-f:.]+\]|[^/\\?#:@<>\[\]^|\x00- \x7f]+)"
    r"(?::0*(?P<port>[0-9]{0,5}))?(?:[/\\?#].*)?",
    re.DOTALL,
)
_MAX_PORT: Final = 65535
_MAX_SHOWN: Final = 80
_ASK: Final = "Remove some, or ask help@crates.io to raise the limit"
_UPDATE: Final = "update ReleaseKit, whose list is of August 2026"


def find_refusals(
    package: Mapping[str, Any], published: list[Mapping[str, Any]]
) -> tuple[Refusal, ...]:
    """Of a package of `cargo metadata`, with those of its dependencies that are published."""
    found = chain.from_iterable(rule(package) for rule in _RULES)
    return (*found, *_check_dependencies(published))


def _check_name(package: Mapping[str, Any]) -> Iterator[Refusal]:
    name = package["name"]
    cure = "Rename the crate"
    yield from _check_identifier("package.name", name, _CRATE, cure)
    if name.lower().replace("-", "_") in _RESERVED:
        yield Refusal(f"package.name is {_show(name)}, which crates.io reserves", cure)


def _check_version(package: Mapping[str, Any]) -> Iterator[Refusal]:
    what = _explain_excess("package.version", len(package["version"]), "characters", _MAX_VERSION)
    if what:
        yield Refusal(what, "Shorten it")


def _check_description(package: Mapping[str, Any]) -> Iterator[Refusal]:
    description = package["description"]
    if not description:
        what = "package.description is missing, but crates.io requires one"
        yield Refusal(what, "Write a sentence")
    elif what := _explain_excess(
        "package.description", len(description.encode()), "bytes", _MAX_DESCRIPTION
    ):
        yield Refusal(what, "Shorten it; `readme` has room for more")


def _check_license(package: Mapping[str, Any]) -> Iterator[Refusal]:
    license_, file = package["license"], package["license_file"]
    cure = (
        'Write an SPDX expression, as in "MIT OR Apache-2.0", or `license-file` instead; or '
        f"{_UPDATE}"
    )
    if not (license_ or file):
        yield Refusal("package.license is missing, but crates.io requires one", cure)
    elif license_ is not None and (wrong := spdx.explain_wrong(license_)):
        yield Refusal(
            f"package.license is {_show(license_)}, which crates.io cannot read: {wrong}", cure
        )


def _check_urls(package: Mapping[str, Any]) -> Iterator[Refusal]:
    for key in ("homepage", "documentation", "repository"):
        url = package[key]
        if url is not None and not _is_url(url):
            what = f"package.{key} is {_show(url)}, but crates.io accepts only http and https URLs"
            yield Refusal(what, "Write it as https://HOST/PATH, or leave it out")


def _check_keywords(package: Mapping[str, Any]) -> Iterator[Refusal]:
    keywords = package["keywords"]
    if what := _explain_excess("package.keywords", len(keywords), "entries", _MAX_KEYWORDS):
        yield Refusal(what, "Leave some out")
    for keyword in keywords:
        if len(keyword) > _MAX_KEYWORD or not _KEYWORD.fullmatch(keyword):
            yield Refusal(
                f"package.keywords has {_show(keyword)}, which crates.io does not take",
                f"Write {_MAX_KEYWORD} characters at most: a letter or digit of ASCII, then such, "
                "or any of - _ +",
            )


def _check_categories(package: Mapping[str, Any]) -> Iterator[Refusal]:
    categories = package["categories"]
    if what := _explain_excess("package.categories", len(categories), "entries", _MAX_CATEGORIES):
        yield Refusal(what, "Leave some out")
    for category in categories:
        if category not in _CATEGORIES:
            yield Refusal(
                f"package.categories has {_show(category)}, which crates.io does not have"
                f"{did_you_mean(category, _CATEGORIES)}",
                f"Take one of https://crates.io/category_slugs, leave it out, or {_UPDATE}",
            )


def _check_features(package: Mapping[str, Any]) -> Iterator[Refusal]:
    features = package["features"]
    if len(features) > MAX_FEATURES:
        # Cargo counts optional dependencies, too, which the manifest has elsewhere.
        features = table_in(read_toml(Path(package["manifest_path"])), "features")
    numbers = {"features": len(features)}
    numbers |= {f"features.{name}": len(values) for name, values in features.items()}
    for key, number in numbers.items():
        if what := _explain_excess(key, number, "entries", MAX_FEATURES):
            yield Refusal(what, _ASK, is_raised=True)


_RULES: Final[tuple[Callable[[Mapping[str, Any]], Iterator[Refusal]], ...]] = (
    _check_name,
    _check_version,
    _check_description,
    _check_license,
    _check_urls,
    _check_keywords,
    _check_categories,
    _check_features,
)


def _check_dependencies(dependencies: list[Mapping[str, Any]]) -> Iterator[Refusal]:
    if what := _explain_excess("it", len(dependencies), "dependencies", _MAX_DEPENDENCIES):
        yield Refusal(what, "Remove some")
    for each in dependencies:
        key = f"dependencies.{each['rename'] or each['name']}"
        cure = "Rename it"
        if each["rename"] is not None:
            yield from _check_identifier(key, each["rename"], _ALIAS, cure)
        yield from _check_identifier(f"{key}: package", each["name"], _CRATE, cure)
        for feature in each["features"]:
            if not _is_feature(feature):
                what = f"{key}: features has {_show(feature)}, which is not a valid feature name"
                yield Refusal(what, "Leave it out")


def _check_identifier(key: str, name: str, form: re.Pattern[str], cure: str) -> Iterator[Refusal]:
    if len(name) > _MAX_NAME:
        what = f"{key} is {_show(name)}, but crates.io accepts at most {_MAX_NAME} characters"
        yield Refusal(what, cure)
    elif not form.fullmatch(name):
        first = "a letter or _" if form is _ALIAS else "a letter"
        what = (
            f"{key} is {_show(name)}, but crates.io requires {first}, then letters, digits, - and _"
        )
        yield Refusal(what, f"{cure}: of ASCII only")


def _explain_excess(key: str, number: int, unit: str, limit: int) -> str:
    """What is wrong where there are more than the limit; empty where there are not."""
    words = f"{key} has {number} {unit}, but crates.io accepts at most {limit}"
    return words if number > limit else ""


def _show(text: str) -> str:
    return clip(repr(text), _MAX_SHOWN)


def _is_feature(name: str) -> bool:
    """Whether characters of identifiers make it up: https://www.unicode.org/reports/tr31/"""
    first, rest = name[:1], re.sub("[-+.]", "", name[1:])
    return first.isidentifier() | (first in set("0123456789")) and f"_{rest}".isidentifier()


def _is_url(text: str) -> bool:
    # A parser drops both: https://url.spec.whatwg.org/#concept-basic-url-parser
    trimmed = re.sub(r"[\t\r\n]", "", text).rstrip("".join(map(chr, range(0x21))))
    found = _URL.fullmatch(trimmed)
    is_web = text.startswith(("http://", "https://"))
    return is_web and found is not None and int(found["port"] or 0) <= _MAX_PORT
