"""The queries that hold unless others are configured, computed by promtool on written series."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.rig.prometheus import promtool
from vk_provider.settings_bursting_gpu_health import GpuHealthSettings
from vk_provider.settings_bursting_prometheus import PrometheusQueries

HOME = Path(__file__).parents[3] / "tests" / "rules" / "home.yaml"
GPU = 'Hostname="a",UUID="GPU-1",gpu="0",modelName="H100"'
UNAME = ('node_uname_info{instance="10.0.0.1:9100",nodename="a"}', "1x90")
PORT = 'instance="10.0.0.1:9100",device="mlx5_0",port="1"'
ABOUT_GPU = f"{{{GPU}}}"
ABOUT_PORT = '{nodename="a",device="mlx5_0"}'
Series = Sequence[tuple[str, str]]


async def computed(
    folder: Path, query: str, series: Series, expected: Mapping[str, float], minute: int = 40
) -> None:
    """Have promtool compute a query; it fails with what it got instead."""
    samples = [{"labels": labels, "value": value} for labels, value in expected.items()]
    case = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series],
        "promql_expr_test": [
            {"expr": query, "eval_time": f"{minute}m", "exp_samples": samples},
        ],
    }
    file = folder / "case.yaml"
    file.write_text(json.dumps({"evaluation_interval": "1m", "tests": [case]}))
    assert "SUCCESS" in await promtool("test", "rules", file)


def health(name: str) -> str:
    """The query of a default rule."""
    return next(rule.query for rule in GpuHealthSettings().rules if rule.name == name)


HEALTH: list[tuple[str, Series, Mapping[str, float]]] = [
    (
        "HotGpu",
        [
            (f'DCGM_FI_DEV_GPU_TEMP{{{GPU},pod="x"}}', "84x35 _x60"),
            (f'DCGM_FI_DEV_GPU_TEMP{{{GPU},pod="y"}}', "_x35 82x60"),
            ('DCGM_FI_DEV_GPU_TEMP{Hostname="a",UUID="GPU-2"}', "_x36 99x60"),
        ],
        {ABOUT_GPU: 82},
    ),
    (
        "ThermalViolation",
        [(f"DCGM_FI_DEV_THERMAL_VIOLATION{{{GPU}}}", "0+100x90")],
        {ABOUT_GPU: 1000},
    ),
    (
        "ThermalSlowdown",
        [
            (f'DCGM_EXP_CLOCK_EVENTS_COUNT{{{GPU},clock_event="hw_slowdown"}}', "2x90"),
            (f'DCGM_EXP_CLOCK_EVENTS_COUNT{{{GPU},clock_event="power_cap"}}', "9x90"),
        ],
        {ABOUT_GPU: 2},
    ),
    (
        "Xid",
        [(f'DCGM_EXP_XID_ERRORS_COUNT{{{GPU},xid="79",window_size_in_ms="1"}}', "1x90")],
        {'{Hostname="a",UUID="GPU-1",gpu="0",xid="79"}': 1},
    ),
    (
        "LastXid",
        [
            (f"DCGM_FI_DEV_XID_ERRORS{{{GPU}}}", "0x30 79x60"),
            ('DCGM_FI_DEV_XID_ERRORS{Hostname="a",UUID="GPU-2"}', "48x90"),
        ],
        {ABOUT_GPU: 79},
    ),
    (
        "RowRemapFailure",
        [(f"DCGM_FI_DEV_ROW_REMAP_FAILURE{{{GPU}}}", "1x90")],
        {ABOUT_GPU: 1},
    ),
    (
        "NvlinkRecovery",
        [(f"DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL{{{GPU}}}", "0+1x90")],
        {ABOUT_GPU: 30},
    ),
    (
        "InfinibandLinkDown",
        [UNAME, (f"node_infiniband_link_downed_total{{{PORT}}}", "0+1x90")],
        {ABOUT_PORT: 60},
    ),
    (
        "InfinibandSymbolErrors",
        [UNAME, (f"node_infiniband_symbol_error_total{{{PORT}}}", "0+3x90")],
        {ABOUT_PORT: 180},
    ),
    (
        "InfinibandIntegrity",
        [
            UNAME,
            (f"node_infiniband_local_link_integrity_errors_total{{{PORT}}}", "7x90"),
            (f"node_infiniband_excessive_buffer_overrun_errors_total{{{PORT}}}", "0+1x90"),
        ],
        {ABOUT_PORT: 60},
    ),
    (
        "Alerts",
        [
            ('ALERTS{alertname="A",alertstate="firing",gpu_health="dead",node="a"}', "1x90"),
            ('ALERTS{alertname="B",alertstate="pending",gpu_health="dead",node="a"}', "1x90"),
            ('ALERTS{alertname="C",alertstate="firing",node="a"}', "1x90"),
        ],
        {'ALERTS{alertname="A",alertstate="firing",gpu_health="dead",node="a"}': 1},
    ),
]


@pytest.mark.parametrize(("name", "series", "expected"), HEALTH, ids=[one[0] for one in HEALTH])
async def test_a_health_rule_finds_what_it_is_named_after(
    name: str, series: Series, expected: Mapping[str, float], tmp_path: Path
) -> None:
    """And nothing beside it."""
    await computed(tmp_path, health(name), series, expected, minute=61 if UNAME in series else 40)


def test_every_health_rule_is_tried() -> None:
    """Each once."""
    assert [rule.name for rule in GpuHealthSettings().rules] == [name for name, _, _ in HEALTH]


@pytest.mark.parametrize(
    ("name", "gpus", "expected"),
    [
        ("home_nodes", 1, 3),
        ("slots", 1, 8),
        ("slots", 2, 3),
        ("slots", 8, 0),
        ("training_waiting", 1, 8),
        ("age", 1, 0),
    ],
)
async def test_the_gates_queries_agree_with_the_rules(
    name: str, gpus: int, expected: float, tmp_path: Path
) -> None:
    """On the very series of the rules' own test."""
    query: str = getattr(PrometheusQueries(), name)
    filled = query.replace("{resource}", "nvidia_com_gpu").replace("{gpus}", str(gpus))
    # As text: to YAML, 0x30 is a number.
    first: dict[str, Any] = yaml.load(HOME.read_text(), yaml.BaseLoader)["tests"][0]
    series = [(one["series"], one["values"]) for one in first["input_series"]]
    await computed(tmp_path, filled, series, {"{}": expected}, minute=5)
