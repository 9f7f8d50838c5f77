"""What a run is worth."""

from tests.official.report import is_enough, render
from tests.official.suite import Result

WANTED = [f"spec {index}" for index in range(20)]


def found(passed: int) -> list[Result]:
    """The first specs passed, the others did not, and a stranger did."""
    states = ["passed"] * passed + ["failed"] * (20 - passed)
    made = [Result(spec, state, 1.0, "") for spec, state in zip(WANTED, states, strict=True)]
    return [*made, Result("stranger", "passed", 1.0, "")]


def test_nineteen_of_twenty_are_enough() -> None:
    """Strangers do not count."""
    assert is_enough(found(19), WANTED)
    assert not is_enough(found(18), WANTED)


def test_a_report_names_what_did_not_pass_and_why() -> None:
    """In one line each, with its words; one that never ran is named as well."""
    results = [Result("spec 0", "passed", 1.0, ""), Result("spec 1", "failed", 2.0, "no\n  such")]

    text = render(results, WANTED[:3])

    assert "failed           2.0 s  spec 1\n              no such\n" in text
    assert "did not run" in text
    assert text.endswith("1 of 3 passed (33.3 %, wanted 95%)")
