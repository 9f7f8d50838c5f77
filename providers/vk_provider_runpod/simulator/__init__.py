"""A faithful local RunPod (REST v2): rehearse manifests, faults and the bill without an account.

``vk-provider simulate runpod`` runs it; tests start it in process with :func:`running`.
"""

from vk_provider_runpod.simulator.serve import Simulator, add_arguments, running, serve
from vk_provider_runpod.simulator.state import Options

__all__ = ["Options", "Simulator", "add_arguments", "running", "serve"]
