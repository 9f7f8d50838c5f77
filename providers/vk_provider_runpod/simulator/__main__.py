"""``python -m vk_provider_runpod.simulator``: the simulator alone, with the same flags."""

from vk_provider.testing.simulator.serving import command
from vk_provider_runpod.simulator.serve import add_arguments, serve

if __name__ == "__main__":
    command("runpod", add_arguments, serve)
