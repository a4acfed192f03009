"""The documentation does what it says, and says all there is."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tilewright.cli.app import COMMANDS, app
from walkthrough import execute

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
WALKS = (
    "README.md",
    "docs/getting_started.md",
    "docs/add_an_operator.md",
    "docs/add_a_kernel.md",
    "docs/add_a_platform.md",
    "docs/the_c_interface.md",
    "docs/states.md",
    "docs/quantised_networks.md",
    "docs/scratchpad.md",
    "docs/planning.md",
    "docs/diff.md",
    "docs/simulating.md",
    "docs/siracusa.md",
    "docs/cortexm.md",
    "docs/profiling.md",
    "docs/which_accelerator.md",
    "docs/cost_model.md",
    "docs/mapping.md",
    "docs/zigzag.md",
    "docs/schedule.md",
    "docs/schedule_lab.md",
    "examples/siracusa/README.md",
)


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("page", WALKS)
def test_walk(page: str, tmp_path: Path) -> None:
    for folder in ("models", "platforms", "many_core"):
        shutil.copytree(ROOT / "examples" / folder, tmp_path / "examples" / folder)
    assert execute(ROOT / page, tmp_path) > 0


def test_links_lead_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "examples" / "README.md", *DOCS.glob("*.md")]:
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_index_names_every_page() -> None:
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    for page in DOCS.glob("*.md"):
        assert page.name == "README.md" or f"({page.name})" in index


@pytest.mark.parametrize("command", COMMANDS)
def test_command_line_page_names_every_command_and_option(command: str) -> None:
    page = (DOCS / "command_line.md").read_text(encoding="utf-8")
    assert f"tilewright {command}" in page
    help = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200", "TERM": "dumb"}).output
    options = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", help)) - {"--help"}
    assert options
    assert sorted(option for option in options if option not in page) == []
