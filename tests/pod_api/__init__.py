"""The Pod API of every supported version, so that none adds a field that nobody thought about."""
