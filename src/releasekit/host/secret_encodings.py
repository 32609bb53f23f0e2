"""How a secret may look in the output of a program: encoded, quoted, or stripped of its context."""

from __future__ import annotations

import base64
import binascii
import html
import json
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, quote_plus, unquote

if TYPE_CHECKING:
    from collections.abc import Iterator

# A shorter one would turn every other word of a log into asterisks.
SHORTEST: Final = 4
# Values of variables with such a name as ENABLE_AUTH.
_WORDS: Final = frozenset({"true", "false", "none", "null", "auto", "always", "never"})
# Some servers take a token with this in front; what they show of it is the token.
_SCHEME: Final = re.compile(r"(?:Bearer|Basic|Token)\s+", re.IGNORECASE)
_TELLING_CHARS: Final = 8
# https://docs.github.com/en/authentication/keeping-your-account-and-data-secure/about-authentication-to-github#githubs-token-formats
# https://docs.gitlab.com/security/tokens/#token-prefixes and those of PyPI, npm and crates.io
_TOKEN: Final = re.compile(r"(?:pypi-|gh[oprsu]_|github_pat_|npm_|cio|glpat-|AKIA|eyJ)\w{8}")
_RANDOM: Final = re.compile(r"[A-Za-z0-9_+/=-]+")
_RANDOM_CHARS: Final = 20
_BASE64_FROM_CHARS: Final = 6
_USERINFO: Final = re.compile(r"://([^/\s@]+)@")
# Proxies are written without a scheme too: user:password@proxy:3128
_BARE_USERINFO: Final = re.compile(r"\s*([^/\s@:]+:[^/\s@]+)@")
# As -Dgpg.passphrase=…, "client_secret": "…" and http.extraHeader=AUTHORIZATION: basic …
_OPTION: Final = re.compile(
    r"(?:passw(?:or)?d|passphrase|secret|token|api[_-]?key|credentials?|authorization)"
    r"([\w.\-]{0,40})[\"']?\s{0,2}[=:]\s{0,2}[\"']?((?:(?:basic|bearer|token)\s+)?[^\s\"']+)",
    re.IGNORECASE,
)
# After a space, "token: words" is a sentence; at the start of a line, or quoted, it is a setting.
_IN_A_SENTENCE: Final = re.compile(r"\S[^\n]*\s[\w.\-]*\Z")
_WORD: Final = re.compile(r"[A-Za-z]+(?:-[A-Za-z]+)*[.,;:!?)]?")
_BEFORE_CHARS: Final = 60
_PLACES: Final = ("file", "path", "dir", "url", "provider")


def is_hideable(text: str) -> bool:
    """A variable called …_AUTH may hold "true", a line of a private key may be "}". Hiding those
    would hide half of every log.
    """
    return len(text) >= SHORTEST and text.lower() not in _WORDS


def is_telling(name: str) -> bool:
    """Whether the name of a user looks like half of a token: no word, no address."""
    return (
        len(name) >= _TELLING_CHARS
        and any(map(str.isdigit, name))
        and any(map(str.isalpha, name))
        and not set(name) & set("@ /")
    )


def secrets_in(name: str, value: str) -> Iterator[str]:
    """What authenticates a user inside the value of a variable: the user and password of a URL,
    and options that are called so, as MAVEN_OPTS may hold some.
    """
    found = _USERINFO.findall(value)
    if "proxy" in name.lower() and (bare := _BARE_USERINFO.match(value)):
        found.append(bare[1])
    for userinfo in found:
        user, _, password = map(unquote, userinfo.partition(":"))
        yield from (userinfo, f"{user}:{password}", password) if password else ()
        if is_telling(user):
            yield user
    for option in _OPTION.finditer(value):
        before = value[max(0, option.start() - _BEFORE_CHARS) : option.start()]
        # What a trust store holds is public, and without its password no Java program reads it.
        if not (
            option[1].lower().endswith(_PLACES)
            or before.lower().endswith("truststore")
            or (
                re.fullmatch(r":\s+", value[option.end(1) : option.start(2)])
                and _WORD.fullmatch(option[2])
                and _IN_A_SENTENCE.search(before)
            )
        ):
            yield option[2]


def is_token_like(text: str) -> bool:
    """Whether this looks like a token that was written in the wrong place."""
    kinds = (str.isdigit, str.islower, str.isupper)
    return _TOKEN.match(text) is not None or (
        len(text) >= _RANDOM_CHARS
        and _RANDOM.fullmatch(text) is not None
        and all(any(map(kind, text)) for kind in kinds)
    )


def parts_of(value: str) -> tuple[str, ...]:
    """The secret itself first, then each part that is itself one: each line, the rest of
    `Bearer …`, both halves of a pair.
    """
    found: dict[str, None] = {}
    _add_parts(value, found)
    return tuple(found)


def _add_parts(value: str, found: dict[str, None]) -> None:
    text = value.strip()
    if text in found or not is_hideable(text):
        return
    found[text] = None
    lines = text.splitlines()
    for line in lines if len(lines) > 1 else ():
        _add_parts(line, found)
    if scheme := _SCHEME.match(text):
        _add_parts(text[scheme.end() :], found)
    user, colon, password = _decoded(text).partition(":")
    if colon:
        _add_parts(f"{user}:{password}", found)
        _add_parts(password, found)
        if is_telling(user):
            _add_parts(user, found)


def _decoded(text: str) -> str:
    """What `text` is the base64 of, if that is one line of printable ASCII; else empty."""
    try:
        whole = base64.b64decode(text + "=" * (-len(text) % 4), validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        return ""
    return whole if whole.isprintable() else ""


def is_text(value: str) -> bool:
    """Whether UTF-8 can say it: an environment may hold any bytes, and JSON half a character."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def encode(text: str) -> bytes:
    """UTF-8, or the bytes that an environment had."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half a character, out of JSON
        return text.encode("utf-8", "surrogatepass")


def encodings_of(part: str) -> Iterator[str]:
    """All that stands for one part, which is one line or is looked for line by line."""
    yield part
    data = encode(part)
    yield data.decode("utf-8", "replace")  # as the output of children is read, and by the runner
    for quoted in (quote(data, safe=""), quote(data), quote_plus(data)):
        yield quoted
        # Both cases mean the same: https://www.rfc-editor.org/rfc/rfc3986#section-2.1
        yield re.sub(r"%[0-9A-F]{2}", lambda match: match[0].lower(), quoted)
    yield unquote(part)
    yield json.dumps(part)[1:-1]
    yield json.dumps(part, ensure_ascii=False)[1:-1]
    yield json.dumps(part)[1:-1].replace("/", r"\/")
    yield repr(part)[1:-1]
    yield html.escape(part)
    if len(part) >= _BASE64_FROM_CHARS:
        yield from _inside_base64(data)


def _inside_base64(data: bytes) -> Iterator[str]:
    """What base64 of `data` holds with any text before and behind it, `user:` for instance: those
    characters that depend on `data` alone.
    """
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + data)
        start, end = -(-before * 8 // 6), (before + len(data)) * 8 // 6
        text = encoded[start:end].decode("ascii")
        yield text
        yield text.replace("+", "-").replace("/", "_")
