"""Explain reckons with what this pod would pay, where its size decides."""

from dataclasses import replace

from tests.unit.offline.test_explain import Catalogue, candidate, deployment, judgement
from vk_provider.pods.types import Offer, ResolvedPod

DEAR = "{vk-provider.dev/max-price: '0.5'}"


class Sized(Catalogue):
    """One whose machines cost by the command's length."""

    def priced(self, pod: ResolvedPod, offer: Offer) -> Offer:
        """A tenth of a dollar for each word."""
        return replace(offer, usd_per_hour=len(pod.containers[0].args or ()) / 10)


def test_a_price_that_depends_on_the_pod_is_this_pods() -> None:
    """So a wish for a price can be checked offline."""
    backend = candidate(Sized([Offer("cpu")]))

    cheap = judgement(deployment(container="args: [a, b]", annotations=DEAR), backend)
    dear = judgement(deployment(container="args: [a, b, c, d, e, f]", annotations=DEAR), backend)

    assert [each.usd_per_hour for each in cheap.offers] == [0.2]
    assert not dear.can_run
