"""The names of the bursting side that other people's manifests, policies and rules may contain.

Fed by nothing; read by everything in ``bursting`` and ``controllers``. A name in here is an
interface: it is added, never changed.
"""

from __future__ import annotations

PREFIX = "vk-provider.dev/"

BURST_LABEL = PREFIX + "burst"
"""Opts a pod in (the webhook copies it from the namespace or the workload)."""
TYPE_LABEL = "type"
TYPE_VALUE = "virtual-kubelet"
PROVIDER_TAINT = "virtual-kubelet.io/provider"

PREFER_HOME_TAINT = PREFIX + "prefer-home"
GATE_TAINT = PREFIX + "gate"
UNAVAILABLE_TAINT = PREFIX + "unavailable"
GPU_HEALTH_TAINT = PREFIX + "gpu-health"
TRAINING_UNFIT, DRAIN, DEAD = "training-unfit", "drain", "dead"

# Annotations of a virtual node.
GATE_MANAGED = PREFIX + "gate-managed"
"""Its own process says that the gate is ours to move, whoever leads."""
GATE_OVERRIDE = PREFIX + "gate-override"
"""A person's word, ``open`` or ``hold``: the gate stays there until it is taken away."""
GATE_STATE = PREFIX + "gate-state"
"""JSON: all that a new leader needs to go on with the gate."""
GATE_HEARTBEAT = PREFIX + "gate-heartbeat"
"""RFC 3339: when the gate's controller last turned while pods come home."""
USD_PER_HOUR = PREFIX + "usd-per-hour"
RUNNING_INSTANCES = PREFIX + "running-instances"
MANAGED_BY = PREFIX + "managed-by"

GPU_HEALTH_SET_BY = PREFIX + "gpu-health-set-by"
"""Annotation of a home node: whose the gpu-health taint is."""
EVACUATION = PREFIX + "evacuation"
"""Annotation of a Deployment, JSON: an evacuation that a new leader resumes or undoes."""
ROOM_MADE_AT = PREFIX + "room-made-at"
"""Annotation of a home node, RFC 3339: Kueue looks again at jobs that a topology kept out."""
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
