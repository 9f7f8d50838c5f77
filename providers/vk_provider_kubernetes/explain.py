"""What would be created, as a person may see it: the pod, and its copies without their content.

Pure. Fed by ``provider.explain``; feeds ``vk-provider explain``.
"""

from __future__ import annotations

from typing import Any

from vk_provider.pods.masking import MASK, masked
from vk_provider.pods.references import SECRET
from vk_provider.pods.types import Explanation, ResolvedPod
from vk_provider_kubernetes.config import KubernetesConfig
from vk_provider_kubernetes.copies import Copy
from vk_provider_kubernetes.translate import Translation, translate


def explain(pod: ResolvedPod, config: KubernetesConfig) -> Explanation:
    """A List of everything, and all notes. Raises ``UnsupportedFieldsError``."""
    found = translate(pod, config)
    items = [found.body, *(_shown(copy, found, pod) for copy in found.copies)]
    request = {"apiVersion": "v1", "kind": "List", "items": items}
    return Explanation(masked(request, pod.secret_values), found.notes)


def _shown(copy: Copy, found: Translation, pod: ResolvedPod) -> dict[str, Any]:
    body = copy.body(found.namespace, pod.stamp)
    if copy.kind == SECRET:
        body["data"] = dict.fromkeys(body["data"], MASK)
    return body
