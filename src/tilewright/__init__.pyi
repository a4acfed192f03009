from tilewright.api.cases import Case as Case
from tilewright.api.cases import CaseResult as CaseResult
from tilewright.api.cases import find_cases as find_cases
from tilewright.api.cases import run_case as run_case
from tilewright.api.compiling import Compiled as Compiled
from tilewright.api.compiling import Options as Options
from tilewright.api.compiling import compile_model
from tilewright.api.costing import NetworkCost as NetworkCost
from tilewright.api.costing import NodeCost as NodeCost
from tilewright.api.costing import cost as cost
from tilewright.api.diffing import Diff as Diff
from tilewright.api.diffing import diff_model as diff_model
from tilewright.api.mapping import MapOptions as MapOptions
from tilewright.api.mapping import Mapped as Mapped
from tilewright.api.mapping import find_machine as find_machine
from tilewright.api.mapping import search as search
from tilewright.api.running import Comparison as Comparison
from tilewright.api.running import Ran as Ran
from tilewright.api.running import run_model
from tilewright.api.scheduling import Scheduled as Scheduled
from tilewright.api.scheduling import ScheduleOptions as ScheduleOptions
from tilewright.api.scheduling import schedule_network as schedule_network
from tilewright.errors import TilewrightError as TilewrightError
from tilewright.frontend import load as load
from tilewright.frontend import save as save
from tilewright.sim.limits import Limits as Limits

compile = compile_model
run = run_model
__version__: str
