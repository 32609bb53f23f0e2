from __future__ import annotations

import re

import pytest

from releasekit.host.forges import ForgePlace, Pages


@pytest.mark.parametrize(
    ("text", "api"),
    [
        ("github:https://github.com/acme/mono", "https://api.github.com"),
        ("github:https://ghe.example/acme/mono", "https://ghe.example/api/v3"),
        ("gitlab:https://gitlab.com/a/b/c", "https://gitlab.com/api/v4"),
        ("gitea:https://git.example:3000/acme/mono", "https://git.example:3000/api/v1"),
    ],
)
def test_a_forge_is_told_by_its_kind_and_its_page(text: str, api: str) -> None:
    place = ForgePlace.parse(text)
    assert (str(place), place.api) == (text, api)


def test_forgejo_is_a_gitea_and_the_end_of_a_clone_url_is_left_out() -> None:
    written = ForgePlace.parse("forgejo:https://codeberg.org/acme/mono.git/")
    assert str(written) == "gitea:https://codeberg.org/acme/mono"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://github.com/acme/mono.git", "github:https://github.com/acme/mono"),
        ("https://github.com/acme/mono", "github:https://github.com/acme/mono"),
        ("https://x-access-token@github.com/acme/mono.git", "github:https://github.com/acme/mono"),
        ("git@github.com:acme/mono.git", "github:https://github.com/acme/mono"),
        ("github.com:acme/mono", "github:https://github.com/acme/mono"),
        ("ssh://git@github.com/acme/mono.git", "github:https://github.com/acme/mono"),
        ("https://gitlab.com/acme/mono.git", "gitlab:https://gitlab.com/acme/mono"),
        ("git@gitlab.com:acme/mono.git", "gitlab:https://gitlab.com/acme/mono"),
        ("https://github.com/acme", None),
        ("https://github.com/acme/mono/more", None),
        ("/srv/mono.git", None),
        ("https://[::1/acme/mono", None),
        ("", None),
    ],
)
def test_what_is_known_of_a_remote(url: str, expected: str | None) -> None:
    place = ForgePlace.of_remote(url)
    assert (str(place) if place else None) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "https://codeberg.org/acme/mono",
        "bitbucket:https://bitbucket.org/acme/mono",
        "gitea:codeberg.org/acme/mono",
        "gitea:https://codeberg.org/acme",
        "gitea:https://codeberg.org/acme/mono/more",
        "gitea:https://me:secret@codeberg.org/acme/mono",
        "gitea:https://codeberg.org/acme/mono?x=1",
        "gitea:https://codeberg.org/acme/mono#x",
        "gitlab:ssh://git@gitlab.com/acme/mono",
        "gitlab:https://[::1/acme/mono",
    ],
)
def test_anything_else_is_no_forge(text: str) -> None:
    with pytest.raises(ValueError, match=re.compile("forge|page|IPv6", re.IGNORECASE)):
        ForgePlace.parse(text)


@pytest.mark.parametrize(
    ("kind", "pages"),
    [
        ("github", ("releases/tag/@a/b@1.0", "commit/c", "blob/c/a%20b/C.md", "compare/v1...c")),
        (
            "gitlab",
            ("-/releases/@a%2Fb@1.0", "-/commit/c", "-/blob/c/a%20b/C.md", "-/compare/v1...c"),
        ),
        (
            "gitea",
            ("releases/tag/@a/b@1.0", "commit/c", "src/commit/c/a%20b/C.md", "compare/v1...c"),
        ),
    ],
)
def test_pages_of_each_forge(kind: str, pages: tuple[str, ...]) -> None:
    page = "https://forge.example/acme/mono"
    of = Pages(kind, page)  # type: ignore[arg-type]
    found = (of.tag("@a/b@1.0"), of.commit("c"), of.file("c", "a b/C.md"), of.comparison("v1", "c"))
    assert found == tuple(f"{page}/{each}" for each in pages)
    assert Pages(kind, "").tag("v1") == ""  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "page"),
    [
        ("github", "new/next/1/.change%20set?filename=a.md&value=%27x%27%0A"),
        ("gitlab", "-/new/next/1?file_name=.change%20set%2Fa.md"),
        ("gitea", "_new/next/1/.change%20set"),
    ],
)
def test_the_page_of_a_new_file(kind: str, page: str) -> None:
    of = Pages(kind, "https://forge.example/acme/mono")  # type: ignore[arg-type]
    assert of.new_file("next/1", ".change set/a.md", "'x'\n") == f"{of.repository}/{page}"
    assert Pages(kind, "").new_file("main", "a.md", "") == ""  # type: ignore[arg-type]
