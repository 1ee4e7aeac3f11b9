"""Ports of this machine for servers that tests start."""

from __future__ import annotations

import socket


def free_port() -> int:
    """A port of the loopback interface without a listener."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
