"""TOML as text, for edits that leave everything else as it is."""

import re
from typing import Final

# Comments and strings of TOML, which is all it takes to find every string: neither can begin
# inside anything else. https://toml.io/en/v1.0.0#string
TOKEN: Final = re.compile(
    r"""
      \#[^\n]*
    | (?P<string>
          \"""(?:[^\\]|\\.)*?\"{3,5}
        | '''.*?'{3,5}
        | "(?:[^"\\\n]|\\.)*"
        | '[^'\n]*'
      )
    """,
    re.VERBOSE | re.DOTALL,
)
