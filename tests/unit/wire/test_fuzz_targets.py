"""The fuzzing targets hold for their seeds, for what fuzzing once found, and for random bytes."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import fuzz
from tests.fuzz.seeds import SEEDS
from tests.fuzz.targets import TARGETS

FOUND = sorted(Path(fuzz.__file__).parent.glob("found/*-*"))


@pytest.mark.parametrize("name", TARGETS)
def test_the_seeds_hold(name: str) -> None:
    """Else fuzzing would end before it began."""
    for seed in [b"", *SEEDS[name]]:
        TARGETS[name](seed)


def test_what_fuzzing_found_stays_mended() -> None:
    """Files are named by their target."""
    for path in FOUND:
        TARGETS[path.name.partition("-")[0]](path.read_bytes())


@pytest.mark.parametrize("name", TARGETS)
@given(raw=st.binary(max_size=200))
def test_random_bytes_hold(name: str, raw: bytes) -> None:
    """A little of what `make fuzz` does at length."""
    TARGETS[name](raw)
