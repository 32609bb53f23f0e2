from __future__ import annotations

import pytest

from releasekit.ecosystems.go import gomod
from releasekit.ecosystems.go.gomod import Sums
from releasekit.errors import ConfigError, PlanError

TEXT = """\
// The module of the demo.
module "github.com/acme/mono/web" // deprecated soon

go 1.22
toolchain go1.24.1

require github.com/acme/mono/core v0.0.0 // of this repository

require (
	github.com/acme/mono/text v1.0.0
	github.com/other/thing v1.4.0 // indirect; not ours

)

replace github.com/acme/mono/core => ../core

replace (
	github.com/acme/mono/text => ../text // for now
	github.com/other/thing v1.4.0 => github.com/fork/thing v1.4.1
)

exclude ()
retract [v1.0.0, v1.0.5]
"""
CORE, TEXT_PATH, THING = (
    "github.com/acme/mono/core",
    "github.com/acme/mono/text",
    "github.com/other/thing",
)


def mod(text: str = TEXT) -> gomod.GoMod:
    return gomod.parse_mod(text, "web/go.mod")


def test_everything_a_release_depends_on_is_read() -> None:
    found = mod()
    assert (found.module, found.go) == ("github.com/acme/mono/web", "1.22")
    assert [(require.path, require.version) for require in found.requires] == [
        (CORE, "v0.0.0"),
        (TEXT_PATH, "v1.0.0"),
        (THING, "v1.4.0"),
    ]
    assert [(replace.path, replace.target) for replace in found.replaces] == [
        (CORE, "../core"),
        (TEXT_PATH, "../text"),
        (THING, "github.com/fork/thing"),
    ]


@pytest.mark.parametrize(
    ("comment", "indirect"),
    [
        (" // indirect", True),
        ("\t//indirect; pinned", True),
        (" // indirect ;", False),
        (" // indirectly", False),
        (" // not indirect", False),
        ("", False),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_comment_says_that_a_requirement_is_indirect(
    comment: str, indirect: bool, newline: str
) -> None:
    """The results are those of `go mod edit -json`."""
    (require,) = mod(f"module a.b/c{newline}require d.e/f v1.0.0{comment}{newline}").requires
    assert require.indirect is indirect


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("go 1.22\n", "no module directives"),
        ("module a.b/c\nmodule a.b/d\n", "2 module directives"),
        ("module a.b/c\nrequire a.b/d\n", "write a path and a version"),
        ("module a.b/c\nreplace a.b/d ../d\n", "write `replace OLD => NEW`"),
        ("module a.b/c\nreplace a.b/d =>\n", "write `replace OLD => NEW`"),
        ("module a.b/c\nrequire (\n\ta.b/d v1.0.0\n", "no closing parenthesis"),
        ('module "a.b/c\n', "is not understood"),
        ("module a.b/c /* c */\n", r"go.mod:1: Go accepts no `/\* \*/` here"),
        ("module a.b/c\n/* c */\ngo 1.22\n", r"go.mod:2: Go accepts no `/\* \*/` here"),
        ("module a.b/c/*c*/\n", r"go.mod:1: Go accepts no `/\* \*/` here"),
        ("module `a.b/c`\n", "go.mod:1: '`a.b/c`' is not understood"),
    ],
)
def test_what_is_no_go_mod_is_one_clear_message(text: str, message: str) -> None:
    """R66: go refuses each of them."""
    with pytest.raises(ConfigError, match=message) as caught:
        mod(text)
    assert "web/go.mod" in str(caught.value)


def test_a_go_work_lists_directories() -> None:
    text = 'go 1.22\n\nuse ./a\nuse (\n\t./b // later\n\t"./c d"\n)\nreplace x.y/z => ./z\n'
    assert gomod.used_directories(text, "go.work") == ("./a", "./b", "./c d")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_released_go_mod_differs_where_it_has_to(newline: str) -> None:
    """R24"""
    found = mod(TEXT.replace("\n", newline))
    versions = {CORE: "v1.1.0", TEXT_PATH: "v1.0.0", "github.com/acme/mono/io": "v1.0.0"}
    local = [it for it in found.replaces if it.target.startswith("..")]
    made = gomod.edit_mod(found, versions, needed=["github.com/acme/mono/io"], local=local)
    wanted = (
        TEXT.replace("core v0.0.0", "core v1.1.0")
        .replace(f"replace {CORE} => ../core\n", "")
        .replace(f"\t{TEXT_PATH} => ../text // for now\n", "")
        + "\nrequire (\n\tgithub.com/acme/mono/io v1.0.0 // indirect\n)\n"
    )
    assert made == wanted.replace("\n", newline)
    again = mod(made)
    assert gomod.edit_mod(again, versions, needed=[], local=[]) == made


def test_a_block_of_replacements_goes_with_the_last_of_them() -> None:
    text = "module a.b/c\n\nreplace (\n\ta.b/d => ../d\n\ta.b/e => ../e\n)\n"
    found = mod(text)
    assert gomod.edit_mod(found, {}, needed=[], local=found.replaces) == "module a.b/c\n\n"


def test_a_last_line_without_an_end_gets_one() -> None:
    made = gomod.edit_mod(mod("module a.b/c"), {"a.b/d": "v1.0.0"}, needed=["a.b/d"], local=[])
    assert made == "module a.b/c\n\nrequire (\n\ta.b/d v1.0.0 // indirect\n)\n"


@pytest.mark.parametrize(
    ("planned", "fits"),
    [("v1.0.0", True), ("v1.1.0-rc.1", True), ("v1.0.0-rc.1", False), ("v0.9.0", False)],
)
def test_a_requirement_is_a_lower_bound(planned: str, fits: bool) -> None:
    versions = {TEXT_PATH: planned}
    if fits:
        gomod.check_requirements(mod(), versions)
    else:
        with pytest.raises(PlanError, match=rf"requires {TEXT_PATH} v1.0.0, but .* has {planned}"):
            gomod.check_requirements(mod(), versions)


def test_hashes_are_added_in_the_order_of_go() -> None:
    before = (
        "b.c/d v1.10.0 h1:ten=\n"
        "b.c/d v1.10.0/go.mod h1:tenmod=\n"
        "b.c/d v1.2.0/go.mod h1:two=\n"
        "b.c/z v1.0.0 h1:stale=\n"
        "b.c/z v1.0.0/go.mod h1:stale=\n"
    )
    made = gomod.edit_sum(
        before,
        {
            ("b.c/z", "v1.0.0"): Sums("h1:z=", "h1:zm="),
            ("a.b/c", "v1.0.0"): Sums("h1:a=", "h1:am="),
        },
    )
    assert made.splitlines() == [
        "a.b/c v1.0.0 h1:a=",
        "a.b/c v1.0.0/go.mod h1:am=",
        "b.c/d v1.2.0/go.mod h1:two=",
        "b.c/d v1.10.0 h1:ten=",
        "b.c/d v1.10.0/go.mod h1:tenmod=",
        "b.c/z v1.0.0 h1:z=",
        "b.c/z v1.0.0/go.mod h1:zm=",
    ]
    assert gomod.read_sums(made)["b.c/z", "v1.0.0"] == Sums("h1:z=", "h1:zm=")
    assert ("b.c/d", "v1.2.0") not in gomod.read_sums(made + "not a line of it\n")


def test_no_edit_takes_long() -> None:
    """R51: of a module with a requirement and a replacement in each of thousands of lines."""
    count = 3_000
    requires = "\ta.b/d v1.0.0\n" * count
    replaces = "replace a.b/d => ./d\n" * count
    found = mod(f"module a.b/c\nrequire (\n{requires})\n{replaces}")
    made = gomod.edit_mod(found, {"a.b/d": "v1.0.1"}, needed=[], local=found.replaces)
    assert made == f"module a.b/c\nrequire (\n{requires.replace('1.0.0', '1.0.1')})\n"


@pytest.mark.parametrize(
    ("directive", "reason"),
    [
        ("", None),
        ("retract v1.0.1", None),
        ("retract v1.0.0", ""),
        ("retract v1.0.0 // bad", "bad"),
        ("// bad\nretract [v0.9.0, v1.0.0]", "bad"),
        ("// It loses\n//\n//  data.\nretract v1.0.0", "It loses data."),
        ("// far away\n\nretract v1.0.0", ""),
        ("// bad\nretract v1.0.0 // as v0.9.0", "bad as v0.9.0"),
        ("retract [v1.0.1, v2.0.0]", None),
        ("// all\nretract (\n\tv0.1.0\n\tv1.0.0\n)", "all"),
        ("retract (\n\t// this one\n\tv1.0.0\n)", "this one"),
        ("retract ()", None),
        ("retract nonsense", None),
    ],
)
def test_a_go_mod_retracts_versions(directive: str, reason: str | None) -> None:
    """R65: https://go.dev/ref/mod#go-mod-file-retract"""
    mod = gomod.parse_mod(f"module example.com/m\n\n{directive}\n", "go.mod")
    assert gomod.find_retraction(mod, "v1.0.0") == reason


def test_no_go_directive_is_too_long_to_add_hashes() -> None:
    """R51: Python turns no text of so many digits into a number."""
    mod = gomod.parse_mod(f"module x.example/y\n\ngo 1.{'9' * 5000}\n", "go.mod")
    line = "z.example/w v1.0.0/go.mod h1:x\n"
    assert gomod.add_sums("", [line], mod, {}, ours=()) == line


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        # What go 1.26 says of each with `go list -m`.
        ("foo bar", "go.mod:3: `foo` is not a directive"),
        ("foo (\n\ta\n)", "go.mod:4: `foo` is not a directive"),
        ("use ./x", "`use` is not a directive"),
        ("go 1.22", "go.mod:3: `go` appears a second time"),
        ("toolchain go1.26.0", ""),
        ("godebug default=go1.21", ""),
        ("tool a.example/x/t", ""),
        ("ignore ./n", ""),
        ("retract (\n\tv1.0.0\n\tv1.0.1\n)", ""),
    ],
)
def test_a_directive_that_go_does_not_know_is_refused(line: str, refused: str) -> None:
    """R66"""
    found = mod(f"module a.example/x\ngo 1.26\n{line}\n")
    if refused:
        with pytest.raises(ConfigError) as caught:
            gomod.refuse_strange(found, "go.mod")
        assert refused in str(caught.value)
    else:
        gomod.refuse_strange(found, "go.mod")
    newer = "go 1.27\n" if "second" not in refused else ""
    gomod.refuse_strange(mod(f"module a.example/x\n{newer}{line}\n"), "go.mod")


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        # What go 1.26 says of each with `go list -m`.
        ("go", True),
        ("go 1", True),
        ("go v1.22", True),
        ("go 1.22 1.23", True),
        ("go 1.22rc1", False),
        ("toolchain newest!", True),
        ("toolchain go1.23.4-custom", False),
        ("module a.example/x extra", True),
        ("godebug default", True),
        ("tool ./cmd/t", True),
        ("tool a.example/x/cmd/t", False),
        ("require b.example/y master", True),
        ("require b.example/y 1.2.3", True),
        ("require b.example/y v2.0.0", True),
        ("require b.example/y/v2 v1.0.0", True),
        ("exclude b.example/y v2.0.0", True),
        ("require b.example/y v2.0.0+incompatible", False),
        ("require b.example/y v0.0.0-20260102150405-abcdef012345", False),
        ("require gopkg.in/check.v1 v0.0.0-20160102150405-abcdef123456", False),
        ("require gopkg.in/check.v1 v2.0.0", True),
        ("replace b.example/y => c.example/z", True),
        ("replace b.example/y => ../z v1.0.0", True),
        ("replace b.example/y => ..\\z", True),
        ("replace b.example/y => C:/z", False),
        ("replace b.example/y v2.0.0 => ../z", True),
        ("replace b.example/y v1.0.0 => c.example/z v1.1.0", False),
    ],
)
def test_the_words_of_a_directive_are_checked_as_go_does(line: str, refused: bool) -> None:
    """R66: nobody can build such a module, nor, with most of these, one that requires it."""
    text = f"{line}\n" if line.startswith("module") else f"module a.example/x\n{line}\n"
    found = mod(text)
    if refused:
        with pytest.raises(ConfigError, match=r"go\.mod:[12]: go cannot read `") as caught:
            gomod.refuse_strange(found, "go.mod")
        assert (caught.value.hint or "").startswith("Write ")
    else:
        gomod.refuse_strange(found, "go.mod")


def test_a_newer_go_may_read_other_words() -> None:
    """R66: but for those of directives that have not changed since the first."""
    gomod.refuse_strange(mod("module a.example/x\ngo 1.27\ntool ./cmd/t\n"), "go.mod")
    with pytest.raises(ConfigError, match=r"go\.mod:3: go cannot read `require"):
        gomod.refuse_strange(mod("module a.example/x\ngo 1.27\nrequire y main\n"), "go.mod")


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        # What go 1.26 says of each with `go list -m`.
        ("go 1.22\nuse ./a\nfoo bar\n", "go.work:3: `foo` is not a directive"),
        ("go 1.22\nuse ./a\nexclude x v1.0.0\n", "go.work:3: `exclude` is not a directive"),
        ("\ufeff// x\ngo 1.22\nuse ./a\n", "go.work:1: `\ufeff` is not a directive"),
        ("go 1.22\ngo 1.23\nuse ./a\n", "go.work:2: `go` appears a second time"),
        ("go 1.22\nuse ./a\ngodebug default=go1.21\n", ""),
        ("go 1.27\nuse ./a\nfoo bar\n", ""),
    ],
)
def test_a_go_work_is_read_as_strictly(text: str, refused: str) -> None:
    """R66"""
    if refused:
        with pytest.raises(ConfigError) as caught:
            gomod.used_directories(text, "go.work")
        assert refused in str(caught.value)
    else:
        assert gomod.used_directories(text, "go.work") == ("./a",)
