"""What an API server would refuse of a pod's shape: fields unknown, missing, of a wrong type. Pure.

The shape is that of the models of the ``kubernetes`` package, generated from Kubernetes' own
OpenAPI document; they are too slow for a node and right for a manifest that a person wrote. Fed by
:mod:`vk_provider.offline.workloads`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from kubernetes.client.models.v1_pod_template_spec import V1PodTemplateSpec
from pydantic import BaseModel, ValidationError

from vk_provider.faults import FieldProblem
from vk_provider.fields import nearest, show

_ALLOWED = {
    "string_type": "a string, in quotes",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
}
# The API server takes a bare number where the document says that a quantity is a string.
_QUANTITIES = ("limits", "requests", "overhead")
_QUANTITY_FIELDS = ("sizeLimit", "divisor", "storage")

_MOST_LISTED = 12

Location = Sequence[str | int]


def shape_problems(template: Mapping[str, Any]) -> tuple[FieldProblem, ...]:
    """Every field of a pod's ``metadata`` and ``spec`` that no API server knows, misses or takes
    as it is, each once."""
    pod = {key: template[key] for key in ("metadata", "spec") if template.get(key) is not None}
    found = {problem.path: problem for problem in _unknown(V1PodTemplateSpec, pod, ())}
    try:
        V1PodTemplateSpec.model_validate(pod)
    except ValidationError as error:
        for each in error.errors(include_url=False):
            for problem in _problem(pod, each["type"], each["loc"]):
                found.setdefault(problem.path, problem)
    return tuple(found.values())


def _unknown(annotation: Any, value: Any, location: Location) -> Iterator[FieldProblem]:
    """The models take ``env_from`` as well, and an API server does not: so not their word."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unknown(annotation, item, (*location, index))
        return
    model = _model(annotation)
    if model is None or not isinstance(value, Mapping):
        return
    fields = {each.serialization_alias or name: each for name, each in model.model_fields.items()}
    for key, below in value.items():
        if key in fields:
            yield from _unknown(fields[key].annotation, below, (*location, key))
        else:
            near = nearest(str(key), list(fields))
            hint = f'did you mean "{near}"?' if near else _choice(fields)
            yield FieldProblem(_path((*location, str(key))), f"unknown field; {hint}")


def _choice(fields: Mapping[str, Any]) -> str:
    if len(fields) > _MOST_LISTED:
        return "no field of a pod is called so here"
    return f"valid: {', '.join(sorted(fields))}"


def _model(annotation: Any) -> type[BaseModel] | None:
    """The model in ``Optional[List[Model]]``; a mapping of free keys has none."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for each in get_args(annotation) if (found := _model(each))), None)


def _problem(pod: Mapping[str, Any], kind: str, location: Location) -> Iterator[FieldProblem]:
    known, value = _follow(pod, location)
    if kind == "missing":
        yield FieldProblem(_path(location), "missing, must be given")
    elif kind != "extra_forbidden" and not (_is_quantity(known) and _is_number(value)):
        allowed = _ALLOWED.get(kind, "what the API reference of Pod says")
        yield FieldProblem(_path(known), f"found {show(value)}, allowed: {allowed}")


def _follow(pod: Any, location: Location) -> tuple[Location, Any]:
    """The part of a location that is in the document (the rest names a choice of types)."""
    value = pod
    for depth, step in enumerate(location):
        try:
            value = value[step]
        except (LookupError, TypeError):
            return location[:depth], value
    return location, value


def _is_quantity(location: Location) -> bool:
    named = [step for step in location if isinstance(step, str)]
    return named[-1] in _QUANTITY_FIELDS or (len(named) > 1 and named[-2] in _QUANTITIES)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _path(location: Location) -> str:
    path = ""
    for step in location:
        if isinstance(step, int):
            path += f"[{step}]"
        elif step.replace("_", "").isalnum():
            path += f".{step}" if path else step
        else:
            path += f"[{step}]"
    return path
