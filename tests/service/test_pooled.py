"""Keys that learn together whom to trust, over HTTP: to the bit what a family does, over restarts and replays."""

import numpy as np
import pytest

import sidelong as sl
from service.deployments import KEYS

LEARNER = {"learner": "glance", "options": {}, "graph": {"name": "nested", "n": 4}}


def advised(number, n):
    return {"forecast": [(number + key) % 4 for key in range(n)], "habit": [2] * n}


@pytest.mark.parametrize("pooled", [False, True])
def test_keys_trust_as_those_of_a_family(deployment, pooled):
    each = deployment.create("keyed", **LEARNER, pooled=pooled)
    family = sl.Family("glance", sl.graphs.nested(4), seed=7, pooled=pooled, threads=1)
    for number in range(24):
        n = 1 + number % 5
        advice = advised(number, n)
        made, plan = each.decide(n, advice=advice), family.ask(KEYS[:n], advice=advice)
        assert [one["arm"] for one in made] == plan.arms.tolist()
        assert [one["probability"] for one in made] == plan.probabilities.tolist()
        losses = [[abs(arm - (number + key) % 4) / 3 for arm in one["reveals"]] for key, one in enumerate(made)]
        each.tell_many(made, losses).ok()
        family.tell(plan, np.concatenate(losses))
        if number in {8, 16}:
            before = each.digest()
            (deployment.restart if number == 8 else deployment.restart_without_snapshots)()
            assert each.digest() == before
    for key in KEYS[:5]:
        state = deployment.get(f"{each.path}?key={key}").ok().body
        shares = {row["name"]: row["trust"] for row in state["advisers"]}
        assert shares == family[key].trust()
    _, twin = each.clone()
    n = 5
    made, plan = twin.decide(n, advice=advised(99, n)), family.ask(KEYS[:n], advice=advised(99, n))
    assert [one["probability"] for one in made] == plan.probabilities.tolist()
    saved = deployment.get(f"{each.path}/agent").ok().body
    assert len(saved) > 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"keyed": False}, "Only keys learn together"),
        ({"learner": "exp3-set"}, "learns no trust that keys could share"),
    ],
)
def test_pooled_trust_that_there_cannot_be_is_refused(on_sqlite, given, message):
    reply = on_sqlite.post("/v1/experiments", {"name": "e", **LEARNER, "keyed": True, "pooled": True, **given})
    assert reply.code == (422, "invalid")
    assert message in reply.body["detail"]
