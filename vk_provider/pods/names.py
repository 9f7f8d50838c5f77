"""Every name of ours that other people's manifests, dashboards and rules may contain.

Fed by nothing; read by everything that reads or writes an annotation, a label, a taint or a
condition. A name in here is an interface: it is added, never changed.
"""

from __future__ import annotations

from vk_provider.pods.events import EventReason as EventReason
from vk_provider.pods.events import EventType as EventType
from vk_provider.pods.events import FailedReason as FailedReason
from vk_provider.pods.events import TerminatedReason as TerminatedReason
from vk_provider.pods.events import WaitingReason as WaitingReason

PREFIX = "vk-provider.dev/"
"""What every annotation, label and taint of ours starts with."""

# Pod annotations that users write (wishes).
GPU_TYPES = PREFIX + "gpu-types"
MIN_GPU_MEMORY = PREFIX + "min-gpu-memory"
MAX_PRICE = PREFIX + "max-price"
BACKENDS = PREFIX + "backends"
DATA_CENTERS = PREFIX + "data-centers"
JOB_IGNORES_DISRUPTION = PREFIX + "job-ignores-disruption"
"""``"true"`` on a Job's pod template: its podFailurePolicy ignores DisruptionTarget, so out of
capacity may fail its pods at once. The policy itself can't be read from a pod."""

# Pod annotation that we write.
PLACEMENT = PREFIX + "placement"

# Label of a namespace or workload that may burst.
BURST = PREFIX + "burst"

# Node.
TYPE_LABEL = "type"
TYPE_VALUE = "virtual-kubelet"
PROVIDER_TAINT = "virtual-kubelet.io/provider"
PROVIDER_TAINT_VALUE = "vk-provider"
PREFER_HOME_TAINT = PREFIX + "prefer-home"
GATE_TAINT = PREFIX + "gate"
UNAVAILABLE_TAINT = PREFIX + "unavailable"
MANAGED_BY = PREFIX + "managed-by"
"""Mark annotation of a Node of ours; a Node without it is never adopted."""
PROVIDER_READY = "ProviderReady"
"""Our Node condition."""

# Home nodes.
GPU_HEALTH_TAINT = PREFIX + "gpu-health"

# Kubernetes' own names that we look for.
MIRROR = "kubernetes.io/config.mirror"
POD_TEMPLATE_HASH = "pod-template-hash"
IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"
