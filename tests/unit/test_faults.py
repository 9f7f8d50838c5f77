"""Faults carry everything a person needs, in one sentence each."""

from __future__ import annotations

import math

import pytest

from vk_provider.faults import (
    ConfigError,
    FieldProblem,
    GarbledAnswerError,
    InvalidTransitionError,
    KubeError,
    ThrottledError,
    UnavailableError,
    UnsupportedFieldsError,
)


def test_field_problem_reads_as_path_and_message() -> None:
    """A problem names its field first."""
    assert str(FieldProblem("spec.capacity", "is missing")) == "spec.capacity: is missing"


def test_config_error_tells_all_problems_at_once() -> None:
    """Nobody has to fix one mistake to see the next."""
    error = ConfigError([FieldProblem("spec.a", "found 1"), "file.yaml: no document"])

    assert str(error) == "spec.a: found 1\nfile.yaml: no document"


def test_unsupported_fields_error_names_every_field() -> None:
    """One Event can carry all of them."""
    error = UnsupportedFieldsError([FieldProblem("a", "x"), FieldProblem("b", "y")])

    assert str(error) == "a: x; b: y"
    assert len(error.problems) == 2


def test_throttling_and_garbage_count_as_unavailable() -> None:
    """Both prove nothing about a pod, so nothing changes for it."""
    assert isinstance(ThrottledError("slow down", 3.0), UnavailableError)
    assert isinstance(GarbledAnswerError("<html>"), UnavailableError)


def test_kube_error_keeps_code_and_reason() -> None:
    """The loops decide by class; people see the code."""
    error = KubeError("no such pod", 404, "NotFound")

    assert (error.code, error.reason, str(error)) == (404, "NotFound", "no such pod")


def test_invalid_transition_carries_the_story() -> None:
    """The last steps of the pod are the bug report."""
    assert InvalidTransitionError("no state", ["New: Prepare"]).story == ("New: Prepare",)


@pytest.mark.parametrize(
    ("wish", "kept"),
    [
        (None, None),
        (3.0, 3.0),
        (0, 0),
        (-1, None),
        (1e12, 3600),
        (math.inf, 3600),
        (math.nan, None),
    ],
)
def test_a_backends_wish_to_be_left_alone_is_bounded(
    wish: float | None, kept: float | None
) -> None:
    """Whatever it says: an order that stops a bill may be waiting."""
    assert ThrottledError("slow down", wish).retry_after_seconds == kept
