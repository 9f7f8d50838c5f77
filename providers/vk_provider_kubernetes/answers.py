"""What a refusal of the remote API server means for a pod: from ``KubeError`` to ``ProviderError``.

Pure. Fed by ``client``; the classes are what the core decides by.
"""

from __future__ import annotations

from vk_provider.faults import (
    ConflictError,
    DeniedError,
    ForbiddenError,
    GarbledAnswerError,
    InstanceNotFoundError,
    InvalidObjectError,
    KubeError,
    KubeNotFoundError,
    KubeUnavailableError,
    OutcomeUnknownError,
    OutOfCapacityError,
    ProviderError,
    RejectedError,
    ThrottledError,
    UnavailableError,
)

NOT_SENT = "ConnectFailed"
"""The reason of a fault of ``kube.transport`` that comes before anything was sent."""
GARBLED = "GarbledAnswer"
ALREADY_EXISTS = "AlreadyExists"

_UNAUTHORIZED = 401
_THROTTLED = 429
_QUOTA = "exceeded quota"
_NOT_ALLOWED = ("cannot create resource", "cannot get resource", "cannot list resource", 'User "')
_STARTING = ("RBAC: ", "not found")
"""An API server that has just started denies what its caches do not know yet."""
_NAMESPACE_ENDS = "being terminated"
_WEBHOOK = "failed calling webhook"


def create_fault(fault: KubeError) -> ProviderError:
    """The fault of a call that would have made something."""
    words = str(fault)
    if isinstance(fault, ForbiddenError):
        return _forbidden(fault, words)
    if isinstance(fault, KubeNotFoundError):
        return DeniedError(f"{words}; create the namespace and its Role in the other cluster")
    if isinstance(fault, InvalidObjectError):
        return RejectedError(words)
    if isinstance(fault, ConflictError):
        # Not "already exists", which the client adopts: a quota was being updated, for one.
        return UnavailableError(words)
    if isinstance(fault, KubeUnavailableError):
        return _unserved(fault, words)
    return RejectedError(words)


def call_fault(fault: KubeError) -> ProviderError:
    """The fault of a call that makes nothing: a list, a delete, a log."""
    words = str(fault)
    if isinstance(fault, KubeNotFoundError):
        return InstanceNotFoundError(words)
    if isinstance(fault, ForbiddenError):
        return UnavailableError(words) if _is_starting(words) else DeniedError(words)
    if fault.code == _THROTTLED:
        return ThrottledError(words, getattr(fault, "retry_after_seconds", None))
    if fault.reason == GARBLED:
        return GarbledAnswerError(words)
    return UnavailableError(words)


def _forbidden(fault: ForbiddenError, words: str) -> ProviderError:
    """403 is said by the authorizer and by every admission plugin."""
    if _QUOTA in words:
        return OutOfCapacityError(words)
    if _is_starting(words):
        return UnavailableError(words)
    if fault.code == _UNAUTHORIZED or any(mark in words for mark in _NOT_ALLOWED):
        return DeniedError(words)
    if _NAMESPACE_ENDS in words:
        return DeniedError(words)
    return RejectedError(words)


def _is_starting(words: str) -> bool:
    return all(mark in words for mark in _STARTING)


def _unserved(fault: KubeUnavailableError, words: str) -> ProviderError:
    if fault.code == _THROTTLED:
        return ThrottledError(words, fault.retry_after_seconds)
    if fault.reason == NOT_SENT or _WEBHOOK in words:
        # Webhooks are asked before anything is stored.
        return UnavailableError(words)
    return OutcomeUnknownError(words)
