"""`vk-provider doctor descheduler` with files: it asks no cluster."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from vk_provider.cli import main

POLICY = Path(__file__).parents[3] / "deploy" / "descheduler" / "policy.yaml"
NODE = """
apiVersion: vk-provider.dev/v1alpha1
kind: VirtualNode
metadata: {name: burst}
spec:
  capacity: {cpu: "8", memory: 32Gi, nvidia.com/gpu: "4", pods: "8"}
  bursting: {gate: {enabled: true}}
  backends: [{name: fake, provider: fake}]
---
apiVersion: vk-provider.dev/v1alpha1
kind: Bursting
metadata: {name: default}
spec: {homecoming: {evictionsPerCycle: 1}}
"""


def examine(*files: Path) -> int:
    """The exit code of the checkup."""
    return main(["doctor", "descheduler", *(word for file in files for word in ("-f", str(file)))])


def test_the_shipped_policy_passes(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 0, and it says that it looked."""
    assert examine(POLICY) == 0
    assert "brings pods home" in capsys.readouterr().out


def test_limits_of_the_configuration_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two of a kind that do not fit: the gate reckons with one a cycle, the policy takes two."""
    file = tmp_path / "config.yaml"
    file.write_text(NODE)

    assert examine(POLICY, file) == 1
    assert "evictionsPerCycle (1)" in " ".join(capsys.readouterr().out.split())


def test_a_folder_and_a_stock_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Everything in a folder is looked at; what is about nothing of it is left alone."""
    enabled = {"deschedule": {"enabled": ["RemovePodsViolatingNodeTaints"]}}
    profile = {"name": "stock", "pluginConfig": [], "plugins": enabled}
    stock = {"kind": "DeschedulerPolicy", "profiles": [profile]}
    (tmp_path / "stock.yaml").write_text(yaml.safe_dump(stock))

    assert examine(tmp_path) == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert "add vk-provider.dev/gate" in printed
    assert "add vk-provider.dev/unavailable" in printed


def test_a_folder_may_hold_other_things_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are passed over in one line, in files of their own and beside what is read."""
    (tmp_path / "policy.yaml").write_text(POLICY.read_text() + "---\nkind: Namespace\n")
    (tmp_path / "node.yaml").write_text(NODE + "---\n{kind: Namespace}\n---\njust words\n")

    assert examine(tmp_path) == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert 'neither about deschedulers nor ours: "just words" (1), Namespace (2)' in printed
    assert "evictionsPerCycle (1)" in printed


@pytest.mark.parametrize("text", ["", "kind: Namespace\n", "kind: ConfigMap\n"])
def test_files_without_any_policy_are_refused(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rather than taken for a question about a cluster."""
    (tmp_path / "other.yaml").write_text(text)

    assert examine(tmp_path) == 2
    assert "no descheduler and no policy of one" in capsys.readouterr().err


def test_a_config_map_whose_policy_is_no_yaml_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The descheduler would not start on it."""
    file = tmp_path / "map.yaml"
    file.write_text('kind: ConfigMap\ndata: {policy.yaml: "a: ["}\n')

    assert examine(file) == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert "its policy can't be read: data[policy.yaml]: line 1: not YAML" in printed


def test_what_is_no_yaml_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With file and line, as everywhere."""
    file = tmp_path / "broken.yaml"
    file.write_text("a: [")

    assert examine(file) == 2
    assert "broken.yaml:1" in capsys.readouterr().err


def test_a_policy_of_another_shape_is_told_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2: it was not understood."""
    file = tmp_path / "policy.yaml"
    file.write_text("kind: DeschedulerPolicy\nprofiles: 5\n")

    assert examine(file) == 2
    assert capsys.readouterr().err == f"{file}:2: profiles: found 5, allowed: a list\n"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["scoring", "--probes", "0"], "found '0', allowed: a whole number of at least 1"),
        (["scoring", "--namespace", "a/b"], "found 'a/b', allowed: a namespace"),
        (["scoring", "--pod", "pod/web/x"], "found 'pod/web/x', allowed: a pod as NAMESPACE/NAME"),
        (["kueue", "--kueue-namespace", ""], "found '', allowed: a namespace"),
    ],
)
def test_flags_are_checked_before_a_cluster_is_asked(
    flags: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A scoring of nothing would be good news; a slip in a name would ask for something else."""
    assert main(["doctor", *flags]) == 2
    assert said in capsys.readouterr().err


def test_a_new_provider_takes_no_name_that_is_installed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two of a name can't be told apart, and neither would run."""
    assert main(["new-provider", "fake", "--into", str(tmp_path / "new")]) == 2
    assert 'found "fake", which is installed already' in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
