"""Writes the steps of a move: replicas with their annotation, an autoscaler's bounds, costs.

Fed by ``controllers.evacuation`` with what :mod:`vk_provider.bursting.relocation` decided; feeds
the API server, and tells it in the Events of the Deployment.
"""

from __future__ import annotations

import logging
from typing import Any

from vk_provider.bursting import names
from vk_provider.bursting.moves import Move, Phase, Scale, ScaleScaler, SetCost
from vk_provider.controllers.means import ControllerMeans
from vk_provider.faults import ConflictError, KubeError, KubeNotFoundError
from vk_provider.kube import paths
from vk_provider.kube.client import PatchKind
from vk_provider.pods.types import Json

logger = logging.getLogger(__name__)

SURGED, MOVED = "Surged", "SurgeEnded"


class MoveWriter:
    """The only one who writes to Deployments and autoscalers."""

    def __init__(self, means: ControllerMeans) -> None:
        self._means = means

    async def carry_out(self, move: Move) -> bool:
        """Whether the next move may follow: each builds on those before it."""
        try:
            match move:
                case Scale():
                    await self._scale(move)
                case ScaleScaler():
                    await self._scale_scaler(move)
                case SetCost():
                    await self._set_cost(move)
        except (ConflictError, KubeNotFoundError):
            return False  # it changed meanwhile: the watch shows how
        except KubeError as fault:
            logger.warning("%s: not written: %s", _words(move), fault)
            return False
        return True

    async def _scale(self, move: Scale) -> None:
        each, state = move.deployment, move.relocation
        metadata = {
            "resourceVersion": each.resource_version,
            "annotations": {names.EVACUATION: state.to_json() if state is not None else None},
        }
        body: dict[str, Any] = {"metadata": metadata}
        if move.replicas != each.replicas:
            body["spec"] = {"replicas": move.replicas}
        path = paths.deployment(each.namespace, each.name)
        await self._means.client.patch(path, body, kind=PatchKind.MERGE)
        if move.replicas != each.replicas:
            is_surge = state is not None and state.phase is Phase.SURGING
            self._tell(move, SURGED if is_surge else MOVED)

    async def _scale_scaler(self, move: ScaleScaler) -> None:
        scaler = move.scaler
        spec = {"minReplicas": scaler.min_replicas, "maxReplicas": scaler.max_replicas}
        path = f"{paths.autoscalers(move.deployment.namespace)}/{scaler.name}"
        await self._means.client.patch(path, {"spec": spec}, kind=PatchKind.MERGE)
        logger.info(_words(move))

    async def _set_cost(self, move: SetCost) -> None:
        metadata = {"uid": move.uid, "annotations": {names.DELETION_COST: move.cost}}
        path = paths.pod(move.namespace, move.name)
        await self._means.client.patch(path, {"metadata": metadata}, kind=PatchKind.MERGE)

    def _tell(self, move: Scale, reason: str) -> None:
        logger.info(_words(move))
        each = move.deployment
        about: Json = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"namespace": each.namespace, "name": each.name, "uid": each.uid},
        }
        self._means.events.emit(about, "Normal", reason, _words(move))


def _words(move: Move) -> str:
    match move:
        case Scale(each, replicas, state):
            goal = "moving pods without a loss" if state is not None else "done"
            return (
                f"Deployment {each.namespace}/{each.name}: "
                f"replicas {each.replicas} -> {replicas}: {goal}"
            )
        case ScaleScaler(each, scaler):
            return (
                f"HorizontalPodAutoscaler {each.namespace}/{scaler.name}: replicas now "
                f"{scaler.min_replicas} to {scaler.max_replicas}"
            )
        case SetCost():
            return f"deletion cost of {move.namespace}/{move.name}: {move.cost}"
