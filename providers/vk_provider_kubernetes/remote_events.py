"""Events of the other cluster about its pods, each told once per occurrence.

An Event object is counted on while the same thing happens again, so what is new is a higher count
or a later time. What was there before we listened is not told: an earlier process has, or nobody
cares any more.
Pure. Fed by ``provider`` with a watch of one namespace; feeds the core.
"""

from __future__ import annotations

from vk_provider.kube.watch import Removed, Synced, Upsert, WatchEvent
from vk_provider.pods.reading import mapping, number, text
from vk_provider.pods.types import InstanceRef, Json
from vk_provider.provider import InstanceEvent
from vk_provider_kubernetes.references import Reference

FIELDS = "involvedObject.kind=Pod"
"""The field selector of what concerns pods."""

_Occurrence = tuple[int, str]


class RemoteEvents:
    """The Events of one namespace, as far as they were told."""

    def __init__(self) -> None:
        self._known: dict[str, _Occurrence] = {}
        self._is_listening = False

    def news(self, event: WatchEvent) -> InstanceEvent | None:
        """What is to be told, if this is news."""
        match event:
            case Upsert(obj=found):
                return self._occurred(found)
            case Removed(obj=gone):
                self._known.pop(_uid(gone), None)
            case Synced(uids=uids):
                self._is_listening = True
                self._known = {uid: seen for uid, seen in self._known.items() if uid in uids}
        return None

    def _occurred(self, event: Json) -> InstanceEvent | None:
        uid, now = _uid(event), _occurrence(event)
        before = self._known.get(uid)
        self._known[uid] = now
        is_news = self._is_listening and before != now
        return read(event) if is_news else None


def read(event: Json) -> InstanceEvent | None:
    """The Event as the seam has it; None for what is said of every pod at home as well."""
    about, kind = mapping(event, "involvedObject"), text(event, "type")
    namespace, name, uid = (text(about, key) for key in ("namespace", "name", "uid"))
    is_said_at_home = kind == "Normal" and text(event, "reason") == "Scheduled"
    if not (namespace and name and uid) or is_said_at_home:
        return None
    # A kubelet adds whose container it is; the Event stands on the pod, under another name.
    where = f" in pod {name}_{namespace}({uid})"
    return InstanceEvent(
        InstanceRef(str(Reference(namespace, name, uid))),
        kind if kind in ("Normal", "Warning") else "Normal",
        text(event, "reason"),
        text(event, "message").replace(where, ""),
        text(about, "fieldPath"),
    )


def _uid(event: Json) -> str:
    return text(mapping(event, "metadata"), "uid")


def _occurrence(event: Json) -> _Occurrence:
    """Its count and its time; the newer kind of Event keeps both in a series."""
    series = mapping(event, "series")
    count = number(series, "count") or number(event, "count") or 1
    last = text(series, "lastObservedTime") or text(event, "lastTimestamp")
    return count, last or text(event, "eventTime")
