"""What is asked for exec and attach, and how an outcome is read."""

from __future__ import annotations

import pytest
from vk_provider_kubernetes.commands import exit_code, query_of

from vk_provider.faults import UnavailableError
from vk_provider.streams import AttachRequest, ExecRequest
from vk_provider.wire.outcome import Exited, Failed, outcome_status


def test_a_command_is_asked_for_word_by_word() -> None:
    """With the streams that the client opened."""
    request = ExecRequest("main", ("sh", "-c", "echo 'a b'"), stdin=True)

    assert query_of(request) == [
        ("container", "main"),
        ("stdin", "true"),
        ("stdout", "true"),
        ("stderr", "true"),
        ("command", "sh"),
        ("command", "-c"),
        ("command", "echo 'a b'"),
    ]


def test_a_terminal_has_no_errors_apart() -> None:
    """An API server refuses both."""
    query = query_of(AttachRequest("main", tty=True))

    assert query == [("container", "main"), ("stdout", "true"), ("tty", "true")]


@pytest.mark.parametrize("code", [1, 3, 137, 255])
def test_an_exit_code_is_read_from_its_cause(code: int) -> None:
    """As a kubelet writes it."""
    assert exit_code(outcome_status(Exited(code, ("sh",)))) == code


def test_success_names_no_code() -> None:
    """An attach ends so, too."""
    assert exit_code(outcome_status(Exited(0))) is None


@pytest.mark.parametrize(
    "status",
    [
        outcome_status(Failed("no such file: sh")),
        {"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": [{}]}},
        {},
    ],
)
def test_what_could_not_be_run_says_so(status: dict[str, object]) -> None:
    """It is never a success."""
    with pytest.raises(UnavailableError, match=r"."):
        exit_code(status)
