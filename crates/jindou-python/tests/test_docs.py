"""Every Python example of docs/python.md, one after the other in one folder, as a reader would."""

import re
from pathlib import Path

import pytest

for needed in ("pyarrow", "pandas", "polars", "rdflib"):
    pytest.importorskip(needed)

DOCUMENT = Path(__file__).parents[3] / "docs" / "python.md"
README = Path(__file__).parents[1] / "README.md"


def test_the_examples_run(tmp_path, monkeypatch):
    import rdflib

    # Does what the entry point does if the package is installed.
    rdflib.plugin.register("Jindou", rdflib.store.Store, "jindou.rdflib_store", "JindouStore")
    text = DOCUMENT.read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 8
    monkeypatch.chdir(tmp_path)
    names = {}
    for number, block in enumerate(blocks):
        exec(compile(block, f"docs/python.md, example {number + 1}", "exec"), names)


def test_the_examples_of_the_package_run(tmp_path, monkeypatch):
    import doctest

    import jindou

    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.ttl").write_text("<http://e/a> a <http://e/C> .")
    (block,) = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    exec(compile(block, "README.md", "exec"), {})
    tested = doctest.testmod(jindou)
    assert tested.attempted >= 3 and tested.failed == 0


def test_the_magic_of_the_document_runs():
    pytest.importorskip("IPython")
    from IPython.core.interactiveshell import InteractiveShell

    import jindou

    text = DOCUMENT.read_text(encoding="utf-8")
    cell = re.search(r"^    (%%sparql\n(?:    .*\n)+)", text, re.MULTILINE).group(1)
    shell = InteractiveShell()
    shell.run_line_magic("load_ext", "jindou")
    shell.user_ns["db"] = jindou.memory()
    shell.user_ns["db"].update("INSERT DATA { <a:a> <http://example.org/radius> 5 }")
    result = shell.run_cell(re.sub(r"^    ", "", cell, flags=re.MULTILINE))
    assert result.success and "1 row<" in result.result.data


def test_the_errors_of_the_document_are_all_there_are():
    import jindou.errors

    text = DOCUMENT.read_text(encoding="utf-8")
    for name, item in vars(jindou.errors).items():
        if isinstance(item, type) and issubclass(item, jindou.Error) and name not in ("Error", "InternalError"):
            assert f"`{name}`" in text, name
