"""What the documents quote is what the program says."""

from __future__ import annotations

import ast
import re
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from documents import DOCUMENTS, ROOT
from fakes import DECLARED
from releasekit.announce.github import CREATED_IN_A_MINUTE, CREATED_IN_AN_HOUR
from releasekit.config.file import read_config
from releasekit.ecosystems import ECOSYSTEMS
from releasekit.ecosystems.cargo import rates
from releasekit.ecosystems.cargo.target import MAX_CRATE_BYTES
from releasekit.ecosystems.go.module_zip import MAX_ZIP_BYTES
from releasekit.ecosystems.maven import portal
from releasekit.ecosystems.pypi.distribution import MAX_UPLOAD_BYTES
from releasekit.ecosystems.pypi.registry import CLOSED_AFTER, NEW_PROJECTS_AN_HOUR
from releasekit.errors import ConfigError
from releasekit.plan.forecast import GITHUB
from releasekit.report.text import size

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.config.declaration import EcosystemDeclaration

# What a page of the site cannot reach by a relative link: it lies outside of docs/.
OWN_FILES = "https://github.com/org/releasekit-action/blob/main/"
# Said by PyPI, by OpenSSL and by the operating system.
NOT_OURS = ("invalid-publisher", "certificate verify failed", "No space left on device")


def quoted() -> list[str]:
    """Messages where people look them up: the first column of tables headed "message"."""
    found: list[str] = []
    in_table = False
    pages = (ROOT / "docs" / name for name in ("problems.md", "troubleshooting.md"))
    for line in "\n".join(page.read_text(encoding="utf-8") for page in pages).splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            in_table = False
        elif cells[0].startswith("message"):
            in_table = True
        elif in_table:
            found += re.findall(r"`([^`]+)`", cells[0])
    return found


def said() -> str:
    """Every text of the program, with a … for what is put in; and entrypoint.sh."""
    texts = [(ROOT / "entrypoint.sh").read_text(encoding="utf-8")]
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                pieces = (v.value if isinstance(v, ast.Constant) else "…" for v in node.values)
                texts.append("".join(map(str, pieces)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
    return "\n".join(texts).replace("`", "")


SAID = said()


@pytest.mark.parametrize("message", quoted())
def test_quoted_messages_are_said_by_the_program(message: str) -> None:
    for piece in re.split(r"\s*…\s*|\b\d{3}\b", message):
        words = piece.strip(" '\"`:,;")
        if len(words) > 3 and not any(theirs in words for theirs in NOT_OURS):
            assert words in SAID


def dead_links(path: Path, text: str) -> list[str]:
    """Links and pictures of `text`, in `path`, that lead nowhere in this repository; and those of a
    page below docs/ that lead out of it, where the site has nothing.
    """
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "code", text, flags=re.DOTALL | re.MULTILINE)
    targets = re.findall(
        r"\]\(<?([^)>]+)>?\)|(?:src|srcset|href)=\"([^\"]+)\"|^\[[^\]]+\]: (\S+)$",
        text,
        re.MULTILINE,
    )
    return [
        target
        for target in map("".join, targets)
        if "://" not in target.removeprefix(OWN_FILES) and not _leads_somewhere(path, target)
    ]


def _leads_somewhere(path: Path, target: str) -> bool:
    file, _, anchor = target.partition("#")
    linked = path.parent / file if file else path
    docs = ROOT / "docs"
    if target.startswith(OWN_FILES):
        linked = ROOT / file.removeprefix(OWN_FILES)
    elif path.is_relative_to(docs) and not linked.resolve().is_relative_to(docs):
        return False
    if not linked.exists():
        # Drawn by `make pictures`.
        return linked.parent == docs / "pictures" and not linked.parent.exists()
    return not anchor or anchor in slugs(linked.read_text(encoding="utf-8"))


def slugs(text: str) -> set[str]:
    """What GitHub, and the site, call the headings of `text`."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(path: Path) -> None:
    assert dead_links(path, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text",
    [
        "[a](nowhere.md)",
        "[a\nb](getting-started.md#nowhere)",
        "[a](#nowhere)",
        "![a](nowhere.svg)",
        '<img src="nowhere.svg">',
        "[a](../README.md)",
        f"[a]({OWN_FILES}nowhere.v)",
        "[`a`]: nowhere.md",
    ],
)
def test_dead_links_are_noticed(text: str) -> None:
    assert len(dead_links(ROOT / "docs/index.md", text)) == 1


def test_every_page_is_in_the_navigation_of_the_site_once() -> None:
    config = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))

    def pages(entry: Any) -> list[str]:
        match entry:
            case str():
                return [entry]
            case list():
                return [page for each in entry for page in pages(each)]
            case dict():
                return pages(list(entry.values()))
            case _:
                raise AssertionError(entry)

    assert sorted(pages(config["project"]["nav"])) == [
        path.name for path in sorted((ROOT / "docs").glob("*.md"))
    ]


def test_every_page_is_linked_from_the_first() -> None:
    text = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    for path in (ROOT / "docs").glob("*.md"):
        assert path.name == "index.md" or f"]({path.name})" in text, path.name


def test_links_into_code_are_none() -> None:
    text = "`a](b)` and\n```text\n[a](b)\n```\n"
    assert dead_links(ROOT / "README.md", text) == []


def test_what_is_said_of_security_names_tests_that_are_there() -> None:
    """R50"""
    named = set(re.findall(r"`(test_\w+\.py)`", (ROOT / "SECURITY.md").read_text(encoding="utf-8")))
    assert named
    assert named <= {path.name for path in (ROOT / "tests").rglob("test_*.py")}


def test_what_is_said_of_reliability_names_tests_that_are_there() -> None:
    text = (ROOT / "docs/reliability.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(?:tests/)?((?:\w+/)+\w+\.py)`", text))
    assert any(name.startswith("crash/") for name in named)
    modules = (ROOT / "tests", ROOT / "src/releasekit")
    assert [name for name in named if not any((each / name).exists() for each in modules)] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_flags_and_variables_in_documents_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    variables = {each.variable for each in DECLARED.everything.values()}
    assert set(re.findall(r"RELEASEKIT_[A-Z_]+[A-Z]", text)) <= variables
    for line in re.findall(r"^\./entrypoint\.sh .*$", text, re.MULTILINE):
        for flag in re.findall(r"(?<= --)[a-z-]+", line):
            assert flag in DECLARED.inputs or flag in {"help", "version"}


@pytest.mark.parametrize("ecosystem", ECOSYSTEMS.values(), ids=ECOSYSTEMS)
def test_every_option_of_an_ecosystem_is_explained(ecosystem: EcosystemDeclaration) -> None:
    page = ROOT / f"docs/{ecosystem.options.TABLE}.md"
    page = page if page.exists() else ROOT / "docs/getting-started.md"
    text = page.read_text(encoding="utf-8")
    for key in ecosystem.option_keys:
        assert f"{key} = " in text or f"`{key}`" in text, key


def prose(text: str) -> list[str]:
    """Its lines outside tables and code; a link that stands alone may be as long as it is."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    lone_link = re.compile(r"\s*(?:[-*] )?!?\[[^\]]*\]\([^)]*\)\S*|\s*<?https?://\S*")
    return [
        line
        for line in text.splitlines()
        if not line.startswith("|") and not lone_link.fullmatch(line)
    ]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_prose_is_wrapped_at_100_columns(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert [line for line in prose(text) if len(line) > 100] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_column_of_a_table_has_a_heading(path: Path) -> None:
    """A screen reader says it before each cell."""
    heads = re.findall(r"^\|(.+)\|\n\|[ :|-]+\|$", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert [head for head in heads if not all(cell.strip() for cell in head.split("|"))] == []


def test_the_configuration_of_files_built_elsewhere_is_accepted(tmp_path: Path) -> None:
    text = (ROOT / "docs/prebuilt.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 2
    (tmp_path / "releasekit.toml").write_text("".join(blocks), encoding="utf-8")
    read = read_config(tmp_path / "releasekit.toml", DECLARED)
    assert read.tables["npm"] == {"packages": ["npm/*"]}
    assert read.dist["npm:@acme/native-linux-x64-gnu"] == ("artifacts/linux",)
    suffixes = {suffix for each in ECOSYSTEMS.values() for suffix in each.suffixes}
    named = set(re.findall(r"`\*(\.[\w.]+)`", text.split("Signatures, attestations")[0]))
    assert named == suffixes - set(ECOSYSTEMS["go"].suffixes)


def test_the_configuration_in_getting_started_is_accepted(tmp_path: Path) -> None:
    text = (ROOT / "docs/getting-started.md").read_text(encoding="utf-8")
    below, block = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    (tmp_path / "releasekit.toml").write_text(below, encoding="utf-8")
    assert read_config(tmp_path / "releasekit.toml", DECLARED).tables["npm"]
    (tmp_path / "releasekit.toml").write_text(block, encoding="utf-8")
    read = read_config(tmp_path / "releasekit.toml", DECLARED)
    assert read.texts["concurrency"] == "8"
    (tmp_path / "releasekit.toml").write_text(block.replace("task-", "tusk-"), encoding="utf-8")
    with pytest.raises(ConfigError, match="did you mean 'task-timeout'"):
        read_config(tmp_path / "releasekit.toml", DECLARED)


def test_the_limits_of_registries_are_those_that_plans_go_by() -> None:
    text = (ROOT / "docs/limits.md").read_text(encoding="utf-8")
    table = text[text.index("## What each registry allows") :]
    new, known = rates.NEW_CRATES, rates.NEW_VERSIONS
    month = f"{portal.FILES_IN_A_MONTH:,} files, {size(portal.BYTES_IN_A_MONTH)}"
    for figure in (
        f"{new.burst} at once, then one every {new.interval_s / 60:g} minutes",
        f"{known.burst} at once, then one a minute",
        f"{MAX_CRATE_BYTES // 1024**2} MiB",
        f"{NEW_PROJECTS_AN_HOUR} in an hour",
        f"{MAX_UPLOAD_BYTES // 1024**2} MiB",
        f"{CLOSED_AFTER.days} days",
        f"{month}, {portal.RELEASES_IN_A_MONTH} releases",
        f"{portal.MAX_BYTES // 1024**3} GiB",
        f"{MAX_ZIP_BYTES // 1024**2} MiB",
        f"{CREATED_IN_A_MINUTE} in a minute, {CREATED_IN_AN_HOUR} in an hour",
        f"{GITHUB.left_s / 3600:g} hours",
    ):
        assert f"| {figure}" in table
