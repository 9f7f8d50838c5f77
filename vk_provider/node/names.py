"""Every name of ours on a Node that other people's manifests, policies and rules may contain.

Fed by nothing; read by everything that reads or writes a Node. A name in here is an interface: it
is added, never changed. Those on pods are in :mod:`vk_provider.pods.names`.
"""

from __future__ import annotations

PREFIX = "vk-provider.dev/"

TYPE_LABEL = "type"
TYPE_VALUE = "virtual-kubelet"
PROVIDER_TAINT = "virtual-kubelet.io/provider"
PREFER_HOME_TAINT = PREFIX + "prefer-home"
GATE_TAINT = PREFIX + "gate"
GATE_MANAGED = PREFIX + "gate-managed"
"""Annotation: the gate is ours to move. Written by the node itself."""
GATE_STATE = PREFIX + "gate-state"
"""Annotation: where the gate stands and what it remembers. Written by its controller."""
GATE_HEARTBEAT = PREFIX + "gate-heartbeat"
"""Annotation: the controller's sign of life while pods come home."""
UNAVAILABLE_TAINT = PREFIX + "unavailable"
MANAGED_BY = PREFIX + "managed-by"
"""Mark annotation of a Node of ours; one without it, and without a provider ID of ours, is never
adopted."""
PROVIDER_READY = "ProviderReady"
"""Our Node condition."""

# Home nodes.
GPU_HEALTH_TAINT = PREFIX + "gpu-health"

# Annotations that only people read, in `kubectl describe node`.
BACKEND = PREFIX + "backend-"
"""Prefix of one annotation per backend; the backend's name follows."""
RUNNING_INSTANCES = PREFIX + "running-instances"
USD_PER_HOUR = PREFIX + "usd-per-hour"
DOOR = PREFIX + "door"
BUDGET = PREFIX + "budget"
SPENT = PREFIX + "spent"
"""Ours: what was spent this day and month, for the next process to go on with."""
