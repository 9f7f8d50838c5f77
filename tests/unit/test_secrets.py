"""Secrets: read at each use, shown never."""

from pathlib import Path

import pytest

from vk_provider.faults import (
    DeniedError,
    ForbiddenError,
    KubeError,
    KubeNotFoundError,
    KubeUnavailableError,
    UnavailableError,
)
from vk_provider.secrets import ReadSecret, SecretKeyRef, SecretSource, own_namespace


def secrets_of(values: dict[tuple[str, str, str], str]) -> ReadSecret:
    """A home cluster with these Secrets."""

    async def read(namespace: str, name: str, key: str) -> str:
        try:
            return values[namespace, name, key]
        except KeyError:
            raise KubeNotFoundError(f"secrets {name!r} not found", 404) from None

    return read


def failing(fault: KubeError) -> ReadSecret:
    """A home cluster that refuses."""

    async def read(namespace: str, name: str, key: str) -> str:
        raise fault

    return read


async def test_a_file_is_read_again_at_each_use(tmp_path: Path) -> None:
    """A rotated Secret needs no restart; the editor's line end is no part of it."""
    file = tmp_path / "key"
    source = SecretSource(file=str(file))

    file.write_text("one\n")
    first = await source.read()
    file.write_text("two\r\n")

    assert (first, await source.read()) == ("one", "two")


async def test_a_variable_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the process's environment."""
    monkeypatch.setenv("VK_TEST_KEY", "value")

    assert await SecretSource(env="VK_TEST_KEY").read() == "value"


async def test_a_secret_of_the_home_cluster_is_read() -> None:
    """The namespace is the one given."""
    source = SecretSource(secret_key_ref=SecretKeyRef("s", "k", "n"))

    assert await source.read(secrets_of({("n", "s", "k"): "value"})) == "value"


async def test_a_secret_without_namespace_is_our_own_namespaces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As the manifest says through the downward API."""
    monkeypatch.setenv("POD_NAMESPACE", "mine")
    source = SecretSource(secret_key_ref=SecretKeyRef("s", "k"))

    assert await source.read(secrets_of({("mine", "s", "k"): "value"})) == "value"
    assert str(source) == "key k of Secret mine/s"


def test_outside_a_cluster_our_namespace_is_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with kubectl."""
    monkeypatch.delenv("POD_NAMESPACE", raising=False)

    assert own_namespace() == "default"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (SecretSource(file="/not/there"), "file /not/there can't be read: No such file"),
        (SecretSource(env="VK_TEST_UNSET"), "VK_TEST_UNSET is not set"),
        (SecretSource(), "nowhere is not set"),
        (SecretSource(secret_key_ref=SecretKeyRef("s", "k", "n")), "without a connection"),
    ],
)
async def test_what_is_not_there_is_denied(source: SecretSource, words: str) -> None:
    """Without its credential a backend is closed, not retried at once."""
    with pytest.raises(DeniedError, match=words):
        await source.read()


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (KubeNotFoundError("not found", 404), DeniedError),
        (ForbiddenError("may not get secrets", 403), DeniedError),
        (KubeUnavailableError("no answer"), UnavailableError),
    ],
)
async def test_the_api_servers_refusal_says_what_follows(
    fault: KubeError, expected: type[Exception]
) -> None:
    """A refusal closes the backend; an outage of the API server only waits."""
    source = SecretSource(secret_key_ref=SecretKeyRef("s", "k", "n"))

    with pytest.raises(expected, match="key k of Secret n/s"):
        await source.read(failing(fault))


async def test_an_empty_secret_is_denied(tmp_path: Path) -> None:
    """An empty header would be refused by the backend with less to go by."""
    file = tmp_path / "key"
    file.write_text("\n")

    with pytest.raises(DeniedError, match="is empty"):
        await SecretSource(file=str(file)).read()


async def test_bytes_that_are_no_text_are_not_quoted(tmp_path: Path) -> None:
    """A decoding error would carry them."""
    file = tmp_path / "key"
    file.write_bytes(b"\xff\xfesecret")

    with pytest.raises(DeniedError, match="not UTF-8 text") as caught:
        await SecretSource(file=str(file)).read()

    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


async def test_the_value_is_in_no_representation(tmp_path: Path) -> None:
    """A source says where, also after it was read."""
    file = tmp_path / "key"
    file.write_text("hidden-value")
    source = SecretSource(file=str(file))

    await source.read()

    assert "hidden-value" not in repr(source) + str(source)


@pytest.mark.parametrize(
    "source", [SecretSource(env="rpa_1A2B3C4D5E6F7G8H"), SecretSource(file="rpa_1A2B3C4D5E6F7G8H")]
)
async def test_a_secret_in_the_place_of_its_name_is_not_shown(source: SecretSource) -> None:
    """``{env: rpa_…}`` is soon written, and its complaint is pasted anywhere."""
    with pytest.raises(DeniedError, match="looks like a secret") as caught:
        await source.read()

    assert "rpa_" not in str(caught.value)
