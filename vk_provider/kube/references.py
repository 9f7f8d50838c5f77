"""The ConfigMaps and Secrets that our pods refer to, and no others.

One watch per referenced object (a field selector on its name), shared by all pods that refer to it
and closed with the last of them: what we hold in memory is what runs here. A namespace that we may
not read counts as holding nothing, and ``fault`` says why.

Fed by ``kube.watched`` and by ``loops.preparation`` (what a pod refers to); feeds ``pods.resolve``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from vk_provider.faults import KubeError
from vk_provider.kube import paths
from vk_provider.kube.client import KubeClient
from vk_provider.kube.watch import WatchTimings
from vk_provider.kube.watched import FIRST_ANSWER_SECONDS, Watched, WatchedSet
from vk_provider.pods.references import CONFIG_MAP, SECRET, ObjectKey
from vk_provider.pods.types import Json, PodUID

_COLLECTIONS: Mapping[str, Callable[[str], str]] = {
    CONFIG_MAP: paths.config_maps,
    SECRET: paths.secrets,
}


class NotWantedError(LookupError):
    """An object is asked for that no pod wants (any more), so nobody looks at it."""


class ReferenceCache:
    """ConfigMaps and Secrets by key, watched while a pod wants them and :meth:`run` runs."""

    def __init__(
        self,
        client: KubeClient,
        on_change: Callable[[ObjectKey], None],
        *,
        timings: WatchTimings | None = None,
    ) -> None:
        self._client = client
        self._on_change = on_change
        self._timings = timings
        self._wanted: dict[PodUID, frozenset[ObjectKey]] = {}
        self._owners: dict[ObjectKey, set[PodUID]] = {}
        self._watches: WatchedSet[ObjectKey] = WatchedSet(self._make)

    async def run(self) -> None:
        """Follow what is wanted until cancelled."""
        await self._watches.run()

    def want(self, owner: PodUID, keys: frozenset[ObjectKey]) -> None:
        """From now on this pod refers to these objects, and to no others."""
        before = self._wanted.get(owner, frozenset())
        self._wanted[owner] = keys
        for key in keys - before:
            self._owners.setdefault(key, set()).add(owner)
            self._watches.start(key)
        for key in before - keys:
            self._drop(owner, key)

    def release(self, owner: PodUID) -> None:
        """This pod refers to nothing any more."""
        for key in self._wanted.pop(owner, frozenset()):
            self._drop(owner, key)

    def owners(self, key: ObjectKey) -> frozenset[PodUID]:
        """The pods that want this object: who must hear of its change."""
        return frozenset(self._owners.get(key, ()))

    async def get(self, key: ObjectKey, seconds: float = FIRST_ANSWER_SECONDS) -> Json | None:
        """The object, None if it is absent or may not be read. Waits for the first answer.

        Raises :class:`~vk_provider.faults.KubeUnavailableError` if none comes in time, and
        :class:`NotWantedError`.
        """
        watched = self._watches.find(key)
        if watched is None:
            raise NotWantedError(f"{key} is asked for, but no pod wants it")
        await watched.wait(seconds)
        return next(iter(watched.objects()), None)

    def known(self, key: ObjectKey) -> Json | None:
        """The object as far as it was seen, without waiting."""
        watched = self._watches.find(key)
        return None if watched is None else next(iter(watched.objects()), None)

    def fault(self, key: ObjectKey) -> KubeError | None:
        """Why the object can't be seen at the moment; None if it can."""
        watched = self._watches.find(key)
        return None if watched is None else watched.fault

    def _make(self, key: ObjectKey) -> Watched:
        return Watched(
            self._client,
            _COLLECTIONS[key.kind](key.namespace),
            key.name,
            on_change=lambda: self._on_change(key),
            timings=self._timings,
        )

    def _drop(self, owner: PodUID, key: ObjectKey) -> None:
        owners = self._owners[key]
        owners.discard(owner)
        if not owners:
            del self._owners[key]
            self._watches.stop(key)
