"""What RunPod's answers mean: the fault table, row by row."""

from __future__ import annotations

import json
from typing import Any

import pytest
from vk_provider_runpod.answers import (
    Answer,
    decode,
    exhausted,
    fault_of,
    read_object,
    retry_after,
)

from vk_provider.faults import (
    DeniedError,
    GarbledAnswerError,
    InstanceNotFoundError,
    OutcomeUnknownError,
    OutOfCapacityError,
    ProviderError,
    RejectedError,
    ThrottledError,
    UnavailableError,
)

CREATE, LIST, DELETE, LOGS = "create pod", "list pods", "delete pod", "read logs"
NO_CAPACITY = (
    "There are no longer any instances available with the requested specifications. "
    "Please refresh and try again."
)


def answer(operation: str, status: int, detail: Any = "words", **fields: Any) -> Answer:
    """An answer with a problem document."""
    text = json.dumps({"title": "T", "status": status, "detail": detail})
    given: dict[str, Any] = {"text": text, "content_type": "application/problem+json"}
    return Answer(operation, status, **(given | fields))


@pytest.mark.parametrize(
    ("operation", "status", "detail", "fault"),
    [
        (CREATE, 400, NO_CAPACITY, OutOfCapacityError),
        (CREATE, 400, "There are no instances currently available", OutOfCapacityError),
        (CREATE, 400, "Invalid container image name", RejectedError),
        (CREATE, 400, "Account spending limit of $80/hr reached", DeniedError),
        (CREATE, 400, "You have reached your pod quota", DeniedError),
        (CREATE, 400, "insufficient funds", DeniedError),
        (CREATE, 404, "template not found", RejectedError),
        (CREATE, 409, "conflict", RejectedError),
        (CREATE, 422, "validation failed", RejectedError),
        (CREATE, 401, "invalid token", DeniedError),
        (CREATE, 402, "Payment Required", DeniedError),
        (CREATE, 403, "access denied", DeniedError),
        (CREATE, 410, "gone", DeniedError),
        (CREATE, 429, "slow down", ThrottledError),
        (CREATE, 408, "timeout", OutcomeUnknownError),
        (CREATE, 500, "oops", OutcomeUnknownError),
        (CREATE, 503, NO_CAPACITY, OutcomeUnknownError),
        (CREATE, 302, "elsewhere", OutcomeUnknownError),
        (LIST, 500, "oops", UnavailableError),
        (LIST, 408, "timeout", UnavailableError),
        (LIST, 400, NO_CAPACITY, UnavailableError),
        (LIST, 302, "elsewhere", GarbledAnswerError),
        (DELETE, 409, "cluster", UnavailableError),
        (LOGS, 404, "pod not found", InstanceNotFoundError),
        ("create registry", 400, "name exists", RejectedError),
        ("create registry", 500, "oops", UnavailableError),
    ],
)
def test_each_answer_is_the_fault_of_its_cause(
    operation: str, status: int, detail: str, fault: type[ProviderError]
) -> None:
    """Only a create of a pod can leave a bill behind, so only there a 5xx is an unknown outcome."""
    found = fault_of(answer(operation, status, detail))

    assert type(found) is fault
    assert detail in str(found) or status == 302


def test_a_blocked_user_agent_is_named() -> None:
    """The edge answers 403 as HTML, which is not about the key."""
    found = fault_of(
        answer(LIST, 403, text="<html>error code: 1010</html>", content_type="text/html")
    )

    assert isinstance(found, DeniedError)
    assert "User-Agent" in str(found)
    assert "1010" in str(found)


def test_a_schema_error_shows_its_paths() -> None:
    """Every one of them."""
    body = json.dumps({"title": "T", "detail": "failed", "errors": ["$.gpu: missing", "$.x: bad"]})

    assert "failed; $.gpu: missing; $.x: bad" in str(fault_of(answer(CREATE, 422, text=body)))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", "an empty body"),
        ("{}", "no details"),
        ('{"error": "pod not found"}', "pod not found"),
        ("<html><title>Bad <b>gateway</title></html>", "(Bad gateway)"),
        ("plain", "instead of JSON"),
        ("[1]", "instead of JSON"),
    ],
)
def test_any_body_becomes_one_line(text: str, shown: str) -> None:
    """Never the body itself."""
    assert shown in str(fault_of(answer(LIST, 500, text=text)))


@pytest.mark.parametrize("text", ["<html>", "[]", "", "null", '"x"'])
def test_a_good_status_with_garbage_is_garbled(text: str) -> None:
    """On a create nobody knows what came of it."""
    with pytest.raises(GarbledAnswerError):
        read_object(answer(LIST, 200, text=text))
    with pytest.raises(OutcomeUnknownError):
        read_object(answer(CREATE, 201, text=text))


def test_a_good_answer_is_its_object() -> None:
    """As it came."""
    assert read_object(answer(LIST, 200, text='{"pods": []}')) == {"pods": []}
    with pytest.raises(UnavailableError):
        read_object(answer(LIST, 500))


def test_no_secret_of_the_request_is_quoted() -> None:
    """Neither to people nor in a traceback."""
    secret = answer(CREATE, 422, "bad value hunter2-hunter2", secrets=("hunter2-hunter2",))
    assert "hunter2" not in str(fault_of(secret))
    assert "hunter2" not in repr(secret)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "12"}, 12.0),
        ({"Retry-After": "soon"}, None),
        ({}, None),
        ({"RateLimit": '"minute";r=0;t=12, "hour";r=0;t=1812'}, 1812.0),
        ({"Retry-After": "3", "RateLimit": '"minute";r=0;t=12'}, 3.0),
    ],
)
def test_the_wish_to_wait_is_read(headers: dict[str, str], seconds: float | None) -> None:
    """From either header."""
    assert retry_after(headers) == seconds
    found = fault_of(answer(LIST, 429, headers=headers))
    assert isinstance(found, ThrottledError)
    assert found.retry_after_seconds == seconds


def test_a_window_with_room_asks_for_nothing() -> None:
    """The header comes with successes too."""
    assert exhausted('"minute";r=3;t=12, "hour";r=2800;t=1812') is None
    assert exhausted("") is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"cost": NaN, "a": -Infinity, "b": 1e999, "c": 1.5}', {"cost": None, "c": 1.5}),
        (f'{{"uptime": {"9" * 400}, "c": 7}}', {"uptime": None, "c": 7}),
        ('{"a": "x\\uD800y", "b": [{"\\udc00": 1}]}', {"a": "x?y", "b": [{"?": 1}]}),
        ('{"a": "\\ud83d\\ude00"}', {"a": "\U0001f600"}),
    ],
)
def test_what_nobody_could_write_down_again_is_left_out(text: str, found: Any) -> None:
    """One odd value in a list must not cost the list, nor a pod its status."""
    decoded = decode(text)

    assert {key: value for key, value in decoded.items() if key in found} == found
    assert json.dumps(decoded, allow_nan=False).encode()


@pytest.mark.parametrize("text", ["", "<html>", "[" * 100_000, "9" * 5000])
def test_no_json_is_no_exception(text: str) -> None:
    """However deep or long it is."""
    assert not decode(text)


def test_no_wish_keeps_orders_back_for_longer_than_an_hour() -> None:
    """They are what stops the bill."""
    assert retry_after({"Retry-After": "9" * 400}) == 3600
    assert retry_after({"RateLimit": f"r=0; t={'9' * 400}"}) == 3600
    assert exhausted(f"r={'9' * 5000}; t=1") is None
