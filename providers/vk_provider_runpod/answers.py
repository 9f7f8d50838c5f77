"""What an answer of RunPod's means: which fault a status is, in words that are safe to show.

Pure. Fed by ``client``; the faults go to the core. A create call is the delicate one: whatever
does not prove that nothing was made is an ``OutcomeUnknownError``.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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
from vk_provider.pods.masking import words as one_line

_CAPACITY = re.compile(
    r"no longer any instances available|no instances? (are )?(currently )?available"
    r"|does not have the resources|not enough free gpus|out of capacity|no capacity"
    r"|no (available )?(machines?|hosts?|gpus?)\b.*(available|found)|insufficient (capacity|stock)",
    re.IGNORECASE,
)
_QUOTA = re.compile(
    r"\b(spend(ing)?|account|usage|pod) (limit|quota)|quota (is )?(exceeded|reached)"
    r"|(balance|credits?|funds) (is |are )?(too low|insufficient|exhausted)"
    r"|insufficient (balance|credits?|funds)|account (is )?suspended",
    re.IGNORECASE,
)
_LONGEST_NUMBER = 19
_SURROGATE = re.compile(r"\\ud", re.IGNORECASE)
_MOST_PATIENCE_SECONDS = 3600.0
"""The longest window of the service: a wish beyond it would keep back orders that stop a bill."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer, read in full. ``secrets`` must not appear in any message."""

    operation: str
    status: int
    text: str = field(repr=False)
    content_type: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @property
    def creates(self) -> bool:
        """Whether a billing instance may have come of it."""
        return self.operation == "create pod"


def read_object(answer: Answer) -> Mapping[str, Any]:
    """The JSON object of a good answer; raises the fault of any other."""
    if not 200 <= answer.status < 300:
        raise fault_of(answer)
    found = decode(answer.text)
    if not isinstance(found, dict):
        raise garbled(answer, f"expected a JSON object, got {words(answer)}")
    return found


def decode(text: str) -> Any:
    """What a JSON text says, None if it is none. What nothing of ours could write down again is
    left out: a number that is not finite or has no 64 bits is null, half a character is "?"."""
    try:
        found = json.loads(
            text, parse_int=_whole, parse_float=_finite, parse_constant=lambda _: None
        )
        return _spelled(found) if _SURROGATE.search(text) else found
    except (ValueError, RecursionError):
        return None


def _whole(digits: str) -> int | None:
    return int(digits) if len(digits) < _LONGEST_NUMBER else None


def _finite(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None


def _spelled(found: Any) -> Any:
    if isinstance(found, str):
        return found.encode("utf-8", "replace").decode()
    if isinstance(found, dict):
        return {_spelled(key): _spelled(value) for key, value in found.items()}
    return [_spelled(each) for each in found] if isinstance(found, list) else found


def garbled(answer: Answer, what: str) -> ProviderError:
    """The fault of an answer that is not the API's."""
    message = f"RunPod, {answer.operation}: {one_line(what, answer.secrets)}"
    if answer.creates:
        return OutcomeUnknownError(message)
    return GarbledAnswerError(message)


def fault_of(answer: Answer) -> ProviderError:
    """The fault that an answer with a status of 300 or more stands for."""
    said = f"RunPod, {answer.operation}: HTTP {answer.status}: {words(answer)}"
    status = answer.status
    if status in (401, 402, 403, 410):
        return DeniedError(f"{said}{_hint(answer)}")
    if status == 429:
        return ThrottledError(said, retry_after(answer.headers))
    if status >= 500 or status == 408:
        return OutcomeUnknownError(said) if answer.creates else UnavailableError(said)
    if status >= 400:
        return _refused(answer, said)
    return garbled(answer, f"unexpected HTTP {status}")


def _hint(answer: Answer) -> str:
    if answer.status == 410:
        return " (this version of the API is switched off; check baseUrl)"
    if answer.status == 403 and "json" not in answer.content_type:
        return (
            " (the edge turned the call away, which it does when it dislikes the User-Agent "
            "header; check proxies that change it, and baseUrl)"
        )
    return ""


def _refused(answer: Answer, said: str) -> ProviderError:
    if answer.status == 404 and "logs" in answer.operation:
        return InstanceNotFoundError(said)
    if not answer.operation.startswith("create"):
        return UnavailableError(said)
    if _QUOTA.search(words(answer)):
        return DeniedError(said)
    if answer.status == 400 and answer.creates and _CAPACITY.search(answer.text):
        return OutOfCapacityError(said)
    return RejectedError(said)


def words(answer: Answer) -> str:
    """What the answer says, as one short line without secrets."""
    found = decode(answer.text)
    if isinstance(found, dict):
        errors = found.get("errors")
        listed = [str(each) for each in errors] if isinstance(errors, list) else []
        detail = found.get("detail") or found.get("error") or found.get("title") or "no details"
        return one_line("; ".join([str(detail), *listed]), answer.secrets)
    if not answer.text.strip():
        return "an empty body"
    kind = answer.content_type or "something"
    title = re.search(
        r"<title>(.*?)</title>|error code: \d+", answer.text, re.IGNORECASE | re.DOTALL
    )
    shown = f" ({title[0]})" if title else ""
    return one_line(f"{kind} instead of JSON{re.sub('<[^>]*>', '', shown)}", answer.secrets)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """How long to wait, an hour at most: ``Retry-After``, else the exhausted ``RateLimit``."""
    value = headers.get("Retry-After", "").strip()
    if value.isascii() and value.isdigit():
        return min(float(value), _MOST_PATIENCE_SECONDS)
    return exhausted(headers.get("RateLimit", ""))


def exhausted(rate_limit: str) -> float | None:
    """Seconds until the last of the used-up windows resets, None while every window has room."""
    windows = re.findall(r"r=0+;\s*t=(\d+)", rate_limit)
    waits = [min(float(seconds), _MOST_PATIENCE_SECONDS) for seconds in windows]
    return max(waits, default=None)
