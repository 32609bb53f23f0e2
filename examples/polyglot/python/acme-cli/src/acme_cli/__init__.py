"""The acme command."""

from acme_cli._stamp import VERSION
from acme_text import loud


def main() -> None:
    print(loud("world"), VERSION)
