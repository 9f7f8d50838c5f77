"""What a refusal of the other API server means for a pod."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from vk_provider_kubernetes.answers import call_fault, create_fault

from vk_provider import faults
from vk_provider.faults import KubeError, KubeUnavailableError, ProviderError, ThrottledError

QUOTA = 'pods "a" is forbidden: exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3'
PSA = 'pods "a" is forbidden: violates PodSecurity "restricted:latest": privileged'
RBAC = 'pods is forbidden: User "vk" cannot create resource "pods" in API group ""'
STARTING = f'{RBAC}: RBAC: [clusterrole.rbac.authorization.k8s.io "system:discovery" not found]'
ENDING = "unable to create new content in namespace vk because it is being terminated"
WEBHOOK = 'Internal error occurred: failed calling webhook "x": connection refused'


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (faults.ForbiddenError(QUOTA, 403, "Forbidden"), faults.OutOfCapacityError),
        (faults.ForbiddenError(PSA, 403, "Forbidden"), faults.RejectedError),
        (faults.ForbiddenError(RBAC, 403, "Forbidden"), faults.DeniedError),
        (faults.ForbiddenError(STARTING, 403, "Forbidden"), faults.UnavailableError),
        (faults.ForbiddenError(ENDING, 403, "Forbidden"), faults.DeniedError),
        (faults.ForbiddenError("Unauthorized", 401, "Unauthorized"), faults.DeniedError),
        (faults.KubeNotFoundError('namespaces "vk" not found', 404), faults.DeniedError),
        (faults.InvalidObjectError("spec.containers: Required", 422), faults.RejectedError),
        (faults.ConflictError("resourcequotas: modified", 409), faults.UnavailableError),
        (KubeUnavailableError("refused", 0, "ConnectFailed"), faults.UnavailableError),
        (KubeUnavailableError(WEBHOOK, 500, "InternalError"), faults.UnavailableError),
        (KubeUnavailableError("no answer", 504, "Timeout"), faults.OutcomeUnknownError),
        (KubeUnavailableError("a web page", 0, "GarbledAnswer"), faults.OutcomeUnknownError),
        (KubeError("teapot", 418), faults.RejectedError),
    ],
)
def test_the_fault_of_a_create_says_whether_something_was_made(
    fault: KubeError, expected: type[ProviderError]
) -> None:
    """By class, with the server's words."""
    found = create_fault(fault)

    assert type(found) is expected
    assert str(fault) in str(found)


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (faults.KubeNotFoundError("pods not found", 404), faults.InstanceNotFoundError),
        (faults.ForbiddenError("no", 403), faults.DeniedError),
        (faults.ForbiddenError(STARTING, 403), faults.UnavailableError),
        (KubeUnavailableError("web page", 0, "GarbledAnswer"), faults.GarbledAnswerError),
        (KubeUnavailableError("down", 503), faults.UnavailableError),
        (faults.InvalidObjectError("waiting to start", 400), faults.UnavailableError),
        (faults.GoneError("continue token expired", 410), faults.UnavailableError),
    ],
)
def test_the_fault_of_any_other_call_changes_nothing(
    fault: KubeError, expected: type[ProviderError]
) -> None:
    """Nothing could have been made."""
    assert type(call_fault(fault)) is expected


@pytest.mark.parametrize("translate", [create_fault, call_fault])
def test_a_wish_to_wait_is_handed_on(translate: Callable[[KubeError], ProviderError]) -> None:
    """How long is the server's to say."""
    fault = KubeUnavailableError("slower", 429, retry_after_seconds=7.0)

    found = translate(fault)

    assert isinstance(found, ThrottledError)
    assert found.retry_after_seconds == 7.0
