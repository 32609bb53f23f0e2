from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

import fakes
from releasekit.ecosystems.pypi import PyPIOptions
from releasekit.ecosystems.pypi.target import PyPI
from releasekit.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

CORP = "https://pypi.acme.example/legacy/"
PYPI = "https://upload.pypi.org/legacy/"
CORE = """
[build-system]
requires = ["flit_core"]
build-backend = "flit_core.buildapi"

[project]
name = "acme-core"
version = "1.0"
"""
TOP = '[tool.uv.workspace]\nmembers = ["core"]\n[tool.uv]\n'


def index(url: str, name: str = "corp") -> str:
    return (
        f'[[tool.uv.index]]\nname = "{name}"\nurl = "https://x.example/"\npublish-url = "{url}"\n'
    )


def discovered(root: Path, **changes: object) -> list[str]:
    config = fakes.config(root, **{"mode": "plan", **changes})

    async def discover() -> list[str]:
        async with PyPI(config, PyPIOptions(), fakes.services(config, None)) as ecosystem:
            found = await ecosystem.discover(root)
            return [each.id.name for each in found.packages if not each.unpublishable]

    return asyncio.run(discover())


@pytest.mark.parametrize(
    ("files", "given", "refused"),
    [
        # Where uv 0.11 says with `uv publish --dry-run` that it would send each.
        ({"pyproject.toml": f'{TOP}publish-url = "{CORP}"'}, "", "tool.uv.publish-url is"),
        ({"pyproject.toml": f'{TOP}publish-url = "{CORP}"'}, PYPI, ""),
        ({"pyproject.toml": f'{TOP}publish-url = "{CORP}"'}, "dir:/srv/pypi", ""),
        ({"pyproject.toml": f'{TOP}publish-url = "{PYPI}"'}, "", ""),
        ({"uv.toml": f'publish-url = "{CORP}"'}, "", "uv.toml: publish-url is"),
        (
            {"uv.toml": f'publish-url = "{PYPI}"', "pyproject.toml": f'{TOP}publish-url="{CORP}"'},
            "",
            "",
        ),
        # uv goes by none of these without an option, and no file says which one is meant.
        ({"core/pyproject.toml": f'{CORE}[tool.uv]\npublish-url = "{CORP}"'}, "", "tool.uv.pub"),
        ({"core/pyproject.toml": CORE + index(CORP)}, "", "tool.uv.index.corp.publish-url is"),
        ({"pyproject.toml": TOP + index(CORP)}, "", "tool.uv.index.corp.publish-url is"),
        ({"pyproject.toml": TOP + index(CORP) + index(PYPI, "pypi")}, "", ""),
        ({"pyproject.toml": TOP + index("https://test.pypi.org/legacy/")}, "", ""),
        ({"pyproject.toml": TOP + '[[tool.uv.index]]\nurl = "https://x.example/"'}, "", ""),
        ({"poetry.toml": f'[repositories.corp]\nurl = "{CORP}"'}, "", "repositories.corp.url is"),
        ({"core/pdm.toml": f'[repository.pypi]\nurl = "{CORP}"'}, "", "repository.pypi.url is"),
        ({"poetry.toml": f'[repositories.pypi]\nurl = "{PYPI}"'}, "", ""),
        ({"uv.toml": 'publish-url = "https://me:secret@h.example/"'}, "", "'https://***@h.example"),
        ({"uv.toml": 'publish-url = "not an address"'}, "", "'not an address'"),
        ({"uv.toml": "publish-url = 7"}, "", ""),
    ],
)  # fmt: skip
def test_nothing_goes_to_pypi_that_files_mean_for_another_index(
    tmp_path: Path, files: dict[str, str], given: str, refused: str
) -> None:
    """R67, R68: an input is stronger than files, as uv's own option is."""
    root = tmp_path.resolve()
    for name, text in {"pyproject.toml": TOP, "core/pyproject.toml": CORE, **files}.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    goes_to = fakes.registries(pypi=given)
    if not refused:
        assert discovered(root, registries=goes_to) == ["acme-core"]
        return
    with pytest.raises(ConfigError) as caught:
        discovered(root, registries=goes_to)
    assert refused in str(caught.value)
    assert f"acme-core would go to {PYPI}" in str(caught.value)
    assert f"`pypi-registry: {PYPI}` publishes everything" in caught.value.hint
    assert "secret" not in f"{caught.value} {caught.value.hint}"
    for settled in ({"exclude_packages": ("acme-core",)}, {"mode": "version"}):
        assert discovered(root, **settled) == ["acme-core"]


@pytest.mark.parametrize("name", ["poetry.toml", "core/pdm.toml"])
def test_a_file_that_tells_only_a_registry_is_read_where_none_is_given(
    tmp_path: Path, name: str
) -> None:
    """R66"""
    root = tmp_path.resolve()
    (root / "core").mkdir()
    (root / "pyproject.toml").write_text(TOP)
    (root / "core" / "pyproject.toml").write_text(CORE)
    (root / name).write_text("[")
    with pytest.raises(ConfigError, match=f"{name} is not valid TOML"):
        discovered(root)
    for given in (PYPI, "dir:/srv/pypi"):
        assert discovered(root, registries=fakes.registries(pypi=given)) == ["acme-core"]


def test_what_hatch_would_not_publish_is_not_published(tmp_path: Path) -> None:
    """R67"""
    text = f"{CORE}[tool.hatch.publish.index]\ndisable = true"
    (tmp_path / "pyproject.toml").write_text(text)
    assert discovered(tmp_path.resolve()) == []


def test_packages_may_share_the_settings_of_poetry_by_a_link(tmp_path: Path) -> None:
    (tmp_path / "poetry.toml").write_text(f'[repositories.own]\nurl = "{PYPI}"\n')
    core = tmp_path / "core"
    core.mkdir()
    (core / "pyproject.toml").write_text(CORE)
    (core / "poetry.toml").symlink_to("../poetry.toml")
    (tmp_path / "pyproject.toml").write_text(TOP)
    assert discovered(tmp_path) == ["acme-core"]
