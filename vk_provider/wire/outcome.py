"""PURE. How an exec or attach ended, and the bytes of it on the error stream.

v4 and v5: one ``metav1.Status`` as JSON, its fields in the order in which Go writes them. v1 to v3:
plain text, and nothing on success. client-go takes an error stream without a byte for success, so
in v4 and v5 an outcome is always written, also on cancellation.
Fed by the exec core; feeds :mod:`.remote_command_spdy` and :mod:`.channels`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Exited:
    """The command ended. ``command`` is repeated in the message, as containerd does.

    client-go reads the code as 8 bits unsigned; anything else is told as 255.
    """

    code: int
    command: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Failed:
    """It could not be run, or not to its end; ``message`` says why.

    A kubelet's messages begin ``error executing command in container: `` and
    ``error attaching to container: ``.
    """

    message: str


Outcome = Exited | Failed

SUCCESS = Exited(0)


def outcome_bytes(outcome: Outcome, as_status: bool) -> bytes:
    """What goes onto the error stream: a Status (``as_status``: v4, v5) or the text of v1 to v3."""
    status = outcome_status(outcome)
    if as_status:
        return json.dumps(status, separators=(",", ":"), ensure_ascii=False).encode()
    return str(status.get("message", "")).encode()


def outcome_status(outcome: Outcome) -> dict[str, object]:
    """The Status of ``metav1``: Success, NonZeroExitCode with its ExitCode, or InternalError."""
    if isinstance(outcome, Failed):
        return {
            "metadata": {},
            "status": "Failure",
            "message": f"Internal error occurred: {outcome.message}",
            "reason": "InternalError",
            "details": {"causes": [{"message": outcome.message}]},
            "code": 500,
        }
    if outcome.code == 0:
        return {"metadata": {}, "status": "Success"}
    code = outcome.code if 0 < outcome.code < 256 else 255
    executed = f"error executing command [{' '.join(outcome.command)}], exit code {code}"
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: {executed}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }
