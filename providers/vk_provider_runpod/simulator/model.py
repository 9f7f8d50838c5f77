"""The simulated service's state machine: pods, registries and network volumes, without any I/O.

Nothing in here moves by itself: a pod's state is a function of its history and ``now``, so a
virtual clock needs no timers. As observed in the field, a pod is RUNNING (and bills) at once with
``runtime: null``, its container starts after the pull, and a container that exits is started
again for ever with its uptime reset.
Fed by ``app`` and ``admin``; feeds ``views`` (JSON), ``lines`` (logs) and the ``ledger``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from vk_provider.testing.simulator.account import Account, ContainerBehaviour
from vk_provider.testing.simulator.ledger import Owner
from vk_provider_runpod.simulator.catalogue import Catalogue
from vk_provider_runpod.simulator.ledger import Charge
from vk_provider_runpod.simulator.placing import RefusalError, place
from vk_provider_runpod.stamp import CLUSTER_ID, NAMESPACE, NODE_NAME, POD_NAME, POD_UID

STORAGE_USD_PER_GB_HOUR = 0.2 / 730
TRY_SECONDS = 17.0
"""How often a host tries again."""
MOST_TRIES = 1000


@dataclass(frozen=True, slots=True)
class Behaviour(ContainerBehaviour):
    """How a pod's container behaves. After ``run_seconds`` it exits, and is started again."""

    pull_seconds: float = 3.0
    restart_seconds: float = 1.0
    pull_error: str | None = None
    """The image can't be pulled: this system line, then EXITED after ``pull_seconds``."""
    ports_seconds: float = 0.0
    """How long after the container's start its port mappings appear."""
    ssh: bool | None = None
    """Whether an SSH server answers. None: as with the service's own images, whose start script
    starts one if PUBLIC_KEY is set, and so not where the pod has a command or arguments that
    start none."""


@dataclass(slots=True)
class SimulatedPod:
    """One rented pod with everything that ever happened to it."""

    id: str
    body: dict[str, Any]
    created_at: float
    data_center: str
    cost: float
    behaviour: Behaviour
    number: int = 0
    started_at: float = 0.0
    ended: tuple[str, float] | None = None
    deleted_at: float | None = None
    gone_at: float = math.inf
    status_override: str | None = None
    hidden_fields: tuple[str, ...] = ()
    runtime_hidden: bool = False
    locked: bool = False
    said: list[tuple[float, str, str]] = field(default_factory=list)
    """Log lines put in by hand: when, from which source, what."""
    ssh_port: int | None = None
    """Where port 22 is mapped to on loopback, if commands are really run."""

    @property
    def env(self) -> Mapping[str, str]:
        """The pod's environment, which is also its owner's stamp."""
        env: Mapping[str, str] = self.body.get("env") or {}
        return env

    @property
    def owner(self) -> Owner:
        """Who pays for it."""
        return Owner.marked(self.env, (POD_UID, CLUSTER_ID, NODE_NAME, NAMESPACE, POD_NAME))

    @property
    def offers_ssh(self) -> bool:
        """Whether the image's SSH server runs beside the container's own process."""
        if self.behaviour.ssh is not None:
            return self.behaviour.ssh
        has_key = any(self.env.get(name) for name in ("PUBLIC_KEY", "SSH_PUBLIC_KEY"))
        args = self.body.get("args") or ""
        return has_key and (not args or "/usr/sbin/sshd" in args)

    @property
    def kind(self) -> tuple[str, int]:
        """GPU type or CPU flavour, and how many units of it."""
        if gpu := self.body.get("gpu"):
            return gpu["id"], gpu.get("count", 1)
        return self.body["cpu"]["id"], self.body["cpu"]["vcpuCount"]

    def status(self, now: float) -> str:
        """The service's word for where the pod is."""
        if self.status_override is not None:
            return self.status_override
        if self.ended is not None:
            return self.ended[0]
        failed_pull = self.behaviour.pull_error and now >= self.container_start
        return "EXITED" if failed_pull or self.deleted_at is not None else "RUNNING"

    @property
    def container_start(self) -> float:
        """When the container first starts after the last start of the pod."""
        return self.started_at + self.behaviour.pull_seconds

    def uptime(self, now: float) -> int | None:
        """Whole seconds the present container has run; None while there is none."""
        if self.status(now) != "RUNNING" or self.runtime_hidden or now < self.container_start:
            return None
        _, offset = self.run(now)
        running = self.behaviour.run_seconds is None or offset < self.behaviour.run_seconds
        return int(offset) if running else None

    def run(self, now: float) -> tuple[int, float]:
        """Which run of the container it is (0 is the first), and seconds into that cycle."""
        elapsed = now - self.container_start
        if self.behaviour.run_seconds is None:
            return 0, elapsed
        cycle = max(0.001, self.behaviour.run_seconds + self.behaviour.restart_seconds)
        return int(elapsed // cycle), elapsed % cycle


@dataclass(slots=True)
class Volume:
    """One network volume: it lies in one data centre, and grows at most."""

    id: str
    name: str
    size: int
    data_center: str
    kind: str = "STANDARD"


@dataclass(slots=True)
class Model(Account[Behaviour, Charge]):
    """One account: its pods, credentials and volumes, and the bill they run up."""

    default: Behaviour = field(default_factory=Behaviour)
    catalogue: Catalogue = field(default_factory=Catalogue)
    pods: dict[str, SimulatedPod] = field(default_factory=dict)
    """Every pod that ever was."""
    present: dict[str, SimulatedPod] = field(default_factory=dict)
    """Those that a list may still show; nothing else is walked, so a long run stays quick."""
    registries: dict[str, str] = field(default_factory=dict)
    usable_at: dict[str, float] = field(default_factory=dict)
    """When hosts begin to accept a registry's login; before, pulls with it are refused."""
    volumes: dict[str, Volume] = field(default_factory=dict)

    def create(
        self, pod_id: str, body: Mapping[str, Any], now: float, factor: float = 1.0
    ) -> SimulatedPod:
        """Rent a pod, or raise :class:`RefusalError`. The body was checked against the schema.
        ``factor``: of its list price that it is billed at."""
        self.settle(now)
        centre, list_price = place(self.catalogue, bound(body, self.volumes))
        cost = list_price * factor
        pod = SimulatedPod(
            pod_id,
            dict(body),
            now,
            centre,
            cost,
            self.behaviour(f"{body.get('image', '')} {body['name']}", body.get("env") or {}),
            number=len(self.pods),
            started_at=now,
        )
        _wait_for_login(pod, self.usable_at.get(body.get("registry") or "", now) - now)
        self.pods[pod_id] = self.present[pod_id] = pod
        kind, units = pod.kind
        self.catalogue.take(kind, centre, units)
        self._bill(pod, "compute", cost, now)
        return pod

    def get(self, pod_id: str, now: float) -> SimulatedPod:
        """A pod that is there, or a 404."""
        self.settle(now)
        pod = self.pods.get(pod_id)
        if pod is None or pod.deleted_at is not None:
            raise RefusalError(404, "pod not found")
        return pod

    def listed(self, now: float) -> list[SimulatedPod]:
        """What a list shows now: late in both directions by the lag; newest first."""
        self.settle(now)
        shown = [pod for pod in self.present.values() if self._is_listed(pod, now)]
        return sorted(shown, key=lambda pod: (pod.created_at, pod.number), reverse=True)

    def delete(self, pod_id: str, now: float, lingering: float = 0.0) -> None:
        """Terminate. ``lingering``: the order is taken, but the pod bills on for so long."""
        pod = self.get(pod_id, now)
        if lingering:
            pod.gone_at = min(pod.gone_at, now + lingering)
        else:
            self._remove(pod, now)

    def act(self, pod_id: str, action: str, now: float) -> SimulatedPod | None:
        """``start``, ``stop``, ``restart`` or ``terminate``; 409 where the status forbids it."""
        pod = self.get(pod_id, now)
        if action not in actions(pod.status(now)):
            raise RefusalError(409, f"action {action} is not valid for a pod in {pod.status(now)}")
        if action == "terminate":
            self._remove(pod, now)
            return None
        if action == "stop":
            if pod.locked:
                raise RefusalError(409, "pod is locked")
            self.end(pod, "EXITED", now)
        else:
            self._start(pod, now)
        return pod

    def vanish(self, pod_id: str, now: float) -> None:
        """The host died: the pod is gone from one moment to the next, also from the bill."""
        pod = self.get(pod_id, now)
        self._remove(pod, now)
        # Nobody took leave of it, so no list goes on showing it.
        pod.deleted_at = now - self.list_lag_seconds

    def end(self, pod: SimulatedPod, status: str, now: float) -> None:
        """The pod stops computing (EXITED or ERROR); its disk is billed until it is deleted."""
        if pod.ended is None:
            kind, units = pod.kind
            self.catalogue.take(kind, pod.data_center, -units)
        pod.ended = (status, now)
        rate = STORAGE_USD_PER_GB_HOUR * pod.body.get("disk", 20)
        self._bill(pod, "storage", rate, now)

    def settle(self, now: float) -> None:
        """Carry out what time alone has brought about: failed pulls, lingering deletes."""
        for pod in list(self.present.values()):
            if pod.deleted_at is not None:
                if now >= pod.deleted_at + self.list_lag_seconds:
                    del self.present[pod.id]
            elif now >= pod.gone_at:
                self._remove(pod, pod.gone_at)
            elif pod.behaviour.pull_error and pod.ended is None and now >= pod.container_start:
                self.end(pod, "EXITED", pod.container_start)

    def _start(self, pod: SimulatedPod, now: float) -> None:
        if pod.ended is not None:
            kind, units = pod.kind
            if self.catalogue.free(kind, pod.data_center) < units:
                raise RefusalError(
                    400, "There are not enough free GPUs on the host machine to start this pod."
                )
            self.catalogue.take(kind, pod.data_center, units)
            self._bill(pod, "compute", pod.cost, now)
        pod.ended, pod.started_at = None, now

    def _remove(self, pod: SimulatedPod, now: float) -> None:
        pod.deleted_at = now
        self.ledger.close(pod.id, now)
        if pod.ended is None:
            kind, units = pod.kind
            self.catalogue.take(kind, pod.data_center, -units)

    def _is_listed(self, pod: SimulatedPod, now: float) -> bool:
        lag = self.list_lag_seconds
        old_enough = now >= pod.created_at + lag
        return old_enough and (pod.deleted_at is None or now < pod.deleted_at + lag)

    def _bill(self, pod: SimulatedPod, kind: str, rate: float, now: float) -> None:
        self.ledger.open(Charge(pod.id, rate, now, pod.owner, kind=kind))


def _wait_for_login(pod: SimulatedPod, seconds: float) -> None:
    """The host tries again and again until the login is accepted, and pulls only then."""
    if seconds <= 0:
        return
    pod.behaviour = replace(pod.behaviour, pull_seconds=seconds + pod.behaviour.pull_seconds)
    line = f"failed to pull image {pod.body['image']}: unauthorized"
    tries = range(min(MOST_TRIES, int(seconds / TRY_SECONDS) + 1))
    pod.said += [(pod.created_at + number * TRY_SECONDS, "system", line) for number in tries]


def bound(body: Mapping[str, Any], volumes: Mapping[str, Volume]) -> Mapping[str, Any]:
    """A create body, its data centres narrowed to that of the volume it mounts."""
    mounts = (body.get("mounts") or {}).get("network") or []
    if not mounts:
        return body
    volume = volumes.get(mounts[0]["volumeId"])
    if volume is None:
        raise RefusalError(400, "network volume not found")
    if volume.data_center not in (body.get("dataCenterIds") or [volume.data_center]):
        raise RefusalError(
            400, f"network volume {volume.id} is not in any of the requested data centers"
        )
    return {**body, "dataCenterIds": [volume.data_center]}


def actions(status: str) -> tuple[str, ...]:
    """The transitions that a status permits."""
    table = {
        "PROVISIONING": ("stop", "terminate"),
        "STARTING": ("stop", "terminate"),
        "RUNNING": ("stop", "restart", "terminate"),
        "EXITED": ("start", "terminate"),
        "ERROR": ("start", "terminate"),
    }
    return table.get(status, ("terminate",))
