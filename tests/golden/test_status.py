"""Golden pairs of a pod's status: pod.yaml and input.yaml in, status.yaml out.

Times in the files are quoted, as JSON has them. A case is a folder; its name is the rule.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.golden.conftest import Golden
from vk_provider.pods.status import StatusInput, render_status, status_patch
from vk_provider.pods.types import (
    ContainerObservation,
    ContainerState,
    InstancePhase,
    InstanceRef,
    Observation,
    PodUID,
    Running,
    Stamp,
    Terminated,
    Verdict,
    Waiting,
)

CASES = sorted(path.parent for path in Path(__file__).parent.glob("status/*/pod.yaml"))
STATES: dict[str, type[Waiting] | type[Running] | type[Terminated]] = {
    "waiting": Waiting,
    "running": Running,
    "terminated": Terminated,
}
TIMES = ("started_at", "finished_at", "created_at")


def timed(fields: dict[str, Any]) -> dict[str, Any]:
    """Times from their text."""
    return {
        name: datetime.fromisoformat(value).astimezone(UTC) if name in TIMES else value
        for name, value in fields.items()
    }


def state(written: dict[str, Any]) -> ContainerState:
    """``{running: {started_at: ...}}``."""
    [(kind, fields)] = written.items()
    return STATES[kind](**timed(fields or {}))


def container(written: dict[str, Any]) -> ContainerObservation:
    """One container as a backend shows it."""
    fields = dict(written)
    last = fields.pop("last_state", None)
    return ContainerObservation(
        state=state(fields.pop("state")), last_state=last and Terminated(**timed(last)), **fields
    )


def observation(written: dict[str, Any]) -> Observation:
    """One instance in a list."""
    fields = timed(written)
    for name in ("containers", "init_containers"):
        fields[name] = tuple(container(one) for one in fields.get(name, []))
    stamp = Stamp("cluster", "burst", "shop", "web", PodUID("uid-1"))
    ref, phase = InstanceRef(fields.pop("ref")), InstancePhase(fields.pop("phase"))
    fields["addresses"] = tuple(fields.get("addresses", ()))
    return Observation(stamp, ref, phase, **fields)


def read(case: Path) -> tuple[dict[str, Any], StatusInput, datetime]:
    """The pod, what is known beside it, and the time."""
    pod = yaml.safe_load((case / "pod.yaml").read_text())
    fields = yaml.safe_load((case / "input.yaml").read_text())
    now = datetime.fromisoformat(fields.pop("now"))
    seen = fields.pop("observation", None)
    for name, kind in (("waiting", Waiting), ("verdict", Verdict)):
        fields[name] = kind(**fields[name]) if name in fields else None
    return pod, StatusInput(observation(seen) if seen else None, **fields), now


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_status(case: Path, golden: Golden) -> None:
    """The rendered status is the kept one, and holding it there is nothing more to write."""
    pod, given, now = read(case)
    status = render_status(pod, given, now)

    golden(case / "status.yaml", status)
    held = {**pod, "status": status}
    assert status_patch(held, render_status(held, given, now)) is None


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_terminal_status_waits_for_nothing_that_had_started(case: Path) -> None:
    """And it is not Ready, whatever the case."""
    pod, given, now = read(case)
    status = render_status(pod, given, now)
    if status["phase"] not in ("Succeeded", "Failed"):
        return

    conditions = {one["type"]: one["status"] for one in status["conditions"]}
    assert (conditions["Ready"], conditions["ContainersReady"]) == ("False", "False")
    for one in status.get("containerStatuses", []):
        assert "terminated" in one["state"] or (not one["restartCount"] and not one["lastState"])


def test_there_are_enough_cases() -> None:
    """A case that lost its pod.yaml would vanish unseen."""
    assert len(CASES) >= 14
