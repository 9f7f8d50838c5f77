"""Whether what is said of a descheduler has the shape that the linter reads. Pure.

Fed by ``doctor.descheduler`` with policies, the chart's values and the objects around them; the
problems stand before anything is judged, since the descheduler would not start on such a policy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from vk_provider.faults import FieldProblem
from vk_provider.fields import join_path, show

_SELECTOR = {"matchLabels": {}, "matchExpressions": [{"values": [None], "key": "", "operator": ""}]}
_ARGUMENTS = {
    "includedTaints": [""],
    "excludedTaints": [""],
    "labelSelector": _SELECTOR,
    "namespaceLabelSelector": _SELECTOR,
    "namespaces": {"include": [""], "exclude": [""]},
    "priorityThreshold": {"value": 0, "name": ""},
    "nodeSelector": "",
    "minPodAge": "",
    "minReplicas": 0,
    "minPodLifetimeSeconds": 0,
    "reasons": [""],
    "excludeOwnerKinds": [""],
    "podProtections": {"extraEnabled": [""], "defaultDisabled": [""]},
}
_SET = {"enabled": [""], "disabled": [""]}
_EXTENSIONS = ("presort", "sort", "deschedule", "balance", "filter", "preevictionfilter")
_POLICY = {
    "profiles": [
        {
            "name": "",
            "pluginConfig": [{"name": "", "args": _ARGUMENTS}],
            "plugins": dict.fromkeys(_EXTENSIONS, _SET),
        }
    ],
    "nodeSelector": "",
    "maxNoOfPodsToEvictPerNode": 0,
    "maxNoOfPodsToEvictPerNamespace": 0,
    "maxNoOfPodsToEvictTotal": 0,
}
_CONTAINER = {
    "command": [""],
    "args": [""],
    "volumeMounts": [{"name": "", "mountPath": ""}],
}
_VOLUME = {"name": "", "configMap": {"name": "", "items": [{"key": "", "path": ""}]}}
_TEMPLATE = {"spec": {"containers": [_CONTAINER], "volumes": [_VOLUME]}}
_METADATA = {"name": "", "namespace": ""}
_SHAPES: Mapping[str, Any] = {
    "DeschedulerPolicy": _POLICY,
    "ConfigMap": {"metadata": _METADATA, "data": {}},
    "Deployment": {"metadata": _METADATA, "spec": {"template": _TEMPLATE}},
    "CronJob": {
        "metadata": _METADATA,
        "spec": {"jobTemplate": {"spec": {"template": _TEMPLATE}}},
    },
}
_VALUES = {"deschedulerPolicy": _POLICY, "cmdOptions": {}}
_WORDS: Mapping[type, str] = {
    dict: "a mapping",
    list: "a list",
    str: "a text (put it in quotes)",
    int: "a whole number",
}


def shape_problems(found: Mapping[str, Any]) -> list[FieldProblem]:
    """What is of the wrong type, in a policy, an object or the values of the chart."""
    kind = found.get("kind")
    # The chart's values may have a `kind` too: that of the workload it makes.
    is_values = "deschedulerPolicy" in found
    shape = _VALUES if is_values else _SHAPES.get(str(kind), _VALUES)
    problems = list(_problems(found, shape, ""))
    data = found.get("data")
    if kind == "ConfigMap" and isinstance(data, Mapping):
        for key, value in data.items():
            problems += _problems(value, "", join_path("data", str(key)))
    return problems


def _problems(found: Any, shape: Any, path: str) -> Iterator[FieldProblem]:
    if found is None or shape is None:
        return
    if not isinstance(found, type(shape)) or isinstance(found, bool):
        yield FieldProblem(path, f"found {show(found)}, allowed: {_WORDS[type(shape)]}")
    elif isinstance(shape, dict):
        for key, inner in shape.items():
            yield from _problems(found.get(key), inner, join_path(path, key))
    elif isinstance(shape, list):
        for index, each in enumerate(found):
            yield from _problems("" if each is None else each, shape[0], f"{path}[{index}]")
