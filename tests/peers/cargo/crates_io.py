"""What crates.io's own tests upload, and what it knows by name, beside a plan for crates.io."""

from __future__ import annotations

import ast
import functools
import re
import tomllib
from typing import TYPE_CHECKING, Any, Final
from unittest import mock

import httpx
import tomlkit

from peers import ours
from peers.cargo import judge
from peers.scenarios import EQUAL, Case, Files, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from peers.ours import Ran

# Those whose uploads a manifest decides.
_SUITES: Final = (
    *("basics", "build_metadata", "categories", "dependencies", "edition", "features"),
    *("inheritance", "keywords", "links", "manifest", "readme", "validation"),
)
_TEST: Final = re.compile(r"^#\[tokio::test[^\n]*\]\nasync fn (\w+)\(", re.MULTILINE)
_LET: Final = re.compile(r"let (?:mut )?(\w+)\s*=\s*([^;]+);")
_STATUS: Final = re.compile(r'response\.status\(\), @"(\d+)|(\.good\(\))')
_RAW: Final = re.compile(r'r#"(.*?)"#', re.DOTALL)
_CONSTANTS: Final = {"MAX_NAME_LENGTH": "64", "MAX_VERSION_LENGTH": "150"}
_METHODS: Final = frozenset({
    *("description", "unset_description", "license", "unset_license", "license_file", "readme"),
    *("documentation", "keyword", "category", "feature", "dependency", "custom_manifest"),
})  # fmt: skip
# What no manifest shows: what crates.io has already, and limits and categories of the tests.
_OF_THE_STORE: Final = re.compile(
    "already uploaded|previously named|no known crate|publish_limits|new_category|max_features|"
    "does not match manifest"
)
_CHECK: Final = re.compile(r"assert_(ok|err)(?:_eq)?!\(\s*(?=validate_\w+\(|parse_license_expr\()")
# Kinds of its checks, by their names, and the part of an upload that each is of.
_CHECKS: Final[Mapping[str, Callable[[str], dict[str, Any]]]] = {
    "validate_crate_name": lambda text: {"name": text},
    "validate_dependency_name": lambda text: {"dependency": [_Dependency("other").rename(text)]},
    "validate_feature_name": lambda text: {"feature": [(text, [])]},
    "parse_license_expr": lambda text: {"license": text},
}


def read_uploads(checkout: Path) -> Iterator[Case]:
    """With the status that the test expects of each."""
    for path in (checkout / "src/tests/krate/publish" / f"{suite}.rs" for suite in _SUITES):
        parts = _TEST.split(path.read_text())
        for test, body in zip(parts[1::2], parts[2::2], strict=True):
            body = re.sub(  # noqa: PLW2901
                r"bad_name\((.*), &token\)\.await;",
                r'PublishBuilder::new(\1, "1.0.0"); (response.status(), @"400 (of the name)");',
                body,
            )
            for number, chain in enumerate(body.split("PublishBuilder::new(")[1:]):
                name = f"{path.stem}::{test}#{number}"
                variables = dict(_LET.findall(body))
                asked = functools.partial(_judge_upload, body, f"New({chain}", variables)
                yield Case(name=name, judge=asked)
    for name in ("crates/crates_io_validation/src/lib.rs", "src/licenses.rs"):
        text = (checkout / name).read_text()
        for number, found in enumerate(_CHECK.finditer(text)):
            check, arguments = next(_read_calls(text[found.end() :]))
            if check in _CHECKS:
                upload = _CHECKS[check](_evaluate(arguments[-1], {}))
                asked = functools.partial(_judge_parts, upload, found[1] == "ok")
                yield Case(name=f"{name}::{check}#{number}", judge=asked)


def read_names(checkout: Path) -> Iterator[Case]:
    categories = tomllib.loads((checkout / "src/boot/categories.toml").read_text())
    slugs = [*_list_slugs(categories)]
    manifests = {f"c{at}": {"categories": [slug]} for at, slug in enumerate(slugs)}
    yield Case(name="categories", judge=functools.partial(_judge_all, manifests, taken=True))
    found = {
        name.lower().replace("_", "-")
        for path in checkout.glob("migrations/*reserve*/up.sql")
        for values in re.findall(
            r"INSERT INTO reserved_crate_names \(name\) VALUES(.*?)(?:;|ON)",
            path.read_text(),
            re.DOTALL,
        )
        for name in re.findall(r"'([\w-]+)'", values)
    }
    # Cargo itself takes no keyword of Rust for a name.
    names: dict[str, dict[str, Any]] = {name: {} for name in sorted(found - {"macro"})}
    yield Case(name="reserved names", judge=functools.partial(_judge_all, names, taken=False))


def read_licenses(directory: Path) -> Iterator[Case]:
    text = (directory / "src/identifiers.rs").read_text()
    licenses, _, exceptions = text.partition("pub const EXCEPTIONS")
    for kind, part, begin in (("licenses", licenses, ""), ("exceptions", exceptions, "MIT WITH ")):
        names = re.findall(r'^        name: "([^"]+)"', part, re.MULTILINE)
        manifests = {f"l{at}": {"license": f"{begin}{name}"} for at, name in enumerate(names)}
        yield Case(name=kind, judge=functools.partial(_judge_all, manifests, taken=True))


def _list_slugs(categories: Mapping[str, Any], above: str = "") -> Iterator[str]:
    for slug, category in categories.items():
        yield f"{above}{slug}"
        yield from _list_slugs(category.get("categories", {}), f"{above}{slug}::")


def _judge_upload(body: str, upload: str, variables: Mapping[str, str], root: Path) -> Verdict:
    if found := _OF_THE_STORE.search(body):
        return Verdict("unusable", f"it is no manifest that decides: {found[0]}")
    status = _STATUS.search(body, body.index(upload.removeprefix("New(")))
    if status is None:
        return Verdict("unusable", "the test asks for no status")
    try:
        parts = read_upload(upload, variables)
    except (ValueError, SyntaxError) as error:
        return Verdict("unusable", f"the test computes what it uploads: {error}")
    return _judge_parts(parts, status[2] is not None or status[1] == "200", root)


def _judge_parts(parts: Mapping[str, Any], taken: bool, root: Path) -> Verdict:
    manifest = parts["custom_manifest"] if "custom_manifest" in parts else _make_manifest(parts)
    if "[patch" in manifest:
        return Verdict("unusable", "cargo leaves it out of what is uploaded")
    Files(files={"Cargo.toml": manifest, "src/lib.rs": ""}).write(root)
    packages = judge.read_metadata(root)
    is_refused = packages is None or packages[0]["publish"] == []
    return _compare(_plan(root), manifest, taken=taken and not is_refused)


def _judge_all(manifests: Mapping[str, dict[str, Any]], root: Path, *, taken: bool) -> Verdict:
    """Of one workspace."""
    files = {"Cargo.toml": tomlkit.dumps({"workspace": {"members": [*manifests]}})}
    for name, further in manifests.items():
        package = {"name": name, "version": "1.0.0", "description": "d", "license": "MIT"}
        files[f"{name}/Cargo.toml"] = tomlkit.dumps({"package": {**package, **further}})
        files[f"{name}/src/lib.rs"] = ""
    Files(files=files).write(root)
    planned = _plan(root)
    if taken:
        return _compare(planned, "", taken=True)
    # Of many, the first ones are shown.
    refused = len(re.findall(r"Cargo\.toml: package\.name is", planned.error))
    refused += sum(map(int, re.findall(r"and (\d+) more like these", planned.error)))
    return EQUAL if refused == len(manifests) else Verdict("fault", planned.error)


def _compare(planned: Ran, manifest: str, *, taken: bool) -> Verdict:
    if taken is (planned.code == 0 and bool(planned.packages)):
        return EQUAL
    does = "takes" if taken else "refuses"
    return Verdict("fault", f"crates.io {does} it\n{manifest}\n{planned.out}{planned.error}")


def _plan(root: Path) -> Ran:
    """For crates.io, if that had nothing yet."""
    ours.commit(root)
    with mock.patch.object(httpx.AsyncHTTPTransport, "handle_async_request", _find_nothing):
        return ours.run("plan", root, "--format", "json")


async def _find_nothing(_: httpx.AsyncHTTPTransport, request: httpx.Request) -> httpx.Response:
    return httpx.Response(404, request=request)


def _make_manifest(parts: Mapping[str, Any]) -> str:
    package = {
        "name": parts.get("name", "foo"),
        "version": parts.get("version", "1.0.0"),
        "description": parts.get("description", "description"),
        "license": parts.get("license", "MIT"),
        "license-file": parts.get("license_file"),
        "documentation": parts.get("documentation"),
        "keywords": parts.get("keyword"),
        "categories": parts.get("category"),
    }
    document: dict[str, Any] = {
        "package": {key: value for key, value in package.items() if value is not None},
        "features": dict(parts.get("feature", ())),
        "dependencies": {each.key: each.entry for each in parts.get("dependency", ())},
    }
    for name in {each for _, values in parts.get("feature", ()) for each in values}:
        if re.fullmatch(r"\w+", name):
            document["features"].setdefault(name, [])
    for each in parts.get("dependency", ()):
        if any(f"dep:{each.key}" in values for _, values in parts.get("feature", ())):
            each.entry["optional"] = True
    return tomlkit.dumps(document)


class _Dependency:
    """`DependencyBuilder` of crates.io's tests."""

    def __init__(self, name: str) -> None:
        self.key = name
        self.entry: dict[str, Any] = {"version": ">0"}

    def rename(self, name: str) -> _Dependency:
        self.entry["package"], self.key = self.key, name
        return self

    def version_req(self, requirement: str) -> _Dependency:
        self.entry["version"] = requirement
        return self

    def add_feature(self, name: str) -> _Dependency:
        self.entry.setdefault("features", []).append(name)
        return self

    def registry(self, url: str) -> _Dependency:
        self.entry |= {"registry-index": url} if url else {}
        return self


def read_upload(text: str, variables: Mapping[str, str]) -> dict[str, Any]:
    """The parts that the calls of a builder state. Raises ValueError for others."""
    parts: dict[str, Any] = {}
    for method, arguments in _read_calls(text):
        values = [_evaluate(each, variables) for each in arguments]
        if method == "New":
            parts |= {"name": values[0], "version": values[1]}
        elif method in {"unset_description", "unset_license"}:
            parts[method.removeprefix("unset_")] = None
        elif method in {"keyword", "category", "dependency"}:
            parts.setdefault(method, []).append(values[0])
        elif method == "feature":
            parts.setdefault(method, []).append((values[0], values[1]))
        elif method in _METHODS:
            parts[method] = values[0]
        else:
            raise ValueError(method)
    return parts


def _read_calls(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each call of a chain, with its arguments."""
    at = 0
    while call := re.compile(r"\s*\.?(\w+)\(").match(text, at):
        depth, begin, arguments, at = 1, call.end(), [], call.end()
        while depth:
            literal = re.compile(r'r#".*?"#|"(?:[^"\\]|\\.)*"', re.DOTALL).match(text, at)
            character = text[at]
            if literal:
                at = literal.end()
                continue
            depth += (character in "([") - (character in ")]")
            if (character == "," and depth == 1) or not depth:
                arguments.append(text[begin:at].strip())
                begin = at + 1
            at += 1
        yield call[1], [each for each in arguments if each]


def _evaluate(text: str, variables: Mapping[str, str]) -> Any:
    """An expression of Rust that has the form of one of Python after a few words are changed."""
    text = variables.get(text.removeprefix("&"), text)
    text = _RAW.sub(lambda found: repr(found[1]), text)
    text = re.sub(r'format!\("(.*?)\{\}", (.*)\)', r'("\1" + \2)', text)
    text = re.sub(r'("[^"]*")\.repeat\((.*?)\)', r"(\1 * (\2))", text)
    for name, value in _CONSTANTS.items():
        text = text.replace(name, value)
    text = re.sub(r"\.(as_str|to_string|into|clone)\(\)|&", "", text)
    text = text.replace("DependencyBuilder::new", "Dependency")
    return _calculate(ast.parse(text.strip(), mode="eval").body)


def _calculate(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value):
            return value
        case ast.List(elements):
            return [_calculate(each) for each in elements]
        case ast.BinOp(left, ast.Mult(), right):
            return _calculate(left) * _calculate(right)
        case ast.BinOp(left, ast.Add(), right):
            return _calculate(left) + _calculate(right)
        case ast.Call(ast.Name("Dependency"), [name]):
            return _Dependency(_calculate(name))
        case ast.Call(ast.Attribute(value, method), [argument]) if hasattr(_Dependency, method):
            return getattr(_calculate(value), method)(_calculate(argument))
    raise ValueError(ast.unparse(node))
