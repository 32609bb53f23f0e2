"""Python: the projects that build backends and uv are tested with, and what PyPI refuses."""

from __future__ import annotations

import functools
from typing import Final

from peers.pypi import projects, texts, uv, wire
from peers.scenarios import Peer
from peers.sources import Source

SOURCES: Final = (
    *(
        Source(name=name, git=f"https://github.com/{git}", licence=licence, archive=f"sdist:{name}")
        for name, git, licence in (
            ("poetry-core", "python-poetry/poetry-core", "MIT"),
            ("setuptools", "pypa/setuptools", "MIT"),
            ("setuptools-scm", "pypa/setuptools-scm", "MIT"),
            ("flit", "pypa/flit", "BSD-3-Clause"),
            ("pdm-backend", "pdm-project/pdm-backend", "MIT"),
            ("meson-python", "mesonbuild/meson-python", "MIT"),
            ("scikit-build-core", "scikit-build/scikit-build-core", "Apache-2.0"),
            ("build", "pypa/build", "MIT"),
            ("pyproject-hooks", "pypa/pyproject-hooks", "MIT"),
            ("hatch-vcs", "ofek/hatch-vcs", "MIT"),
            ("uv", "astral-sh/uv", "MIT OR Apache-2.0"),
        )
    ),
    Source(name="hatch", git="https://github.com/pypa/hatch", licence="MIT"),
    Source(name="warehouse", git="https://github.com/pypi/warehouse", licence="Apache-2.0"),
    Source(
        name="packaging",
        git="https://github.com/pypa/packaging",
        licence="Apache-2.0 OR BSD-2-Clause",
        archive="sdist:packaging",
    ),
    Source(
        name="email-validator",
        git="https://github.com/JoshData/python-email-validator",
        licence="Unlicense",
        archive="sdist:email-validator",
    ),
    Source(
        name="rfc3986",
        git="https://github.com/python-hyper/rfc3986",
        licence="Apache-2.0",
        archive="sdist:rfc3986",
    ),
)
# Where their projects lie, and where their tests write some.
_FIXTURES: Final = {
    "poetry-core": "tests/**/pyproject.toml",
    "flit": "**/samples/*/pyproject.toml",
    "pdm-backend": "tests/fixtures/projects/*/pyproject.toml",
    "meson-python": "tests/packages/*/pyproject.toml",
    "scikit-build-core": "tests/packages/*/pyproject.toml",
    "build": "tests/packages/*/pyproject.toml",
    "pyproject-hooks": "tests/samples/*/pyproject.toml",
}
_LITERALS: Final = {
    "setuptools": "setuptools/tests/**/*.py",
    "setuptools-scm": "testing*/**/*.py",
    "hatch": "tests/backend/**/*.py",
    "pdm-backend": "tests/**/*.py",
    "scikit-build-core": "tests/**/*.py",
    "meson-python": "tests/*.py",
    "flit": "**/tests*/*.py",
    "poetry-core": "tests/**/*.py",
    "hatch-vcs": "tests/*.py",
}
PEERS: Final = (
    *(
        Peer(
            name=f"projects of {name}",
            ecosystem="pypi",
            sources=(name,),
            read=functools.partial(projects.read_fixtures, name, pattern),
        )
        for name, pattern in _FIXTURES.items()
    ),
    *(
        Peer(
            name=f"manifests in tests of {name}",
            ecosystem="pypi",
            sources=(name,),
            read=functools.partial(projects.read_literals, name, pattern),
        )
        for name, pattern in _LITERALS.items()
    ),
    Peer(
        name="texts in tests of packaging",
        ecosystem="pypi",
        sources=("packaging",),
        read=texts.read_literals,
    ),
    Peer(name="workspaces of uv", ecosystem="pypi", sources=("uv",), read=uv.read_workspaces),
    Peer(
        name="metadata that PyPI refuses",
        ecosystem="pypi",
        sources=("warehouse",),
        read=wire.read_forms,
    ),
    Peer(
        name="addresses that PyPI refuses",
        ecosystem="pypi",
        sources=("warehouse", "email-validator"),
        read=wire.read_addresses,
    ),
    Peer(
        name="URLs that PyPI refuses",
        ecosystem="pypi",
        sources=("warehouse", "rfc3986"),
        read=wire.read_urls,
    ),
    Peer(
        name="files that PyPI refuses",
        ecosystem="pypi",
        sources=("warehouse",),
        read=wire.read_files,
    ),
    Peer(
        name="platforms that PyPI refuses",
        ecosystem="pypi",
        sources=("warehouse", "packaging"),
        read=wire.read_tags,
    ),
    Peer(
        name="names that PyPI refuses",
        ecosystem="pypi",
        sources=("warehouse",),
        read=wire.read_names,
    ),
)
