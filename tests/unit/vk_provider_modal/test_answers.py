"""What a refusal means."""

from __future__ import annotations

import pytest
from vk_provider_modal.answers import BUILD, CREATE, RATES, fault_of
from vk_provider_modal.facts import Refusal

from vk_provider.faults import (
    DeniedError,
    GarbledAnswerError,
    InstanceNotFoundError,
    OutcomeUnknownError,
    OutOfCapacityError,
    RejectedError,
    ThrottledError,
    UnavailableError,
)

LIST = "list sandboxes"


@pytest.mark.parametrize(
    ("refusal", "fault"),
    [
        (Refusal(CREATE, "AuthError"), DeniedError),
        (Refusal(LIST, "PermissionDeniedError"), DeniedError),
        (Refusal(LIST, "VersionError"), DeniedError),
        (Refusal(CREATE, "ResourceExhaustedError", words="rate limit (5/s)"), ThrottledError),
        (Refusal(CREATE, "ResourceExhaustedError", words="no capacity"), OutOfCapacityError),
        (Refusal(CREATE, "ResourceExhaustedError", words="GPU limit reached"), DeniedError),
        (Refusal(CREATE, "ResourceExhaustedError", words="hm"), ThrottledError),
        (Refusal(LIST, "ResourceExhaustedError", words="no capacity"), ThrottledError),
        (Refusal(BUILD, "ImageBuildError", words="manifest unknown"), RejectedError),
        (Refusal(BUILD, "ImageBuildError", words="429 toomanyrequests"), UnavailableError),
        (Refusal(BUILD, "InvalidError"), RejectedError),
        (Refusal(BUILD, "ServiceError"), UnavailableError),
        (Refusal(CREATE, "AlreadyExistsError", sent=True), OutcomeUnknownError),
        (Refusal(CREATE, "ConflictError", "ABORTED", sent=True), UnavailableError),
        (Refusal(CREATE, "ConflictError", "FAILED_PRECONDITION", sent=True), RejectedError),
        (Refusal(CREATE, "InvalidError", sent=True), RejectedError),
        (Refusal(CREATE, "NotFoundError"), RejectedError),
        (Refusal(CREATE, "SentAlreadyError", sent=True), OutcomeUnknownError),
        (Refusal(CREATE, "ServiceError", sent=True), OutcomeUnknownError),
        (Refusal(CREATE, "ConnectionError"), UnavailableError),
        (Refusal("result", "NotFoundError"), InstanceNotFoundError),
        (Refusal(LIST, "DecodeError"), GarbledAnswerError),
        (Refusal(LIST, "InternalError"), UnavailableError),
        (Refusal(RATES, "PermissionDeniedError"), RejectedError),
        (Refusal(RATES, "AuthError"), DeniedError),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else f"{value.kind} {value.words}",
)
def test_a_refusal_is_the_fault_of_its_kind(refusal: Refusal, fault: type[Exception]) -> None:
    """Exactly, since the core decides by the class."""
    assert type(fault_of(refusal)) is fault


def test_the_services_wish_is_handed_on() -> None:
    """As far as it has one."""
    fault = fault_of(Refusal(LIST, "ResourceExhaustedError", retry_after_seconds=7))

    assert isinstance(fault, ThrottledError)
    assert fault.retry_after_seconds == 7


def test_no_secret_is_shown_and_no_novel() -> None:
    """A service may quote what it refuses, at length."""
    quoting = Refusal(
        LIST, "ServiceError", words="token hunter22" + " x" * 400, secrets=("hunter22",)
    )
    said = str(fault_of(quoting))
    assert "hunter22" not in said
    assert "token ***" in said
    assert len(said) < 350
    assert str(fault_of(Refusal(LIST, "ServiceError"))) == "Modal, list sandboxes: ServiceError"
