"""What is written to the other cluster: pods, and the copies of ConfigMaps and Secrets beside them.

Fed by ``provider``; each call is made once, and may be made again: names are the same for the same
pod, and what is there already is ours or not touched.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from vk_provider.faults import (
    ConflictError,
    InstanceNotFoundError,
    InvalidObjectError,
    KubeError,
    KubeNotFoundError,
    OutcomeUnknownError,
    ProviderError,
    RejectedError,
    UnavailableError,
)
from vk_provider.kube import paths
from vk_provider.kube.client import KubeClient
from vk_provider.pods.reading import mapping, strings
from vk_provider.pods.references import CONFIG_MAP, SECRET
from vk_provider.pods.types import Json, Stamp
from vk_provider_kubernetes import stamp as marks
from vk_provider_kubernetes import updates
from vk_provider_kubernetes.answers import ALREADY_EXISTS, call_fault, create_fault
from vk_provider_kubernetes.copies import Copy
from vk_provider_kubernetes.references import Reference
from vk_provider_kubernetes.translate import Translation

T = TypeVar("T")

COPY_TRIES = 4
_COLLECTIONS: Mapping[str, Callable[[str], str]] = {
    CONFIG_MAP: paths.config_maps,
    SECRET: paths.secrets,
}


class Writes:
    """One identity's orders to one other cluster."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def create_pod(self, body: Json) -> Json:
        """POST a pod, once. One that is there already under this name is ours, and is taken. An
        older API server refuses what it does not know, instead of leaving it out."""
        metadata = body["metadata"]
        path = paths.pods(metadata["namespace"])
        try:
            return await self._client.create(path, body, retry=False, strict=True)
        except KubeError as fault:
            if fault.reason != ALREADY_EXISTS:
                raise create_fault(fault) from fault
        return await self._adopted(body)

    async def _adopted(self, body: Json) -> Json:
        metadata = body["metadata"]
        found = await asked(self._client.get(paths.pod(metadata["namespace"], metadata["name"])))
        if marks.read(found) != marks.read(body) or _maker(found) != _maker(body):
            message = f"a pod {metadata['namespace']}/{metadata['name']} is not ours"
            raise UnavailableError(f"{message}; remove it from the other cluster")
        if "deletionTimestamp" in mapping(found, "metadata"):
            raise UnavailableError("an earlier instance of this pod is still being deleted")
        return found

    async def complete(self, found: Translation, remote: Json, stamp: Stamp) -> None:
        """Write the copies in the name of this pod, then open its gate. Idempotent; what may change
        while the pod lives is brought up to date with it. Raises ``RejectedError`` for what the
        other cluster refuses, and for a debugger that can't be."""
        reference = Reference.of(remote)
        for copy in found.copies:
            await self._write_copy(copy, reference, stamp)
        path = paths.pod(reference.namespace, reference.name)
        # The pod comes last: it remembers then that the rest was done.
        for place, patch in (
            (f"{path}/ephemeralcontainers", updates.debug_patch(remote, found.debuggers)),
            (f"{path}/resize", updates.resize_patch(remote, found.body)),
            (path, updates.pod_patch(remote, found.body)),
        ):
            if patch is not None:
                await self._patch(place, patch)
        if found.refusals:
            raise RejectedError("; ".join(map(str, found.refusals)))

    async def empty(self, found: Translation, owner: Reference) -> None:
        """Take the content out of copies whose object is gone at home, where there are any."""
        for copy in found.emptied:
            path = f"{_COLLECTIONS[copy.kind](owner.namespace)}/{copy.name}"
            try:
                await self._client.patch(path, _replacing(copy.content))
            except (KubeNotFoundError, InvalidObjectError):
                continue  # never made; or a login, which can't be empty and is of no use any more
            except KubeError as fault:
                raise create_fault(fault) from fault

    async def _patch(self, path: str, patch: Json) -> None:
        try:
            await self._client.patch(path, patch)
        except KubeNotFoundError as fault:
            raise InstanceNotFoundError(str(fault)) from fault
        except KubeError as fault:
            raise create_fault(fault) from fault

    async def _write_copy(self, copy: Copy, owner: Reference, stamp: Stamp) -> None:
        """PATCH it with one more owner, or make it. Either loses to a neighbour's only once."""
        body = copy.body(owner.namespace, stamp)
        body["metadata"]["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "Pod", "name": owner.name, "uid": owner.uid}
        ]
        collection = _COLLECTIONS[copy.kind](owner.namespace)
        for _ in range(COPY_TRIES):
            try:
                await self._client.patch(f"{collection}/{copy.name}", _replacing(body))
                return
            except KubeNotFoundError:
                pass  # nobody has made it yet
            except KubeError as fault:
                raise create_fault(fault) from fault
            try:
                await self._client.create(collection, body)
                return
            except ConflictError:
                continue  # a neighbour was faster: now it can be patched
            except KubeError as fault:
                raise create_fault(fault) from fault
        raise UnavailableError(f"{copy.kind} {owner.namespace}/{copy.name} comes and goes")

    async def delete_pod(self, reference: Reference, grace_seconds: int) -> None:
        """Order the end of this very pod; already gone is success."""
        path = paths.pod(reference.namespace, reference.name)
        try:
            await self._client.delete(path, uid=reference.uid, grace_seconds=grace_seconds)
        except (KubeNotFoundError, ConflictError):
            return
        except KubeError as fault:
            raise call_fault(fault) from fault

    async def undo(self, reference: Reference, fault: ProviderError) -> ProviderError:
        """Take back a pod whose copies could not be made; what is to be told then."""
        try:
            await self.delete_pod(reference, 0)
        except ProviderError as worse:
            message = f"{fault}; and pod {reference} could not be taken back: {worse}"
            return OutcomeUnknownError(message)
        if isinstance(fault, OutcomeUnknownError | InstanceNotFoundError):
            return UnavailableError(str(fault))
        return fault


def _maker(pod: Json) -> str | None:
    return strings(mapping(pod, "metadata"), "labels").get(marks.BACKEND)


def _replacing(body: Mapping[str, Any]) -> dict[str, Any]:
    """A strategic merge that adds owners and labels, and leaves no old key in the content."""
    content = {
        name: {"$patch": "replace", **body[name]} for name in ("data", "binaryData") if name in body
    }
    return {**body, **content}


async def asked(work: Awaitable[T]) -> T:
    """The answer of a call that makes nothing. Raises ``ProviderError``."""
    try:
        return await work
    except KubeError as fault:
        raise call_fault(fault) from fault
