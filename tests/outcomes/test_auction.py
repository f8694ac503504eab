"""Bids to losses: by enumeration of every bid, price and rule of the exchange."""

import numpy as np
import pytest

import sidelong as sl
from sidelong.errors import OutcomeError

pytestmark = pytest.mark.interpreted

FRACTIONS = [0.0, 0.25, 0.5, 0.75, 1.0]
AUCTION = sl.outcomes.FirstPrice(FRACTIONS, highest_value=2.0)
PRICES = np.arange(0, 2.2, 0.0625)
VALUES = [0.5, 1.0, 2.0]
SHOWN = ["always", "lost", "never"]


def bid(arm, value, price, shown):
    """Return what a bidder tells after the round: the price only if he is shown it."""
    won = bool(FRACTIONS[arm] * value >= price)
    sees = shown == "always" or (shown == "lost" and not won)
    return AUCTION.outcome(arm, value=value, won=won, price=price if sees else None, shown=shown)


def test_a_loss_is_what_was_not_gained():
    for value in VALUES:
        for price in PRICES:
            for fraction, loss in zip(FRACTIONS, AUCTION.losses(value, price), strict=True):
                gain = value - fraction * value if fraction * value >= price else 0.0
                assert loss == 1 - gain / 2.0  # all numbers are exact in binary


@pytest.mark.parametrize("shown", SHOWN)
def test_an_outcome_gives_the_losses_that_the_price_gives(shown):
    for value in VALUES:
        for price in PRICES:
            for arm, fraction in enumerate(FRACTIONS):
                told = bid(arm, value, price, shown)
                losses, graph = told.losses, told.graph
                won = fraction * value >= price
                expected = {
                    "always": range(5),
                    "lost": range(arm, 5) if won else range(5),
                    "never": [arm],
                }[shown]
                assert graph.out_neighbors(arm).tolist() == list(expected)
                assert losses.tolist() == AUCTION.losses(value, price)[list(expected)].tolist()


@pytest.mark.parametrize("shown", SHOWN)
def test_whichever_bid_was_made_the_graph_says_who_reveals_what_it_revealed(shown):
    """So P is computable for each observed arm: for each price, all graphs agree on the arms that they show."""
    for value in VALUES:
        for price in PRICES:
            told = [bid(arm, value, price, shown).graph for arm in range(5)]
            reveals = [set(graph.out_neighbors(arm).tolist()) for arm, graph in enumerate(told)]
            for arm, graph in enumerate(told):
                for seen in reveals[arm]:
                    assert graph.in_neighbors(seen).tolist() == [j for j in range(5) if seen in reveals[j]]


def test_without_a_price_a_winner_could_not_tell_how_likely_he_was_to_see():
    """Why shown="never" reveals one bid alone: what a win shows has a P that depends on the price, which is hidden."""
    wins_show_higher = [
        [set(range(arm, 5)) if FRACTIONS[arm] * 1.0 >= price else set(range(arm + 1)) for arm in range(5)]
        for price in (0.2, 0.6)
    ]
    seen_by_arm_3 = [[j for j in range(5) if 4 in reveals[j]] for reveals in wins_show_higher]
    assert seen_by_arm_3 == [[1, 2, 3, 4], [3, 4]]  # the same outcome, arm 3 won, and two different sets


WRONG = [
    ({"arm": 5, "value": 1, "won": True}, "arm must be a whole number from 0 to 4, not 5"),
    ({"arm": 2, "value": 3, "won": True}, "value must be a number from 0 to 2, not 3"),
    ({"arm": 2, "value": 1, "won": 1}, "won must be True or False, not 1"),
    ({"arm": 2, "value": 1, "won": False}, "a bid that lost needs the price"),
    ({"arm": 2, "value": 1, "won": True, "price": 0.3}, "a bid that won does not see a price"),
    ({"arm": 2, "value": 1, "won": True, "shown": "always"}, "a bid that won needs the price"),
    ({"arm": 2, "value": 1, "won": False, "price": 0.8, "shown": "never"}, "does not see a price"),
    ({"arm": 2, "value": 1, "won": False, "price": 0.4}, "A bid of 0.5 cannot have lost at a price of 0.4"),
    ({"arm": 2, "value": 1, "won": True, "price": 0.6, "shown": "always"}, "cannot have won"),
    (
        {"arm": 2, "value": 1, "won": False, "price": float("nan")},
        "price must be a finite number of at least 0, not nan",
    ),
    ({"arm": 2, "value": 1, "won": True, "shown": "sometimes"}, "'always', 'lost' and 'never'"),
    ({"arm": 2, "value": 1, "won": True, "shown": ["lost"]}, "'always', 'lost' and 'never'"),
]


@pytest.mark.parametrize(("outcome", "message"), WRONG)
def test_an_outcome_that_cannot_be_is_refused(outcome, message):
    with pytest.raises(OutcomeError, match=message):
        AUCTION.outcome(**outcome)


@pytest.mark.parametrize(
    ("fractions", "highest", "message"),
    [
        ([0.5], 1, "two or more"),
        ([0.5, 0.4], 1, "each above the one before"),
        ([0.5, 1.1], 1, "from 0 to 1, not 1.1"),
        ([0.5, 0.6], 0, "highest_value must be above 0"),
        ([0.5, 0.6], "1", "highest_value must be a finite number of at least 0, not '1'"),
    ],
)
def test_an_auction_that_cannot_be_is_refused(fractions, highest, message):
    with pytest.raises(OutcomeError, match=message):
        sl.outcomes.FirstPrice(fractions, highest_value=highest)


def test_an_agent_learns_the_best_bid():
    auction = sl.outcomes.FirstPrice([0.2, 0.4, 0.6, 0.8, 1.0])
    agent = sl.Agent("glance", auction.graph(), seed=1)
    for t in range(300):
        decision = agent.ask()
        price = 0.3 + 0.05 * (t % 5)
        won = bool(auction.fractions[decision.arm] >= price)
        agent.tell(decision, auction.outcome(decision.arm, value=1.0, won=won, price=None if won else price))
    assert agent.estimates().weights.argmax() == 2  # the least bid that always wins
