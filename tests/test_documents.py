"""The code in the documents runs, and the paths in them exist."""

import doctest
import importlib
import importlib.util
import json
import pkgutil
import re
import sys
import types
from pathlib import Path

import pytest

import installed
import sidelong as sl

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])

sys.path.insert(0, str(ROOT / "docs"))
import run_pages  # noqa: E402

CODE = {"python", "pycon", "console"}
RUN = [page for page in run_pages.pages() if any(block.kind in CODE for block in run_pages.blocks(page))]


def python_blocks(path):
    return re.findall(r"^```python\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL)


def test_the_readme_runs(tmp_path, monkeypatch):
    """All blocks in order, as a reader who types them would."""
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in python_blocks(ROOT / "README.md"):
        exec(block, names)  # noqa: S102
    shop = sl.Newsvendor.load(tmp_path / "shop.sidelong")
    assert 11 <= shop.order(100, ["bread"])[0] <= 20  # 15 are wanted on average


def test_the_readme_is_short_and_names_the_paper_on_its_first_screen():
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(text.split()) <= 600
    assert "EXP3.G++" in text.partition("```python")[0]
    assert "NeurIPS 2022" in text.partition("```python")[0]


def test_the_first_example_of_the_readme_has_ten_lines_of_code():
    lines = [line for line in python_blocks(ROOT / "README.md")[0].splitlines() if line.strip()]
    assert len(lines) <= 10


def test_the_tables_of_published_numbers_show_what_was_measured(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])  # the script adds its folder
    place = ROOT / "benchmarks" / "published" / "__main__.py"
    spec = importlib.util.spec_from_file_location("published_numbers", place)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    measured = json.loads(script.MEASURED.read_text("utf-8"))
    for page, table in (("docs/published.md", script.table(measured)), ("README.md", script.brief(measured))):
        assert f"{script.BEGIN}\n{table}\n\n{script.END}" in (ROOT / page).read_text("utf-8")


def test_the_learner_of_the_contributing_guide_runs(tmp_path, monkeypatch):
    (tmp_path / "my_uniform.py").write_text(python_blocks(ROOT / "CONTRIBUTING.md")[0])
    monkeypatch.syspath_prepend(tmp_path)
    my_uniform = importlib.import_module("my_uniform")
    graph = sl.graphs.star(4)
    decision = sl.Agent(my_uniform, graph, seed=1).ask()
    assert decision.probabilities.tolist() == [0.25] * 4
    world = sl.losses.bernoulli([0.1, 0.5, 0.5, 0.5])
    result = sl.simulate(my_uniform, graph, world, rounds=4000, seed=1)
    assert result.regret[0, -1] == pytest.approx(1200, rel=0.1)  # 0.3 a round; 10 % is more than 6 standard deviations
    assert result.traces["largest"][0, -1] == 0.25


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.stem)
def test_a_person_can_do_what_the_page_says(page, tmp_path, monkeypatch):
    """Each page begins anew, in an empty folder; `make docs-fresh` does them all in one, with only the wheel."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    if any("$ curl " in block.text for block in run_pages.blocks(page)):
        installed.curl()
    run_pages.do(page)


def test_every_page_is_in_the_contents_and_no_block_of_code_has_a_kind_that_nobody_runs():
    pages = run_pages.pages()
    assert set(pages) >= set((ROOT / "docs").glob("*.md"))
    assert len(pages) == len(set(pages))
    shown = CODE | {"toml", "bash", "yaml", "sql", "json", "text", "nginx"}  # the last is run by service/test_proxy.py
    for page in pages:
        kinds = {block.kind for block in run_pages.blocks(page)}
        assert kinds <= shown, page


@pytest.mark.parametrize("page", run_pages.pages(), ids=lambda page: page.stem)
def test_a_command_of_ours_stands_in_a_block_that_is_run_or_is_named_for_why_it_is_not(page):
    fence = None
    for line in page.read_text().splitlines():
        if line.startswith("```"):
            fence = line if fence is None else None
        assert fence != "```" or not line.startswith("sidelong "), line


def test_what_a_page_shows_is_what_it_gets(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text("```python x.py\na = 1\n```\n```pycon\n>>> import x\n>>> x.a\n2\n```\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(AssertionError, match=r"Expected:\n +2\nGot:\n +1"):
        run_pages.do(page)
    page.write_text("```console\n$ sidelong --version   # prints it\n$ sidelong dmeo\n```\n")
    with pytest.raises(AssertionError, match="line 1: sidelong dmeo: exit 2"):
        run_pages.do(page)
    page.write_text("```console\n$ echo one; echo two; echo three   # all\none\n...\nthree\n$ echo 4\n4\n```\n")
    run_pages.do(page)
    page.write_text("```console\n$ echo one\n$ echo two\nthree\n```\n")
    with pytest.raises(AssertionError, match="line 1: echo two\nExpected:\nthree\nGot:\ntwo"):
        run_pages.do(page)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_to_a_file_leads_somewhere(document):
    links = re.findall(r"\]\((?!https?://)([^)#]+)", document.read_text())
    for link in links:
        assert (document.parent / link).exists(), link


def modules():
    yield sl
    for module in pkgutil.walk_packages(sl.__path__, "sidelong."):
        # Importing the first runs it, and the second needs LiteLLM: test_litellm.py.
        if module.name not in {"sidelong.__main__", "sidelong.integrations.litellm"}:
            yield importlib.import_module(module.name)


@pytest.mark.parametrize("module", list(modules()), ids=lambda module: module.__name__)
def test_the_examples_in_docstrings_run(module, tmp_path, monkeypatch):
    assert isinstance(module, types.ModuleType)
    monkeypatch.chdir(tmp_path)
    assert doctest.testmod(module).failed == 0


def test_this_python_is_one_that_the_readme_names():
    assert sys.version_info >= (3, 11)
