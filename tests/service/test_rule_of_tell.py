"""The example of CONTRIBUTING.md: a rule that is added to `tell` in one file holds for all who are told losses.

It is typed into a copy of the package as the page has it. If the service had rules of its own, it would take what the
copy must refuse, or fail where the engine refuses it.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = """
import base64, sys
import numpy as np
import sidelong as sl
from sidelong.errors import LossError
from service.deployments import Deployment, until

assert sl.__file__.startswith(sys.argv[1])
RULE = "At least two losses{} are needed, not 1."


def refused(call, *given, whose=""):
    try:
        call(*given)
    except LossError as error:
        assert str(error) == RULE.format(whose), error
    else:
        raise AssertionError("taken")


def overridden(asked, *x):
    return asked.override(asked.ask(*x), 0)  # of which nothing else is revealed


graph = sl.graphs.nested(3)
agent, contextual = sl.Agent("exp3-set", graph), sl.ContextualAgent("squarecb.g", graph)
refused(agent.tell, overridden(agent), [0.5])
refused(contextual.tell, overridden(contextual, [1.0]), [0.5])
family = sl.Family("exp3-set", graph)
plan = family.ask(["a", "b"])
family.override(plan, [0, 0])
refused(family.tell, plan, [0.5, 0.5], whose=f" of the key 'a', decision {plan.ids[0]},")
made = overridden(family["c"])
refused(family["c"].tell, made, [0.5], whose=f" of the key 'c', decision {made.id},")

here = Deployment(f"sqlite:///{sys.argv[1]}/decisions.db")
with here.running():
    for kind in ("keyless", "keyed"):
        one = here.create(kind, learner="exp3-set", options={}, graph={"name": "self_loops", "n": 3})
        made = [one.decide() for _ in range(3)]
        path = f"/v1/decisions/{made[0]['id']}/feedback"
        for losses in ({str(made[0]["arm"]): 0.5}, [0.5]):
            reply = here.post(path, {"losses": losses})
            assert reply.status == 422 and reply.body["detail"] == RULE.format(""), reply
        reply = one.tell_many(made)
        assert reply.status == 422 and reply.body["detail"].endswith(": " + RULE.format("")), reply
        told = one.tell_many(made, partial=True).body["problems"]
        assert [(each["status"], each["detail"]) for each in told] == [(422, RULE.format(""))] * 3, told
        columns = {"ids": [each["id"] for each in made], "sizes": [1] * 3}
        columns["losses"] = base64.b64encode(np.full(3, 0.5).tobytes()).decode()
        reply = here.post("/v1/feedback", columns)
        assert reply.status == 422 and reply.body["detail"].endswith(": " + RULE.format("")), reply
        told = here.post("/v1/feedback", {**columns, "partial": True}).body["problems"]
        assert [(each["status"], each["detail"]) for each in told] == [(422, RULE.format(""))] * 3, told
        assert one.counts("told") == (0,), one.state()

        # A default is told of the decisions that reveal enough, and the others expire without it.
        spec = {"learner": "uniform", "options": {}, "graph": {"name": "nested", "n": 3}}
        other = here.create(kind, **spec, default_loss=0.5, expire_after=60)
        few = [other.decide()["arm"] for _ in range(20)].count(0)
        here.hands.move(100.0)
        until(lambda: other.counts("outstanding") == (0,))
        assert 0 < few < 20 and other.counts("told", "expired") == (20 - few, few), (few, other.state())
        digest = other.digest()
        here.restart()
        assert other.digest() == digest
print("done")
"""


def example():
    """Return the three pieces of the example, by what they are put into."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    block = text.split("## Add a rule to `tell`")[1].split("```python\n")[1].split("```")[0]
    names, in_check, in_checked = block.split("\n# in ")
    return names, in_check.partition(":\n")[2], in_checked.partition(":\n")[2]


def test_the_example_of_the_page_is_a_rule_of_agents_families_and_the_service(tmp_path):
    shutil.copytree(ROOT / "src/sidelong", tmp_path / "sidelong", ignore=shutil.ignore_patterns("__pycache__"))
    file = tmp_path / "sidelong/agent/rules.py"
    code = file.read_text()
    names, in_check, in_checked = example()
    for old, new in (
        ("COUNT, OUTSIDE, NOT_BINARY = range(3)\n", names),
        ("    if given != due:\n", in_check + "    if given != due:\n"),
        ("        if code == COUNT:", in_checked + "        if code == COUNT:"),
    ):
        assert code.count(old) == 1
        code = code.replace(old, new)
    file.write_text(code)
    paths = os.pathsep.join([str(tmp_path), str(ROOT / "tests")])
    environment = {**os.environ, "PYTHONPATH": paths, "NUMBA_DISABLE_JIT": "1"}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    assert run.stdout.strip().endswith("done")
