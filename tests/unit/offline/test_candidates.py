"""Candidates: the backends of a configuration, or what is installed."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from vk_provider.offline.candidates import configured, with_defaults, with_live_offers
from vk_provider.placement.ranking import Policy
from vk_provider.settings_file import load_settings

NODE = """\
apiVersion: vk-provider.dev/v1alpha1
kind: VirtualNode
metadata: {name: burst}
spec:
  capacity: {cpu: "8", memory: 32Gi, pods: "10"}
  labels: {zone: outside}
  taints: [{key: k, effect: NoExecute}]
  placement: {policy: priority}
  backends:
    - {name: a, provider: fake}
    - {name: b, provider: fake}
"""
MODULE = """\
from vk_provider.faults import ConfigError
from vk_provider.fields import Fields


def picky(config, context):
    problems = []
    fields = Fields(config, context.config_path, problems)
    fields.secret("apiKey")
    fields.child("registry").secret("password")
    if context.backend == "needy":
        fields.text("project")
    if problems:
        raise ConfigError(problems)
    return (context.node_name, dict(config))
"""


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two more providers, installed for real: one wants secrets, one a project besides."""
    info = tmp_path / "acme-1.0.dist-info"
    info.mkdir()
    (tmp_path / "vk_test_candidates.py").write_text(MODULE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[vk_provider.providers]\n"
        "secretive = vk_test_candidates:picky\nneedy = vk_test_candidates:picky\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("vk_test_candidates", None)


def test_every_configured_backend_is_a_candidate(tmp_path: Path) -> None:
    """With its node's labels, taints, capacity and policy."""
    file = tmp_path / "nodes.yaml"
    file.write_text(NODE)

    first, second = configured(load_settings([str(file)]).nodes)

    assert (first.name, second.name, first.provider_name) == ("a", "b", "fake")
    assert first.provider is not None
    assert first.node.labels["zone"] == "outside"
    assert first.node.labels["type"] == "virtual-kubelet"
    assert first.node.permanent_taints == ({"key": "k", "value": "", "effect": "NoExecute"},)
    assert first.node.capacity["pods"] == "10"
    assert first.policy is Policy.PRIORITY


@pytest.mark.usefixtures("acme")
def test_a_secret_that_must_be_given_is_not_needed_to_explain() -> None:
    """Wherever in the block it stands."""
    (found,) = [one for one in with_defaults() if one.name == "secretive"]
    provider: object = found.provider

    unset = {"env": "UNSET"}
    assert provider == ("virtual-node", {"apiKey": unset, "registry": {"password": unset}})


@pytest.mark.usefixtures("acme")
def test_what_has_no_default_asks_for_a_configuration() -> None:
    """And says for which field."""
    (found,) = [one for one in with_defaults() if one.name == "needy"]

    assert found.provider is None
    assert found.problems == (
        "needs --config: config.project: missing, must be given; allowed: a text",
    )


def test_the_test_kit_is_no_candidate() -> None:
    """It takes every pod, so it would answer for everybody."""
    names = [one.name for one in with_defaults()]

    assert "runpod" in names
    assert "fake" not in names


async def test_what_backends_offer_now_is_asked_for_once_per_count(tmp_path: Path) -> None:
    """And the candidate keeps it, beside all that it was."""
    file = tmp_path / "nodes.yaml"
    offers = "[{name: small, gpuType: T4, usdPerHour: 0.2}]"
    config = f"provider: fake, config: {{offers: {offers}}}}}"
    file.write_text(NODE.replace("provider: fake}", config))
    before = configured(load_settings([str(file)]).nodes)

    first, second = await with_live_offers(before, {1, 2})

    assert (first.name, second.name) == ("a", "b")
    assert set(first.live) == {1, 2}
    assert [each.usd_per_hour for each in first.live[1]] == [0.2]
    assert first.problems == ()


async def test_a_backend_that_can_not_be_asked_has_a_problem(tmp_path: Path) -> None:
    """In the backend's words; one without a catalogue is not asked at all."""
    file, faults = tmp_path / "nodes.yaml", tmp_path / "faults.json"
    faults.write_text('{"offers": "ProviderDenied"}')
    block = f"config: {{faultsFile: {faults}}}"
    file.write_text(NODE.replace("provider: fake}", f"provider: fake, {block}}}"))
    asked, other = configured(load_settings([str(file)]).nodes)
    without = replace(other, provider=None)

    failed, untouched = await with_live_offers((asked, without), {0})

    assert untouched == without
    assert failed.live == {}
    assert failed.problems[0].startswith("its catalogue can't be asked: ")
