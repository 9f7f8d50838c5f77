"""Warns where a Deployment would be given up before its pod's start ends.

A Deployment whose pods need longer than its ``progressDeadlineSeconds`` is reported as failed while
they still start. What starts take was seen here; the deadline is read from the Deployment, rarely,
and only where that right was granted, which is asked for first.
Fed by ``loops.pod_actions`` (a create begins); emits Events about pods.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable

from vk_provider.faults import KubeError
from vk_provider.kube.client import KubeClient
from vk_provider.loops.experience import Experience
from vk_provider.loops.shell import Shell
from vk_provider.pods import desired
from vk_provider.pods.types import Candidate, Json

logger = logging.getLogger(__name__)

REASON = "ProgressDeadlineTooShort"
SHARE = 0.95
SHORTEST_SECONDS = 60.0
"""Starts that are quicker than this are no danger to any deadline."""
AGAIN_SECONDS = 3600.0
DEFAULT_DEADLINE = 600
MOST_KNOWN = 512
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

Emit = Callable[[Json, str, str, str], None]


class Rollouts:
    """What is known of the Deployments whose pods start here."""

    def __init__(
        self, client: KubeClient, experience: Experience, emit: Emit, shell: Shell
    ) -> None:
        self._client = client
        self._experience = experience
        self._emit = emit
        self._shell = shell
        self._checked: OrderedDict[str, float] = OrderedDict()
        self._may_read = False
        self._asked_at: float | None = None

    def starting(self, pod: Json, candidate: Candidate) -> None:
        """A create begins. Each Deployment is looked at once an hour at most."""
        gpu_type = candidate.offer.gpu_type
        took = self._experience.starts.quantile(candidate.backend, gpu_type, SHARE)
        key, now = desired.owner_key(pod), self._shell.clock.steady()
        if took is None or took < SHORTEST_SECONDS or "/Deployment/" not in key:
            return
        last = self._checked.get(key)
        if last is not None and now - last < AGAIN_SECONDS:
            return
        self._checked[key] = now
        self._checked.move_to_end(key)
        if len(self._checked) > MOST_KNOWN:
            self._checked.popitem(last=False)
        work = self._check(pod, key, candidate.backend, took)
        _ = self._shell.spawn(work, f"deadline of {key}")

    async def _check(self, pod: Json, key: str, backend: str, took: float) -> None:
        namespace, _, name = key.split("/", 2)
        path = f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}"
        try:
            if not await self._is_allowed():
                return
            spec = (await self._client.get(path)).get("spec") or {}
        except KubeError as fault:
            logger.debug("the deadline of %s can't be read: %s", key, fault)
            return
        deadline = spec.get("progressDeadlineSeconds") or DEFAULT_DEADLINE
        if deadline < took:
            message = (
                f"one in twenty starts on backend {backend} took {took:.0f} s or more, but the "
                f"Deployment is reported as failed after {deadline} s: raise its "
                "spec.progressDeadlineSeconds"
            )
            self._emit(pod, "Warning", REASON, message)

    async def _is_allowed(self) -> bool:
        """Whether we may read Deployments, asked once an hour: everybody may ask that."""
        now = self._shell.clock.steady()
        if self._asked_at is None or now - self._asked_at >= AGAIN_SECONDS:
            self._asked_at = now
            attributes = {"group": "apps", "resource": "deployments", "verb": "get"}
            review = {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": attributes},
            }
            answer = await self._client.create(REVIEWS, review)
            self._may_read = bool((answer.get("status") or {}).get("allowed"))
        return self._may_read
