"""Hiding the values of Secrets."""

from __future__ import annotations

import json

from vk_provider.pods.masking import MASK, mask_text, masked


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
