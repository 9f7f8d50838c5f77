"""What an answer of the API server means: Status bodies to faults, bytes to lines.

Nothing in here waits or sends. Fed by ``kube.client`` and ``kube.watch``; feeds their callers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from vk_provider.faults import (
    ConflictError,
    ForbiddenError,
    GoneError,
    InvalidObjectError,
    KubeError,
    KubeNotFoundError,
    KubeUnavailableError,
)
from vk_provider.pods.types import Json

LONGEST_PROSE = 1000
LONGEST_RAW_LINE = 200
TOO_MANY_REQUESTS = 429
LEAST_FAULT, LEAST_REFUSAL = 300, 400

_BY_CODE: Mapping[int, type[KubeError]] = {
    400: InvalidObjectError,
    401: ForbiddenError,
    403: ForbiddenError,
    404: KubeNotFoundError,
    409: ConflictError,
    410: GoneError,
    422: InvalidObjectError,
}


def fault_of(code: int, body: bytes, call: str, retry_after: str | None = None) -> KubeError:
    """The fault for an HTTP answer of 300 and above. ``call`` is ``GET /api/v1/pods``."""
    if code < LEAST_REFUSAL:
        return KubeUnavailableError(
            f"{call}: the API server sends us elsewhere (HTTP {code}), where what is secret in the "
            "request would go along; is there a proxy in between? Name the API server itself",
            reason="GarbledAnswer",
        )
    status = _status(body)
    if status is None:
        prose = body[:LONGEST_RAW_LINE].decode("utf-8", "replace").strip().partition("\n")[0]
        status = {"message": prose or "the answer has no body"}
    return status_fault(status, call, code, retry_after)


def status_fault(
    status: Json, call: str, code: int | None = None, retry_after: str | None = None
) -> KubeError:
    """The fault for a ``Status`` object, as an answer's body or in a watch's ERROR event."""
    number = code if code is not None else _number(status.get("code")) or 0
    reason = str(status.get("reason") or "")
    message = f"{call}: {str(status.get('message') or reason or number)[:LONGEST_PROSE]}"
    if reason in ("Expired", "Gone"):
        return GoneError(message, number, reason)
    if number in _BY_CODE:
        return _BY_CODE[number](message, number, reason)
    if number == TOO_MANY_REQUESTS or number >= 500 or number == 0:
        return KubeUnavailableError(message, number, reason, _wait(status, retry_after))
    return KubeError(message, number, reason)


def decode(body: bytes, call: str) -> dict[str, Any]:
    """The JSON object in a good answer; anything else is a fault, not a crash."""
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise _garbled(call, body) from error
    if not isinstance(answer, dict):
        raise _garbled(call, body)
    return answer


class LineSplitter:
    """Cuts a stream of bytes into lines of any length; pieces may end anywhere."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes, without their newlines; blank ones are dropped."""
        *whole, rest = chunk.split(b"\n")
        if whole:
            whole[0] = b"".join([*self._pieces, whole[0]])
            self._pieces = []
        if rest:
            self._pieces.append(rest)
        return [line for line in whole if line.strip()]


def _status(body: bytes) -> Json | None:
    try:
        status = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return status if isinstance(status, dict) and "message" in status else None


def _wait(status: Json, retry_after: str | None) -> float | None:
    details = status.get("details")
    seconds = _number(retry_after)
    if seconds is None and isinstance(details, Mapping):
        seconds = _number(details.get("retryAfterSeconds"))
    return None if seconds is None else float(seconds)


def _number(value: Any) -> int | None:
    try:
        return None if value is None else int(value)
    except (TypeError, ValueError):
        return None


def _garbled(call: str, body: bytes) -> KubeUnavailableError:
    kind = "a web page" if body.lstrip()[:1] == b"<" else "something that is no JSON object"
    return KubeUnavailableError(
        f"{call}: the API server answered {kind}; is there a proxy in between?",
        reason="GarbledAnswer",
    )
