"""Finds deschedulers and their policies among objects: Deployments, CronJobs, ConfigMaps, files.

Fed by ``doctor.descheduler`` with objects of a cluster or of files; feeds the rules of
``bursting``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from posixpath import basename, dirname
from typing import Any

from vk_provider.bursting.descheduler_homecoming import Program
from vk_provider.doctor.descheduler_shape import shape_problems
from vk_provider.fields import join_path
from vk_provider.pods.types import Json
from vk_provider.yaml_documents import Complaint, parse_documents

POLICY_KIND = "DeschedulerPolicy"
POLICY_FLAG = "policy-config-file"
_CHART_KEY = "deschedulerPolicy"
_YAML = (".yaml", ".yml", ".json")

Key = tuple[str, str]


@dataclass(slots=True)
class Found:
    """What was found. ``mute`` are deschedulers whose policy is not to be had, ``broken`` those
    that would not start on theirs, each with the reason."""

    programs: list[Program] = field(default_factory=list)
    mute: list[tuple[str, str]] = field(default_factory=list)
    broken: list[tuple[str, str]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.programs or self.mute or self.broken)


def policies_wanted(workloads: Sequence[Json]) -> Iterator[Key]:
    """Namespace and name of each ConfigMap that a descheduler's policy stands in."""
    for workload in workloads:
        for container in _containers(workload):
            mounted = _mounted(workload, container)
            if mounted:
                yield mounted[0]


def find(workloads: Sequence[Json], config_maps: Mapping[Key, Json]) -> Found:
    """Every descheduler among these Deployments and CronJobs."""
    found = Found()
    for workload in workloads:
        for container in _containers(workload):
            flags = _flags(container)
            if POLICY_FLAG in flags:
                _add(found, workload, container, flags, config_maps)
    return found


def of_documents(documents: Sequence[tuple[str, Any]]) -> Found:
    """Every descheduler in some files; each document comes with the place where it stands."""
    objects = [(place, value) for place, value in documents if isinstance(value, Mapping)]
    maps = [value for _, value in objects if value.get("kind") == "ConfigMap"]
    workloads = [value for _, value in objects if _is_workload(value)]
    found = find(workloads, {_key(one): one for one in maps})
    used = set(policies_wanted(workloads))
    for place, value in objects:
        if value.get("kind") == POLICY_KIND:
            found.programs.append(Program(place, value))
        elif _CHART_KEY in value:
            found.programs.append(_of_values(place, value))
        elif value.get("kind") == "ConfigMap" and _key(value) not in used:
            _add_all(found, place, value)
    return found


def is_about_deschedulers(value: Any) -> bool:
    """Whether a document of a file is something that :func:`of_documents` reads."""
    if not isinstance(value, Mapping):
        return False
    known = (POLICY_KIND, "ConfigMap")
    return value.get("kind") in known or _CHART_KEY in value or _is_workload(value)


def _add(
    found: Found,
    workload: Json,
    container: Json,
    flags: Mapping[str, str],
    config_maps: Mapping[Key, Json],
) -> None:
    where = f"{workload.get('kind', '')} {'/'.join(_key(workload))}"
    mounted = _mounted(workload, container)
    if mounted is None:
        found.mute.append((where, f"--{POLICY_FLAG} is in no ConfigMap's volume"))
        return
    source, file = mounted
    data = (config_maps.get(source) or {}).get("data") or {}
    policy, why = _parsed(data.get(file) or "")
    if why:
        found.broken.append((where, f"ConfigMap {'/'.join(source)}: {file}: {why}"))
    elif policy is None:
        found.mute.append((where, f"ConfigMap {'/'.join(source)} has no policy in {file}"))
    else:
        is_repeated = workload.get("kind") == "CronJob"
        _take(found, Program(where, policy, flags, is_repeated))


def _take(found: Found, program: Program) -> None:
    problems = shape_problems({**program.policy, "kind": POLICY_KIND})
    if problems:
        found.broken.append((program.where, "; ".join(map(str, problems))))
    else:
        found.programs.append(program)


def _mounted(workload: Json, container: Json) -> tuple[Key, str] | None:
    """The ConfigMap that a container's policy comes from, and the key in it."""
    path = _flags(container).get(POLICY_FLAG)
    if not path:
        return None
    volumes = {one.get("name"): one for one in _pod_spec(workload).get("volumes") or ()}
    for mount in container.get("volumeMounts") or ():
        source = (volumes.get(mount.get("name")) or {}).get("configMap")
        if source and mount.get("mountPath", "").rstrip("/") in (dirname(path), path):
            return (_key(workload)[0], source.get("name", "")), _file(source, basename(path))
    return None


def _file(source: Json, name: str) -> str:
    """The key behind a file name: a volume may rename it."""
    renamed = {item.get("path"): item.get("key") for item in source.get("items") or ()}
    return str(renamed.get(name, name))


def _flags(container: Json) -> dict[str, str]:
    """``--a=b``, ``--a b`` and ``--a`` of a container's command line."""
    flags: dict[str, str] = {}
    words = [str(word) for word in (*container.get("command", ()), *container.get("args", ()))]
    for word, following in zip(words, [*words[1:], ""], strict=False):
        if word.startswith("-"):
            name, equals, value = word.lstrip("-").partition("=")
            is_alone = not following or following.startswith("-")
            flags[name] = value if equals else "true" if is_alone else following
    return flags


def _containers(workload: Json) -> Sequence[Json]:
    return _pod_spec(workload).get("containers") or ()


def _pod_spec(workload: Json) -> Json:
    spec = workload.get("spec") or {}
    if "jobTemplate" in spec:
        spec = (spec["jobTemplate"] or {}).get("spec") or {}
    template: Json = spec.get("template") or {}
    return template.get("spec") or {}


def _is_workload(value: Json) -> bool:
    return value.get("kind") in ("Deployment", "CronJob") and "spec" in value


def _of_values(place: str, values: Json) -> Program:
    """The chart's values: its policy, and the flags that it makes of the rest."""
    flags = {str(name): str(value) for name, value in (values.get("cmdOptions") or {}).items()}
    is_repeated = values.get("kind", "CronJob") == "CronJob"
    if not is_repeated:
        flags["descheduling-interval"] = str(values.get("deschedulingInterval", "5m"))
    return Program(place, values[_CHART_KEY] or {}, flags, is_repeated)


def _add_all(found: Found, place: str, config_map: Json) -> None:
    """The policies in a ConfigMap that nothing mounts; its other texts may be anything."""
    for key, text in (config_map.get("data") or {}).items():
        policy, why = _parsed(text)
        if why and (POLICY_KIND in text or key.endswith(_YAML)):
            found.broken.append((place, f"{join_path('data', key)}: {why}"))
        elif policy is not None and policy.get("kind") == POLICY_KIND:
            _take(found, Program(place, policy))


def _parsed(text: str) -> tuple[Json | None, str]:
    """The mapping in a text, None if it holds something else; and why it can't be read."""
    complaints: list[Complaint] = []
    documents = parse_documents("", text, complaints)
    why = "; ".join(f"line {each.line}: {each.message}" for each in complaints)
    value = documents[0].value if documents and not why else None
    return (value if isinstance(value, Mapping) else None), why


def _key(found: Json) -> Key:
    metadata = found.get("metadata") or {}
    return metadata.get("namespace", "default"), metadata.get("name", "")
