"""A faithful local Modal (sandboxes): rehearse manifests, faults and the bill without an account.

``vk-provider simulate modal`` runs it; tests start it in process with :func:`running`. Point the
provider at it with ``baseUrl``, or anything else of Modal's with MODAL_SERVER_URL.
"""

from vk_provider_modal.simulator.serve import Simulator, add_arguments, running, serve
from vk_provider_modal.simulator.state import Options

__all__ = ["Options", "Simulator", "add_arguments", "running", "serve"]
