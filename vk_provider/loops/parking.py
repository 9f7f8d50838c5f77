"""What happens to a pod in whose way a bug stands: it alone waits, ever longer; the log tells once.

Fed by ``loops.pod_workers`` (a rule failed) and ``loops.pod_actions`` (an action failed).
"""

from __future__ import annotations

import logging
from collections import Counter

from vk_provider.faults import InvalidTransitionError
from vk_provider.loops.shell import Shell
from vk_provider.pods.slots import Record
from vk_provider.pods.types import PodUID

logger = logging.getLogger(__name__)

FIRST_SECONDS = 10.0
LONGEST_SECONDS = 300.0


class Parking:
    """How often something failed for each pod."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._times: Counter[PodUID] = Counter()

    def park(self, record: Record, what: str, fault: BaseException) -> float:
        """Tell of a bug, with the pod's story and the traceback the first time; answers for how
        many seconds this pod shall wait."""
        times = self._times[record.uid]
        self._times[record.uid] += 1
        metrics, node = self._shell.metrics, self._shell.node
        if isinstance(fault, InvalidTransitionError):
            metrics.invalid_transitions.labels(node).inc()
        else:
            metrics.internal_errors.labels(node, what).inc()
        if times == 0:
            told = " | ".join(record.story)
            logger.error(
                "pod %s: %s failed, which is a bug: %s; the last steps were: %s",
                record.uid, what, fault, told, exc_info=fault,
            )  # fmt: skip
        return min(FIRST_SECONDS * 2.0 ** min(times, 10), LONGEST_SECONDS)

    def forget(self, uid: PodUID) -> None:
        """Nothing of the pod is left."""
        self._times.pop(uid, None)
