"""Shipped for provider authors: the parts of a simulator that are no service's own.

A clock that can be moved, scripted faults, a ledger, behaviours of containers, the back door
``/_sim`` and the command line. What remains to be written is the service: its protocol, its states
and its prices. Fed by the simulators of providers; nothing that runs in production imports it.
"""
