"""The contract's failures, as a service of the test kit is told of them: through its script.

Fed by the contract's tests; feeds :class:`vk_provider.testing.fake_faults.Script`.
"""

from __future__ import annotations

from vk_provider.faults import (
    DeniedError,
    GarbledAnswerError,
    OutcomeUnknownError,
    OutOfCapacityError,
    ProviderError,
    RejectedError,
    ThrottledError,
    UnavailableError,
)
from vk_provider.testing.contract_rig import RETRY_AFTER_SECONDS, CreateFailure, ListFailure
from vk_provider.testing.fake_faults import Script

CREATE_FAULTS: dict[CreateFailure, ProviderError] = {
    CreateFailure.OUT_OF_CAPACITY: OutOfCapacityError("no machine"),
    CreateFailure.DENIED: DeniedError("the key was withdrawn"),
    CreateFailure.THROTTLED: ThrottledError("slower, please", RETRY_AFTER_SECONDS),
    CreateFailure.UNAVAILABLE: UnavailableError("refused"),
    CreateFailure.REJECTED: RejectedError("no such image"),
    CreateFailure.OUTCOME_UNKNOWN: OutcomeUnknownError("the answer was lost"),
}
LIST_FAULTS: dict[ListFailure, ProviderError] = {
    ListFailure.UNAVAILABLE: UnavailableError("refused"),
    ListFailure.THROTTLED: ThrottledError("slower, please", RETRY_AFTER_SECONDS),
    ListFailure.DENIED: DeniedError("the key was withdrawn"),
    ListFailure.GARBAGE: GarbledAnswerError("not our protocol"),
    ListFailure.PARTIAL: UnavailableError("the second page did not come"),
}


class ScriptedFailures:
    """The part of a ``ContractBackend`` that lets calls fail and wait."""

    def __init__(self, script: Script) -> None:
        self._script = script

    async def fail_next_create(self, failure: CreateFailure) -> None:
        """Let the next create call fail this way."""
        created = failure is CreateFailure.OUTCOME_UNKNOWN
        self._script.fail_next("create", CREATE_FAULTS[failure], created=created)

    async def fail_next_list(self, failure: ListFailure) -> None:
        """Let the next list fail this way."""
        self._script.fail_next("list", LIST_FAULTS[failure])

    async def hold_next_create(self) -> None:
        """Keep the next create call's answer back."""
        self._script.hold_next_create()

    async def create_held(self) -> None:
        """Return once that call has been carried out."""
        await self._script.create_held()
