"""Whether a toleration matches a taint, by the API server's rules. Pure.

Fed by taints and tolerations as they stand in objects; feeds the bursting side's decisions: who may
go where, and whose tolerations are too wide.
"""

from __future__ import annotations

from vk_provider.pods.types import Json

NO_SCHEDULE = "NoSchedule"
PREFER = "PreferNoSchedule"
NO_EXECUTE = "NoExecute"


def tolerates(toleration: Json, taint: Json) -> bool:
    """An empty effect or key matches every one; ``Exists`` matches every value.

    Comparisons of numbers (``Lt``, ``Gt``) match no taint of ours, whose values are words.
    """
    effect = toleration.get("effect") or ""
    if effect and effect != taint.get("effect"):
        return False
    key, operator = toleration.get("key") or "", toleration.get("operator") or "Equal"
    if key and key != taint.get("key"):
        return False
    if operator == "Exists":
        return True
    same = (toleration.get("value") or "") == (taint.get("value") or "")
    return operator == "Equal" and bool(key) and same
