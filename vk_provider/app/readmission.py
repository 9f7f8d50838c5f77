"""Admission on arrival: ``spec.nodeName`` bypasses the scheduler, and so the cost cap.

Fed by the settings and by what admitted pods hold; asked by ``pods.starting`` through the world.
"""

from __future__ import annotations

from collections.abc import Callable

from vk_provider import __version__
from vk_provider.loops.admitted import Admitted
from vk_provider.node.object import NodeSpec, node_labels
from vk_provider.pods.admission import AdmittingNode, Refusal, admit
from vk_provider.pods.types import Json, PodUID
from vk_provider.settings import NodeSettings


class Readmission:
    """What a scheduler would have looked at, looked at again."""

    def __init__(
        self, settings: NodeSettings, admitted: Admitted, node: Callable[[], Json] = dict
    ) -> None:
        """``node`` is the Node as the API server has it, empty before it was registered."""
        self._settings = settings
        self._admitted = admitted
        self._node = node
        spec = NodeSpec(settings.name, settings.capacity, __version__, labels=settings.labels)
        self._labels = node_labels(spec)
        self._taints: list[Json] = [
            {"key": each.key, "value": each.value, "effect": each.effect}
            for each in settings.taints
        ]

    def refusal(self, pod: Json) -> Refusal | None:
        """Why this pod may not be here; None if it may."""
        if not self._settings.admission_enabled:
            return None
        view = AdmittingNode(
            name=self._settings.name,
            # As the scheduler saw them: others may have given it some.
            labels=self._node().get("metadata", {}).get("labels") or self._labels,
            permanent_taints=self._taints,
            capacity=self._settings.capacity,
            in_use=self._admitted.held_by_others(PodUID(pod["metadata"]["uid"])),
        )
        return admit(pod, view)
