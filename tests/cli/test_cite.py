"""What to cite: the papers that the learners' files name, word for word."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

import sidelong as sl
from sidelong import cli
from sidelong.learners import catalogue, citations, squarecb

ROOT = Path(__file__).parent.parent.parent
ACCENTS = {r"{\'e}": "e", r"{\`o}": "o", r"{\'a}": "a", r"{\"\i}": "i", r"{\'E}": "E"}


def cite(*learners):
    return CliRunner().invoke(cli.app, ["cite", *learners])


def fields(entry):
    for accent, letter in ACCENTS.items():
        entry = entry.replace(accent, letter)
    return {name: value.replace("{", "").replace("}", "") for name, value in re.findall(r"(\w+) += \{(.*)\},", entry)}


@pytest.mark.parametrize("name", [name for name in sl.learners.names() if catalogue.find(name).about.published])
def test_title_authors_and_year_stand_in_the_file_of_the_learner(name):
    module = catalogue.find(name)
    text = " ".join(module.doc.split())
    assert module.about.cite
    for key in module.about.cite:
        found = fields(citations._entries()[key])
        assert found["title"] in text
        assert found["year"] in text
        for author in found["author"].split(" and "):
            assert author.rpartition(" ")[2] in text


def test_an_author_of_a_paper_that_about_names_is_in_its_first_entry():
    for name in sl.learners.names():
        about = catalogue.find(name).about
        if about.cite:
            authors = " ".join(fields(citations._entries()[key])["author"] for key in about.cite)
            assert about.paper.partition(",")[0] in authors


def test_each_entry_is_used_has_a_venue_and_is_printed_once():
    modules = [squarecb.LEARNER, *map(catalogue.find, sl.learners.names())]
    used = {key for module in modules for key in module.about.cite}
    entries = citations._entries()
    assert used == set(entries)
    for entry in entries.values():
        assert entry.count("{") == entry.count("}")
        assert {"booktitle", "journal"} & set(fields(entry))
    shown = cite("ucb-n", "ts-n", "ucb-n").output
    assert re.findall(r"@\w+\{(\w+),", shown) == [
        "sidelong",
        "caron2012leveraging",
        "lykouris2020feedback",
        "tossou2017thompson",
    ]


def git(root, *command):
    return subprocess.run(["git", "-C", root, *command], check=True, capture_output=True, text=True).stdout  # noqa: S607


def clone(root, *, changed):
    """Make the folder of a clone with this file of the package in it; return its commit."""
    (root / "src").mkdir()
    (root / "src" / "file.py").write_text("x = 1")
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "first"]):
        git(root, *command)
    if changed:
        (root / "src" / "file.py").write_text("x = 2")
    return git(root, "rev-parse", "HEAD")


@pytest.mark.parametrize("changed", [False, True])
def test_a_clone_is_cited_with_its_commit(tmp_path, monkeypatch, changed):
    head = clone(tmp_path, changed=changed).strip()
    monkeypatch.setattr(citations, "__file__", str(tmp_path / "src" / "sidelong" / "learners" / "citations.py"))
    expected = f"Commit {head}{', with local changes' * changed}"
    assert fields(cite("uniform").output)["note"] == expected


def test_an_installation_is_cited_with_the_commit_that_pip_has_noted(tmp_path, monkeypatch):
    monkeypatch.setattr(citations, "__file__", str(tmp_path / "lib" / "sidelong" / "learners" / "citations.py"))
    (tmp_path / "sidelong-0.dist-info").mkdir()
    (tmp_path / "sidelong-0.dist-info" / "METADATA").write_text("Name: sidelong\nVersion: 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert "note" not in fields(cite("uniform").output)
    (tmp_path / "sidelong-0.dist-info" / "direct_url.json").write_text('{"vcs_info": {"commit_id": "abc"}}')
    assert fields(cite("uniform").output)["note"] == "Commit abc"


def test_without_a_learner_it_is_the_paper():
    assert re.findall(r"@\w+\{(\w+),", cite().output) == ["sidelong", "rouyer2022near"]
    assert re.findall(r"@\w+\{(\w+),", cite("uniform").output) == ["sidelong"]


def test_an_unknown_learner_is_one_message_and_code_2():
    done = cite("ucbn")
    assert done.exit_code == 2
    assert "Did you mean 'ucb-n'" in " ".join(done.output.replace("│", "").split())


def test_the_citation_file_says_what_the_package_says():
    said = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    entry = fields(citations.bibtex().partition("\n\n")[0])
    assert {name: entry[name] for name in ("title", "author", "year", "version", "url")} == {
        "title": said["title"],
        "author": said["authors"][0]["name"],
        "year": str(said["date-released"].year),
        "version": str(said["version"]),
        "url": said["repository-code"],
    }
    assert entry["version"] == sl.__version__
    [paper] = said["references"]
    assert paper["title"] in citations.bibtex()
    for author in paper["authors"]:
        assert author["family-names"] in citations.bibtex()
