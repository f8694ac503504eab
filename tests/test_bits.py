"""The same bits: with the JIT on and off, in one interpreter and another, saved and resumed."""

import os
import subprocess
import sys

import pytest

# A program, so that it runs in any interpreter: it prints a digest of everything that an agent drew and knows.
PROGRAM = """
import hashlib
import sys

import numpy as np

import sidelong as sl
from sidelong import numerics

graphs = [
    sl.graphs.nested(7),
    sl.graphs.directed_cycle(7),
    sl.graphs.cliques([3, 4]).as_arcs(),
    sl.FeedbackGraph.from_intervals([0, 0, 2, 1, 3, 0, 4], [3, 2, 4, 7, 5, 7, 7]),
]
digest = hashlib.sha256()
grid = np.random.Generator(np.random.Philox(1)).uniform(-740, 709, 2000)
for function, arguments in ((numerics.exp, grid), (numerics.log, np.abs(grid)), (numerics.log, 2.0 ** np.round(grid))):
    digest.update(np.array([function(float(x)) for x in arguments]).tobytes())
digest.update(np.array([numerics.uniform(np.uint64(5), 1, 2, t, 3) for t in range(1000)]).tobytes())
digest.update(np.array([numerics.total(grid[:k]) for k in range(100)]).tobytes())
agent = sl.Agent("exp3.g++", sl.graphs.nested(40), seed=3, start="none")  # ranges taken several arms at a time
for t in range(1, 61):
    decision = agent.ask()
    agent.tell(decision, [(t * 7 + int(i) * 3) % 11 / 10 for i in decision.reveals])
    digest.update(decision.probabilities.tobytes())
for graph in graphs:
    fixed = {"rate": "fixed", "strong_independence": graph.numbers().strong_independence.value}
    several = ({}, fixed, {"ties": "practical", "gamma": 0.2, "beta": 0.01})
    for learner, options in (*(("exp3.g++", each) for each in several), ("glance", {})):
        agent = sl.Agent(learner, graph, seed=2**63 + 5, **options)
        for t in range(1, 151):
            decision = agent.ask(graphs[t % 4] if t % 5 == 0 else None)
            agent.tell(decision, [(t * 7 + int(i) * 3) % 11 / 10 for i in decision.reveals])
            digest.update(decision.probabilities.tobytes() + bytes([decision.arm]))
            if t == 75 and len(sys.argv) > 1:
                agent.save(sys.argv[1])
                agent = sl.Agent.load(sys.argv[1])
        for array in agent._state:
            digest.update(array.tobytes())
        digest.update(agent.estimates().weights.tobytes())
print(digest.hexdigest())
"""

# What the program prints on every machine. It changes only with the algorithm, on purpose, and the changelog says so.
EXPECTED = "f33d5f3f3a0bd1d8f382843275fdb5393b03de29559db5dd725443ab89319610"


def digest(*arguments, interpreter=sys.executable, **environment):
    done = subprocess.run(
        [interpreter, "-W", "error", "-c", PROGRAM, *arguments],
        env=os.environ | environment,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


#: Nothing else; no machine code; that of a plain x86-64 or ARM, without the vector units of this machine.
ENVIRONMENTS = {
    "as it is": {},
    "JIT off": {"NUMBA_DISABLE_JIT": "1"},
    "instruction set": {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""},
}


@pytest.mark.parametrize("environment", ENVIRONMENTS.values(), ids=ENVIRONMENTS)
def test_the_bits_are_those_on_record(environment):
    assert digest(**environment) == EXPECTED


def test_the_bits_depend_neither_on_a_break_nor_on_the_hash_seed_of_python(tmp_path):
    assert digest(str(tmp_path / "agent.sidelong"), PYTHONHASHSEED="12345") == EXPECTED
