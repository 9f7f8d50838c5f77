"""Builders of views, with the usual values of a small cluster."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from vk_provider.bursting import names
from vk_provider.bursting.picture import HomeNode, Owner, PodView, VirtualNode, WorkloadView

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
BURST = {names.BURST_LABEL: "true"}
CHAT = Owner("ReplicaSet", "chat", "rs")


def ago(seconds: float) -> datetime:
    """So long before now."""
    return NOW - timedelta(seconds=seconds)


def home(name: str = "home-0", gpus: int = 8, **more: Any) -> HomeNode:
    """A home node."""
    return HomeNode(name, gpus=gpus, **more)


def virtual(name: str = "burst", gpus: int = 20, **more: Any) -> VirtualNode:
    """A node of ours."""
    return VirtualNode(name, gpus=gpus, **more)


def pod(uid: str = "p", node: str = "", **more: Any) -> PodView:
    """An inference pod of one GPU, owned by one ReplicaSet."""
    usual: dict[str, Any] = {
        "namespace": "web", "name": uid, "gpus": 1, "labels": BURST, "owner": CHAT,
        "created_at": ago(3600), "phase": "Running" if node else "Pending",
    }  # fmt: skip
    return PodView(uid, node=node, **(usual | more))


def training(uid: str = "t", node: str = "", gpus: int = 8, **more: Any) -> PodView:
    """A training pod."""
    usual: dict[str, Any] = {"namespace": "ml", "name": uid, "priority_class": "training"}
    return PodView(uid, node=node, gpus=gpus, **(usual | more))


def workload(gpus: int = 8, **more: Any) -> WorkloadView:
    """A Workload that waits."""
    usual: dict[str, Any] = {"priority_classes": frozenset({"training"})}
    return WorkloadView("w", "ml", "train", gpus=gpus, **(usual | more))
