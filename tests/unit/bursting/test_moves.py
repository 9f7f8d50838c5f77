"""Where a relocation stands survives the annotation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.bursting.tiny_cluster import START
from vk_provider.bursting.moves import Phase, Relocation, Scaler, read_relocation

SCALERS = st.none() | st.builds(Scaler, st.text(), st.integers(), st.integers())


@given(
    st.builds(
        Relocation,
        st.sampled_from(Phase),
        st.integers(),
        st.integers(),
        st.just(START),
        SCALERS,
        st.integers(),
        st.dictionaries(st.text(), st.text()),
        st.booleans(),
    )
)
def test_what_is_written_reads_back(state: Relocation) -> None:
    """A new leader knows what the old one knew."""
    found = read_relocation(state.to_json())
    assert found is not None
    assert found.to_json() == state.to_json()


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "5",
        "[]",
        '{"phase":"dancing","replicas":1,"target":2,"since":"2026-01-01T00:00:00+00:00"}',
        '{"phase":"surging","replicas":1,"target":2,"since":"2026-01-01T00:00:00"}',
        '{"phase":"surging","replicas":1,"target":2,"since":"2026-01-01T00:00:00Z","costs":5}',
        '{"phase":"surging","replicas":1,"target":2,"since":"2026-01-01T00:00:00Z","scaler":5}',
        '{"phase":"surging","replicas":Infinity,"target":2,"since":"2026-01-01T00:00:00Z"}',
        "[" * 100_000,
    ],
)
def test_what_we_did_not_write_is_nothing(text: str | None) -> None:
    """Never a fault: annotations are anybody's."""
    assert read_relocation(text) is None
