"""The block `admissionCheck`: whether training is held, and for how long."""

from typing import Any

from vk_provider.faults import FieldProblem
from vk_provider.fields import Fields
from vk_provider.settings_bursting_admission_check import (
    AdmissionCheckSettings,
    parse_admission_check,
)


def parsed(block: dict[str, Any]) -> tuple[AdmissionCheckSettings, list[str]]:
    """The settings, and what is wrong with them."""
    problems: list[FieldProblem] = []
    found = parse_admission_check(Fields(block, "spec.admissionCheck", problems))
    return found, [str(problem) for problem in problems]


def test_it_is_off_unless_asked_for() -> None:
    """A check that nobody answers would hold every job for ever."""
    assert parsed({}) == (AdmissionCheckSettings(), [])
    assert not AdmissionCheckSettings().enabled


def test_a_block_is_read() -> None:
    """All of it."""
    block = {"enabled": True, "deadlineSeconds": 30, "topology": True}
    assert parsed(block) == (AdmissionCheckSettings(True, 30, True), [])


def test_what_is_wrong_is_named() -> None:
    """A deadline of nothing would never wait."""
    _, problems = parsed({"deadlineSeconds": 0, "topologies": True})
    assert [each.partition(":")[0] for each in problems] == [
        "spec.admissionCheck.deadlineSeconds",
        "spec.admissionCheck.topologies",
    ]
