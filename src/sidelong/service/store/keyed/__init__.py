"""Experiments with keys: one problem for many products or placements, each of which plays as an agent of its own.

In memory such an experiment is a `sidelong.Family`. Its decisions are numbered across all keys, from 1, and a batch of
them is one event of the journal, with columns in the place of single values (`columns`). A replay asks and tells the
family the same batches again, and compares what it draws, to the bit.
"""
