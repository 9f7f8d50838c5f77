"""Public manifests of inference servers: which backend takes which, and why not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.golden.conftest import Golden
from tests.support.inference_servers import FILES, accepted, judgements

RECORDED = Path(__file__).parent / "manifests.yaml"


def recorded() -> dict[str, Any]:
    """For each backend what it accepts, and every reason why it refuses the rest."""
    found: dict[str, Any] = {}
    for backend in ("cluster", "modal", "runpod"):
        refused = [file for file in FILES if file not in accepted(backend)]
        reasons = {file.stem: judgements(file)[backend].reasons for file in refused}
        found[backend] = {
            "accepts": [file.stem for file in accepted(backend)],
            "refuses": {name: [str(each) for each in why] for name, why in reasons.items()},
        }
    return found


def test_what_is_accepted_and_why_the_rest_is_not_is_as_recorded(golden: Golden) -> None:
    """By field path."""
    golden(RECORDED, recorded())


@pytest.mark.parametrize(("backend", "least"), [("cluster", 28), ("modal", 15), ("runpod", 15)])
def test_a_backend_takes_most_of_them(backend: str, least: int) -> None:
    """Of thirty, since what nobody can run on it is of no use."""
    assert len(FILES) >= 30
    assert len(accepted(backend)) >= least
