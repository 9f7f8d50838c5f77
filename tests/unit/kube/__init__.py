"""The API server client, without sockets."""
