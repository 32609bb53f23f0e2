"""Which of a package's files in git its archive holds or is made of."""

from __future__ import annotations

import os.path
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

# Whether a file counts, by its name relative to the directory of the package.
Counts = Callable[[str], bool]

# Files that change nothing for users, packed or not: notes on changes and on contributors, lock
# files of their tools, and our own, in which a release writes the versions of other packages too.
_NEVER: Final = re.compile(
    r"(?:^|/)(?:CHANGELOG|CHANGES|HISTORY|RELEASES?)(?:[^/]*\.(?:adoc|md|rst|txt))?$"
    r"|(?:^|/)(?:AUTHORS|CODE_OF_CONDUCT|CONTRIBUTING|MAINTAINERS|RELEASING|ROADMAP|SECURITY"
    r"|UPGRADING)(?:\.(?:adoc|md|rst|txt))?$"
    r"|^releasekit\.toml$"
    r"|(?:^|/)(?:bun\.lockb?|package-lock\.json|pdm\.lock|pnpm-lock\.yaml|poetry\.lock|uv\.lock"
    r"|yarn\.lock)$",
    re.IGNORECASE,
)
# Files that change nothing unless a manifest names them: tests, documentation, examples, and the
# settings of tools that only developers run.
_IRRELEVANT: Final = re.compile(
    r"^(?:benches|benchmarks?|docs?|e2e|examples?|fixtures?|integration[-_]?tests?|playgrounds?"
    r"|samples?|specs?|tests?|tests?[-_](?:d|data|fixtures|utils)|type-?tests?)/"
    r"|(?:^|/)(?:__fixtures__|__mocks__|__snapshots__|__tests__|node_modules|testdata|tests)/"
    r"|(?:^|/)(?:test_[^/]+|[^/]+_test|conftest|noxfile|toxfile)\.py$|_test\.go$|(?:^|/)tests\.rs$"
    r"|[._](?:bench|cy|e2e|spec|stories|test|test-d)\.[^/.]+$"
    r"|(?:^|/)(?:commitlint|cypress|eslint|jest|karma|knip|lint-staged|oxlint|playwright|prettier"
    r"|stylelint|typedoc|vitest|wdio)(?:\.[^/]+)?[.-](?:config|preset|setup|workspace)\.[^/]+$"
    r"|(?:^|/)(?:biome\.jsonc?|clippy\.toml|deny\.toml|eslint-suppressions\.json|justfile|Makefile|mkdocs\.ya?ml|mypy\.ini"
    r"|project\.json|pyrightconfig\.json|pytest\.ini|release\.toml|ruff\.toml|rustfmt\.toml"
    r"|tox\.ini|tsconfig\.(?:e2e|eslint|lint|spec|test|vitest)\.json|tslint\.json|turbo\.json"
    r"|typedoc\.json)$"
    # Hidden files at the top, except those that say how to build or what to pack.
    r"|^\.(?!babelrc|browserslistrc|cargo/|mvn/|npmignore$|postcssrc|swcrc)",
    re.IGNORECASE,
)


def is_irrelevant(name: str, named: Collection[str] = ()) -> bool:
    """Whether no user notices a change of it; below what is `named`, the rest of the name tells."""
    if _NEVER.search(name):
        return True
    if not _IRRELEVANT.search(name):
        return False
    within = (len(each) for each in named if name == each or name.startswith(f"{each}/"))
    return _IRRELEVANT.search(name, max(within, default=0)) is not None


def spelled_out(patterns: Iterable[object]) -> frozenset[str]:
    """The parts of patterns before their first wildcard, relative to the root."""
    texts = (each.strip() for each in patterns if isinstance(each, str))
    heads = (
        re.match(r"[^*?!#()\[\]{}]+(?=/|$)", text.removeprefix("./").strip("/")) for text in texts
    )
    return frozenset(head[0] for head in heads if head)


def below(marker: str, tracked: Iterable[str]) -> tuple[str, ...]:
    """The directories further down that hold a file `marker`, each with a slash at its end."""
    return tuple(name.removesuffix(marker) for name in tracked if name.endswith(f"/{marker}"))


def is_below(path: Path, directory: Path) -> bool:
    """Whether it is, as it is written."""
    return Path(os.path.normpath(path)).is_relative_to(directory)
