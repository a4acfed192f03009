"""Running programs: on this machine, in emulators and simulators."""

from __future__ import annotations

from tilewright.sim.host import HostRun, Machine, Moment, host_environment, run_on_host

__all__ = ["HostRun", "Machine", "Moment", "host_environment", "run_on_host"]
