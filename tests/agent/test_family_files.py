"""A family in files, in parts and on a cluster: the same bits as on one machine that never stopped."""

import copy
import json
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import sidelong as sl
from sidelong.agent import state_file
from sidelong.errors import FamilyError, StateFileError
from sidelong.keys import part_of
from sidelong.learners import glance

KEYS = [f"sku-{k}" for k in range(30)]


def play(family, rounds, keys=KEYS, *, late=True):
    """Ask for all keys in each round, and tell all but the last one of every third key; return the arms."""
    arms = []
    for t in range(rounds):
        plan = family.ask(keys)
        arms.append(plan.arms.tolist())
        due = plan[np.arange(len(plan)) % 3 != 0] if late and t % 2 else plan
        family.tell(due, ((due.reveals * 7 + t) % 11) / 10)
    return arms


def new_family():
    return sl.Family("glance", sl.graphs.nested(4), seed=5)


@pytest.mark.interpreted
def test_saving_twice_gives_the_same_file(tmp_path):
    family = new_family()
    play(family, 3)
    family.save(tmp_path / "one")
    sl.Family.load(tmp_path / "one").save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.interpreted
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda family: pickle.loads(pickle.dumps(family))])  # noqa: S301
def test_a_copy_goes_on_with_the_same_bits_and_apart(copied):
    family = new_family()
    family.threads = 3
    play(family, 3)
    other = copied(family)
    assert other.threads == 3
    assert play(family, 4) == play(other, 4)


@pytest.mark.interpreted
def test_damaged_and_foreign_files_are_refused(tmp_path):
    path = tmp_path / "family"
    new_family().save(path)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(StateFileError, match="checksum does not hold"):
        sl.Family.load(path)
    sl.Agent("glance", sl.graphs.nested(3)).save(path)
    with pytest.raises(StateFileError, match=r"of an agent, not of a family. Load it with Agent.load"):
        sl.Family.load(path)
    family = new_family()
    family.save(path)
    with pytest.raises(StateFileError, match=r"of a family, not of an agent. Load it with Family.load"):
        sl.Agent.load(path)
    sl.Newsvendor(holding=1, shortage=3).save(path)
    for other in (sl.Agent, sl.Family):
        with pytest.raises(StateFileError, match=r"of a newsvendor, not of an? \w+. Load it with Newsvendor.load"):
            other.load(path)
    header, arrays = family.contents()
    for kind in (None, [], "shop"):
        with pytest.raises(StateFileError, match="which is nothing that this program saves"):
            sl.Family.from_contents({**header, "kind": kind}, arrays, path)
    state_file.write(path, header, {**arrays, "state.L": arrays["state.L"][:, :2]})
    with pytest.raises(StateFileError, match="another version of its learner: its L does not fit"):
        sl.Family.load(path)
    state_file.write(path, {**header, "learner_version": 99}, arrays)
    with pytest.raises(StateFileError, match=r"version 99 of glance.*make a new Family"):
        sl.Family.load(path)


def saved_in_the_first_format():
    """Return the family of files/family-1.sidelong, made anew: scales, a prior, labels, and decisions that wait."""
    graph = sl.graphs.nested(3).labelled(["none", "some", "all"])
    family = sl.Family("exp3-set", graph, seed=5, scale=sl.outcomes.Scale(0, 10))
    family.add(["own"], scale=sl.outcomes.Scale(0, 100), prior={"none": (90.0, 20)})
    for t in range(5):
        plan = family.ask(["é", "own", "sku-1"], [graph, sl.graphs.complete(3), sl.graphs.star(3)])
        family.tell(plan[[0, 1]], (plan[[0, 1]].reveals + t) % 4)
    family.cancel(plan.ids[2:])
    return family


@pytest.mark.interpreted
def test_a_file_of_the_first_format_opens_for_ever_and_goes_on_with_the_same_bits():
    loaded, made = sl.Family.load(Path(__file__).parent / "files" / "family-1.sidelong"), saved_in_the_first_format()
    assert loaded.pending == made.pending
    assert loaded.keys == made.keys == ["own", "é", "sku-1"]
    assert loaded.scale == made.scale
    assert loaded.graph.labels == made.graph.labels
    for _ in range(5):
        one, other = loaded.ask(made.keys), made.ask(made.keys)
        assert one.ids == other.ids
        assert one.probabilities.tobytes() == other.probabilities.tobytes()
        for family in (loaded, made):
            family.tell(one, one.reveals * 2.5)


@pytest.mark.interpreted
def test_a_learner_of_ones_own_is_loaded_with_its_module(tmp_path):
    own = replace(glance.LEARNER, name="own")
    sl.Family(own, sl.graphs.nested(3)).save(tmp_path / "family")
    assert sl.Family.load(tmp_path / "family", learner=own).learner == "own"
    with pytest.raises(StateFileError, match=r"Family.load\(path, learner=module\)"):
        sl.Family.load(tmp_path / "family")


@pytest.mark.interpreted
def test_parts_play_as_the_whole_does():
    whole, family = new_family(), new_family()
    play(whole, 3)
    play(family, 3)
    parts = family.split(3)
    assert [part.keys for part in parts] == [[key for key in KEYS if part_of(key, 3) == k] for k in range(3)]
    assert sum(len(part.pending) for part in parts) == len(whole.pending)
    expected = play(whole, 4, late=False)
    for part in parts:
        columns = [KEYS.index(key) for key in part.keys]
        assert play(part, 4, part.keys, late=False) == [[row[k] for k in columns] for row in expected]
    joined = sl.Family.join(parts)
    assert sorted(joined.keys) == sorted(KEYS)
    assert sorted(joined.pending) == sorted(whole.pending)
    assert play(joined, 2) == play(whole, 2)


@pytest.mark.interpreted
def test_what_does_not_fit_together_is_not_joined():
    family = new_family()
    family.ask(["a", "b"])
    parts = family.split(2)
    with pytest.raises(FamilyError, match="is not a part of the family"):
        sl.Family.join([*parts, sl.Family("glance", sl.graphs.nested(4), seed=6)])
    with pytest.raises(FamilyError, match="Two parts have the key 'a'"):
        sl.Family.join([family, *parts])
    with pytest.raises(FamilyError, match="at least one"):
        sl.Family.join([])
    with pytest.raises(FamilyError, match="parts must be a whole number"):
        family.split(0)


@pytest.mark.nightly
def test_a_dask_cluster_plays_a_partitioned_table_with_the_same_bits():
    """In a process of its own: two workers, each with its part of the table. They find what is compiled here."""
    decided = play(new_family(), 4, late=False)
    done = subprocess.run(
        [sys.executable, Path(__file__).parent / "family_on_dask.py"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == decided
