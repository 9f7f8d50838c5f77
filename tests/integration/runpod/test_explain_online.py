"""`explain --online` with the real command, against the simulator."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from vk_provider_runpod.simulator import Options, Simulator

from tests.integration.runpod.conftest import API_KEY, in_thread
from vk_provider.cli import DONE, FAULT, MISUSE, main

POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: infer
  annotations: {vk-provider.dev/min-gpu-memory: 40Gi, vk-provider.dev/max-price: "0.9"}
spec:
  tolerations: [{key: virtual-kubelet.io/provider, operator: Exists}]
  containers:
    - name: main
      image: ghcr.io/acme/infer:1.2
      resources: {limits: {nvidia.com/gpu: 1}}
"""
CONFIG = """\
apiVersion: vk-provider.dev/v1alpha1
kind: VirtualNode
metadata: {name: burst}
spec:
  capacity: {cpu: "8", memory: 32Gi, nvidia.com/gpu: "4", pods: "10"}
  backends:
    - name: cloud
      provider: runpod
      config: {apiKey: {env: RUNPOD_API_KEY}, baseUrl: URL}
"""


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Simulator]:
    """A simulator that takes our key."""
    monkeypatch.setenv("RUNPOD_API_KEY", API_KEY)
    with in_thread(Options(speed=0, api_key=API_KEY)) as simulator:
        yield simulator


@pytest.fixture
def flags(tmp_path: Path, service: Simulator) -> list[str]:
    """A workload with wishes, and the account."""
    pod, config = tmp_path / "pod.yaml", tmp_path / "config.yaml"
    pod.write_text(POD)
    config.write_text(CONFIG.replace("URL", service.url))
    return ["explain", "-f", str(pod), "--config", str(config)]


def test_offers_are_shown_with_price_and_stock(
    flags: list[str], service: Simulator, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those that fit the pod's wishes, the cheapest first; nothing is created."""
    service.state.model.catalogue.limits["NVIDIA L40S", "*"] = 1

    assert main([*flags, "--online"]) == DONE

    shown = capsys.readouterr().out
    offers = [line.strip() for line in shown.splitlines() if ", stock " in line]
    assert offers == [
        "1 x NVIDIA RTX A6000  0.49 USD/h, stock high",
        "1 x NVIDIA L40S       0.86 USD/h, stock low",
    ]
    assert "can only be checked" not in shown
    assert {each.operation for each in service.state.requests} == {"listGpuTypes"}


def test_without_the_flag_nobody_is_asked(
    flags: list[str], service: Simulator, capsys: pytest.CaptureFixture[str]
) -> None:
    """As ever."""
    assert main(flags) == DONE

    assert "which --online asks" in capsys.readouterr().out
    assert not service.state.requests


def test_an_account_that_refuses_us_is_a_reason(
    flags: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Then it can run nowhere."""
    monkeypatch.setenv("RUNPOD_API_KEY", "another-key-altogether")

    assert main([*flags, "--online"]) == FAULT

    assert "its catalogue can't be asked" in " ".join(capsys.readouterr().out.split())


def test_whose_account_must_be_said(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Without a configuration there is none."""
    assert main([*flags[:3], "--online"]) == MISUSE
    assert "--online needs --config" in capsys.readouterr().err
