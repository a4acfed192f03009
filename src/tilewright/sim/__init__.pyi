from tilewright.sim.host import HostRun as HostRun
from tilewright.sim.host import host_environment as host_environment
from tilewright.sim.host import run_on_host as run_on_host
from tilewright.sim.settings import EmulatedMachine as EmulatedMachine
from tilewright.sim.settings import Moment as Moment
