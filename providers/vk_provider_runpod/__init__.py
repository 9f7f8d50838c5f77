"""RunPod (REST v2) as a backend."""
