"""Names in the configuration that RunPod is not known to have. Pure.

Fed by ``config`` with the lists as they were written, and by ``shopping`` with the live catalogue;
feeds whoever reads the configuration, and the log.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vk_provider.doubts import Doubt, either, resembling, unheard
from vk_provider.pods.reading import mappings, text
from vk_provider_runpod.names import CPU_FLAVOURS, DATA_CENTERS, GPU_TYPES

KNOWN: Mapping[str, tuple[Sequence[str], str]] = {
    "gpuTypes": (GPU_TYPES, "GPU types of RunPod's catalogue"),
    "cpuTypes": (CPU_FLAVOURS, "CPU flavours of RunPod"),
    "dataCenters": (DATA_CENTERS, "data centres of RunPod"),
}


def doubts_about(path: str, key: str, names: Sequence[str]) -> Iterator[Doubt]:
    """Those of a list's names that are in no catalogue seen so far; newer ones are honoured."""
    known, what = KNOWN[key]
    return unheard(f"{path}.{key}", names, known, what)


def not_sold(names: Sequence[str], catalogue: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Configured GPU types that the live catalogue does not have, and what to do about each."""
    sold = [text(entry, "id") for _, entry in mappings(catalogue, "gpus")]
    for name in names:
        if sold and name not in sold:
            meant = resembling(name, sold)
            hint = f"; did you mean {either(meant)}?" if meant else ""
            yield name, f'gpuTypes: RunPod\'s catalogue has no "{name}" for us{hint}'
