"""Configuration files: everything that is wrong, at once, each with file and line."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from vk_provider.faults import ConfigError
from vk_provider.settings_file import USER_AGENT, load_settings, provider_context

NODE = """\
apiVersion: vk-provider.dev/v1alpha1
kind: VirtualNode
metadata: {name: NAME}
spec:
  capacity: {cpu: "8", memory: 32Gi, pods: "10"}
  server: {port: PORT}
  backends:
    - name: a
      provider: fake
"""
Write = Callable[..., str]


def node(name: str, port: int, more: str = "") -> str:
    """One valid document."""
    return NODE.replace("NAME", name).replace("PORT", str(port)) + more


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a file and returns its name."""

    def make(text: str, name: str = "nodes.yaml") -> str:
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return make


def complaints(*files: str) -> list[str]:
    """What is wrong, without the folders of the files."""
    with pytest.raises(ConfigError) as caught:
        load_settings(files)
    return [re.sub(r"\S*/nodes", "", str(each)) for each in caught.value.problems]


def test_several_documents_are_several_nodes(write: Write) -> None:
    """In one file or in many, in order."""
    first = write(node("a", 1) + "---\n" + node("b", 2))
    second = write(node("c", 3), "nodes2.yaml")

    loaded = load_settings([first, second]).nodes

    assert [(each.name, each.source) for each in loaded] == [
        ("a", first),
        ("b", first),
        ("c", second),
    ]


def test_each_mistake_has_its_file_line_and_path(write: Write) -> None:
    """All files, all documents, one run."""
    first = write(node("a", 1, "  tikSeconds: 3\n") + "---\n" + node("b", 2, "  reach: far\n"))
    second = write("kind: [\n", "nodes2.yaml")

    assert complaints(first, second, "/absent/nodes.yaml") == [
        '.yaml:10: spec.tikSeconds: unknown key; did you mean "tickSeconds"?',
        '.yaml:21: spec.reach: found "far", allowed: none, direct',
        "2.yaml:2: not YAML: while parsing a flow node, expected the node content, but found "
        "'<stream end>'",
        ".yaml: can't be read: No such file or directory",
    ]


def test_a_provider_checks_its_own_block(write: Write) -> None:
    """Its problems stand where the block stands."""
    text = node("a", 1, "      config:\n        nonsense: 1\n")

    (problem,) = complaints(write(text))

    assert problem.startswith(".yaml:11: spec.backends[0].config.nonsense: unknown key")


def test_an_unknown_provider_is_named_at_its_field(write: Write) -> None:
    """With what is installed."""
    (problem,) = complaints(write(node("a", 1).replace("provider: fake", "provider: fakes")))

    assert problem.startswith('.yaml:9: spec.backends[0].provider: no provider "fakes"')
    assert problem.endswith('did you mean "fake"?')


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", ".yaml: holds no document; allowed: kind VirtualNode or Bursting"),
        ("# nothing\n---\n", ".yaml: holds no document; allowed: kind VirtualNode or Bursting"),
        ("- a\n", ".yaml:1: found a list, allowed: a document of kind VirtualNode or Bursting"),
        (
            "apiVersion: vk-provider.dev/v1alpha1\nkind: Pod\nspec: {x: 1}\n",
            '.yaml:2: kind: found "Pod", allowed: VirtualNode, Bursting',
        ),
        (
            "apiVersion: vk-provider.dev/v2\nkind: VirtualNode\n",
            '.yaml:1: apiVersion: found "vk-provider.dev/v2", allowed: vk-provider.dev/v1alpha1',
        ),
    ],
)
def test_what_is_no_virtual_node_is_one_complaint(write: Write, text: str, problem: str) -> None:
    """Another kind's fields are not complained about."""
    assert complaints(write(text)) == [problem]


def test_a_key_given_twice_is_refused(write: Write) -> None:
    """One of the two would silently win."""
    assert complaints(write(node("a", 1, "  reach: none\n  reach: direct\n"))) == [
        '.yaml:11: key "reach" is given twice, first on line 10'
    ]


def test_two_nodes_of_one_name_are_refused_once(write: Write) -> None:
    """What is derived from the name clashes as well, and is not worth a word."""
    (problem,) = complaints(write(node("a", 1) + "---\n" + node("a", 2)))

    expected = 'found "a", which the node at .yaml:3 has already; allowed: its own'
    assert problem == f".yaml:13: metadata.name: {expected}"


def test_two_nodes_of_one_port_are_refused(write: Write) -> None:
    """One kubelet port each; also when neither names one."""
    (problem,) = complaints(write(node("a", 7) + "---\n" + node("b", 7)))

    assert problem.startswith(".yaml:16: spec.server.port: found 7, which the node at ")


def test_two_nodes_of_one_lease_are_refused(write: Write) -> None:
    """Otherwise only one of them would ever lead."""
    lease = "  leaderElection: {name: same}\n"

    (problem,) = complaints(write(node("a", 1, lease) + "---\n" + node("b", 2, lease)))

    assert problem.startswith('.yaml:21: spec.leaderElection.name: found "same", which the node')


def test_free_ports_and_switched_off_elections_do_not_clash(write: Write) -> None:
    """Zero is a free port, picked at start."""
    off = "  leaderElection: {name: same, enabled: false}\n"

    assert len(load_settings([write(node("a", 0, off) + "---\n" + node("b", 0, off))]).nodes) == 2


def test_the_plain_port_is_one_for_all(write: Write) -> None:
    """One process, one place for metrics and health."""
    other = node("b", 2).replace("port: 2", "port: 2, plainPort: 9")

    assert complaints(write(node("a", 1) + "---\n" + other)) == [
        ".yaml:16: spec.server.plainPort: found 9, allowed: 8080 (one plain port serves all nodes)"
    ]


def test_a_provider_is_told_whom_it_serves(write: Write) -> None:
    """The cluster's own id wins only where none is configured."""
    (loaded,) = load_settings([write(node("a", 1, "  clusterId: home\n"))]).nodes

    context = provider_context(loaded, loaded.backends[0])

    assert (context.cluster_id, context.node_name, context.backend) == ("home", "a", "a")
    assert context.config_path == "spec.backends[0].config"
    assert context.user_agent == USER_AGENT
    assert provider_context(loaded, loaded.backends[0], "uid").cluster_id == "uid"


RULES = "apiVersion: vk-provider.dev/v1alpha1\nkind: Bursting\n"
GATE = "  bursting: {gate: {enabled: true}}\n"


def test_a_bursting_document_stands_beside_the_nodes(write: Write) -> None:
    """In the same files."""
    loaded = load_settings([write(node("a", 1) + "---\n" + RULES + "spec: {resource: x/y}\n")])

    assert loaded.bursting is not None
    assert loaded.bursting.selection.resource == "x/y"


def test_a_gate_without_a_bursting_document_gets_the_defaults(write: Write) -> None:
    """And without a gate there is no bursting side at all."""
    assert load_settings([write(node("a", 1, GATE))]).bursting is not None
    assert load_settings([write(node("a", 1))]).bursting is None


def test_a_node_with_a_gate_prefers_home_for_good(write: Write) -> None:
    """Unless its own taints say so already."""
    (loaded,) = load_settings([write(node("a", 1, GATE))]).nodes
    own = "  taints: [{key: vk-provider.dev/prefer-home, effect: NoSchedule}]\n"
    (given,) = load_settings([write(node("a", 1, GATE + own))]).nodes

    assert [taint.effect for taint in loaded.permanent_taints] == ["NoSchedule", "PreferNoSchedule"]
    assert [taint.effect for taint in given.permanent_taints] == ["NoSchedule"]


def test_there_is_one_bursting_document_and_never_alone(write: Write) -> None:
    """Two would contradict each other; one without a node has nothing to move."""
    assert complaints(write(node("a", 1) + "---\n" + RULES + "---\n" + RULES)) == [
        ".yaml:14: found a second document of kind Bursting, the first is at .yaml:11; allowed: one"
    ]
    assert complaints(write(RULES)) == [
        ".yaml:1: no document of kind VirtualNode beside it; allowed: at least one"
    ]


def test_a_doubt_refuses_nothing_and_is_told_with_its_place(write: Write) -> None:
    """Beside a mistake it is told as well: all at once."""
    doubtful = node("a", 1).replace('pods: "10"', 'pods: "10", nvidia.com/gpus: "1"')
    file = write(doubtful)

    settings = load_settings([file])

    (doubt,) = settings.doubts
    assert [each.name for each in settings.nodes] == ["a"]
    assert doubt.startswith(f"{file}:5: warning: spec.capacity[nvidia.com/gpus]: ")
    assert len(complaints(write(doubtful + "  reach: x\n"))) == 2
