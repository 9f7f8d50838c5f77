"""The objects and the configuration that make home nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.rig.kwok import Stages, is_usable, node


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A stage folder like kwok's."""
    for name in ("node/fast/node-initialize", "pod/fast/pod-ready", "pod/fast/pod-complete"):
        file = tmp_path / f"{name}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(
            yaml.safe_dump({"kind": "Stage", "metadata": {"name": file.stem}, "spec": {}})
        )
    (tmp_path / "pod/fast/kustomization.yaml").write_text("kind: Kustomization")
    return tmp_path


def stages(text: str) -> dict[str, Any]:
    """The stages of a configuration by name."""
    return {stage["metadata"]["name"]: stage for stage in yaml.safe_load_all(text)}


def test_stages_are_those_of_the_module(folder: Path) -> None:
    """All of them and nothing else."""
    assert set(stages(Stages().render(folder))) == {
        "node-initialize",
        "pod-ready",
        "pod-complete",
    }


def test_slow_start_delays_ready_alone(folder: Path) -> None:
    """Nodes stay fast."""
    rendered = stages(Stages(start_seconds=1.5).render(folder))

    assert rendered["pod-ready"]["spec"]["delay"] == {"durationMilliseconds": 1500}
    assert rendered["node-initialize"]["spec"] == {}


def test_jobs_may_run_on(folder: Path) -> None:
    """kwok would finish a training job at once."""
    assert "pod-complete" not in stages(Stages(complete_jobs=False).render(folder))


def test_jobs_may_end_when_told(folder: Path) -> None:
    """A story decides when its training is over."""
    rendered = stages(Stages(jobs_complete_when="sim.dev/finish").render(folder))

    (wanted,) = rendered["pod-complete"]["spec"]["selector"]["matchExpressions"]
    assert wanted == {"key": '.metadata.annotations["sim.dev/finish"]', "operator": "Exists"}


def test_home_node_is_marked_for_kwok() -> None:
    """kwok manages marked nodes only, never the node under test."""
    made = node("home-1", {"nvidia.com/gpu": "8"}, {"zone": "a"})

    assert made["metadata"]["annotations"] == {"kwok.x-k8s.io/node": "fake"}
    assert made["metadata"]["labels"]["zone"] == "a"
    assert made["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    assert made["status"]["capacity"]["pods"] == "110"


@pytest.mark.parametrize(
    ("status", "taints", "usable"),
    [
        ("True", [], True),
        ("Unknown", [], False),
        ("True", [{"key": "node.kubernetes.io/not-ready"}], False),
        ("True", [{"key": "dedicated"}], True),
    ],
)
def test_usable(status: str, taints: list[dict[str, str]], usable: bool) -> None:
    """Ready alone is not enough: the start-up taint goes a moment later."""
    seen = {
        "spec": {"taints": taints},
        "status": {"conditions": [{"type": "Ready", "status": status}]},
    }

    assert is_usable(seen) is usable
