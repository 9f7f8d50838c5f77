"""What one ``VirtualNode`` document asks for, as values: complete, checked, with every default.

Fed by :mod:`vk_provider.settings_parse` (one document each); read by the app, which hands plain
values on to everything below. Durations are seconds. What the pure code has a value for is that
value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from vk_provider.placement.budget import BudgetLimits
from vk_provider.placement.ranking import Policy
from vk_provider.pods.storm import StormLimits
from vk_provider.taints import Taint

PROVIDER_TAINT = Taint("virtual-kubelet.io/provider", "vk-provider", "NoSchedule")
"""Keeps pods off that did not ask for a node that is not there; ``taints: []`` removes it."""


@dataclass(frozen=True, slots=True)
class BackendSettings:
    """One backend. ``path`` is where it stands in its document: ``spec.backends[0]``."""

    name: str
    provider: str
    config: Mapping[str, Any] = field(default_factory=dict, repr=False)
    path: str = ""

    @property
    def config_path(self) -> str:
        """Where the provider's own block stands, for its error messages."""
        return f"{self.path}.config"


@dataclass(frozen=True, slots=True)
class PlacementSettings:
    """Which offer is tried first, and what it all may cost."""

    policy: Policy = Policy.CHEAPEST
    budget: BudgetLimits = field(default_factory=BudgetLimits)


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """Files of the kubelet server. Without a certificate one is made at start; without a client
    CA the API server's own (``kube-system/extension-apiserver-authentication``) is used. ``csr``:
    the cluster is asked to sign one, and the own one serves until somebody has approved it."""

    cert_file: str | None = None
    key_file: str | None = None
    client_ca_file: str | None = None
    csr: bool = False


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The node's kubelet port and the process's plain port (health, metrics).

    ``address`` None: :func:`vk_provider.address.internal_address` finds the node's InternalIP.
    ``plain_port`` is one for the whole process; 0 picks a free one, for either port.
    """

    port: int = 10250
    plain_port: int = 8080
    address: str | None = None
    tls: TlsSettings = TlsSettings()


class Reach(StrEnum):
    """What ``status.podIP`` says."""

    NONE = "none"
    """Nothing: an outside pod has no address at home."""
    DIRECT = "direct"
    """The instance's own address, which home can route to."""


@dataclass(frozen=True, slots=True)
class LeaderElectionSettings:
    """Which of several replicas is the node. ``namespace`` None means the one we run in."""

    name: str
    enabled: bool = True
    namespace: str | None = None
    lease_duration_seconds: float = 15.0
    renew_deadline_seconds: float = 10.0
    retry_period_seconds: float = 2.0


@dataclass(frozen=True, slots=True)
class DoorSettings:
    """How long a refused need, GPU type or backend stays closed, and when an outage closes it."""

    first_cooldown_seconds: float = 30.0
    max_cooldown_seconds: float = 600.0
    denied_cooldown_seconds: float = 300.0
    outage_after_seconds: float = 60.0


PREFER_HOME_TAINT = Taint("vk-provider.dev/prefer-home", "", "PreferNoSchedule")
"""Makes the scheduler prefer home; nobody tolerates it. On nodes that take part in bursting."""


@dataclass(frozen=True, slots=True)
class NodeBurstingSettings:
    """Whether this node's gate is ours to move; kind ``Bursting`` says when.

    ``dead_after_seconds``: without a sign of life of the gate's controller for so long the node
    itself ends a ``return``, so that nobody is moved unwatched."""

    gate_enabled: bool = False
    dead_after_seconds: float = 180.0


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """One virtual node.

    ``capacity`` maps resource names to Kubernetes quantities; it is the cost cap as well.
    ``namespaces`` empty means all: elsewhere ConfigMaps and Secrets are not readable.
    ``fail_after_backend_lost_seconds`` None means never: an outage of an API is no death of a pod.
    ``start_deadline_seconds`` None means that an instance may take any time to start.
    ``source`` is the file the document came from, for messages.
    """

    name: str
    capacity: Mapping[str, str]
    backends: tuple[BackendSettings, ...]
    leader_election: LeaderElectionSettings
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = (PROVIDER_TAINT,)
    placement: PlacementSettings = PlacementSettings()
    server: ServerSettings = ServerSettings()
    storm: StormLimits = field(default_factory=StormLimits)
    door: DoorSettings = DoorSettings()
    bursting: NodeBurstingSettings = NodeBurstingSettings()
    cluster_id: str | None = None
    tick_seconds: float = 10.0
    reach: Reach = Reach.NONE
    admission_enabled: bool = True
    namespaces: tuple[str, ...] = ()
    pending_deadline_seconds: float = 1800.0
    confirm_deadline_seconds: float = 300.0
    fail_after_backend_lost_seconds: float | None = None
    start_deadline_seconds: float | None = None
    source: str = ""

    @property
    def permanent_taints(self) -> tuple[Taint, ...]:
        """Those given, and the preference for home where the node takes part in bursting."""
        given = {taint.key for taint in self.taints}
        if not self.bursting.gate_enabled or PREFER_HOME_TAINT.key in given:
            return self.taints
        return (*self.taints, PREFER_HOME_TAINT)
