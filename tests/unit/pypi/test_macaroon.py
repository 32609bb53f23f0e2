from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from releasekit.ecosystems.pypi.macaroon import TokenLimits, read_limits
from releasekit.http.credentials import Secret
from trusted_index import make_token

# Made by pymacaroons 0.13.0, as PyPI makes its tokens.
OF_TWO_PROJECTS = (
    "pypi-AgEIcHlwaS5vcmcCJGQwZTlmMWEyLTAwMDAtNDAwMC04MDAwLTAwMDAwMDAwMDAwMQACHlsxLCBbImFjbWUtY29y"
    "ZSIsICJhY21lLWNsaSJdXQACE1syLCBbImlkMSIsICJpZDIiXV0AAAYgyK5H4c60cSJ9Zq69h6pBbsGbewRLDi4RO6_w"
    "-xJBUcI"
)
OF_A_USER = (
    "pypi-AgEIcHlwaS5vcmcCJGQwZTlmMWEyLTAwMDAtNDAwMC04MDAwLTAwMDAwMDAwMDAwMQACC1szLCAidXNlciJdAAAG"
    "INcZPFAZYKLwoJbhxrp1VvidYVZkSb70XXVnUobUiL9C"
)
OF_A_JOB = (
    "pypi-AgEIcHlwaS5vcmcCJGQwZTlmMWEyLTAwMDAtNDAwMC04MDAwLTAwMDAwMDAwMDAwMQACEFs0LCAicHViIiwgbnVs"
    "bF0AAhRbMiwgWyJhIiwgImIiLCAiYyJdXQACG1swLCAyMDAwMDAwMDAwLCAxNzAwMDAwMDAwXQAABiA1HtjHgQP56VD4"
    "0CCtVhLIOlWsLPjIQNOdHGVapLHArA"
)


def limits(token: str) -> TokenLimits:
    return read_limits(Secret(token))


def test_a_token_says_what_it_is_for() -> None:
    two = TokenLimits(frozenset({"acme-core", "acme-cli"}), frozenset({"id1", "id2"}))
    assert limits(OF_TWO_PROJECTS) == two
    assert limits(OF_A_USER) == TokenLimits()
    assert limits(OF_A_JOB) == TokenLimits(ids=frozenset("abc"), expires=2_000_000_000)
    assert limits(make_token([1, ["acme-core", "acme-cli"]], [2, ["id1", "id2"]])) == two


def test_all_that_limits_it_counts() -> None:
    """Whoever has a token may limit it further."""
    many = [f"acme-{number}" for number in range(99)]
    found = limits(make_token([1, many], [0, 2000, 1000], [1, ["acme-7", "b"]], [0, 1500, 1000]))
    assert found == TokenLimits(names=frozenset({"acme-7"}), expires=1500)


@pytest.mark.parametrize("token", ["", "pypi-", "pypi-hunter2", "glpat-1_2", "pypi-é", "AQ=="])
def test_other_tokens_say_nothing(token: str) -> None:
    assert limits(token) == TokenLimits()


@given(
    st.one_of(st.text(), st.binary().map(lambda it: base64.urlsafe_b64encode(b"\2" + it).decode()))
)
def test_no_token_is_too_strange(token: str) -> None:
    limits(token)


@given(st.integers(0, 200), st.binary(max_size=9))
def test_a_damaged_one_is_no_error(at: int, damage: bytes) -> None:
    data = base64.urlsafe_b64decode(OF_A_JOB.removeprefix("pypi-") + "==")
    limits(base64.urlsafe_b64encode(data[:at] + damage + data[at + len(damage) :]).decode())


def test_an_end_beyond_all_years_is_the_last_of_them() -> None:
    assert limits(make_token([0, 10**400, 0])).end == "9999-12-31T23:59+00:00"
    assert limits(make_token([0, 10**400, 0])).expires == 253_402_300_799
    assert limits(make_token([0, -1, 0])).end == "1970-01-01T00:00+00:00"
    assert limits(OF_A_USER).end == ""
