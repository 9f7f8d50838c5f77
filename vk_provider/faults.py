"""Every fault the product raises, sorted by whose fault it is and what happens next.

A fault's ``reason`` is CamelCase and becomes an Event reason or ``status.reason``; its message is
safe to show: no token, no header, no response body beyond a cut line of prose.

Nothing outside a ``client.py`` may mention an HTTP status or an SDK exception: clients translate
them to the classes below, and chain the original (``raise ... from error``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


class VkProviderError(Exception):
    """Base of every fault of ours."""


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One field that cannot be honoured: where it is, what was found, what is allowed.

    ``path`` is a Kubernetes field path (``spec.containers[0].securityContext.privileged``) or, for
    configuration, the path in the document (``spec.backends[0].config.cloudType``).
    """

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class ConfigError(VkProviderError):
    """The configuration can't be used. Carries all problems at once; the process exits with 2."""

    def __init__(self, problems: Iterable[FieldProblem | str]) -> None:
        self.problems: tuple[FieldProblem | str, ...] = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class ProviderError(VkProviderError):
    """Base of what a provider may raise. A provider raises nothing else on purpose."""

    reason = "ProviderFailed"


class UnavailableError(ProviderError):
    """The backend did not serve the call, and **provably nothing was created** (a refused
    connection, a 5xx of a read). In a create call the core retries; elsewhere nothing changes."""

    reason = "ProviderUnavailable"


LONGEST_PATIENCE_SECONDS = 3600.0
"""No backend is left alone for longer: an order that stops a bill may be waiting."""


class ThrottledError(UnavailableError):
    """The backend asks us to slow down. ``retry_after_seconds`` is its wish, if it named one that
    makes sense; of a longer one than an hour that hour is kept."""

    def __init__(self, message: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        wish = retry_after_seconds
        is_one = wish is not None and wish >= 0  # no number is neither more nor less
        self.retry_after_seconds = min(wish or 0.0, LONGEST_PATIENCE_SECONDS) if is_one else None


class GarbledAnswerError(UnavailableError):
    """The backend answered something that is not its protocol (HTML, missing fields).
    In a create call after the request was sent raise :class:`OutcomeUnknownError` instead."""

    reason = "GarbledAnswer"


class OutcomeUnknownError(ProviderError):
    """A create call was sent and its outcome is unknown: a billing instance may exist.
    The core makes no second create anywhere until a complete list, taken at least
    ``list_lag_seconds`` later, shows that the first is absent."""

    reason = "OutcomeUnknown"


class OutOfCapacityError(ProviderError):
    """The backend has no such machine now. The offer is cooled down, the next one tried."""

    reason = "OutOfCapacity"


class DeniedError(ProviderError):
    """Credentials, quota or billing refused: the whole backend closes and is probed slowly."""

    reason = "ProviderDenied"


class RejectedError(ProviderError):
    """The backend refuses this request for good (its schema, a bad image name)."""

    reason = "Rejected"


class UnsupportedFieldsError(ProviderError):
    """The pod has fields that this backend cannot honour. Carries **all** of them."""

    reason = "Unsupported"

    def __init__(self, problems: Sequence[FieldProblem]) -> None:
        self.problems: tuple[FieldProblem, ...] = tuple(problems)
        super().__init__("; ".join(str(problem) for problem in self.problems))


class InstanceNotFoundError(ProviderError):
    """A call that needs an instance (logs, exec) named one that the backend does not know.
    ``delete_instance`` never raises it: already gone is success."""

    reason = "InstanceNotFound"


class NotSupportedError(VkProviderError):
    """The backend has no such capability: HTTP 501 and this sentence."""


class KubeError(VkProviderError):
    """The API server refused or failed a call. ``code`` is the HTTP status, 0 if none came."""

    def __init__(self, message: str, code: int = 0, reason: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason


class KubeNotFoundError(KubeError):
    """404: the object is not there."""


class ConflictError(KubeError):
    """409: exists already, or a precondition (resourceVersion, uid) does not hold."""


class GoneError(KubeError):
    """410 or reason Expired: the resourceVersion is too old; list again."""


class ForbiddenError(KubeError):
    """401 or 403: the identity may not do this. The message names verb and resource."""


class InvalidObjectError(KubeError):
    """400 or 422: the API server refuses the object (also: a PATCH with another uid)."""


class KubeUnavailableError(KubeError):
    """No answer, a 5xx or 429 after the client's own retries.
    ``retry_after_seconds`` is the API server's wish, if it named one."""

    def __init__(
        self,
        message: str,
        code: int = 0,
        reason: str = "",
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(message, code, reason)
        self.retry_after_seconds = retry_after_seconds


class WireError(VkProviderError):
    """A peer or we ourselves broke a streaming protocol."""


class InvalidTransitionError(VkProviderError):
    """A pod's record has a combination of slots that has no name: our bug. Carries the story."""

    def __init__(self, message: str, story: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.story = tuple(story)
