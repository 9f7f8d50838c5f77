"""What pods refer to: waited for as a kubelet waits, never confused with what we may not see."""

from __future__ import annotations

import base64
import logging
from collections.abc import Sequence

import pytest

from tests.integration.loops.bench import Bench
from tests.support.objects import keyed
from vk_provider.faults import DeniedError, RejectedError, UnavailableError
from vk_provider.pods.references import CONFIG_MAP, ObjectKey
from vk_provider.pods.types import Explanation, InstanceRef, Offer, ResolvedPod
from vk_provider.testing.builders import make_container
from vk_provider.testing.fake import FakeProvider

FROM = [make_container(envFrom=[{"configMapRef": {"name": "settings"}}])]


async def test_a_missing_config_map_is_waited_for() -> None:
    """CreateContainerConfigError and an Event; the pod starts when it appears."""
    async with Bench() as bench:
        bench.bind("web", containers=FROM)
        await bench.until(lambda: bench.waiting("web"))
        assert bench.waiting("web")["reason"] == "CreateContainerConfigError"
        assert not bench.cloud.calls["create"]
        bench.api.store.put("configmaps", keyed("ConfigMap", "settings", data={"A": "1"}))
        await bench.until(lambda: bench.phase("web") == "Running")


async def test_what_a_pod_referred_to_is_watched_until_it_ends() -> None:
    """Ended pods stay in the API for hours: their ConfigMaps are nobody's business any more."""
    async with Bench({"fake": {"runSeconds": 20}}) as bench:
        bench.api.store.put("configmaps", keyed("ConfigMap", "settings", data={"A": "1"}))
        uid = bench.bind("web", containers=FROM, restartPolicy="Never")
        await bench.until(lambda: bench.phase("web") == "Running")
        key = ObjectKey(CONFIG_MAP, "default", "settings")
        assert bench.node.references.owners(key) == {uid}
        await bench.until(lambda: bench.phase("web") == "Succeeded")
        assert bench.node.references.known(key) is None
        await bench.settle(60)
        assert bench.phase("web") == "Succeeded"


async def test_a_namespace_that_is_not_ours_to_read_is_not_even_asked() -> None:
    """spec.namespaces: the pod waits and is told why; no request is made that would be refused."""
    async with Bench(namespaces=["one", "two"]) as bench:
        bench.bind("web", containers=FROM)
        bench.bind("plain")
        await bench.until(lambda: bench.waiting("web"))
        waiting = bench.waiting("web")
        assert waiting["reason"] == "CreateContainerConfigError"
        assert "this node's spec.namespaces are one, two" in waiting["message"]
        assert not bench.api.count("GET", "configmaps")
        assert bench.api.events().count("FailedToReadMandatoryConfigMap") == 1
        await bench.until(lambda: bench.phase("plain") == "Running")


async def test_a_forbidden_reference_is_told_as_such_until_it_is_granted() -> None:
    """403 is not absence: the message is the API server's, and the pod starts after a grant."""
    async with Bench() as bench:
        bench.api.refuse("GET", "/configmaps", *[403] * 6)
        bench.api.refuse("WATCH", "/configmaps", *[403] * 6)
        bench.api.store.put("configmaps", keyed("ConfigMap", "settings", data={"A": "1"}))
        bench.bind("web", containers=FROM)
        await bench.until(lambda: bench.waiting("web"))
        waiting = bench.waiting("web")
        assert waiting["reason"] == "CreateContainerConfigError"
        assert "ConfigMap default/settings may not be read" in waiting["message"]
        assert "FailedToReadMandatoryConfigMap" in bench.api.events()
        await bench.until(lambda: bench.phase("web") == "Running", 600)


async def test_an_api_server_that_gives_no_reference_is_asked_again() -> None:
    """No answer is not absence either."""
    async with Bench() as bench:
        bench.api.refuse("GET", "/configmaps", *[500] * 8)
        bench.api.store.put("configmaps", keyed("ConfigMap", "settings", data={"A": "1"}))
        bench.bind("web", containers=FROM)
        await bench.until(lambda: bench.waiting("web"))
        assert bench.waiting("web")["reason"] == "CreateContainerConfigError"
        await bench.until(lambda: bench.phase("web") == "Running", 600)


async def test_wishes_that_can_not_be_read_refuse_the_pod() -> None:
    """An annotation of ours with nonsense in it, by its path."""
    async with Bench() as bench:
        bench.bind("web", metadata={"annotations": {"vk-provider.dev/max-price": "cheap"}})
        await bench.until(lambda: bench.phase("web") == "Failed")
        assert bench.reason("web") == "Unsupported"
        assert "max-price" in bench.api.pod("web")["status"]["message"]


async def test_a_catalogue_is_asked_once_for_many_pods() -> None:
    """Offers hold for half a minute."""
    async with Bench() as bench:
        for number in range(10):
            bench.bind(f"web-{number}")
        await bench.until(lambda: bench.api.phases()["Running"] == 10)
        assert bench.cloud.calls["offers"] == 1
        await bench.settle(40)
        bench.bind("later")
        await bench.until(lambda: bench.phase("later") == "Running")
        assert bench.cloud.calls["offers"] == 2


class SlowCatalogue(FakeProvider):
    """Its catalogue never answers."""

    asked = 0

    async def list_offers(self, gpu_count: int) -> Sequence[Offer]:
        self.asked += 1
        raise UnavailableError("no catalogue today")


async def test_a_catalogue_that_fails_is_not_asked_by_every_pod_of_a_burst() -> None:
    """One call fails for all of them; with another backend they run at once."""
    async with Bench({"bad": {}, "good": {}}) as bench:
        provider = SlowCatalogue(bench.clouds["bad"], "home")
        bench.node.backends["bad"].provider = provider
        for number in range(10):
            bench.bind(f"web-{number}")
        await bench.until(lambda: bench.api.phases()["Running"] == 10)
        assert provider.asked == 1
        assert bench.clouds["good"].calls["create"] == 10


async def test_a_pod_that_no_catalogue_covers_says_so() -> None:
    """The only backend's catalogue fails: out of capacity, with its words."""
    async with Bench() as bench:
        bench.node.backends["fake"].provider = SlowCatalogue(bench.cloud, "home")
        bench.bind("web")
        await bench.until(lambda: bench.phase("web") == "Failed")
        assert "no catalogue today" in bench.api.pod("web")["status"]["message"]


class DeniedCatalogue(FakeProvider):
    """Its catalogue is not for us."""

    async def list_offers(self, gpu_count: int) -> Sequence[Offer]:
        raise DeniedError("401: invalid token")


async def test_a_refused_catalogue_closes_the_backend_as_a_refused_create_does() -> None:
    """A revoked key meets the catalogue first: that is no lack of capacity."""
    async with Bench() as bench:
        backend = bench.node.backends["fake"]
        good, backend.provider = backend.provider, DeniedCatalogue(bench.cloud, "home")
        bench.bind("web")
        await bench.until(lambda: bench.phase("web") == "Failed")
        assert bench.taints() == {"vk-provider.dev/unavailable": "denied"}
        assert "invalid token" in bench.api.pod("web")["status"]["message"]
        backend.provider = good
        await bench.until(lambda: not bench.taints(), 400)
        bench.bind("next")
        await bench.until(lambda: bench.phase("next") == "Running")


async def test_fields_that_no_backend_honours_are_all_named() -> None:
    """Unsupported, with every path in one message."""
    async with Bench() as bench:
        annotations = {
            "fake.vk-provider.dev/exit-code": "x",
            "fake.vk-provider.dev/run-seconds": "y",
        }
        bench.bind("web", metadata={"annotations": annotations})
        await bench.until(lambda: bench.phase("web") == "Failed")
        assert bench.reason("web") == "Unsupported"


class Quoting(FakeProvider):
    """It shows what it refuses, or fails on it."""

    bug = ""

    def explain(self, pod: ResolvedPod, offer: Offer) -> Explanation:
        if self.bug == "explain":
            self.bug = "create"
            raise ZeroDivisionError(str(pod.containers[0].env))
        return super().explain(pod, offer)

    async def create_instance(self, pod: ResolvedPod, offer: Offer) -> InstanceRef:
        env = dict(pod.containers[0].env)
        raise ZeroDivisionError(str(env)) if self.bug else RejectedError(f"bad request: {env}")


@pytest.mark.parametrize("bug", ["", "create", "explain"])
async def test_a_secret_that_a_backend_quotes_is_shown_to_nobody(
    bug: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither in the pod nor in an Event nor in the log, whichever provider it is."""
    caplog.set_level(logging.DEBUG)
    async with Bench() as bench:
        provider = Quoting(bench.cloud, "home")
        provider.bug, bench.node.backends["fake"].provider = bug, provider
        data = {"KEY": base64.b64encode(b"line one\nhunter22").decode()}
        bench.api.store.put("secrets", keyed("Secret", "login", data=data))
        bench.bind("web", containers=[make_container(envFrom=[{"secretRef": {"name": "login"}}])])
        await bench.until(lambda: bench.phase("web") == "Failed", 400)
        shown = f"{bench.api.calls} {caplog.text}"
    assert "ZeroDivisionError" in shown if bug else "bad request: {'KEY': '***'}" in shown
    assert "hunter22" not in shown
