"""What a failed call to Modal means: one of our faults, in words that are safe to show.

Pure. A create is the delicate one: as soon as its request has left, whatever does not prove that
nothing was made is an ``OutcomeUnknownError``.
Fed by ``client`` with a :class:`Refusal`; the faults go to the core.
"""

from __future__ import annotations

import re

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
from vk_provider_modal.facts import Refusal

CREATE = "create sandbox"
BUILD = "build image"
RATES = "get rates"
_DENIED = ("AuthError", "PermissionDeniedError", "VersionError")
_INVALID = ("InvalidError", "UnimplementedError", "ConflictError", "ExecutionError")
_WITHOUT_RATES = ("PermissionDeniedError", "NotFoundError")
"""Prices are for those who may see the bill; sandboxes can be made without."""
_RATE = re.compile(r"rate.?limit|too many requests|slow down|throttl", re.IGNORECASE)
_CAPACITY = re.compile(
    r"capacity|no (available )?(gpus?|workers?|hosts?|machines?)\b|out of stock", re.IGNORECASE
)
_QUOTA = re.compile(
    r"quota|spend|budget|billing|payment|credit|\blimit\b|maximum number", re.IGNORECASE
)
_PASSING = re.compile(
    r"too ?many ?requests|\b(429|50[0234])\b|time(d)? ?out|temporar|connection (reset|refused)"
    r"|no such host|rate.?limit",
    re.IGNORECASE,
)


def fault_of(refusal: Refusal) -> ProviderError:
    """The fault that a failed call stands for."""
    said = f"Modal, {refusal.operation}: {_said(refusal)}"
    if refusal.operation == RATES and refusal.kind in (*_INVALID, *_WITHOUT_RATES):
        return RejectedError(said)
    if refusal.kind in _DENIED:
        return DeniedError(said)
    if refusal.kind == "ResourceExhaustedError":
        return _exhausted(refusal, said)
    if refusal.kind == "ImageBuildError":
        return _unbuilt(refusal, said)
    if refusal.operation == CREATE:
        return _not_created(refusal, said)
    return _elsewhere(refusal, said)


def _exhausted(refusal: Refusal, said: str) -> ProviderError:
    """RESOURCE_EXHAUSTED is a rate, a quota or a lack of machines; only the prose tells which."""
    if _RATE.search(refusal.words) or refusal.retry_after_seconds is not None:
        return ThrottledError(said, refusal.retry_after_seconds)
    if refusal.operation != CREATE:
        return ThrottledError(said)
    if _CAPACITY.search(refusal.words):
        return OutOfCapacityError(said)
    return DeniedError(said) if _QUOTA.search(refusal.words) else ThrottledError(said)


def _unbuilt(refusal: Refusal, said: str) -> ProviderError:
    """No sandbox exists yet, so a registry that hiccups may simply be asked again."""
    return UnavailableError(said) if _PASSING.search(refusal.words) else RejectedError(said)


def _not_created(refusal: Refusal, said: str) -> ProviderError:
    if refusal.kind == "AlreadyExistsError":
        return OutcomeUnknownError(f"{said} (an earlier create of this pod may still run)")
    if refusal.status == "ABORTED":
        return UnavailableError(said)
    if refusal.kind in (*_INVALID, "NotFoundError"):
        return RejectedError(said)
    return OutcomeUnknownError(said) if refusal.sent else UnavailableError(said)


def _elsewhere(refusal: Refusal, said: str) -> ProviderError:
    if refusal.kind == "NotFoundError":
        return InstanceNotFoundError(said)
    if refusal.kind in ("DecodeError", "DataLossError"):
        return GarbledAnswerError(said)
    if refusal.kind in _INVALID and refusal.operation == BUILD:
        return RejectedError(said)
    return UnavailableError(said)


def _said(refusal: Refusal) -> str:
    shown = refusal.status or refusal.kind
    words = one_line(refusal.words, refusal.secrets)
    return f"{shown}: {words}" if words else shown
