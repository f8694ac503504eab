"""The page of a report: what is said follows from the numbers, it stands alone, and a real browser shows all of it."""

import html
import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from browser import visit
from sidelong.cli import app
from sidelong.simulation.simulate import play_game
from sidelong.studies import execute
from sidelong.studies.build import build
from sidelong.studies.cell import Cell
from sidelong.studies.curves import read_curves
from sidelong.studies.files import Files
from sidelong.studies.report import write
from sidelong.studies.report.reading import read
from sidelong.studies.results import in_order, read_results, to_parquet
from sidelong.studies.spec import load
from studies import small
from studies.killer import Inline

STUDY = """\
name = "Small & <quick>"
rounds = [100, 400]
runs = 8
seed = {seeds}
checkpoints = 30

[[learner]]
name = ["uniform", "ts-n", "exp3.g++"]

[graph]
name = "star"
n = {{ zip = [3, 4, 6] }}

[world]
name = "bernoulli"
means = {{ gap = 0.4 }}
"""
FIGURES = 1 + 2 + 3 * 3 + 3  # ratios; against K at two horizons; for each instance regret twice, and what moves; graphs
TABLES = 1 + 1 + 3 + 1  # scores, duels, instances, what was run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("report")
    study = load(small.write(place, 2, STUDY))
    assert execute.run(study, place / "results", lambda *_: Inline(study.files)).done == 36
    return place / "results"


@pytest.fixture(scope="module")
def written(folder):
    return write(folder, folder.parent / "page.html")


@pytest.fixture(scope="module")
def page(written):
    return written[0].read_text()


def test_seeds_are_runs_of_one_curve(folder):
    curves = read_curves(folder)
    assert len(curves) == 18
    assert {each.regret.shape for each in curves} == {(16, each.rounds.size) for each in curves}
    assert curves[0].runs == tuple((seed, run) for seed in (0, 1) for run in range(8))


def test_every_figure_is_a_file_of_each_kind_for_a_paper(written):
    figures = [path for path in written[1:] if path.suffix != ".tex"]
    assert len(figures) == len(set(figures)) == 4 * FIGURES
    heads = {".svg": b"<?xml", ".pdf": b"%PDF", ".png": b"\x89PNG", ".pgf": rb"% \usepackage{pgf}"}
    assert all(path.read_bytes().startswith(heads[path.suffix]) for path in figures)
    assert all(path.stat().st_size > 1000 for path in figures)


def test_every_table_is_a_file_for_a_paper(written, page):
    tables = [path for path in written if path.suffix == ".tex"]
    assert len(tables) == len(set(tables)) == page.count("<table") == TABLES
    for path in tables:
        text = path.read_text()
        assert text.count(r"\toprule") == text.count(r"\bottomrule") == 1
        assert text.isascii()
    scores = next(path for path in tables if path.name == "scoreboard.tex").read_text()
    assert "learner & worst ratio & star n=3" in scores
    assert "exp3.g++ & " in scores


class Elements(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.tags, self.asked, self.names = [], [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.asked += [value for name, value in attributes if name in {"src", "href", "xlink:href"}]
        self.names += [value for name, value in attributes if name == "id"]
        if tag not in {"meta", "path", "rect", "use", "circle", "br"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in {"path", "rect", "use", "circle"}:
            assert self.open.pop() == tag


def test_the_page_is_whole_and_asks_for_nothing(page):
    elements = Elements()
    elements.feed(page)
    assert elements.open == []
    assert not {"script", "link", "img", "iframe"} & set(elements.tags)
    assert elements.asked
    assert all(each.startswith("#") for each in elements.asked)
    assert "@import" not in page
    assert elements.tags.count("svg") == elements.tags.count("figcaption") == FIGURES
    assert len(elements.names) == len(set(elements.names))
    used = {each[1:] for each in elements.asked} | set(re.findall(r"url\(#([^)]+)\)", page))
    assert used <= set(elements.names)


def test_every_colour_of_a_figure_is_one_of_the_page(page):
    """So that it is another one on a dark screen; what is left are none and the white of nothing."""
    drawn = "".join(re.findall(r"<svg.*?</svg>", page, re.DOTALL))
    assert set(re.findall(r"#[0-9a-f]{6}\b", drawn)) == set()
    assert set(re.findall(r"(?:fill|stroke): ([a-z]+)\b(?!\()", drawn)) <= {"none", "var"}
    style = page[page.index("<style>") : page.index("</style>")]
    light, dark = style.split("@media (prefers-color-scheme: dark)")[:2]
    for name in set(re.findall(r"var\((--[\w]+)\)", drawn)):
        assert f"{name}:" in light
        assert f"{name}:" in dark


def test_the_page_says_who_is_best_and_how_regret_grows(page):
    assert "ts-n has the smallest regret on all 3 instances. Next comes exp3.g++, up to" in page
    assert "ts-n is the best on all 3 instances." in page
    assert page.count("<figcaption>After 400 rounds ts-n has the smallest regret") == 3
    assert re.search(r"exp3.g\+\+ follows with [\d.]+ times as much \(p = ", page)
    assert re.search(
        r"<figcaption>The regret of \S+ grows like K\^[\d.]+ \(.*; that of uniform grows like K\^0\.3", page
    )
    assert "ts-n wins 6 of its 6 comparisons and loses none." in page
    assert re.search(
        r"star n=6: 1 arm shows all, and the largest set in which no arm reveals another has 5 of 6 arms", page
    )


def test_the_theorem_is_in_the_figure_and_in_the_table(page):
    figure = page[page.index('<figure id="01-regret-log"') :]
    assert ">Theorem 4</text>" in figure[: figure.index("</figure>")]
    assert re.search(r"<td>[\d,]+ \(Theorem 4\)</td><td>\d+ %</td>", page)
    assert re.search(r"It ends at \d+ % of Theorem 4, [\d,]+\.", page)


def test_the_page_says_what_was_run_and_how_to_make_it_again(folder, page, tmp_path):
    for word in ("0, 1", "Numba", "its sources", "slowest cell", "Small &amp; &lt;quick&gt;"):
        assert word in page
    assert "sidelong run &#x27;Small &amp; &lt;quick&gt;.toml&#x27; --out results" in page
    text = html.unescape(re.findall(r"<pre><code>(.*?)</code></pre>", page, re.DOTALL)[-1])
    (tmp_path / "again.toml").write_text(text)
    again = load(tmp_path / "again.toml")
    assert {cell.name for cell in again.cells} == {path.stem for path in (folder / "cells").glob("*.parquet")}
    assert again.name == "Small & <quick>"


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_a_browser_shows_all_of_it_and_nothing_leaves(browser, written, width, dark):
    with visit(browser, written[0].as_uri(), width=width, dark=dark) as seen:
        assert seen.asked == []
        assert seen.complaints == []
        assert seen.overflow == 0
        sizes = np.array(seen.sizes("figure svg"))
        assert sizes.shape == (FIGURES, 2)
        assert (sizes > 100).all()
        assert (sizes[:, 0] <= width).all()
        body = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
        ink = seen.page.evaluate("getComputedStyle(document.querySelector('figure svg text')).fill")
        assert (brightness(body) > brightness(ink)) != dark
        assert abs(brightness(body) - brightness(ink)) > 400  # of 765


def brightness(colour):
    return sum(map(int, re.findall(r"\d+", colour)[:3]))


@pytest.mark.parametrize("width", [400, 1280])
def test_text_in_figures_can_be_read_and_stays_inside(browser, written, width):
    """Letters have 8 pixels or more, and no name at the end of a line is cut off."""
    with visit(browser, written[0].as_uri(), width=width) as seen:
        letters, outside = seen.page.evaluate(
            """() => {
              const letters = [], outside = [];
              for (const text of document.querySelectorAll("figure svg text")) {
                const svg = text.closest("svg"), card = svg.closest("figure").getBoundingClientRect();
                const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
                letters.push(parseFloat(getComputedStyle(text).fontSize) * scale);
                const box = text.getBoundingClientRect();
                if (box.right > card.right || box.left < card.left) outside.push(text.textContent);
              }
              return [letters, outside];
            }"""
        )
    assert min(letters) >= 8
    assert outside == []


def test_the_command_gives_the_same_page_for_the_same_results(folder, page, tmp_path):
    done = CliRunner().invoke(app, ["report", str(folder), "--out", str(tmp_path / "again.html"), "--no-figures"])
    assert done.exit_code == 0
    assert done.stdout.split() == [str(tmp_path / "again.html")]
    assert (tmp_path / "again.html").read_text() == page
    assert [path.name for path in tmp_path.iterdir()] == ["again.html"]


def test_the_command_refuses_a_folder_without_results(tmp_path):
    done = CliRunner().invoke(app, ["report", str(tmp_path)])
    assert done.exit_code == 2
    assert "there are no results here" in done.stderr


def test_results_without_their_study_are_reported_too(folder, tmp_path):
    """Cells that were copied from elsewhere are results all the same; only how to make them again is not known."""
    (tmp_path / "cells").mkdir()
    for path in sorted((folder / "cells").glob("*.parquet"))[:2]:
        (tmp_path / "cells" / path.name).write_bytes(path.read_bytes())
    text = write(tmp_path, tmp_path / "page.html", files=False)[0].read_text()
    assert "What was run" in text
    assert "To make it again" not in text


def test_names_are_short_and_clear(folder):
    reading = read(Path(folder))
    assert [*reading.styles] == ["uniform", "ts-n", "exp3.g++"]
    assert [each.title for each in reading.instances] == [f"star n={n} · bernoulli" for n in (3, 4, 6)]


LATE = """\
rounds = 200
runs = {runs}
delay = [0, 10, 40]
checkpoints = 30

[[learner]]
name = ["uniform", "exp3.g++"]

[graph]
name = "star"
n = 4

[world]
name = "bernoulli"
means = {{ gap = 0.4 }}
"""


@pytest.fixture(scope="module")
def late(tmp_path_factory):
    place = tmp_path_factory.mktemp("late")
    (place / "late.toml").write_text(LATE.format(runs=4))
    study = load(place / "late.toml")
    assert execute.run(study, place / "results", lambda *_: Inline(study.files)).done == 6
    return place / "results"


def test_each_delay_is_an_instance_with_its_own_numbers(late):
    reading = read(late)
    assert [each.title for each in reading.instances] == [
        f"star · bernoulli{suffix}" for suffix in ("", " · 10 late", " · 40 late")
    ]
    table = read_results(late).to_pandas()
    last = table[table["round"] == 200].groupby(["learner", "delay"]).regret.mean()
    for column, delay in enumerate((0, 10, 40)):
        for learner, row in reading.styles.items():
            assert reading.board.regret[row, column] == pytest.approx(last[learner, delay])


def test_delay_is_a_parameter_and_no_theorem_is_about_it(late, tmp_path):
    text = write(late, tmp_path / "page.html", files=False)[0].read_text()
    assert "Regret against delay" in text
    assert "feedback 40 rounds late" in text
    assert "… late" not in text
    promised = [row for row in re.findall(r"<tr>.*?</tr>", text, re.DOTALL) if "(Theorem 4)" in row]
    assert len(promised) == 1


def test_cells_that_are_measured_otherwise_do_not_hide_each_other(tmp_path):
    (tmp_path / "study.toml").write_text(LATE.format(runs="[2, 3]").replace("[0, 10, 40]", "0"))
    study = load(tmp_path / "study.toml")
    execute.run(study, tmp_path / "results", lambda *_: Inline(study.files))
    instances = read(tmp_path / "results").instances
    assert [len(each.curves["uniform"].runs) for each in instances] == [2, 3]
    assert [each.title for each in instances] == ["star · bernoulli · #1", "star · bernoulli · #2"]


def test_one_run_is_reported_without_intervals(tmp_path):
    (tmp_path / "study.toml").write_text(LATE.format(runs=1).replace("[0, 10, 40]", "0"))
    study = load(tmp_path / "study.toml")
    execute.run(study, tmp_path / "results", lambda *_: Inline(study.files))
    text = write(tmp_path / "results", tmp_path / "page.html", files=False)[0].read_text()
    rows = "".join(re.findall(r"<tr>.*?</tr>", text, re.DOTALL))
    assert "±" not in rows
    assert " to " not in rows
    assert "resamples" not in rows
    assert "There is one run, so there is no interval." in text


def test_a_part_of_a_study_is_called_a_part(late, tmp_path):
    """A cell that was not run yet says nothing about what its learner can play on."""
    shutil.copytree(late, tmp_path / "part")
    first, *_ = in_order(tmp_path / "part")
    first.unlink()
    text = write(tmp_path / "part", tmp_path / "page.html", files=False)[0].read_text()
    assert "1 cell of this study has no results yet, and what follows may change." in text
    assert "5, and 1 without results" in text
    assert "<small>no results</small>" in text
    assert "cannot play here" not in text
    assert "no results" not in write(late, tmp_path / "whole.html", files=False)[0].read_text()


def test_a_damaged_result_file_is_named(late, tmp_path):
    shutil.copytree(late, tmp_path / "part")
    second = in_order(tmp_path / "part")[1]
    second.write_bytes(second.read_bytes()[:-100])
    done = CliRunner().invoke(app, ["report", str(tmp_path / "part")])
    assert done.exit_code == 2
    assert str(second) in done.stderr
    assert "Run the study again" in done.stderr


PAPER = r"""\documentclass{article}
\usepackage[margin=1cm,landscape]{geometry}
\usepackage{booktabs,pgf}
\begin{document}
%s
\end{document}
"""


@pytest.mark.nightly
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="not installed: pdflatex (make nightly)")
def test_all_tables_and_figures_compile_in_a_paper(written, tmp_path):
    """As docs/report.md says: two packages in the preamble, and every table and figure by \\input."""
    files = [path for path in written if path.suffix in {".tex", ".pgf"}]
    assert {path.suffix for path in files} == {".tex", ".pgf"}
    inside = "\n".join(f"{{\\tiny\\input{{{path}}}}}\\clearpage" for path in files)
    (tmp_path / "paper.tex").write_text(PAPER % inside)
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"],  # noqa: S607
        cwd=tmp_path,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "paper.pdf").stat().st_size > 10_000


def test_the_caption_of_the_scoreboard_explains_its_signs(written):
    (text,) = [path.read_text() for path in written if path.name == "scoreboard.tex"]
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 1
    assert r"= marks a learner that Wilcoxon's signed rank test cannot tell apart from the best" in text
    assert r"95 \% bootstrap interval" in text


def test_the_caption_says_so_where_too_few_runs_allow_no_test(late):
    (text,) = [path.read_text() for path in write(late, late.parent / "late.html") if path.name == "scoreboard.tex"]
    assert "There are too few runs to tell who is better: 8 are enough." in text
    assert "= marks" not in text


# A folder of somebody else


@pytest.mark.parametrize("where", ["world", "graph"])
def test_a_report_runs_no_code_that_the_results_name(tmp_path, where):
    study = load(small.write(tmp_path, 1))
    mark = tmp_path / "mark"
    (tmp_path / "theirs.py").write_text(f"from pathlib import Path\nPath({str(mark)!r}).write_text('run')\n")
    code = {"file": Files().read(tmp_path / "theirs.py"), "function": "weekly"}
    spec = dict(study.cells[0].spec)
    spec[where] = spec[where] | {"world": {"means": code}, "graph": {"n": code}}[where]
    results = tmp_path / "results"
    (results / "files" / code["file"]["sha256"]).mkdir(parents=True)
    shutil.copy(tmp_path / "theirs.py", results / "files" / code["file"]["sha256"] / "theirs.py")
    _write_cell(results, Cell(spec), study)
    done = CliRunner().invoke(app, ["report", str(results)])
    assert not mark.exists()
    assert done.exit_code == 2
    assert "theirs.py is code, which is loaded only when the study is run." in done.stderr


@pytest.mark.parametrize(
    "reference",
    [{"name": "../../secret.txt", "sha256": "0" * 64}, {"name": "secret.txt", "sha256": "../.."}, {"name": "x"}],
)
def test_a_report_follows_no_path_out_of_the_folder(tmp_path, reference):
    study = load(small.write(tmp_path, 1))
    spec = study.cells[0].spec
    _write_cell(tmp_path / "results", Cell({**spec, "graph": {"name": "nested", "n": {"file": reference}}}), study)
    done = CliRunner().invoke(app, ["report", str(tmp_path / "results")])
    assert done.exit_code == 2
    assert "A file is known by its name and its SHA-256, not as" in done.stderr


def test_a_report_reads_no_pipe(tmp_path):
    (tmp_path / "cells").mkdir()
    os.mkfifo(tmp_path / "cells" / "0.parquet")
    done = CliRunner().invoke(app, ["report", str(tmp_path)])
    assert done.exit_code == 2
    assert "0.parquet: cannot be read: it is not a regular file." in done.stderr


def _write_cell(results, cell, study):
    """Write the results of the first cell of a study as if they were those of another one."""
    (results / "cells").mkdir(parents=True)
    game = build(study.cells[0].spec, study.files.locate)
    result = play_game(game, 2, 0, 5, 1, progress=False)
    (results / "cells" / f"{cell.name}.parquet").write_bytes(to_parquet(cell, 4, result))


def test_a_report_runs_no_code_that_results_name(tmp_path):
    code = "def flat(seed, run, t, arm):\n    return 0.5\n"
    mine, ran = tmp_path / "mine.py", tmp_path / "ran"
    mine.write_text(code)
    world = '[[world]]\nname = "function"\nf = {{ file = "mine.py", function = "flat" }}\n'
    path = small.write(tmp_path, 1, small.STUDY.partition("[[world]]")[0] + world)
    small.run(path, "--out", tmp_path / "results", "--workers", 1)
    mine.write_text(f"open({str(ran)!r}, 'w').close()\n{code}")
    done = CliRunner().invoke(app, ["report", str(tmp_path / "results"), "--out", str(tmp_path / "page.html")])
    assert done.exit_code == 0, done.output
    assert not ran.exists()
    assert "flat" in (tmp_path / "page.html").read_text()
