"""The release: the same bytes whoever builds it, and a wheel that works with the core's dependencies alone."""

import email
import os
import posixpath
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

import sidelong as sl

ROOT = Path(__file__).parent.parent
CORE = ("numpy", "scipy", "numba", "llvmlite")


def copy_of_the_sources(folder, modified):
    """What a person has who unpacked it at another time, elsewhere, with other permissions."""
    kept = ("src", "tests", "docs", "benchmarks", "research", "examples", "scripts", "client", "LICENSE")
    left = shutil.ignore_patterns("__pycache__", "_build", ".*")
    kept = (*kept, *(path.name for path in ROOT.glob("*.md")))
    kept = (*kept, "CITATION.cff", "Makefile", "constraints.txt", "pyproject.toml", "hatch_build.py", ".gitignore")
    for name in kept:
        source, target = ROOT / name, folder / name
        shutil.copytree(source, target, ignore=left) if source.is_dir() else shutil.copy(source, target)
    for path in folder.rglob("*"):
        os.utime(path, (modified, modified))
        if path.is_file():
            path.chmod(0o600 if modified % 2 else 0o664)


def git(root, *command):
    return subprocess.run(
        [shutil.which("git"), "-C", root, *command], check=True, capture_output=True, text=True
    ).stdout


def build(source, out):
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", out, source], check=True, capture_output=True
    )
    return {path.name: path.read_bytes() for path in out.iterdir()}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Both packages, built twice."""
    folder = tmp_path_factory.mktemp("release")
    packages = []
    for number, modified in enumerate((1_000_000_001, 1_700_000_000)):
        (folder / f"source{number}").mkdir()
        copy_of_the_sources(folder / f"source{number}", modified)
        packages.append(build(folder / f"source{number}", folder / f"dist{number}"))
    return folder / "dist0", packages


def test_wheel_and_sdist_are_the_same_bytes_twice(built):
    _, (one, other) = built
    assert sorted(name.partition("-")[2] for name in one) == [
        f"{sl.__version__}-py3-none-any.whl",
        f"{sl.__version__}.tar.gz",
    ]
    assert one == other


def metadata(wheel):
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith("/METADATA")]
        return email.message_from_bytes(archive.read(name))


def test_an_index_shows_the_readme_with_full_addresses(built):
    [wheel] = built[0].glob("*.whl")
    shown = metadata(wheel)
    source = runpy.run_path(str(ROOT / "src" / "sidelong" / "_version.py"))["REPOSITORY"]
    assert f"Source, {source}" in shown.get_all("Project-URL")
    text = shown.get_payload(decode=True).decode()
    targets = re.findall(r"\]\(([^)]+)\)", text)
    assert len(targets) > 20
    for target in targets:
        prefix, _, path = target.partition(f"/v{sl.__version__}/")
        assert prefix == f"{source}/{'raw' if target.endswith('.svg') else 'blob'}", target
        assert (ROOT / path).exists(), target
    unlinked = [re.sub(r"\]\([^)]+\)", "]", each).strip() for each in (text, (ROOT / "README.md").read_text("utf-8"))]
    assert unlinked[0] == unlinked[1]


def test_the_citation_file_is_what_the_script_writes(tmp_path):
    path = tmp_path / "CITATION.cff"
    shown = (ROOT / "CITATION.cff").read_text("utf-8")
    path.write_text(re.sub(r"^(version|date-released|repository-code): .*$", r"\1: old", shown, flags=re.MULTILINE))
    write = runpy.run_path(str(ROOT / "scripts" / "citation.py"))["main"]
    write(re.search(r"^date-released: (.*)$", shown, re.MULTILINE)[1], path)
    assert path.read_text("utf-8") == shown


def test_a_tag_of_this_commit_names_its_version():
    found = git(ROOT, "tag", "--points-at", "HEAD", "v*") if (ROOT / ".git").exists() else ""
    assert set(found.split()) <= {f"v{sl.__version__}"}


def test_changelog_begins_with_this_version():
    heading = re.search(r"^## (\S+) \((\S+)\)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    date = re.search(r"^date-released: (.*)$", (ROOT / "CITATION.cff").read_text("utf-8"), re.MULTILINE)[1]
    assert heading.groups() == (sl.__version__, date)


def test_the_sdist_has_what_make_needs_and_nothing_made(built):
    [path] = built[0].glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    for name in (
        "Makefile",
        "constraints.txt",
        "CITATION.cff",
        "docs/index.md",
        "docs/conf.py",
        "tests/naive.py",
        "benchmarks/reference.c",
    ):
        assert name in names
    assert not [name for name in names if "/_build/" in name or "__pycache__" in name or ".venv" in name]
    with tarfile.open(path) as archive:
        assert max(member.size for member in archive.getmembers()) < 300_000
        assert all(member.isfile() for member in archive.getmembers())


def test_every_link_from_a_page_to_a_file_leads_somewhere_in_the_sdist(built):
    [path] = built[0].glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    pages = [name for name in names if name.endswith(".md")]
    assert len(pages) > 20
    for page in pages:
        text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text(), flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r"\]\(([^)#:\s]+)[)#]", text):
            path = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
            assert path in names or any(name.startswith(f"{path}/") for name in names), (page, target)


@pytest.fixture(scope="module")
def core_alone(built, tmp_path_factory):
    """A folder of packages with the wheel and what it says it needs, and nothing else."""
    folder = tmp_path_factory.mktemp("core")
    [wheel] = built[0].glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)  # noqa: S202  # our own
    installed = Path(sysconfig.get_path("purelib"))
    for path in installed.iterdir():
        if path.name.partition("-")[0].partition(".")[0] in CORE:
            (folder / path.name).symlink_to(path)
    return folder


def run(folder, code, *, compiled=True):
    jit = {} if compiled else {"NUMBA_DISABLE_JIT": "1"}
    return subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(folder), "PYTHONWARNINGS": "error"}
        | jit
        | {name: value for name, value in os.environ.items() if name == "SIDELONG_CACHE_DIR"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_wheel_needs_the_core_alone(built):
    [wheel] = built[0].glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert "sidelong/learners/references.bib" in archive.namelist()
    needs = metadata(wheel).get_all("Requires-Dist")
    plain = [need.partition(">")[0] for need in needs if "extra ==" not in need]
    assert sorted(plain) == ["numba", "numpy", "scipy"]


DECIDE = """
import sidelong as sl
graph = sl.graphs.nested(4)
agent = sl.Agent("exp3.g++", graph, seed=1)
for _ in range(20):
    decision = agent.ask()
    agent.tell(decision, {int(arm): 0.5 for arm in decision.reveals})
assert graph.numbers().independence.value == 1
print(sl.__file__)
"""
SIMULATE = """
import sidelong as sl
world = sl.losses.bernoulli([0.2, 0.5, 0.5])
print(sl.simulate("uniform", sl.graphs.nested(3), world, rounds=1000, runs=2, seed=1).regret.shape)
"""


def test_with_only_the_core_agents_decide_and_simulations_run(core_alone):
    # A new place is compiled anew, so that the larger part is plain Python.
    decided = run(core_alone, DECIDE, compiled=False)
    assert decided.returncode == 0, decided.stderr
    assert decided.stdout.startswith(str(core_alone))
    simulated = run(core_alone, SIMULATE)
    assert simulated.returncode == 0, simulated.stderr
    assert simulated.stdout.startswith("(2, ")


def test_with_only_the_core_the_rest_says_how_to_install_it(core_alone):
    for code, packages in (
        ("import sidelong.__main__ as m; m.main()", "typer rich"),
        ("import sidelong as sl; sl.read_results('x')", "pyarrow"),
        ("import sidelong.integrations.river", "river"),
        ("import sidelong as sl; sl.Newsvendor(holding=1, shortage=2).report().plot()", "matplotlib"),
    ):
        done = run(core_alone, code)
        assert done.returncode != 0
        assert f"Install with: pip install {packages}\n" in done.stderr
