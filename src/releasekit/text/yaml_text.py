"""YAML as repositories have it, which may be written to be expensive."""

from __future__ import annotations

from typing import Final

import yaml

# The pure Python parser reads 100 kB a second.
MAX_YAML_BYTES: Final = 256 * 1024
# Values in brackets, each of which may cost the parser two kilobytes.
_MAX_MARKS: Final = 50_000
_MAX_PARTS: Final = 10
# With merges (`<<`) a small file stands for any number of entries.
_MAX_MERGED: Final = 10_000


class _Loader(yaml.SafeLoader):
    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        super().flatten_mapping(node)
        if len(node.value) > _MAX_MERGED:
            raise ValueError(f"a table has more than {_MAX_MERGED} entries")

    def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> str:
        # 1:1:1 is a number to the base of 60, which takes quadratic time.
        if node.tag.endswith((":int", ":float")) and node.value.count(":") > _MAX_PARTS:
            raise ValueError(f"a number has more than {_MAX_PARTS} parts")
        return super().construct_scalar(node)


def parse_yaml(text: str) -> object:
    """Of at most `MAX_YAML_BYTES`. Raises ValueError, and RecursionError where it is nested too
    deeply.
    """
    if sum(map(text.count, "[{,?")) > _MAX_MARKS:
        raise ValueError(f"it holds more than {_MAX_MARKS} values in brackets")
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 (it is a SafeLoader)
    # Its constructors raise these for `!!int ""`, `!!bool x` and `!!timestamp x`:
    # https://github.com/yaml/pyyaml/blob/main/lib/yaml/constructor.py
    except (yaml.YAMLError, AttributeError, LookupError, OverflowError) as error:
        raise ValueError(str(error)) from error
