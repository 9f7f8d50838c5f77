"""Kueue's AdmissionChecks that are ours: kept Active, and answered on Workloads.

A ClusterQueue whose check nobody keeps Active admits nothing, so this is said as soon as a check
names us as its controller. Fed by ``controllers.evacuation``; source: Kueue's
``apis/kueue/v1beta2/admissioncheck_types.go``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from vk_provider.bursting.evacuation import Answer
from vk_provider.controllers.kueue_view import GROUP
from vk_provider.faults import ConflictError, KubeError, KubeNotFoundError
from vk_provider.kube.client import KubeClient, PatchKind
from vk_provider.pods.types import Json

logger = logging.getLogger(__name__)

CONTROLLER = "vk-provider.dev/evacuation"
_ACTIVE = {
    "type": "Active",
    "status": "True",
    "reason": "Ready",
    "message": "inference is moved out of the way before a job is let in",
}


class AdmissionChecks:
    """The checks of one Kueue version."""

    def __init__(self, client: KubeClient) -> None:
        self.names: frozenset[str] = frozenset()
        """Those that name us."""
        self.are_known = False
        """Whether they were ever seen: before that, nothing says that no job waits for us."""
        self._client = client
        self._said: dict[tuple[str, str], tuple[str, str]] = {}

    async def look(self, version: str, now: datetime) -> None:
        """See which checks are ours, and say of each that somebody minds it. Raises KubeError."""
        path = f"{GROUP}/{version}/admissionchecks"
        checks, _ = await self._client.list(path)
        ours = [
            one for one in checks if (one.get("spec") or {}).get("controllerName") == CONTROLLER
        ]
        self.names = frozenset(one["metadata"]["name"] for one in ours)
        self.are_known = True
        for check in ours:
            if not _is_active(check):
                condition = {**_ACTIVE, "lastTransitionTime": _text(now)}
                name = check["metadata"]["name"]
                await self._client.patch(
                    f"{path}/{name}/status",
                    {"status": {"conditions": [condition]}},
                    kind=PatchKind.MERGE,
                )
                logger.info("AdmissionCheck %s is minded", name)

    async def answer(self, version: str, answers: Iterable[Answer], now: datetime) -> list[Answer]:
        """Write what is new; the answers that were written. A Workload that changed meanwhile
        is answered at the next look."""
        written: list[Answer] = []
        said: dict[tuple[str, str], tuple[str, str]] = {}
        for answer in answers:
            key, word = (answer.workload.uid, answer.check), (answer.state, answer.message)
            said[key] = word
            if self._said.get(key) == word:
                continue
            try:
                if await self._write(version, answer, now):
                    written.append(answer)
            except (ConflictError, KubeNotFoundError):
                del said[key]
            except KubeError as fault:
                del said[key]
                name = f"{answer.workload.namespace}/{answer.workload.name}"
                logger.warning("Workload %s can't be answered: %s", name, fault)
        self._said = said
        return written

    async def _write(self, version: str, answer: Answer, now: datetime) -> bool:
        workload = answer.workload
        path = f"{GROUP}/{version}/namespaces/{workload.namespace}/workloads/{workload.name}"
        found = await self._client.get(path)
        checks: list[dict[str, Any]] = (found.get("status") or {}).get("admissionChecks") or []
        held = next((one for one in checks if one.get("name") == answer.check), None)
        if found["metadata"]["uid"] != workload.uid or held is None or held["state"] != "Pending":
            return False
        if answer.state != held["state"]:
            held["lastTransitionTime"] = _text(now)
        held["state"], held["message"] = answer.state, answer.message
        # The list is written as a whole, so only over the version that was read.
        metadata = {"resourceVersion": found["metadata"]["resourceVersion"]}
        body = {"metadata": metadata, "status": {"admissionChecks": checks}}
        await self._client.patch(f"{path}/status", body, kind=PatchKind.MERGE)
        return True


def _is_active(check: Json) -> bool:
    conditions = (check.get("status") or {}).get("conditions") or ()
    return any(one.get("type") == "Active" and one.get("status") == "True" for one in conditions)


def _text(now: datetime) -> str:
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")
