"""Health answers in Kubernetes' words."""

from vk_provider.server.checks import ping, render_checks

CHECKS = {"ping": ping, "cache": lambda: "not synced"}


def test_ok_is_one_word() -> None:
    """What a probe reads."""
    assert render_checks("readyz", {"ping": ping}) == (200, "ok")


def test_verbose_names_every_check() -> None:
    """What a person reads."""
    body = "[+]ping ok\nreadyz check passed\n"
    assert render_checks("readyz", {"ping": ping}, verbose=True) == (200, body)


def test_a_failure_says_why() -> None:
    """Without being asked to be verbose."""
    body = "[+]ping ok\n[-]cache failed: not synced\nreadyz check failed\n"
    assert render_checks("readyz", CHECKS) == (500, body)


def test_an_excluded_check_does_not_fail() -> None:
    """And one that is not there is warned about."""
    status, body = render_checks("livez", CHECKS, {"cache", "x"}, verbose=True)
    assert status == 200
    assert "[+]cache excluded: ok" in body
    assert "no matches for 'x'" in body
