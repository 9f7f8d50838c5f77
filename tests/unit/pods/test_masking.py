"""Hiding the values of Secrets."""

from __future__ import annotations

import base64
import json

import pytest

from vk_provider.faults import RejectedError
from vk_provider.pods.masking import MASK, Veiled, mask_text, masked, words

KEY = '-----BEGIN KEY-----\nit\'s a "quoted" line \\ of a key\n-----END KEY-----\n'


def test_secrets_are_hidden_wherever_they_stand() -> None:
    """As a whole text, within one, in lists and maps; other values stay."""
    request = {
        "env": {"PASSWORD": "hunter22", "URL": "db://me:hunter22@host", "MODE": "plain"},
        "args": ["--token=hunter22", 7],
        "pair": ("hunter22", None),
    }

    assert masked(request, {"hunter22", ""}) == {
        "env": {"PASSWORD": MASK, "URL": f"db://me:{MASK}@host", "MODE": "plain"},
        "args": [f"--token={MASK}", 7],
        "pair": [MASK, None],
    }


def test_secrets_within_json_within_json_are_hidden() -> None:
    """Requests carry commands that way."""
    secret = 'quoted"\nand-line-ä'

    for ascii_only in (True, False):
        inner = json.dumps({"cmd": [secret]}, ensure_ascii=ascii_only)
        assert masked({"args": inner}, {secret}) == {"args": f'{{"cmd": ["{MASK}"]}}'}


def test_a_short_secret_is_hidden_only_as_a_whole_text() -> None:
    """Otherwise a password "1" would turn every number into stars."""
    assert masked({"a": "1", "b": "10", "c": ""}, {"1"}) == {"a": MASK, "b": "10", "c": ""}


def test_the_longer_of_two_secrets_is_hidden_first() -> None:
    """Or the rest of it would be seen."""
    assert mask_text("x abcdef y", {"abcd", "abcdef"}) == f"x {MASK} y"


def test_masking_copies() -> None:
    """The request that is sent stays as it is."""
    request = {"env": {"A": "hunter22"}}

    masked(request, {"hunter22"})

    assert request == {"env": {"A": "hunter22"}}


@pytest.mark.parametrize(
    "quoted",
    [
        json.dumps({"env": {"A": KEY}}),
        json.dumps({"body": json.dumps({"A": KEY})}),
        str({"value": KEY}),
        f"644 /etc/key {base64.b64encode(KEY.encode()).decode()}",
        f"the value {' '.join(KEY.split())} is wrong",
        'the value -----BEGIN KEY-----\nit\'s a "quoted" line \\ of a key ... is too long',
    ],
)
def test_words_that_quote_a_secret_lose_it_in_any_spelling(quoted: str) -> None:
    """A backend that refuses a request may show it as it likes, or cut it short."""
    said = words(f"no:\n{quoted}", [KEY])
    assert "quoted" not in said
    assert "LS0t" not in said
    assert said.startswith("no: ")
    assert len(words("x" * 1000, ())) == 300


def test_a_very_large_secret_is_hidden_as_a_whole_only() -> None:
    """Its many lines would take longer to look for than anybody waits."""
    line = "a line of many that are no secret"
    assert mask_text(f"{line}!", ["\n".join([line] * 3000)]) == f"{line}!"


def test_a_fault_is_told_without_the_secrets_of_its_request() -> None:
    """Whoever wrote its words, and those of what it came of."""
    fault, origin = RejectedError(f"400: {KEY}", 400), ValueError(KEY)
    fault.__cause__, origin.__context__ = origin, fault
    with Veiled([KEY]):
        assert fault.args[1] == 400
    with pytest.raises(RejectedError), Veiled([KEY]):
        raise fault
    assert (fault.args, origin.args) == ((f"400: {MASK}", 400), (MASK,))
