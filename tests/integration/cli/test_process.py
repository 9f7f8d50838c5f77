"""The command line as a process: what a shell and a container see."""

import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def vk_provider(*argv: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    command = [sys.executable, "-m", "vk_provider", *argv]
    return subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=60, check=False
    )


def test_the_module_is_the_command() -> None:
    """Exit code and output of `python -m vk_provider`."""
    done = vk_provider("validate", "-f", str(ROOT / "deploy/samples/fake.yaml"))

    assert (done.returncode, done.stderr) == (0, "")
    assert "node rehearsal is valid" in done.stdout


def test_run_without_a_cluster_is_misuse_with_a_sentence() -> None:
    """A kubeconfig that is not there is a configuration's fault, and no traceback."""
    fake = str(ROOT / "deploy/samples/fake.yaml")

    done = vk_provider("run", "-f", fake, "--kubeconfig", "/absent/kubeconfig")

    assert done.returncode == 2
    assert "/absent/kubeconfig" in done.stderr
    assert "Traceback" not in done.stderr


def test_standard_input_is_a_file_too() -> None:
    """A complaint names it as it was given."""
    done = vk_provider("validate", "-f", "-", stdin="kind: Pod\n")

    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == (
        "-:1: apiVersion: missing, must be given; allowed: vk-provider.dev/v1alpha1"
    )


def test_a_closed_pipe_is_no_traceback() -> None:
    """`vk-provider explain ... | head -1`."""
    pod = "kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: a, image: x}]}\n---\n"
    command = [sys.executable, "-m", "vk_provider", "explain", "-f", "-"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stdin.write(pod * 200)
        process.stdin.close()
        errors = process.stderr.read()
        assert process.wait(60) == 1

    assert errors == ""


def test_a_full_disk_is_no_traceback() -> None:
    """A sentence and a code."""
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "vk_provider", "version"]
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False
        )

    assert done.returncode == 1
    assert done.stderr == "vk-provider: [Errno 28] No space left on device\n"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_silent_ones(closed: str) -> None:
    """No socket may get the number of one, and nobody's print may fail."""
    line = f'"{sys.executable}" -m vk_provider run -f "$1" --kubeconfig /absent {closed}'
    fake = str(ROOT / "deploy/samples/fake.yaml")
    done = subprocess.run(
        ["/bin/sh", "-c", line, "sh", fake], capture_output=True, text=True, timeout=60, check=False
    )

    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_a_simulator_serves_until_it_is_told_to_stop() -> None:
    """And ends without an error then."""
    command = [sys.executable, "-m", "vk_provider", "simulate", "runpod", "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        # It serves, so it has heard of signals by now.
        with urllib.request.urlopen(first.split()[3], timeout=60) as answer:
            index = answer.read().decode()
        process.send_signal(signal.SIGTERM)
        code = process.wait(60)

    assert "GET /_sim/ledger: every charge" in index
    assert code == 0


def test_ctrl_c_is_not_a_traceback() -> None:
    """A program of the test bed says that it was interrupted, and its shell hears it too."""
    program = "import sys, signal, tests.rig.interrupt as i\n"
    program += "sys.exit(i.until_interrupted(lambda: signal.raise_signal(signal.SIGINT)))"
    # A shell starts what runs in the background deaf to Ctrl-C; Python then leaves it so.
    begin = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    done = subprocess.run(
        [sys.executable, "-c", begin + program],
        capture_output=True, text=True, timeout=60, check=False, cwd=ROOT,
    )  # fmt: skip

    assert done.returncode == 130
    assert done.stderr == "\ninterrupted\n"


def test_an_unknown_program_of_the_test_bed_is_misuse() -> None:
    """With what there is."""
    command = [sys.executable, "-m", "tests.rig", "build", "nosuch"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, cwd=ROOT
    )

    assert done.returncode == 2
    assert "no recipe for nosuch; known: etcd" in done.stderr
