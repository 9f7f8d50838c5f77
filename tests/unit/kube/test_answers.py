"""What answers mean: Status bodies to faults, bytes to lines."""

from __future__ import annotations

import itertools

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vk_provider.faults import (
    ConflictError,
    ForbiddenError,
    GoneError,
    InvalidObjectError,
    KubeError,
    KubeNotFoundError,
    KubeUnavailableError,
)
from vk_provider.kube.answers import LineSplitter, decode, fault_of, status_fault


def test_a_redirect_is_no_answer() -> None:
    """Nobody may tell where our identity goes, and what a request holds."""
    fault = fault_of(307, b"{}", "POST /x")
    assert (type(fault), fault.reason) == (KubeUnavailableError, "GarbledAnswer")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (400, InvalidObjectError),
        (401, ForbiddenError),
        (403, ForbiddenError),
        (404, KubeNotFoundError),
        (409, ConflictError),
        (410, GoneError),
        (422, InvalidObjectError),
        (429, KubeUnavailableError),
        (503, KubeUnavailableError),
        (418, KubeError),
    ],
)
def test_each_status_has_its_fault(code: int, expected: type[KubeError]) -> None:
    """The class says what happens next; code and reason are kept."""
    body = orjson.dumps({"message": "no", "reason": "Because"})

    fault = fault_of(code, body, "GET /x")

    assert type(fault) is expected
    assert (fault.code, fault.reason, str(fault)) == (code, "Because", "GET /x: no")


def test_expired_is_gone_whatever_its_code() -> None:
    """An ERROR event may carry the reason alone."""
    fault = status_fault({"reason": "Expired", "message": "too old"}, "watch")

    assert isinstance(fault, GoneError)


def test_a_web_page_is_cut_to_its_first_line() -> None:
    """A proxy's page is no Status; a cut line of it helps, the rest would not."""
    fault = fault_of(502, b"<html>Bad Gateway" + b"x" * 1000 + b"\n</html>", "GET /x")

    assert isinstance(fault, KubeUnavailableError)
    assert len(str(fault)) < 250


@pytest.mark.parametrize(
    ("header", "body", "expected"),
    [
        ("7", {"message": "slow"}, 7.0),
        (None, {"message": "slow", "details": {"retryAfterSeconds": 3}}, 3.0),
        (None, {"message": "slow"}, None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", {"message": "slow"}, None),
    ],
)
def test_retry_after_is_read(header: str | None, body: object, expected: float | None) -> None:
    """From the header or from the details; a date is no number of seconds."""
    fault = fault_of(429, orjson.dumps(body), "GET /x", header)

    assert isinstance(fault, KubeUnavailableError)
    assert fault.retry_after_seconds == expected


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"", b"{"])
def test_an_answer_that_is_no_object_is_a_fault(body: bytes) -> None:
    """Garbage never gets past the client."""
    with pytest.raises(KubeUnavailableError, match="proxy") as caught:
        decode(body, "GET /x")

    assert caught.value.reason == "GarbledAnswer"


@given(
    lines=st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters="\n")).filter(str.strip)
    ),
    cuts=st.lists(st.integers(0, 200)),
)
def test_lines_survive_any_split(lines: list[str], cuts: list[int]) -> None:
    """Also inside a character: pieces are joined as bytes and decoded as whole lines."""
    raw = "".join(f"{line}\n" for line in lines).encode()
    borders = sorted({0, len(raw), *(cut for cut in cuts if cut < len(raw))})
    splitter = LineSplitter()

    seen = [
        line for start, end in itertools.pairwise(borders) for line in splitter.feed(raw[start:end])
    ]

    assert seen == [line.encode() for line in lines if line.encode().strip()]
