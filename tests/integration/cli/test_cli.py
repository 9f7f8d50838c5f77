"""The command line in process: what is printed where, and the exit code."""

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from vk_provider import __version__
from vk_provider.cli import DONE, FAULT, MISUSE, main

NODE = """\
apiVersion: vk-provider.dev/v1alpha1
kind: VirtualNode
metadata: {name: NAME}
spec:
  capacity: {cpu: "8", memory: 32Gi, pods: "10"}
  server: {port: 0}
  backends: [{name: here, provider: fake}]
"""
POD = """\
kind: Pod
metadata: {name: p}
spec:
  tolerations: [{operator: Exists}]
  containers:
    - name: a
      image: x:1
      env: [{name: T, valueFrom: {secretKeyRef: {name: s, key: k}}}]
"""
SECRET = "kind: Secret\nmetadata: {name: s}\nstringData: {k: hidden-value}\n"
PRIVILEGED = """\
kind: Pod
metadata: {name: p}
spec: {containers: [{name: a, image: "x:1", securityContext: {privileged: true}}]}
"""

Write = Callable[[str, str], str]
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a file and returns its name."""

    def make(name: str, text: str) -> str:
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        return str(file)

    return make


def node(name: str = "burst") -> str:
    """A valid configuration."""
    return NODE.replace("NAME", name)


def test_version_says_what_is_installed(capsys: Capture) -> None:
    """For a bug report."""
    assert main(["version"]) == DONE
    assert capsys.readouterr().out.startswith(f"vk-provider {__version__} (Python 3.")


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["--help"], DONE),
        (["--version"], DONE),
        ([], MISUSE),
        (["nonsense"], MISUSE),
        (["run"], MISUSE),
    ],
)
def test_usage_is_help_or_misuse(argv: list[str], code: int) -> None:
    """As argparse says it."""
    assert main(argv) == code


def test_validate_accepts_a_good_configuration(write: Write, capsys: Capture) -> None:
    """One line a node."""
    file = write("nodes.yaml", node("a") + "---\n" + node("b"))

    assert main(["validate", "-f", file]) == DONE
    assert [line.split(" is valid")[0] for line in capsys.readouterr().out.splitlines()] == [
        f"{file}: node a",
        f"{file}: node b",
    ]


def test_validate_reads_a_folder(write: Write, capsys: Capture) -> None:
    """Every YAML file in it, and only those."""
    folder = str(Path(write("nodes/b.yml", node("b"))).parent)
    write("nodes/a.yaml", node("a"))
    write("nodes/README.md", "nothing")

    assert main(["validate", "-f", folder]) == DONE
    assert "node a is valid" in capsys.readouterr().out.splitlines()[0]


def test_an_empty_folder_is_misuse(tmp_path: Path, capsys: Capture) -> None:
    """A mount that was forgotten."""
    assert main(["validate", "-f", str(tmp_path)]) == MISUSE
    assert capsys.readouterr().err == f"{tmp_path}: holds no file named .yaml or .yml or .json\n"


def test_an_empty_name_is_misuse(capsys: Capture) -> None:
    """A variable that is not set would stand for the present folder."""
    assert main(["validate", "-f", ""]) == MISUSE
    assert capsys.readouterr().err.startswith("found an empty file name")


@pytest.mark.parametrize("command", ["validate", "run"])
def test_a_wrong_configuration_is_told_in_full(write: Write, capsys: Capture, command: str) -> None:
    """Before anything is registered: `run` stops here too."""
    file = write("nodes.yaml", node().replace("port: 0", "prt: 0") + "  tickSeconds: x\n")

    assert main([command, "-f", file]) == MISUSE
    assert capsys.readouterr().err == (
        f'{file}:6: spec.server.prt: unknown key; did you mean "port"?\n'
        f'{file}:8: spec.tickSeconds: found "x", allowed: a number from 0.05 to 3600\n'
    )


def test_explain_shows_a_request_without_any_secret(write: Write, capsys: Capture) -> None:
    """Secrets come by -f as well, and are masked."""
    pod, secret = write("pod.yaml", POD), write("secret.yaml", SECRET)
    config = write("nodes.yaml", node())

    assert main(["explain", "-f", pod, "-f", secret, "--config", config]) == DONE
    out = capsys.readouterr().out
    assert "yes  here of node burst (fake)" in out
    assert "1 of 1 workload can run" in out
    assert "hidden-value" not in out


def test_explain_without_a_configuration_asks_what_is_installed(
    write: Write, capsys: Capture
) -> None:
    """With their defaults and no account."""
    assert main(["explain", "-f", write("pod.yaml", POD)]) == DONE
    assert "  yes  runpod\n" in capsys.readouterr().out


def test_explain_fails_where_nobody_would_run_it(write: Write, capsys: Capture) -> None:
    """Every reason is printed."""
    assert main(["explain", "-f", write("pod.yaml", PRIVILEGED)]) == FAULT
    out = capsys.readouterr().out
    assert "- spec.containers[0].securityContext.privileged:" in out
    assert "0 of 1 workload can run" in out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kind: Service\nmetadata: {name: s}\n", "no Pod and no pod template in "),
        ("kind: Pod\n", "pod.yaml:1: spec.containers: missing, must be given"),
        ("a: [\n", "pod.yaml:2: not YAML"),
    ],
)
def test_explain_without_a_workload_is_misuse(
    write: Write, capsys: Capture, text: str, words: str
) -> None:
    """Nothing was explained."""
    assert main(["explain", "-f", write("pod.yaml", text)]) == MISUSE
    assert words in capsys.readouterr().err


def test_an_unknown_simulator_is_misuse(capsys: Capture) -> None:
    """With what there is."""
    assert main(["simulate", "runpot"]) == MISUSE
    said = capsys.readouterr().err
    assert said.startswith('no simulator "runpot" is installed (installed: ')
    assert said.endswith('; did you mean "runpod"?\n')


def test_a_simulator_has_its_own_help(capsys: Capture) -> None:
    """Flags belong to it."""
    assert main(["simulate", "runpod", "--help"]) == DONE
    assert "usage: vk-provider simulate runpod" in capsys.readouterr().out


@pytest.mark.parametrize("flags", [["--port", "80000"], ["--create-latency-ms", "500-50"]])
def test_nonsense_for_a_simulator_is_misuse(capsys: Capture, flags: list[str]) -> None:
    """Before it opens a port."""
    assert main(["simulate", "runpod", *flags]) == MISUSE
    assert f"argument {flags[0]}: found '{flags[1]}', allowed: " in capsys.readouterr().err


def test_a_simulator_without_a_name_asks_for_one(capsys: Capture) -> None:
    """Its flags may be left out."""
    assert main(["simulate"]) == MISUSE
    assert capsys.readouterr().err.endswith("the following arguments are required: NAME\n")


def test_a_taken_port_is_a_sentence(capsys: Capture) -> None:
    """With the way out."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["simulate", "runpod", "--port", port]) == FAULT
    said = capsys.readouterr().err
    assert said.startswith("vk-provider: can't listen: ")
    assert said.endswith("--port 0 takes a free one\n")


def test_a_doubt_is_told_beside_the_result(write: Write, capsys: Capture) -> None:
    """A new resource is nobody's mistake, a misspelt one is; nothing is refused."""
    file = write("c.yaml", node().replace('pods: "10"', 'pods: "10", nvida.com/gpu: "1"'))

    assert main(["validate", "-f", file]) == DONE

    shown = capsys.readouterr()
    assert "is valid" in shown.out
    assert shown.err.startswith(f"{file}:5: warning: spec.capacity[nvida.com/gpu]: ")
