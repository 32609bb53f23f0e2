from __future__ import annotations

import pytest
from hypothesis import given

from releasekit.host.forges import Pages
from releasekit.model import Outcome, Staged
from releasekit.report.text import MAX_CHARS, commit_page, package_url, trusted_page, web_page
from sample_runs import hostile_text, result

REPOSITORY = "https://github.com/acme/widgets"
PAGES = Pages("github", REPOSITORY)


@pytest.mark.parametrize(
    "url",
    [
        "https://pypi.org/project/core/1.0.0/",
        "https://www.npmjs.com/package/@acme/core/v/1.0.0",
        "http://registry.company:4873/-/web/detail/core?v=1#readme",
        "http://[::1]:4873/core",
        "https://pkg.go.dev/example.com/core/v2@v2.0.0+incompatible",
    ],
)
def test_a_page_of_a_registry_is_a_link(url: str) -> None:
    assert web_page(url) == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "file:///srv/registry/core/",
        "javascript:alert(1)",
        "https://user:secret@x.example/",
        "https://x.example/ y",
        'https://x.example/"><b>',
        "https://x.example/\n",
        "HTTPS:x.example",
        "https://x.example/" + "a" * MAX_CHARS,
        "//x.example/",
    ],
)
def test_anything_else_is_none(url: str) -> None:
    """R35"""
    assert web_page(url) == ""
    assert (trusted_page(url), commit_page(Pages("github", url), "c0ffee00")) == ("", "")


@given(text=hostile_text)
def test_no_text_becomes_a_link_that_breaks_out_of_its_quotes(text: str) -> None:
    """R35"""
    for url in (text, f"https://x.example/{text}", f"https://{text}", f"https://x.example#{text}"):
        assert not set(web_page(url)) & set("\"'<>`()[]{}|\\ \n") - set("[]")


def test_a_package_leads_to_its_page_or_to_where_it_waits() -> None:
    page = "https://pypi.org/project/core/1.0.0/"
    assert package_url(result(url=page)) == page
    held = Staged(url="https://registry.example/staged/5f0c")
    assert package_url(result(outcome=Outcome.STAGED, staged=held)) == held.url
    assert package_url(result(url="file:///srv/registry/core/")) == ""
    assert package_url(result()) == ""


def test_a_commit_leads_to_its_page() -> None:
    commit = "5d41402abc4b2a76b9719d911017c592ae1f3c07"
    page = f"{REPOSITORY}/commit/{commit}"
    assert commit_page(PAGES, commit) == page
    assert commit_page(PAGES, f"{commit}+dirty.0123abcd") == page
    for other in ("", "main", "../../settings", f"{commit}/..", "C0FFEE00"):
        assert commit_page(PAGES, other) == ""
    assert commit_page(Pages("github", ""), commit) == ""


def test_a_repository_without_tls_is_believed_on_this_machine_only() -> None:
    for page in ("http://127.0.0.1:3000/a/b", "http://localhost/a/b", REPOSITORY):
        assert trusted_page(page) == page
    for page in ("http://ghe.example/a/b", "http://localhost.evil.example/a/b"):
        assert trusted_page(page) == ""
