"""What is valid in a configuration and may yet be a slip: names that are not among those known.

A backend sells new GPU types and opens new data centres before any table here knows of them, so
that such a name is no mistake; but nobody should learn of a slip from pods that wait. Pure.
Fed by whoever reads a block and knows names; feeds :mod:`vk_provider.settings_file`, which tells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from vk_provider.faults import FieldProblem
from vk_provider.fields import nearest, show

GPU_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu")
_MOST_NAMED = 4
# nvidia.com/gpu.shared and nvidia.com/mig-1g.5gb exist, and are less like it than this.
_LIKE_A_DEVICE = 0.88


class Doubt(FieldProblem):
    """A field that is honoured as it is, and that a person should look at again."""


def unheard(path: str, names: Sequence[str], known: Sequence[str], what: str) -> Iterator[Doubt]:
    """A doubt about each of a list's names that is not known; ``what`` it names is a plural."""
    for index, name in enumerate(names):
        if (doubt := unknown(f"{path}[{index}]", name, known, what)) is not None:
            yield doubt


def unknown(path: str, name: str, known: Sequence[str], what: str) -> Doubt | None:
    """The doubt about one name; None if it is known."""
    if name in known:
        return None
    meant = resembling(name, known)
    hint = f"did you mean {either(meant)}?" if meant else "look whether it is spelt as there"
    return Doubt(path, f"{show(name)} is not among the {what} known here; {hint}")


def misspelt_device(path: str, resource: str) -> Doubt | None:
    """The doubt about a resource that is nearly what GPUs are called."""
    if not get_close_matches(resource, GPU_RESOURCES, cutoff=_LIKE_A_DEVICE):
        return None
    return unknown(path, resource, GPU_RESOURCES, "GPU resources")


def either(words: Sequence[str]) -> str:
    """Words to choose from, as a sentence has them."""
    return " or ".join(show(word) for word in words)


def resembling(name: str, known: Sequence[str]) -> tuple[str, ...]:
    """What a person may have meant: names with all of these words in them, else the nearest."""
    words = _words(name)
    holding = [each for each in known if words and words <= _words(each)]
    if not holding and (near := nearest(name, known)) is not None:
        holding = [near]
    return tuple(holding[:_MOST_NAMED])


def _words(name: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", name.lower()))
