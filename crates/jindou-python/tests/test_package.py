"""The package can be built of a clone: `pip install ./crates/jindou-python`, `maturin develop`."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

CRATE = Path(__file__).parents[1]


def test_a_clone_has_what_maturin_reads():
    if shutil.which("git") is None or not (CRATE.parents[1] / ".git").exists():
        pytest.skip("no checkout of git")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=CRATE, capture_output=True, check=True).stdout.decode().split("\0")
    project = (CRATE / "pyproject.toml").read_text(encoding="utf-8")
    # maturin does not build if a folder that it must read is missing, and git does not store empty folders.
    for key in ("data", "python-source", "readme"):
        named = re.search(rf'^{key} = "(.*)"$', project, re.MULTILINE).group(1)
        assert any(name == named or name.startswith(named + "/") for name in listed), named
    # If git stored this as a link, the package's licence file might contain only a path.
    assert (CRATE / "LICENSE").read_text(encoding="utf-8") == (CRATE.parents[1] / "LICENSE").read_text(encoding="utf-8")
