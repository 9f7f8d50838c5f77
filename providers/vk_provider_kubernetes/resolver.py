"""Whom a pod asks for names: home's DNS, where its Services can be reached.

The other cluster's kubelet would write its own; so ``ClusterFirst`` becomes the same file said out
loud, with home's servers and the pod's home namespace.
Pure. Fed by :mod:`.translate`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vk_provider.pods.reading import mapping, mappings, text, texts
from vk_provider.pods.types import Json
from vk_provider_kubernetes.config import MAX_NAME_SERVERS, HomeDns

_MAX_SEARCHES = 32
_DOTS = {"name": "ndots", "value": "5"}


def asks_cluster(spec: Json) -> bool:
    """Whether the pod's policy means the cluster's DNS. On its node's network it must say so."""
    policy = text(spec, "dnsPolicy") or "ClusterFirst"
    return policy == "ClusterFirstWithHostNet" or (
        policy == "ClusterFirst" and not spec.get("hostNetwork")
    )


def resolver(spec: Json, namespace: str, dns: HomeDns) -> dict[str, Any]:
    """The fields that make the pod's ``resolv.conf`` the one that a kubelet of home writes."""
    own = mapping(spec, "dnsConfig")
    below = [f"{namespace}.svc.{dns.domain}", f"svc.{dns.domain}", dns.domain]
    named = {text(option, "name") for _, option in mappings(own, "options")}
    options = [dict(option) for _, option in mappings(own, "options")]
    if "ndots" not in named:
        options.insert(0, dict(_DOTS))
    return {
        "dnsPolicy": "None",
        "dnsConfig": {
            "nameservers": _first([*dns.servers, *_words(own, "nameservers")], MAX_NAME_SERVERS),
            "searches": _first([*below, *_words(own, "searches")], _MAX_SEARCHES),
            "options": options,
        },
    }


def _words(config: Json, field: str) -> tuple[str, ...]:
    return tuple(texts(config, field) or ())


def _first(words: Iterable[str], limit: int) -> list[str]:
    """Each once, as many as the API takes."""
    return list(dict.fromkeys(words))[:limit]
