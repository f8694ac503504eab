"""What every version of a learner decides, as one number each: the same on every machine, with every Numba.

``PYTHONPATH=tests python -m learners.digests`` writes the numbers that are missing into digests.toml, beside this file.
It never changes the number of a version that is there: whoever changes what a learner decides raises its `version`.
Until 0.1.0 is released all versions are 1, and its line is removed from digests.toml instead.
"""

import hashlib
import tomllib
from pathlib import Path

import sidelong as sl
from learners.test_contract import CONFIGURATIONS, fitting_graph, module_of, needs_of, options_of
from sidelong.learners.interface import Need

FILE = Path(__file__).with_name("digests.toml")
ROUNDS = 60


def digest(label):
    """Return the digest of what is decided in 60 rounds, told late, on a graph that changes if it may."""
    needs = needs_of(label)
    other = None if Need.FIXED_GRAPH in needs else sl.graphs.complete(6)
    agent = sl.Agent(CONFIGURATIONS[label][0], fitting_graph(needs), seed=2**63 + 5, **options_of(label))
    seen, waiting = hashlib.sha256(), []
    for t in range(1, ROUNDS + 1):
        waiting.append(agent.ask(other if t % 5 == 0 else None))
        seen.update(bytes([waiting[-1].arm]) + waiting[-1].probabilities.tobytes())
        while waiting and t % 3 == 0:
            decision = waiting.pop()
            losses = [(decision.round * 7 + int(i) * 3) % 11 / 10 for i in decision.reveals]
            agent.tell(decision, [round(l) for l in losses] if Need.BINARY_LOSSES in needs else losses)
    seen.update(agent.estimates().weights.tobytes())
    return seen.hexdigest()


def pins(file=FILE):
    """Return the version and the digest on record for each configuration."""
    return tomllib.loads(file.read_text()) if file.exists() else {}


def write(file=FILE):
    """Add what is missing, for configurations and versions that are not on record."""
    known = pins(file)
    for label in CONFIGURATIONS:
        version = module_of(label).version
        if known.get(label, {}).get("version") != version:
            known[label] = {"version": version, "digest": digest(label)}
    pin = '"{}" = {{ version = {version}, digest = "{digest}" }}'
    lines = [pin.format(label, **known[label]) for label in CONFIGURATIONS]
    file.write_text("# What each learner decides, and in which version: see digests.py.\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    write()
