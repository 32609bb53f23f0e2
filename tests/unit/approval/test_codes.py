from __future__ import annotations

import asyncio
from functools import partial

import virtual_time
from approvals import FakeApproval, recorded
from releasekit.approval.decide import SIGN_IN_S, Codes, NoCode

RESULTS = [recorded(name) for name in ("a", "b", "c", "d")]


class Person:
    """Types these codes, one after the other, and goes to every page."""

    def __init__(self, *codes: str) -> None:
        self.codes = [*codes]
        self.pages: list[str] = []

    async def code(self, why: str) -> str:
        assert why == "a code, please"
        return self.codes.pop(0)

    def open(self, page: str) -> None:
        self.pages.append(page)


def approve_all(registry: FakeApproval, given: str, person: Person | None) -> str:
    """What ended it, if anything did."""

    async def main() -> str:
        codes = Codes(registry, given, person)
        for waiting in list(registry.held.values()):
            try:
                await codes.run_with_code(partial(registry.approve, waiting))
            except NoCode as error:
                return str(error)
        return ""

    return virtual_time.run(main())


def registry(*codes: str) -> FakeApproval:
    made = FakeApproval.holding(RESULTS)
    made.codes = {*codes}
    return made


def test_one_code_is_for_everything() -> None:
    npm = registry("1")
    assert approve_all(npm, "1", None) == ""
    assert npm.sent == ["1"] * 4


def test_nobody_is_asked_for_a_code_that_nothing_needs() -> None:
    npm = registry("")
    assert approve_all(npm, "", None) == ""


def test_a_code_that_has_become_old_is_no_refusal() -> None:
    npm = registry("1")
    person = Person("x", "y", "1")
    assert approve_all(npm, "1", person) == ""

    class Fickle(FakeApproval):
        def _check(self, code: str) -> None:
            super()._check(code)
            self.codes = {f"{code}1"}

    changing = Fickle(held=npm.held or registry().held, data=npm.data, codes={"1"})
    assert approve_all(changing, "1", Person("11", "111", "1111")) == ""


def test_three_refusals_in_a_row_end_it() -> None:
    npm = registry("1")
    assert "refused 3 codes in a row" in approve_all(npm, "", Person("2", "3", "4"))
    assert npm.approvals == []


def test_the_third_code_may_be_the_right_one() -> None:
    assert approve_all(registry("1"), "", Person("2", "3", "1")) == ""


def test_nobody_there_to_be_asked_ends_it_with_the_registrys_words() -> None:
    npm = registry("1")
    assert approve_all(npm, "2", None) == "a code, please"
    assert npm.sent == ["2"]


def test_whoever_gives_no_code_ends_it() -> None:
    assert approve_all(registry("1"), "", Person("")) == "no code was given"


def test_whoever_gives_no_code_is_asked_once() -> None:
    npm = registry("1")
    person = Person("")

    async def main() -> list[object]:
        codes = Codes(npm, "", person)
        attempts = [codes.run_with_code(partial(npm.approve, each)) for each in npm.held.values()]
        return await asyncio.gather(*attempts, return_exceptions=True)

    assert [str(error) for error in virtual_time.run(main())] == ["no code was given"] * 4
    assert npm.sent == [""]


def test_signing_in_on_the_web_brings_a_code() -> None:
    npm = registry("w")
    npm.page = "https://registry.example/sign-in"
    person = Person()
    assert approve_all(npm, "", person) == ""
    assert person.pages == ["https://registry.example/sign-in"]
    assert npm.sent == ["", *["w"] * 4]


def test_the_page_is_asked_for_without_the_old_code() -> None:
    """npm names it to those only who send none."""

    class Shy(FakeApproval):
        def _check(self, code: str) -> None:
            self.page = "" if code else "https://registry.example/sign-in"
            super()._check(code)

    npm = Shy(held=registry().held, data=registry().data, codes={"w"})
    assert approve_all(npm, "old", Person()) == ""
    assert npm.sent == ["old", "", *["w"] * 4]


def test_a_page_that_nobody_goes_to_ends_it() -> None:
    npm = registry()
    npm.page = "https://registry.example/sign-in"
    assert "refused 3 codes in a row" in approve_all(npm, "", Person())
    assert len(npm.confirmations) == 3


def test_nobody_is_waited_for_for_ever() -> None:
    class Silent(FakeApproval):
        async def confirmed(self, wanted: object) -> str:
            import asyncio  # noqa: PLC0415

            self.confirmations.append(str(wanted))
            await asyncio.sleep(SIGN_IN_S + 1)
            return "late"

    npm = Silent(held=registry().held, data=registry().data, codes={"1"}, page="https://r.example")
    assert "refused 3 codes in a row" in approve_all(npm, "", Person())
