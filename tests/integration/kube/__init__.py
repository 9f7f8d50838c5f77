"""The API server client against the model API server."""
