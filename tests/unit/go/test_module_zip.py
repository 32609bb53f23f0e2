from __future__ import annotations

import io
import zipfile

import pytest

from releasekit.ecosystems.go import module_zip
from releasekit.ecosystems.go.module_zip import ModuleFile
from releasekit.errors import BuildFailed


def select(*names: str, go: str = "1.22", **more: ModuleFile) -> list[str]:
    files = {name: ModuleFile(size=1) for name in names} | more
    return module_zip.select_files(files, go=go, module="a.b/c")


def test_other_modules_and_irregular_files_stay_out() -> None:
    """https://pkg.go.dev/golang.org/x/mod/zip"""
    chosen = select(
        *("go.mod", "a.go", "sub/go.mod", "sub/b.go", "sub/deep/c.go", "subway/d.go"),
        *(".hg_archival.txt", "x/GO.MOD", "x/e.go"),
        link=ModuleFile(size=1, regular=False),
    )
    assert chosen == ["go.mod", "a.go", "subway/d.go"]


@pytest.mark.parametrize(
    ("go", "chosen"),
    [
        ("1.22", ["vendor/modules.txt", "pkg/vendor/vendor.go"][:1]),
        ("1.24.0", ["pkg/vendor/vendor.go"]),
        ("1.24rc1", ["pkg/vendor/vendor.go"]),
        ("", ["vendor/modules.txt"]),
    ],
)
def test_vendored_packages_stay_out_as_each_version_of_go_means_it(
    go: str, chosen: list[str]
) -> None:
    """https://go.dev/issue/37397"""
    names = ("vendor/modules.txt", "vendor/a.b/c.go", "longer-than-vendor/vendor/vendor.go")
    assert select(*names[:2], go=go) == [name for name in chosen if name.startswith("vendor")]
    nested = select("packages/vendor/vendor.go", go=go)
    assert nested == (["packages/vendor/vendor.go"] if go.startswith("1.24") else [])
    assert select("vendor/x.go", go=go) == ["vendor/x.go"]


@pytest.mark.parametrize(
    ("names", "trouble"),
    [
        (("aux.go",), "reserved on Windows"),
        (("README", "readme"), "differs from README in case only"),
        (("Doc/a", "doc/b"), "differs from Doc in case only"),
        (("GO.MOD",), "must have lowercase names"),
        (("a?", "b?", "c?", "d?", "e?"), "(and 2 more)"),
    ],
)
def test_files_that_go_refuses_are_refused(names: tuple[str, ...], trouble: str) -> None:
    with pytest.raises(BuildFailed) as caught:
        select(*names)
    assert trouble in str(caught.value)
    assert str(caught.value).startswith("go:a.b/c cannot be published")


def test_sizes_are_bounded() -> None:
    """R40"""
    with pytest.raises(BuildFailed, match="are allowed"):
        select(big=ModuleFile(size=module_zip.MAX_ZIP_BYTES + 1))
    with pytest.raises(BuildFailed, match="LICENSE: larger"):
        select(LICENSE=ModuleFile(size=module_zip.MAX_GO_MOD_BYTES + 1))


def test_the_hash_is_that_of_go() -> None:
    """From https://github.com/golang/mod/blob/master/sumdb/dirhash/hash_test.go"""
    contents = {"hello/abc": b"data for hello/abc", "hello/xyz": b"data for hello/xyz"}
    assert module_zip.hash1(contents).startswith("h1:")
    assert len(module_zip.hash1(contents)) == 47
    zipped = module_zip.zip_bytes(dict(reversed(contents.items())), time_s=1_700_000_000)
    assert module_zip.hash_of_zip(zipped) == module_zip.hash1(contents)


def test_the_same_files_make_the_same_bytes() -> None:
    contents = {"m@v1.0.0/go.mod": b"module m\n"}
    assert module_zip.zip_bytes(contents, time_s=0) == module_zip.zip_bytes(contents, time_s=0)
    with zipfile.ZipFile(io.BytesIO(module_zip.zip_bytes(contents, time_s=0))) as archive:
        assert archive.infolist()[0].date_time == (1980, 1, 1, 0, 0, 0)


def test_what_is_no_zip_is_a_value_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="not a zip"):
        module_zip.hash_of_zip(b"<html>")
    monkeypatch.setattr(module_zip, "MAX_ZIP_BYTES", 3)
    with pytest.raises(ValueError, match="larger"):
        module_zip.hash_of_zip(module_zip.zip_bytes({"a": b"1234"}, time_s=0))
