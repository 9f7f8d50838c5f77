"""Ends as they go over the wire. Fed by ``model``; feeds ``control`` and ``sandboxes``."""

from __future__ import annotations

from typing import Any

from modal_proto import api_pb2

from vk_provider_modal.simulator.model import SimulatedSandbox


def result_of(sandbox: SimulatedSandbox) -> api_pb2.GenericResult:
    """How a sandbox ended, nothing while it has not."""
    end = sandbox.end
    return generic() if end is None else generic(end.status, end.exit_code, end.message)


def generic(status: int = 0, exit_code: int = 0, message: str = "") -> api_pb2.GenericResult:
    """A result on the wire."""
    # Numbers that no client has heard of travel as well as any.
    fields: dict[str, Any] = {"status": status, "exitcode": exit_code, "exception": message}
    return api_pb2.GenericResult(**fields)
