"""An API server in memory: pods, status patches, graceful deletes, and a watch that is late."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from vk_provider.pods.types import Json, PodUID

TERMINAL = ("Succeeded", "Failed")


@dataclass
class Api:
    """Pods by UID, and what the watch has not delivered yet."""

    pods: dict[PodUID, dict[str, Any]] = field(default_factory=dict)
    undelivered: list[tuple[PodUID, Json | None]] = field(default_factory=list)
    version: int = 0

    def add(self, pod: dict[str, Any]) -> None:
        """Somebody created and bound a pod."""
        self._put(pod)

    def _put(self, pod: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        pod = copy.deepcopy(pod)
        pod["metadata"]["resourceVersion"] = str(self.version)
        uid = PodUID(pod["metadata"]["uid"])
        self.pods[uid] = pod
        self.undelivered.append((uid, pod))
        return pod

    def edit(self, uid: PodUID, image: str) -> None:
        """Somebody changes the image."""
        pod = copy.deepcopy(self.pods[uid])
        pod["spec"]["containers"][0]["image"] = image
        self._put(pod)

    def patch_status(self, uid: PodUID, patch: Json) -> Json | None:
        """Strategic merge; None if this pod is gone."""
        assert patch["metadata"]["uid"] == uid, "a patch for another pod"
        if uid not in self.pods:
            return None
        pod = copy.deepcopy(self.pods[uid])
        before = pod["status"].get("phase")
        pod["metadata"].setdefault("annotations", {}).update(
            patch["metadata"].get("annotations", {})
        )
        for name, value in patch.get("status", {}).items():
            pod["status"][name] = _merged(pod["status"].get(name), value)
        after = pod["status"].get("phase")
        assert before not in TERMINAL or after == before, f"{before} was left for {after}"
        return self._put(pod)

    def delete(self, uid: PodUID, grace_seconds: int) -> None:
        """Somebody deletes a pod: at once where nothing is to be waited for."""
        pod = copy.deepcopy(self.pods[uid])
        if grace_seconds == 0 or pod["status"]["phase"] in TERMINAL:
            self.remove(uid)
            return
        known = pod["metadata"].get("deletionGracePeriodSeconds", grace_seconds)
        pod["metadata"]["deletionTimestamp"] = "2024-05-01T10:00:00Z"
        pod["metadata"]["deletionGracePeriodSeconds"] = min(known, grace_seconds)
        self._put(pod)

    def remove(self, uid: PodUID) -> None:
        """The object is gone."""
        if self.pods.pop(uid, None) is not None:
            self.undelivered.append((uid, None))


def _merged(current: Any, value: Any) -> Any:
    if not isinstance(value, list):
        return value
    if value and "type" in value[0]:
        merged = {one["type"]: one for one in current or ()}
        for one in value:
            merged[one["type"]] = {**merged.get(one["type"], {}), **one}
        return list(merged.values())
    return [one for one in value if "$patch" not in one]
