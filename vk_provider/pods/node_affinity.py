"""Whether a node's labels satisfy a pod's nodeSelector and required node affinity.

Fed by a pod and a node's labels; read by :mod:`vk_provider.pods.admission`. The rules are the
scheduler's: terms are alternatives, a term's expressions must all hold, an empty term matches
nothing, and an expression that can't be read matches nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from vk_provider.pods.reading import mapping, mappings, strings, text, texts
from vk_provider.pods.types import Json
from vk_provider.quantities import integer

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

Values = Sequence[str]


def is_selected(pod: Json, node_name: str, labels: Mapping[str, str]) -> bool:
    """Whether this pod may be on that node, preferences aside."""
    spec = mapping(pod, "spec")
    wanted = strings(spec, "nodeSelector")
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    required = mapping(mapping(spec, "affinity"), "nodeAffinity").get(_REQUIRED)
    if required is None:
        return True
    terms = mappings(mapping({_REQUIRED: required}, _REQUIRED), "nodeSelectorTerms")
    return any(_term_matches(term, node_name, labels) for _, term in terms)


def _term_matches(term: Json, node_name: str, labels: Mapping[str, str]) -> bool:
    expressions = [one for _, one in mappings(term, "matchExpressions")]
    fields = [one for _, one in mappings(term, "matchFields")]
    name = {"metadata.name": node_name}
    return (
        bool(expressions or fields)
        and all(_holds(one, labels) for one in expressions)
        and all(_holds(one, name) for one in fields)
    )


def _holds(expression: Json, labels: Mapping[str, str]) -> bool:
    rule = _OPERATORS.get(text(expression, "operator"), _never)
    return rule(labels.get(text(expression, "key")), texts(expression, "values") or ())


def _never(found: str | None, values: Values) -> bool:
    return False


def _is_above(found: str | None, values: Values) -> bool:
    pair = _integers(found, values)
    return pair is not None and pair[0] > pair[1]


def _is_below(found: str | None, values: Values) -> bool:
    pair = _integers(found, values)
    return pair is not None and pair[0] < pair[1]


def _integers(found: str | None, values: Values) -> tuple[int, int] | None:
    if found is None or len(values) != 1:
        return None
    mine, theirs = integer(found), integer(values[0])
    return None if mine is None or theirs is None else (mine, theirs)


_OPERATORS: Mapping[str, Callable[[str | None, Values], bool]] = {
    "In": lambda found, values: found in values,
    "NotIn": lambda found, values: found not in values,
    "Exists": lambda found, values: found is not None,
    "DoesNotExist": lambda found, values: found is None,
    "Gt": _is_above,
    "Lt": _is_below,
}
