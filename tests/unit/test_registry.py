"""The registry: what is installed is found, and what is broken is named.

Providers are installed for real, as a distribution in a folder of the import path.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from vk_provider.faults import ConfigError, FieldProblem
from vk_provider.provider import ProviderContext
from vk_provider.registry import (
    PROVIDERS,
    SIMULATORS,
    create,
    foreign_code,
    installed,
    installed_backends,
    load,
    load_simulator,
)
from vk_provider.settings import BackendSettings

CONTEXT = ProviderContext("c", "n", "acme", "spec.backends[0].config", "vk-provider/test")
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs a distribution with one module and some entry points."""
    before = set(sys.modules)

    def make(
        entries: Mapping[str, str], module: str = "", name: str = "acme", metadata: str = ""
    ) -> None:
        folder = tmp_path / name
        info = folder / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (folder / f"vk_test_{name}.py").write_text(module)
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{metadata}"
        )
        groups = "".join(f"[{group}]\n{lines}\n" for group, lines in entries.items())
        (info / "entry_points.txt").write_text(groups)
        monkeypatch.syspath_prepend(str(folder))

    yield make
    for added in set(sys.modules) - before:
        if added.startswith("vk_test_"):
            del sys.modules[added]


def refusal(work: Callable[[], object]) -> str:
    """The words of the ConfigError that this raises."""
    with pytest.raises(ConfigError) as caught:
        work()
    return str(caught.value)


def test_our_own_providers_are_installed() -> None:
    """The test kit's is one of them, but runs nothing."""
    assert {"fake", "runpod"} <= set(installed())
    assert "fake" not in installed_backends()
    assert "runpod" in installed_backends()


def test_an_installed_provider_is_built_with_its_block(install: Install) -> None:
    """The factory gets the configuration and the context."""
    module = "def factory(config, context): return (dict(config), context.backend)"
    install({PROVIDERS: "acme = vk_test_acme:factory"}, module)

    built: object = create(BackendSettings("b", "acme", {"k": 1}, "spec.backends[0]"), CONTEXT)

    assert built == ({"k": 1}, "acme")
    assert "acme" in installed()


def test_an_unknown_provider_names_what_is_installed_and_what_is_near() -> None:
    """The problem stands at the backend's field."""
    backend = BackendSettings("b", "runpdo", {}, "spec.backends[0]")

    words = refusal(lambda: create(backend, CONTEXT))

    assert words.startswith('spec.backends[0].provider: no provider "runpdo" is installed')
    assert "fake" in words
    assert words.endswith('did you mean "runpod"?')


def test_a_backend_without_a_place_has_a_sentence_only() -> None:
    """As `explain` builds it, without a document."""
    words = refusal(lambda: create(BackendSettings("b", "zzz"), CONTEXT))

    assert words.startswith('no provider "zzz" is installed')


def test_a_missing_extra_is_named(install: Install) -> None:
    """An extra named like the provider brings what is missing."""
    install(
        {PROVIDERS: "acme = vk_test_acme:factory"},
        "import vk_test_absent_sdk",
        metadata="Provides-Extra: acme\n",
    )

    assert refusal(lambda: load("acme")) == (
        'provider "acme" (entry point vk_test_acme:factory of acme 1.0) can\'t be loaded: '
        "module vk_test_absent_sdk is missing; install it: pip install 'acme[acme]'"
    )


def test_an_extra_is_found_by_what_it_requires(install: Install) -> None:
    """Whatever the extra is called."""
    install(
        {PROVIDERS: "acme = vk_test_acme:factory"},
        "import vk_test_absent_sdk.sub",
        metadata=(
            "Provides-Extra: docs\nProvides-Extra: cloud\n"
            'Requires-Dist: vk-test-absent-sdk>=1; extra == "cloud"\n'
        ),
    )

    assert refusal(lambda: load("acme")).endswith("install it: pip install 'acme[cloud]'")


def test_a_missing_module_without_an_extra_is_only_named(install: Install) -> None:
    """No advice is better than a wrong one."""
    install({PROVIDERS: "acme = vk_test_acme:factory"}, "import vk_test_absent_sdk")

    assert refusal(lambda: load("acme")).endswith("module vk_test_absent_sdk is missing")


@pytest.mark.parametrize("module", ["raise RuntimeError('boom')", "", "1/0"])
def test_foreign_faults_at_import_name_the_entry_point(install: Install, module: str) -> None:
    """Whatever it raises, and a factory that is not there."""
    install({PROVIDERS: "acme = vk_test_acme:factory"}, module)

    words = refusal(lambda: load("acme"))

    assert words.startswith('provider "acme" (entry point vk_test_acme:factory of acme 1.0) can\'t')


def test_foreign_faults_in_a_factory_name_the_entry_point(install: Install) -> None:
    """A factory may only raise ConfigError; another fault is told, not thrown."""
    install({PROVIDERS: "acme = vk_test_acme:factory"}, "def factory(c, x): raise KeyError('k')")

    words = refusal(lambda: create(BackendSettings("b", "acme"), CONTEXT))

    assert words.endswith("failed on its configuration: KeyError: 'k'")


def test_a_factorys_own_problems_are_passed_on(install: Install) -> None:
    """They have paths already."""
    module = (
        "from vk_provider.faults import ConfigError, FieldProblem\n"
        "def factory(c, x): raise ConfigError([FieldProblem(x.config_path + '.k', 'wrong')])"
    )
    install({PROVIDERS: "acme = vk_test_acme:factory"}, module)

    with pytest.raises(ConfigError) as caught:
        create(BackendSettings("b", "acme"), CONTEXT)

    assert caught.value.problems == (FieldProblem("spec.backends[0].config.k", "wrong"),)


def test_two_providers_of_one_name_are_refused(install: Install) -> None:
    """Neither is silently preferred."""
    install({PROVIDERS: "acme = vk_test_one:factory"}, name="one")
    install({PROVIDERS: "acme = vk_test_two:factory"}, name="two")

    words = refusal(lambda: load("acme"))

    assert words.startswith('provider "acme" is installed twice: ')
    assert "of one 1.0" in words
    assert "of two 1.0" in words


def test_a_simulator_is_found_in_its_own_group(install: Install) -> None:
    """A module will do."""
    install({SIMULATORS: "acme = vk_test_acme"}, "def add_arguments(parser): ...")

    simulator: object = load_simulator("acme")

    assert simulator is sys.modules["vk_test_acme"]
    assert "no simulator" in refusal(lambda: load_simulator("zzz"))


def test_foreign_code_later_on_is_guarded_too() -> None:
    """For whatever is called on a provider outside the loops."""
    with (
        pytest.raises(ConfigError, match=r'provider "fake" .* failed to explain: ValueError: no'),
        foreign_code("fake", "failed to explain"),
    ):
        raise ValueError("no")
