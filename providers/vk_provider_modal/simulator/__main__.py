"""``python -m vk_provider_modal.simulator``: the simulator alone, with the same flags."""

from vk_provider.testing.simulator.serving import command
from vk_provider_modal.simulator.serve import add_arguments, serve

if __name__ == "__main__":
    command("modal", add_arguments, serve)
