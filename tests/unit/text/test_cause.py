"""Which line of a failed build's output is its cause."""

from __future__ import annotations

import pytest

from releasekit.text.cause import _GO, find_cause
from watchdog import assert_no_worse_than_linear

PYTHON = """\
Traceback (most recent call last):
  File "hatchling/metadata/core.py", line 521, in readme
    raise OSError(message)
OSError: Readme file does not exist: README.md
"""
GCC = """\
src/a.c:1:10: fatal error: nope.h: No such file or directory
    1 | #include <nope.h>
src/b.c:7: error: unknown type name 'nope'
error: command '/usr/bin/gcc' failed with exit code 1
distutils.errors.CompileError: command '/usr/bin/gcc' failed with exit code 1
"""
TSC = """\
> @acme/a@1.0.0 prepack
> tsc
src/index.ts(1,7): error TS2322: Type 'string' is not assignable to type 'number'.
src/other.ts(3,1): error TS2304: Cannot find name 'nope'.
"""
NODE = """\
node:internal/modules/cjs/loader:1228
  throw err;
  ^

Error: Cannot find module './nope'
    at Module._resolveFilename (node:internal/modules/cjs/loader:1225:15) {
  code: 'MODULE_NOT_FOUND',
}
"""
RUSTC = """\
   Compiling a v0.1.0 (/w/a)
error[E0425]: cannot find value `x` in this scope
 --> src/lib.rs:1:20
error: could not compile `a` (lib) due to 1 previous error
"""
UV = """\
  No solution found when resolving dependencies:
  ╰─▶ Because nope was not found in the package registry, your requirements are unsatisfiable.
"""

MVN = """\
org.eclipse.aether.transfer.ChecksumFailureException: no checksums available
[ERROR] Failed to execute goal org.apache:maven-dependency-plugin:3.8.1:get (default-cli) on \
project standalone-pom: Couldn't download artifact: \
org.eclipse.aether.resolution.DependencyResolutionException: Could not find artifact \
com.example:b:jar:1 in it (https://m.example) -> [Help 1]
[ERROR]
[ERROR] To see the full stack trace of the errors, re-run Maven with the -e switch.
"""
MVN_PLUGIN = """\
[INFO] BUILD FAILURE
[ERROR] Plugin org.apache:it:3.8.1 or one of its dependencies could not be resolved: No host \
-> [Help 1]
[ERROR]
[ERROR] To see the full stack trace of the errors, re-run Maven with the -e switch.
\x1b[0m\x1b[0m
"""
GO = """\
go: downloading m.example/a v1.0.0
go: m.example/a imports
\tm.example/b: m.example/b@v1.0.0: reading https://p.example/b.mod: 404 Not Found
\tserver response: not found
"""
# With thin spaces.
PNPM = """\
\u2009ERR_PNPM_FETCH_404\u2009 GET https://r.example/@acme%2Fb: Not Found - 404

No authorization header was set for the request.
"""


@pytest.mark.parametrize(
    ("output", "cause"),
    [
        (PYTHON, "OSError: Readme file does not exist: README.md"),
        (f"{PYTHON}\nDuring handling …\n\n{PYTHON}KeyError\n", "KeyError"),
        (GCC, "src/a.c:1:10: fatal error: nope.h: No such file or directory"),
        (TSC, TSC.splitlines()[2]),
        (MVN, "Could not find artifact com.example:b:jar:1 in it (https://m.example)"),
        (
            MVN_PLUGIN,
            "Plugin org.apache:it:3.8.1 or one of its dependencies could not be resolved: No host",
        ),
        (GO, "m.example/b@v1.0.0: reading https://p.example/b.mod: 404 Not Found"),
        (PNPM, "GET https://r.example/@acme%2Fb: Not Found - 404"),
        (NODE, "Error: Cannot find module './nope'"),
        (
            "src/a.ts:3:7 - error TS2322: Type 'string' is not assignable.\n\nFound 1 error.",
            "src/a.ts:3:7 - error TS2322: Type 'string' is not assignable.",
        ),
        ("# acme/tool\n./main.go:4:2: undefined: run", "./main.go:4:2: undefined: run"),
        ('✘ [ERROR] Could not resolve "./a"\n\n    src/i.js:1:7:', 'Could not resolve "./a"'),
        (
            "[!] RollupError: Could not resolve entry module.\n    at x (y.js:1:2)",
            "RollupError: Could not resolve entry module.",
        ),
        ("ok 1 - a\nnot ok 2 - adds\n  error: |-\n  code: 'X'", "not ok 2 - adds"),
        ("✔ a (1 ms)\n✖ adds (2 ms)\n✖ failing tests:\n", "✖ adds (2 ms)"),
        ("  ● sums \u203a adds\n\n    expect(received)", "● sums \u203a adds"),
        (" FAIL  a.test.ts > adds\nError: 1", "FAIL  a.test.ts > adds"),
        ("> a@1.0.0 prepack\n> tsup\nsh: 1: tsup: not found", "tsup: not found"),
        ("bash: line 1: tsup: command not found", "tsup: command not found"),
        ('npm error code 1\nnpm error Missing script: "b"', 'Missing script: "b"'),
        (RUSTC, "error[E0425]: cannot find value `x` in this scope"),
        (UV, UV.splitlines()[1].removeprefix("  ╰─▶ ")),
        (
            "ERROR: No matching distribution found for nope",
            "No matching distribution found for nope",
        ),
        (
            "error: Failed to fetch: https://a.example/\n  cause: a\n  cause: bad certificate",
            "error: Failed to fetch: https://a.example/: bad certificate",
        ),
        ("error: Failed\n  Caused by: a\n  Caused by: b", "error: Failed: b"),
        ("cause: another\nerror: Failed", "error: Failed"),
        ("npm error code 1\nnpm error A complete log of this run can be found in: /x", ""),
        ("building\ndone in 3 s, no error: fine\n", ""),
        ("", ""),
    ],
)
def test_the_cause_is_found(output: str, cause: str) -> None:
    """R47"""
    assert find_cause(output.splitlines()) == cause


def test_it_is_one_short_line_of_harmless_characters() -> None:
    """R40"""
    (line,) = (find_cause([f"ValueError: \x1b[2J{'x' * 1000}"]),)
    assert line.startswith("ValueError: \\x1b[2Jxxx")
    assert len(line) == 300


@pytest.mark.parametrize("part", ["a", "(", ":", "1:", "error ", "Error", "a.b"])
def test_no_line_takes_long_to_read(part: str) -> None:
    """R51: with a search that goes back and forth, this would not end."""
    assert len(find_cause([part * 300_000])) <= 300


@pytest.mark.parametrize("part", ["x@v1:", "@v1", "a@v1 "])
def test_a_line_of_go_takes_linear_time(part: str) -> None:
    """R51"""
    assert_no_worse_than_linear(lambda size: _GO.fullmatch(part * size), 8_000)
