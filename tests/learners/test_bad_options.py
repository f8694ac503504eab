"""Options that a learner cannot take are refused with the rule and the value, before an agent is made."""

import math

import numpy as np
import pytest

import sidelong as sl
from sidelong.errors import GraphError, LearnerError
from sidelong.graphs.numbers import GraphNumber, GraphNumbers

COMPLETE = sl.graphs.complete(3)
LOOPLESS = sl.FeedbackGraph.from_matrix(~np.eye(5, dtype=bool))  # every arm reveals all others

#: Of each learner: the graph, options, and the beginning of what is said about them.
REFUSED = {
    ("alphasample", COMPLETE): [
        ({"horizon": 0}, "horizon must be a finite number of at least 1"),
    ],
    ("elp", sl.graphs.self_loops(2)): [
        ({"b": 0.3}, "b must be a number above 0 and at most 0.25, not 0.3"),
    ],
    ("exp3++", COMPLETE): [
        ({"gamma": 0}, "gamma must be a finite number above 0, not 0"),
        ({"beta": 0}, "beta must be a finite number above 0, not 0"),
    ],
    ("exp3-set", COMPLETE): [
        ({"eta_scale": 0}, "eta_scale must be"),
        ({"eta_scale": -1}, "eta_scale must be"),
        ({"eta_scale": math.inf}, "eta_scale must be"),
        ({"late": "never"}, "late must be 'plain' or 'guarded', not 'never'"),
        ({"track": "often"}, "track must be how often the best arm changes, or 'unknown', not 'often'"),
        ({"track": -1}, "track must be a whole number from 0"),
        ({"track": 1.5}, "track must be a whole number from 0"),
        ({"track": 2, "horizon": 0}, "horizon must be a whole number from 1"),
        ({"track": 2, "refresh": "epoch"}, "has no option 'refresh'"),
    ],
    ("exp3.g", LOOPLESS): [
        ({"eta": 0.1}, "exp3.g needs to know how many rounds it will play"),
        ({"eta": 0, "gamma": 0.1}, "eta must be a finite number above 0"),
        ({"eta": 0.1, "gamma": 1.5}, "gamma must be a number from 0 to 1"),
        ({"horizon": 9, "eta_power": -1}, "eta_power must be a number from 0 to 1"),
        ({"horizon": 9, "explored": [7]}, "An arm in explored must be a whole number from 0 to 4, not 7"),
        ({"horizon": 9, "explored": []}, "explored must be arms, each once and at least one"),
        ({"horizon": 9, "explored": [1, 1]}, "explored must be arms, each once and at least one"),
        ({"horizon": 0}, "horizon must be a finite number of at least 1, not 0"),
        ({"horizon": math.inf}, "horizon must be a finite number"),
    ],
    ("exp3.g", sl.graphs.self_loops(5)): [
        ({"horizon": 10, "independence": 0}, "independence must be a number from 1 to 5, not 0"),
        ({"horizon": 10, "independence": 6}, "independence must be a number from 1 to 5, not 6"),
        ({"horizon": 10, "beta": 0.1}, "exp3.g has no option 'beta'"),
    ],
    ("exp3.g++", sl.graphs.complete(4)): [
        ({"rate": "fast"}, "rate must be 'adaptive' or 'fixed', not 'fast'"),
        ({"gamma": 0}, "gamma must be a finite number above 0, not 0"),
        ({"beta": math.nan}, "beta must be a finite number above 0, not nan"),
        ({"beta": True}, "beta must be a finite number above 0, not True"),
        ({"exploration": 0.5}, "exploration must be a number from 1 to 4, not 0.5"),
        ({"eta_scale": -1}, "eta_scale must be a finite number above 0"),
        ({"strong_independence": 9, "rate": "fixed"}, "strong_independence must be a number from 1 to 4"),
        ({"estimator": "wild"}, "estimator must be 'plain' or 'shifted'"),
        ({"ties": "random"}, "ties must be 'paper' or 'practical'"),
        ({"start": "some"}, "start must be 'all' or 'cover' or 'none'"),
        ({"late": "never"}, "late must be 'plain' or 'guarded', not 'never'"),
        ({"growth": -0.1}, "growth must be a number from 0 to 1, not -0.1"),
        ({"growth": math.nan}, "growth must be a number from 0 to 1, not nan"),
        ({"growth": "fast"}, "growth must be a number from 0 to 1, not 'fast'"),
        ({"refresh": "epoch", "growth": 1.5}, "growth must be a number from 0 to 1, not 1.5"),
        ({"refresh": "epoch", "growth": True}, "growth must be a number from 0 to 1, not True"),
        ({"refresh": "epoch", "growth": None}, "growth must be a number from 0 to 1, not None"),
    ],
    ("ito-2022", COMPLETE): [
        ({"horizon": 0}, "horizon must be a finite number of at least 1, not 0"),
        ({"horizon": 10, "strong_independence": 4}, "strong_independence must be a number from 1 to 3, not 4"),
    ],
    ("luo-2023", COMPLETE): [
        ({"horizon": 9, "delta": 0}, "delta must be a number from 1e-100 to 0.5, not 0"),
        ({"horizon": 9, "tuning": "mine"}, "tuning must be 'corrected' or 'printed'"),
        ({"horizon": 9, "observability": "none"}, "observability must be 'strong' or 'weak'"),
        ({"horizon": 9, "independence": 0}, "independence must be a number from 1 to 3, not 0"),
        ({"horizon": 9, "domination": 4}, "domination must be a number from 1 to 3, not 4"),
    ],
    ("maillard", COMPLETE): [
        ({"sharpness": 0}, "sharpness"),
    ],
    ("q-tsallis", COMPLETE): [
        ({"horizon": 0.5}, "horizon must be a finite number of at least 1, not 0.5"),
        ({"horizon": 10, "independence": 0}, "independence must be a number from 1 to 3, not 0"),
    ],
    ("spm-2024", COMPLETE): [
        ({"a": 1}, "a must be a number from 0.01 to 0.99, not 1"),
        ({"a": 0}, "a must be a number from 0.01 to 0.99, not 0"),
        ({"independence": 0}, "independence must be a number from 1 to 3, not 0"),
    ],
    ("ts-n", COMPLETE): [
        ({"prior": prior}, "prior must be") for prior in (0, -1, math.nan, 1000, [1, 2, 3], [[1, 1]], [1, 0], "flat")
    ],
    ("tas-fg", COMPLETE): [
        ({"deviation": 0}, "deviation must be a finite number above 0, not 0"),
        ({"every": 0}, "every must be a whole number from 1"),
        ({"edges": "guessed"}, "edges must be 'known' or 'estimated', not 'guessed'"),
    ],
    ("tsallis-inf", COMPLETE): [
        ({"estimator": "rw"}, "estimator must be 'iw' or 'rv', not 'rw'"),
        ({"feedback": "full"}, "feedback must be 'bandit' or 'graph', not 'full'"),
    ],
    ("ucb-lp", COMPLETE): [
        ({"horizon": 0.5}, "horizon must be a finite number of at least 1"),
    ],
    ("ucb-n", COMPLETE): [
        ({"width": width}, "width must be") for width in (0, -1, math.inf, True)
    ],
    ("uniform", COMPLETE): [
        ({"share": 0.5}, "uniform has no option 'share'. Its options are: none"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("learner", "graph", "options", "words"),
    [(*which, *each) for which, several in REFUSED.items() for each in several],
    ids=lambda each: None if isinstance(each, sl.FeedbackGraph) else str(each),
)
def test_a_bad_option_is_refused(learner, graph, options, words):
    with pytest.raises(LearnerError) as refusal:
        sl.Agent(learner, graph, **options)
    assert words in str(refusal.value)


@pytest.mark.parametrize(
    ("learner", "number", "options"),
    [
        ("exp3.g", "independence", {"horizon": 100}),
        ("exp3.g++", "strong_independence", {"rate": "fixed"}),
        ("ito-2022", "strong_independence", {"horizon": 100}),
        ("q-tsallis", "independence", {"horizon": 100}),
        ("spm-2024", "independence", {}),
    ],
)
def test_a_number_of_the_graph_that_is_not_known_exactly_must_be_given(learner, number, options, monkeypatch):
    def too_large(found):
        raise GraphError(f"Too many edges: {found!r}.")

    graph = sl.graphs.cycle(5)
    monkeypatch.setattr(GraphNumbers, number, GraphNumber(2, 5, np.array([0, 1])))
    with pytest.raises(LearnerError, match=rf"from 2 to 5. Give {number}=5, which is valid"):
        sl.Agent(learner, graph, **options)
    monkeypatch.setattr(GraphNumbers, number, property(too_large))
    with pytest.raises(LearnerError, match=rf"Too many edges.* Give {number}=..., any number from it up to 5"):
        sl.Agent(learner, graph, **options)
    sl.Agent(learner, graph, **options, **{number: 2})
