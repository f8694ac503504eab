"""Help that teaches, names that complete, and the pip command where a package is missing."""

import importlib
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import sidelong as sl
from sidelong import cli
from sidelong.cli.run import STUDY
from sidelong.studies.spec import load

ROOT = Path(__file__).parent.parent.parent
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
INSTALLABLE = {package.partition(">")[0].replace("-", "_") for extra in EXTRAS.values() for package in extra}


MODULES = {
    path.stem: importlib.import_module(f"sidelong.cli.{path.stem}")
    for path in Path(cli.__file__).parent.glob("*.py")
    if path.stem != "__init__"
}
#: What the help of each command shows to type.
EXAMPLES = {name: module.EXAMPLES for name, module in MODULES.items() if hasattr(module, "EXAMPLES")}


def test_every_command_is_listed_once_in_the_help_and_on_the_page():
    listed = [name for names in cli.COMMANDS.values() for name in names]
    typed = sorted(name.replace("_", "-") for name in listed)
    assert typed == sorted(get_command(cli.app).commands)
    written = {name for name, module in MODULES.items() if name in EXAMPLES or hasattr(module, "app")}
    assert set(listed) == written, "a module with EXAMPLES or an app is a command: add it to COMMANDS"
    page = (ROOT / "docs" / "commands.md").read_text()
    assert sorted(re.findall(r"^\| `sidelong ([\w-]+)", page, re.MULTILINE)) == typed, "docs/commands.md"


def text(output):
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", output).split())


def test_help_shows_each_command_and_what_to_type_first():
    shown = CliRunner().invoke(cli.app, ["--help"], env={"COLUMNS": "80", "NO_COLOR": "1"}).output
    examples = [line.strip() for line in shown.splitlines() if re.match(r" sidelong \w+ ", line)]
    assert len(examples) == 6
    for command in get_command(cli.app).commands:
        assert re.search(rf"│ {command} ", shown), command
    for example in examples:
        assert example.split()[1] in get_command(cli.app).commands
    assert "--install-completion" in shown
    assert "…" not in shown


@pytest.mark.parametrize("command", get_command(cli.app).commands)
def test_each_command_and_option_says_what_it_is(command):
    found = get_command(cli.app).commands[command]
    assert found.help.split("\n")[0].endswith(".")
    for parameter in found.params:
        assert parameter.name == "help" or parameter.help, parameter.name


def test_a_paragraph_of_help_is_as_wide_as_the_terminal():
    shown = CliRunner().invoke(cli.app, ["demo", "--help"], env={"COLUMNS": "250", "NO_COLOR": "1"}).output
    assert "You can stop it and start it again: what is done already is not played again." in shown
    usage = CliRunner().invoke(cli.app, ["reproduce", "--help"], env={"COLUMNS": "80"}).output
    assert "[NAME]..." in usage
    assert "[[NAME]" not in usage


@pytest.mark.parametrize("example", [each for lines in EXAMPLES.values() for each in lines])
def test_what_help_shows_to_type_can_be_typed(example):
    _, name, *arguments = example.partition(" >")[0].split()
    command = get_command(cli.app).commands[name]
    command.make_context(name, arguments)  # else click raises
    shown = CliRunner().invoke(cli.app, [name, "--help"], env={"COLUMNS": "80", "NO_COLOR": "1"}).output
    assert f" {example} " in shown


def test_the_study_that_help_shows_is_one(tmp_path):
    (tmp_path / "study.toml").write_text(STUDY)
    assert len(load(tmp_path / "study.toml").cells) == 4
    shown = CliRunner().invoke(cli.app, ["run", "--help"], env={"COLUMNS": "80", "NO_COLOR": "1"}).output
    for line in STUDY.splitlines():
        assert f" {line} " in shown


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("sidelong le", {"learners"}),
        ("sidelong cite exp3 ucb-m", {"ucb-maxn"}),
        ("sidelong learners ucb", {"ucb-n", "ucb-maxn", "ucb-lp"}),
        ("sidelong graph complete-b", {"complete-bipartite:"}),
        ("sidelong reproduce nes", {"nested"}),
    ],
)
def test_a_shell_is_offered_names(words, offered, sidelong, monkeypatch):
    environment = {"_SIDELONG_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert set(sidelong().stdout.split()) == offered


USES = {
    "typer": "from sidelong.__main__ import main; main()",
    "rich": "from sidelong.__main__ import main; main()",
    "networkx": "import sidelong; sidelong.graphs.petersen().to_networkx()",
    "pyarrow": "import sidelong; sidelong.read_results('nowhere')",
    "matplotlib": "import sys; sys.argv = ['sidelong', 'report', 'x']; from sidelong.__main__ import main; main()",
    "gymnasium": "import sidelong.integrations.gymnasium",
    "river": "import sidelong.integrations.river",
}
BLOCK = """
import importlib.abc, importlib.util, sys

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name={missing!r})

sys.meta_path.insert(0, Missing())
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == {missing!r} else find(name, package)
"""


@pytest.mark.parametrize("missing", USES)
def test_a_missing_package_gives_the_pip_command_that_installs_it(missing):
    code = BLOCK.format(missing=missing) + USES[missing]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    said = text(done.stderr)
    assert re.search(rf"(needs? {missing}|{missing} is missing)\. Install with: pip install {missing}$", said)
    assert missing in INSTALLABLE


@pytest.mark.parametrize(
    "arguments",
    [
        ["demo"],
        ["run", "x.toml"],
        ["report", "x"],
        ["reproduce"],
        ["serve"],
        ["token", "list"],
        ["evaluate", "x.parquet"],
        ["evaluate", "http://localhost/v1/experiments/x"],
    ],
    ids=" ".join,
)
def test_a_command_that_lacks_all_of_its_packages_names_them_and_how_to_install_them(arguments, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    done = CliRunner().invoke(cli.app, arguments)
    assert done.exit_code == 2
    command, modules, packages = re.match(
        r"sidelong (\w+): (.*) (?:is|are) missing\. Install with: pip install (.*)\n$", done.stderr
    ).groups()
    assert command == arguments[0]
    assert re.split(", | and ", modules) == [name.partition("[")[0] for name in shlex.split(packages)]
    assert set(shlex.split(packages)) <= INSTALLABLE


@pytest.mark.skipif(sys.platform == "win32", reason="locales and /dev/full are those of Unix")
def test_a_terminal_without_signs_and_a_full_disk():
    program = [sys.executable, "-m", "sidelong"]
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [*program, "graph", "nested:2"], env=os.environ | ascii_only, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"\n  0. # \. \n  1. # # \n", done.stdout)
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run([*program, "cite"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "sidelong: [Errno 28] No space left on device.\n")


INTERRUPTED = """
import importlib.abc, sys

class Interrupted(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "sidelong.cli":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupted())
from sidelong.__main__ import main; main()
"""


def test_ctrl_c_while_it_loads_is_no_traceback():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "")


def test_no_advice_names_a_package_that_is_not_on_pypi_and_extras_exist():
    found = set()
    for path in [*Path(sl.__file__).parent.rglob("*.py"), ROOT / "README.md", *ROOT.glob("docs/**/*.md")]:
        # But for a wheel that lies here, and what sidelong-client says, which comes from where sidelong comes from.
        said = path.read_text().replace("pip uninstall sidelong-client, then pip install sidelong", "")
        assert not re.search(r"pip install\b[^\n`]*\bsidelong(?!(_client)?-\*)", said), path
        found |= {extra for names in re.findall(r"\.\[([\w,]+)\]'", said) for extra in names.split(",")}
        assert path.name == "_install.py" or path.suffix == ".md" or "pip install" not in said, path
    assert {"cli", "study", "plot", "service", "dask"} <= found <= set(EXTRAS)


def test_every_extra_names_the_file_that_needs_it():
    section = (ROOT / "pyproject.toml").read_text()
    section = section[section.index("[project.optional-dependencies]") : section.index("[project.scripts]")]
    for package in {package for extra in EXTRAS.values() for package in extra}:
        name = re.match(r"[\w-]+", package)[0].replace("-", "_")
        for line in (line for line in section.splitlines() if f'"{package}"' in line):
            said = line.rpartition("# ")[2].strip()
            assert "#" in line, line
            if said.endswith(".py"):  # else it serves another package, which the comment says
                code = (Path(sl.__file__).parent / said).read_text()
                assert re.search(rf"^\s*(import|from) {name}\b", code, re.MULTILINE), line


def test_every_token_command_closes_its_database(tmp_path, monkeypatch):
    from sidelong.service.store.sql.database import SqlDatabase  # noqa: PLC0415

    close, closed = SqlDatabase.close, []
    monkeypatch.setattr(SqlDatabase, "close", lambda database: closed.append(close(database)))
    database = ["--database", f"sqlite:///{tmp_path}/tokens.db"]
    shell = CliRunner()
    made = shell.invoke(cli.app, ["token", "create", "till", "--scope", "decide", *database])
    listed = shell.invoke(cli.app, ["token", "list", *database])
    revoked = shell.invoke(cli.app, ["token", "revoke", made.output.split("_")[1], *database])
    assert (made.exit_code, listed.exit_code, revoked.exit_code) == (0, 0, 0)
    assert shell.invoke(cli.app, ["token", "revoke", "nobody", *database]).exit_code != 0
    assert len(closed) == 4
