"""Runs in an environment with the build backends, twine, and what warehouse needs: answers
requests, each a line of JSON, with what these tools say. A build runs in a child of its own.
"""

from __future__ import annotations

import ast
import contextlib
import email.utils
import importlib
import io
import itertools
import json
import os
import re
import sys
import tarfile
import tempfile
import traceback
import types
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Request = dict[str, Any]
Answer = dict[str, Any]


class Refused(Exception):
    """As the framework of warehouse has it: HTTP 400."""


def metadata(request: Request) -> Answer:
    """METADATA of the wheel that a source tree is built into now."""
    hooks = _load_backend(request)
    with tempfile.TemporaryDirectory() as into:
        hook = getattr(hooks, "prepare_metadata_for_build_wheel", None)
        if hook:
            return {"metadata": Path(into, hook(into), "METADATA").read_text("utf-8")}
        with zipfile.ZipFile(Path(into, hooks.build_wheel(into))) as wheel:
            found = [each for each in wheel.namelist() if each.endswith(".dist-info/METADATA")]
            return {"metadata": wheel.read(found[0]).decode()}


def sdist(request: Request) -> Answer:
    return {"file": _load_backend(request).build_sdist(request["into"])}


def wheel(request: Request) -> Answer:
    """Of an sdist, as `uv build` and `python -m build` do."""
    with tempfile.TemporaryDirectory() as scratch:
        with tarfile.open(request["sdist"]) as archive:
            archive.extractall(scratch, filter="data")
        (source,) = Path(scratch).iterdir()
        return {
            "file": _load_backend({**request, "source": str(source)}).build_wheel(request["into"])
        }


def _load_backend(request: Request) -> Any:
    source = Path(request["source"])
    os.chdir(source)
    sys.path[:0] = [str(source / each) for each in request["path"]]
    sys.path += request["more"]
    name, _, attribute = request["backend"].partition(":")
    found = importlib.import_module(name)
    for each in filter(None, attribute.split(".")):
        found = getattr(found, each)
    return found


def twine(request: Request) -> Answer:
    check = importlib.import_module("twine.commands.check").check
    invalid = importlib.import_module("twine.exceptions").InvalidDistribution
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            failed = check(request["paths"], strict=True)
        except invalid as error:
            return {"why": f"ERROR {error}"}
    return {"why": said.getvalue() if failed else ""}


def form(request: Request) -> Answer:
    """What twine sends with a file, but for what each upload has; nothing if it refuses the file.

    PyPI takes names as the metadata have them, and fields of PEP 794, which twine does not know.
    https://github.com/pypi/warehouse/blob/main/warehouse/forklift/metadata.py
    """
    package = importlib.import_module("twine.package")
    repository = importlib.import_module("twine.repository").Repository
    names = {"import_names": "import_name", "import_namespaces": "import_namespace"}
    package._RAW_TO_PACKAGE_METADATA.update(names)
    try:
        file = package.PackageFile.from_filename(request["path"], None)
    except importlib.import_module("twine.exceptions").InvalidDistribution:
        return {"form": []}
    file.safe_name = file.metadata["name"]
    sent = file.metadata_dictionary()
    return {"form": repository._convert_metadata_to_list_of_tuples(sent)}


def refused(request: Request) -> Answer:
    """Why warehouse refuses a form, or a file with that form; empty where it does not."""
    warehouse = Warehouse(request["warehouse"])
    try:
        meta = warehouse.parse(request["form"])
        if "path" in request:
            warehouse.check_file(Path(request["path"]), meta)
    except (ExceptionGroup, Refused, warehouse.metadata.NoMetadataError) as error:
        inner = getattr(error, "exceptions", (error,))
        return {"why": "; ".join(map(str, inner)) or repr(error)}
    return {"why": ""}


def platforms(request: Request) -> Answer:
    valid = Warehouse(request["warehouse"]).legacy["_valid_platform_tag"]
    return {"valid": [each for each in request["tags"] if valid(each)]}


def names(request: Request) -> Answer:
    """Those of projects that warehouse never makes."""
    source = Path(request["warehouse"], "warehouse/packaging/services.py")
    wanted = {"_namespace_stdlib_list", "STDLIB_PROHIBITED"}
    space: dict[str, Any] = {"chain": itertools.chain}
    exec("import stdlib_list\nfrom packaging.utils import canonicalize_name", space)
    exec(_chosen(source, wanted), space)
    found: set[str] = space["STDLIB_PROHIBITED"]
    return {"prohibited": sorted(found)}


def harvest(request: Request) -> Answer:
    """What warehouse's own tests of metadata give to its parser, by running them."""
    import pytest  # noqa: PLC0415 - only in that environment

    warehouse = Warehouse(request["warehouse"])
    given: list[tuple[str, Any]] = []
    parse, name = warehouse.metadata.parse, ""

    def record(content: Any = None, *, form_data: Any = None, **options: Any) -> Any:
        if not options.get("backfill"):
            form = list(form_data.items()) if form_data is not None else None
            given.append((name, {"form": form} if form else {"text": (content or b"").decode()}))
        return parse(content, form_data=form_data, **options)

    warehouse.metadata.parse = record
    space: dict[str, Any] = {"__name__": "tests"}
    path = Path(request["warehouse"], "tests/unit/forklift/test_metadata.py")
    exec(compile(path.read_text(), str(path), "exec"), space)
    for suite in (each for each in space.values() if isinstance(each, type)):
        for key, test in vars(suite).items():
            if key.startswith("test_") and "monkeypatch" not in test.__code__.co_varnames:
                for arguments in _parametrized(test):
                    name = key
                    with contextlib.suppress(Exception, pytest.fail.Exception):
                        test(suite(), **arguments)
    warehouse.metadata.parse = parse
    return {"given": given}


def _parametrized(test: Any) -> Iterator[dict[str, Any]]:
    rows: list[list[dict[str, Any]]] = []
    for mark in getattr(test, "pytestmark", ()):
        keys, values = mark.args
        keys = [each.strip() for each in keys.split(",")] if isinstance(keys, str) else keys
        rows.append(
            [dict(zip(keys, row if len(keys) > 1 else [row], strict=False)) for row in values]
        )
    for combination in itertools.product(*rows):
        yield {key: value for each in combination for key, value in each.items()}


class Warehouse:
    """Parts of warehouse that need neither its database nor its framework."""

    def __init__(self, checkout: str) -> None:
        if checkout not in sys.path:
            sys.path.append(checkout)
        self.metadata: Any = importlib.import_module("warehouse.forklift.metadata")
        # PyPI's Python is newer than this one may be.
        utils_of_email = types.SimpleNamespace(parseaddr=_parse_address)
        vars(self.metadata)["email"] = types.SimpleNamespace(utils=utils_of_email)
        utils = Path(checkout, "warehouse/utils")
        wheels, zipfiles = _load(utils / "wheel.py"), _load(utils / "zipfiles.py")
        space: dict[str, Any] = {
            **vars(wheels),
            "re": re,
            "os": os,
            "tarfile": tarfile,
            "zipfile": zipfile,
            "zlib": importlib.import_module("zlib"),
            "packaging": importlib.import_module("packaging"),
            "zipfiles": zipfiles,
            "nullcontext": contextlib.nullcontext,
            "ExitStack": contextlib.ExitStack,
            "sentry_sdk": types.SimpleNamespace(capture_message=print),
            "_filetype_extension_mapping": {"sdist": {".zip", ".tar.gz"}, "bdist_wheel": {".whl"}},
            "metadata": self.metadata,
            "HTTPBadRequest": Refused,
            "ONE_MIB": 2**20,
            "_exc_with_message": lambda kind, message: kind(message),
            "send_wheel_record_mismatch_email": lambda *_, **__: None,
        }
        importlib.import_module("packaging.utils")
        importlib.import_module("packaging.version")
        source = Path(checkout, "warehouse/forklift/legacy.py")
        wanted = {"_validate_filename", "_open_dist_file", "_is_valid_dist_file", "_commonpath"}
        wanted |= {"_valid_platform_tag", "_dist_file_re", "COMPRESSION_RATIO_MIN_SIZE"}
        wanted |= {"COMPRESSION_RATIO_THRESHOLD"}
        exec(_chosen(source, wanted, "platform", "arches", "macosx"), space)
        exec(_upload_checks(source), space)
        self.legacy = space

    def parse(self, form: list[tuple[str, str]]) -> Any:
        form_data = importlib.import_module("webob.multidict").MultiDict(map(tuple, form))
        return self.metadata.parse(None, form_data=form_data)

    def check_file(self, path: Path, meta: Any) -> None:
        kind = "bdist_wheel" if path.suffix == ".whl" else "sdist"
        quiet = types.SimpleNamespace(
            increment=lambda *_, **__: None, timed=lambda *_, **__: contextlib.nullcontext()
        )
        self.legacy["_validate_filename"](path.name, filetype=kind)
        with contextlib.ExitStack() as stack:
            archive = self.legacy["_open_dist_file"](str(path), stack)
            valid, why = self.legacy["_is_valid_dist_file"](str(path), kind, quiet, scan=False)
            if not valid:
                raise Refused(why)
            normal = self.legacy["packaging"].utils.canonicalize_name(meta.name)
            self.legacy["_checks"](
                filename=path.name,
                temporary_filename=str(path),
                upload_archive=archive,
                meta=meta,
                form=types.SimpleNamespace(filetype=types.SimpleNamespace(data=kind)),
                project=types.SimpleNamespace(normalized_name=normal, name=meta.name, users=()),
                request=types.SimpleNamespace(metrics=quiet),
            )


def _parse_address(text: str) -> tuple[str, str]:
    """As the strict parser that Python 3.12.5 and others of that time brought.
    https://docs.python.org/3/library/email.utils.html#email.utils.parseaddr
    """
    found = email.utils.getaddresses([text])
    return found[0] if len(found) == 1 and "[" not in found[0][1] else ("", "")


def _parse_source(path: Path) -> ast.Module:
    """What is for a later Python than this one is written as this one has it."""
    text = re.sub(r"(?m)^(\s*)except ([\w.]+(?:, [\w.]+)+):", r"\1except (\2):", path.read_text())
    return ast.parse(text)


def _load(path: Path) -> types.ModuleType:
    module = types.ModuleType(path.stem)
    exec(compile(_parse_source(path), str(path), "exec"), vars(module))
    return module


def _chosen(path: Path, wanted: set[str], *parts: str) -> Any:
    """The definitions of these names, and of names with one of these parts, in a module."""

    def is_wanted(node: ast.stmt) -> bool:
        if isinstance(node, ast.FunctionDef):
            return node.name in wanted
        targets = node.targets if isinstance(node, ast.Assign) else ()
        named = [each.id for each in targets if isinstance(each, ast.Name)]
        return any(each in wanted or any(part in each for part in parts) for each in named)

    body = [node for node in _parse_source(path).body if is_wanted(node)]
    return compile(ast.Module(body=body, type_ignores=[]), str(path), "exec")


def _upload_checks(path: Path) -> Any:
    """A function of what `file_upload` does with names and contents of a file."""
    upload = next(
        node
        for node in _parse_source(path).body
        if isinstance(node, ast.FunctionDef) and node.name == "file_upload"
    )
    body: list[ast.stmt] = []
    for node in ast.walk(upload):
        if isinstance(node, ast.With):
            for each in node.body:
                test = ast.unparse(each.test) if isinstance(each, ast.If) else ""
                if test in {"form.filetype.data == 'sdist'", "filename.endswith('.whl')"}:
                    body.append(each)
    wrapper = ast.parse(
        "def _checks(*, filename, temporary_filename, upload_archive, meta, form, project, "
        "request): pass"
    )
    function = wrapper.body[0]
    assert isinstance(function, ast.FunctionDef)
    assert len(body) == 2, "file_upload is written otherwise by now"
    # The file beside it is for the server to keep.
    function.body = [_Kept().visit(each) for each in body]
    return compile(ast.fix_missing_locations(wrapper), str(path), "exec")


class _Kept(ast.NodeTransformer):
    """Without writing the metadata of a wheel beside it, and their digests."""

    def visit_Try(self, node: ast.Try) -> Any:
        if "'.metadata'" in ast.unparse(node):
            return ast.Pass()
        return self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> Any:
        return ast.Pass() if "metadata_file_hashes" in ast.unparse(node.targets[0]) else node

    def visit_For(self, node: ast.For) -> Any:
        if "metadata_file_hashes" in ast.unparse(node.iter):
            return ast.Pass()
        return self.generic_visit(node)


IN_CHILD: dict[str, Callable[[Request], Answer]] = {
    "metadata": metadata,
    "sdist": sdist,
    "wheel": wheel,
}
HERE: dict[str, Callable[[Request], Answer]] = {
    "twine": twine,
    "form": form,
    "refused": refused,
    "platforms": platforms,
    "names": names,
    "harvest": harvest,
}


def _in_child(request: Request) -> Answer:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            answer = IN_CHILD[request["operation"]](request)
        except BaseException as error:  # noqa: BLE001 # backends raise anything
            *_, last = traceback.extract_tb(error.__traceback__)
            key = "broken" if last.filename == __file__ else "error"
            answer = {key: traceback.format_exc()}
        with os.fdopen(writing, "w") as pipe:
            json.dump(answer, pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    found: Answer = json.loads(text or '{"error": "the build ended"}')
    return found


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        name = request["operation"]
        try:
            answer = _in_child(request) if name in IN_CHILD else HERE[name](request)
        except Exception:  # noqa: BLE001 # what breaks here breaks the case
            answer = {"broken": traceback.format_exc()}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
