"""What a simulated container prints."""

from __future__ import annotations

from modal_proto import api_pb2
from vk_provider_modal.simulator.lines import logs, printed
from vk_provider_modal.simulator.model import Behaviour, End, SimulatedSandbox, Wish

NOW = 1_800_000_000.0


def sandbox(behaviour: Behaviour) -> SimulatedSandbox:
    """A sandbox that has had its machine since NOW."""
    wish = Wish("ap-1", api_pb2.Sandbox(), {})
    return SimulatedSandbox("sb-1", "ta-1", wish, NOW, behaviour, placed_at=NOW)


def test_it_prints_at_its_start_and_then_regularly_until_its_end() -> None:
    """What was put in by hand comes between."""
    found = sandbox(Behaviour(start_seconds=1, log_lines=("up",), log_every_seconds=5))
    found.said.append((NOW + 3, "stderr", "oops\n"))

    assert printed(found, NOW) == [(NOW + 3, "stderr", "oops\n")]
    assert [line[2] for line in printed(found, NOW + 12)] == [
        "up\n", "oops\n", "still serving (1)\n", "still serving (2)\n",
    ]  # fmt: skip
    found.end = End(1, NOW + 7)
    assert len(printed(found, NOW + 100)) == 3


def test_lines_carry_their_time_to_the_nanosecond() -> None:
    """And their source."""
    (entry,) = logs([(NOW + 0.5, "stderr", "x\n")])

    assert entry.timestamp_ns == int((NOW + 0.5) * 1e9)
    assert entry.file_descriptor == api_pb2.FILE_DESCRIPTOR_STDERR


def test_silence_is_possible() -> None:
    """Nothing after the first lines."""
    assert len(printed(sandbox(Behaviour(log_every_seconds=0)), NOW + 1000)) == 2
