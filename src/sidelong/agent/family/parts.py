"""Families in parts: for as many machines, and together again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sidelong.agent.family.contents import WAITING, let_wait, pending_in_order
from sidelong.agent.family.graphs import Bank
from sidelong.agent.family.memory import Rows
from sidelong.agent.family.store import KeyStore
from sidelong.checks import short
from sidelong.errors import FamilyError
from sidelong.keys import part_of

if TYPE_CHECKING:
    from sidelong.keys import Key


def divided(store: KeyStore, parts: int) -> list[KeyStore]:
    """Return so many stores that have the keys among them."""
    part = np.array([part_of(key, parts) for key in store.keys.listed], np.int64)
    return [_merged([(store, np.flatnonzero(part == k))]) for k in range(parts)]


def joined(stores: list[KeyStore]) -> KeyStore:
    """Return one store of the keys of several, which are of one family."""
    seen: set[Key] = set()
    if len({type(store.keys.listed[0]) for store in stores if store.keys.listed}) > 1:
        raise FamilyError("The keys of a family are all text or all whole numbers, and these parts have both.")
    for store in stores:
        both = seen.intersection(store.keys.listed)
        if both:
            raise FamilyError(f"Two parts have the key {short(min(both))}: its decisions were made in both.")
        seen.update(store.keys.listed)
    return _merged([(store, np.arange(len(store.keys))) for store in stores])


def _merged(parts: list[tuple[KeyStore, np.ndarray]]) -> KeyStore:
    """Return one store of some rows of several, which are of one family."""
    first = parts[0][0]
    graphs = [first.bank.own, *(graph for store, _ in parts for graph in store.bank.graphs)]
    bank = Bank(first.learner, first.bank.options, graphs)
    made = KeyStore(first.learner, first.params, bank, first.seed, first.layout.on(first.first_state), first.scale)
    own_scales = any(store.rows.scale.shape[1] for store, _ in parts)
    columns: dict[str, list[np.ndarray]] = {name: [] for name in WAITING}
    rows = []
    for store, chosen in parts:
        store.part_states()
        new = np.full(len(store.keys), -1, np.int64)
        new[chosen] = np.arange(chosen.size) + len(made.keys)
        made.keys.add(store.keys.listed[row] for row in chosen.tolist())
        scale = store.scales() if own_scales else store.rows.scale
        rows.append([array[chosen] for array in store.rows._replace(scale=scale)])
        slots = pending_in_order(store)
        slots = slots[new[store.waiting.key[slots]] >= 0]
        places = np.array([bank.place(graph) for graph in store.bank.graphs], np.int64)
        for name in WAITING:
            columns[name].append(getattr(store.waiting, name)[slots])
        columns["key"][-1] = new[columns["key"][-1]]
        columns["graph"][-1] = places[columns["graph"][-1]]
        made.names |= store.names
    made.rows = Rows(*(np.concatenate(each) for each in zip(*rows, strict=True)))
    made.rows.first[:] = made.rows.last[:] = -1
    let_wait(made, {name: np.concatenate(each) for name, each in columns.items()})
    return made
