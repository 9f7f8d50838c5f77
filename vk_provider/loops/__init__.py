"""I/O. The asyncio shells around the pure decisions; they decide nothing themselves."""
