"""What the error stream says at the end, to the byte."""

import pytest

from vk_provider.wire.outcome import SUCCESS, Exited, Failed, Outcome, outcome_bytes

EXITED = (
    '{"metadata":{},"status":"Failure","message":"command terminated with non-zero exit code: '
    'error executing command [sh -c exit 3], exit code 3","reason":"NonZeroExitCode",'
    '"details":{"causes":[{"reason":"ExitCode","message":"3"}]}}'
)
FAILED = (
    '{"metadata":{},"status":"Failure","message":"Internal error occurred: no such thing: ü",'
    '"reason":"InternalError","details":{"causes":[{"message":"no such thing: ü"}]},"code":500}'
)


@pytest.mark.parametrize(
    ("outcome", "status", "text"),
    [
        (SUCCESS, '{"metadata":{},"status":"Success"}', ""),
        (
            Exited(3, ["sh", "-c", "exit 3"]),
            EXITED,
            "command terminated with non-zero exit code: "
            "error executing command [sh -c exit 3], exit code 3",
        ),
        (Failed("no such thing: ü"), FAILED, "Internal error occurred: no such thing: ü"),
    ],
)
def test_an_outcome_is_a_status_from_v4_on_and_text_before(
    outcome: Outcome, status: str, text: str
) -> None:
    """A success has no text: an empty error stream means it."""
    assert outcome_bytes(outcome, as_status=True) == status.encode()
    assert outcome_bytes(outcome, as_status=False) == text.encode()


@pytest.mark.parametrize("code", [-1, 256, 1000])
def test_a_code_that_is_no_byte_is_255(code: int) -> None:
    """client-go can read no other, and would print a protocol error."""
    assert b'"message":"255"' in outcome_bytes(Exited(code), as_status=True)
