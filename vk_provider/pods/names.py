"""Every name of ours on a pod that other people's manifests, dashboards and rules may contain.

Fed by nothing; read by everything that reads or writes a pod. A name in here is an interface: it
is added, never changed. Those on Nodes are in :mod:`vk_provider.node.names`.
"""

from __future__ import annotations

PREFIX = "vk-provider.dev/"
"""What every annotation and label of ours starts with."""

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

# Kubernetes' own names that we look for.
POD_TEMPLATE_HASH = "pod-template-hash"
IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"
