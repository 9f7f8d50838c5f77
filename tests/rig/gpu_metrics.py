"""Stand-ins for dcgm-exporter and node_exporter, which need hardware: their series, as documented.

async with gpu_metrics(bed) as source:
    source.temperatures["home-1"] = 84

All nodes are in one answer; the real ones run on each node.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from tests.rig.control_plane import ControlPlane
from tests.rig.state_metrics import exporting, line

GPUS = 2
MODEL = "NVIDIA H100 80GB HBM3"
_COUNTERS = (
    "DCGM_FI_DEV_THERMAL_VIOLATION",
    "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
)
_GAUGES: Mapping[str, float] = {
    "DCGM_FI_DEV_XID_ERRORS": 0,
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": 0,
    "DCGM_FI_DEV_GPU_TEMP_LIMIT": 20,
}
_INFINIBAND = (
    "link_downed_total",
    "symbol_error_total",
    "local_link_integrity_errors_total",
    "excessive_buffer_overrun_errors_total",
    "link_error_recovery_total",
)


@dataclass
class GpuMetrics:
    """Answers scrapes on ``port``; a node is measured as long as it has a temperature."""

    port: int
    temperatures: dict[str, float] = field(default_factory=dict)
    xids: dict[str, int] = field(default_factory=dict)
    pods: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Namespace and name of the pod that a node's GPUs work for."""

    async def serve(self, _: web.Request) -> web.Response:
        """Everything as it is now."""
        series = [one for node in self.temperatures for one in self._of(node)]
        return web.Response(text="".join(f"{one}\n" for one in series))

    def _of(self, node: str) -> Iterator[str]:
        for gpu in range(GPUS):
            yield from self._of_gpu(node, gpu)
        host = {"instance": f"{node}:9100"}
        yield line("node_uname_info", host | {"nodename": node}, 1)
        for name in _INFINIBAND:
            labels = host | {"device": "mlx5_0", "port": "1"}
            yield line(f"node_infiniband_{name}", labels, 0)

    def _of_gpu(self, node: str, gpu: int) -> Iterator[str]:
        labels = {
            "gpu": str(gpu),
            "UUID": f"GPU-{node}-{gpu}",
            "device": f"nvidia{gpu}",
            "modelName": MODEL,
            "Hostname": node,
        }
        if node in self.pods:
            namespace, pod = self.pods[node]
            labels |= {"namespace": namespace, "pod": pod, "container": "main"}
        yield line("DCGM_FI_DEV_GPU_TEMP", labels, self.temperatures[node])
        yield line("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", labels, 0.4)
        for name in _COUNTERS:
            yield line(name, labels, 0)
        for name, value in _GAUGES.items():
            yield line(name, labels, value)
        yield line("DCGM_EXP_CLOCK_EVENTS_COUNT", labels | {"clock_event": "hw_thermal"}, 0)
        if node in self.xids:
            xid = labels | {"xid": str(self.xids[node]), "window_size_in_ms": "300000"}
            yield line("DCGM_EXP_XID_ERRORS_COUNT", xid, 1)


@asynccontextmanager
async def gpu_metrics(bed: ControlPlane) -> AsyncIterator[GpuMetrics]:
    """Serve until left."""
    source = GpuMetrics(bed.free_port())
    async with exporting(source.port, source.serve):
        yield source
