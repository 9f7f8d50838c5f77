"""The request as a person may see it: every value that came out of a Secret is masked.

Pure. Fed by ``provider.explain``; feeds ``vk-provider explain``.
"""

from __future__ import annotations

from vk_provider.pods.masking import masked
from vk_provider.pods.pull_secrets import pull_notes
from vk_provider.pods.start_wrapper import FILES_ENV
from vk_provider.pods.types import Explanation, Offer, ResolvedPod
from vk_provider_modal.config import ModalConfig
from vk_provider_modal.translate import translate
from vk_provider_modal.volumes import files_shown


def explain(pod: ResolvedPod, offer: Offer, config: ModalConfig) -> Explanation:
    """The masked request and all notes. Raises ``UnsupportedFieldsError`` with every field."""
    found = translate(pod, offer, config)
    request = dict(found.request)
    if FILES_ENV in request["env"]:
        request["env"] = {**request["env"], FILES_ENV: files_shown(pod)}
    return Explanation(masked(request, pod.secret_values), (*found.notes, *pull_notes(pod)))
