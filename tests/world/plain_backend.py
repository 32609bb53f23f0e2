"""A PEP 517 backend for projects that build themselves: a module of a name, and nothing else.

https://packaging.python.org/en/latest/specifications/binary-distribution-format/
"""

import io
import tarfile
import tomllib
import zipfile
from pathlib import Path


def _project() -> tuple[str, str]:
    with Path("pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    about = Path("about.py")
    version = about.read_text().split('"')[1] if about.is_file() else project["version"]
    lines = ["Metadata-Version: 2.4", f"Name: {project['name']}", f"Version: {version}"]
    lines += [f"Requires-Dist: {each}" for each in project.get("dependencies", ())]
    return f"{project['name'].replace('-', '_')}-{version}", "\n".join([*lines, ""])


def build_wheel(
    directory: str, config_settings: object = None, metadata_directory: object = None
) -> str:
    stem, metadata = _project()
    tags = "Wheel-Version: 1.0\nGenerator: plain\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files = {f"{stem}.dist-info/METADATA": metadata, f"{stem}.dist-info/WHEEL": tags}
    files |= {
        path.relative_to("src").as_posix(): path.read_text() for path in Path("src").rglob("*.py")
    }
    record = f"{stem}.dist-info/RECORD"
    files[record] = "".join(f"{name},,\n" for name in [*files, record])
    name = f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(Path(directory, name), "w") as archive:
        for path, text in files.items():
            archive.writestr(zipfile.ZipInfo(path), text)
    return name


def build_sdist(directory: str, config_settings: object = None) -> str:
    stem, metadata = _project()
    name = f"{stem}.tar.gz"
    with tarfile.open(Path(directory, name), "w:gz") as archive:
        info = tarfile.TarInfo(f"{stem}/PKG-INFO")
        info.size = len(metadata)
        archive.addfile(info, io.BytesIO(metadata.encode()))
        for path in ("pyproject.toml", "about.py", "src"):
            if Path(path).exists():
                archive.add(path, f"{stem}/{path}")
    return name
