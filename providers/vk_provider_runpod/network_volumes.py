"""Where network volumes are: an instance that mounts one can be nowhere else.

A volume never moves, so it is asked for once. Fed by ``creating``; speaks through ``client``.
"""

from __future__ import annotations

from vk_provider.faults import RejectedError, UnavailableError
from vk_provider.pods.reading import text
from vk_provider_runpod.client import RunPodClient

MOST_KNOWN = 1000


class NetworkVolumes:
    """The data centres of the volumes that this session has met."""

    def __init__(self, client: RunPodClient) -> None:
        self._client = client
        self._places: dict[str, str] = {}

    async def place_of(self, volume_id: str) -> str:
        """A volume's data centre. Raises ``RejectedError`` where the account has no such one."""
        if volume_id not in self._places:
            found = await self._client.get_network_volume(volume_id)
            if found is None:
                raise RejectedError(f'the RunPod account has no network volume "{volume_id}"')
            place = text(found, "dataCenter").upper()
            if not place:
                raise UnavailableError(f'RunPod does not say where network volume "{volume_id}" is')
            if len(self._places) >= MOST_KNOWN:
                self._places.clear()
            self._places[volume_id] = place
        return self._places[volume_id]
