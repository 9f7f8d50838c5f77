"""What the API server takes, to the byte."""

from typing import Any

from vk_provider.pods.room import fitting, missing_bytes, shortened

LIMIT = 256 * 1024


def pod_with(size: int) -> dict[str, Any]:
    """A pod whose one annotation is so many bytes long, its name among them."""
    return {"metadata": {"annotations": {"é": "x" * (size - 2)}}}


def test_names_and_values_count_in_bytes() -> None:
    """As the API server counts them."""
    assert missing_bytes(pod_with(LIMIT - 4), {"a": "é1"}) == 0
    assert missing_bytes(pod_with(LIMIT - 3), {"a": "é1"}) == 1


def test_a_note_that_is_replaced_counts_once() -> None:
    """Its old value goes."""
    assert missing_bytes({"metadata": {"annotations": {"a": "x" * (LIMIT - 1)}}}, {"a": "y"}) == 0


def test_what_fits_is_kept_and_the_rest_left_out() -> None:
    """A long one does not take a short one with it."""
    assert fitting(pod_with(LIMIT - 3), {"a": "12", "b": "123", "c": ""}) == {"a": "12"}
    assert fitting({}, {"a": "1"}) == {"a": "1"}


def test_a_message_is_cut_where_nobody_reads_on() -> None:
    """And says so."""
    assert shortened("x" * 32_768) == "x" * 32_768
    assert shortened("x" * 32_770) == "x" * 32_768 + "… (2 more characters)"
