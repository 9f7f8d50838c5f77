"""Why a container never starts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from vk_provider_runpod.diagnosis import Diagnosis, diagnose, is_due

from vk_provider.pods.types import EndCause

NOW = datetime(2026, 6, 1, tzinfo=UTC)
YOUNG, OLD = timedelta(seconds=40), timedelta(minutes=10)


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("error: manifest unknown: manifest unknown", EndCause.IMAGE),
        ("manifest for acme/app:9 not found", EndCause.IMAGE),
        ("no matching manifest for linux/amd64 in the manifest list entries", EndCause.IMAGE),
        (
            "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.9",
            EndCause.LOST,
        ),
        (
            "error creating container: Error response from daemon: layer does not exist",
            EndCause.LOST,
        ),
        (
            'error starting container: OCI runtime create failed: exec: "serve": executable file '
            "not found in $PATH: unknown",
            EndCause.IMAGE,
        ),
        (
            'error starting container: exec: "nvidia-container-runtime": executable file not found',
            EndCause.LOST,
        ),
    ],
)
def test_a_final_line_settles_it_at_any_age(line: str, cause: EndCause) -> None:
    """Whether RunPod still tries or not."""
    found = diagnose(["create container", line, "still fetching image"], YOUNG, ended=False)

    assert found == Diagnosis(line, cause)


def test_a_refused_login_is_waited_for() -> None:
    """A new credential takes minutes to be accepted."""
    lines = ["unauthorized: authentication required"]

    assert diagnose(lines, YOUNG, ended=False) is None
    assert diagnose(lines, OLD, ended=False) == Diagnosis(lines[0], EndCause.IMAGE)
    assert diagnose(lines, YOUNG, ended=True) == Diagnosis(lines[0], EndCause.IMAGE)


def test_a_failed_pull_counts_when_it_was_the_end() -> None:
    """Before, RunPod tries again."""
    lines = ["failed to pull image: connection reset"]

    assert diagnose(lines, OLD, ended=False) is None
    assert diagnose(lines, YOUNG, ended=True) == Diagnosis(lines[0], EndCause.IMAGE)


def test_a_host_that_goes_on_failing_to_start_it_is_given_up() -> None:
    """It would try for ever, and bill; but not while it is at something else by now."""
    error = "error starting container: Error response from daemon: device busy"
    tries = [error, "start container", error, "start container"]

    assert diagnose(tries, YOUNG, ended=False) is None
    assert diagnose(tries, OLD, ended=False) == Diagnosis(error, EndCause.LOST)
    assert diagnose([*tries, "still fetching image"], OLD, ended=False) is None


def test_other_lines_tell_nothing() -> None:
    """Nor do none."""
    assert diagnose(["create container", "still fetching image"], OLD, ended=True) is None
    assert diagnose([], OLD, ended=True) is None


@pytest.mark.parametrize(
    ("age", "ended", "asked_before", "due"),
    [
        (YOUNG, False, None, True),
        (timedelta(seconds=5), False, None, False),
        (YOUNG, False, timedelta(seconds=5), False),
        (OLD, False, timedelta(seconds=30), True),
        (timedelta(0), True, None, True),
        (OLD, True, timedelta(seconds=60), False),
    ],
)
def test_hosts_are_asked_seldom(
    age: timedelta, ended: bool, asked_before: timedelta | None, due: bool
) -> None:
    """Once for what has ended, every half minute for what does not start."""
    asked_at = None if asked_before is None else NOW - asked_before

    assert is_due(age, ended=ended, asked_at=asked_at, now=NOW) is due
