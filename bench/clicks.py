"""Clicks with many different categories, in Criteo's format: for tables of many rows.

The labels are random, so these clicks are only for measuring speed. `antdt data synth` makes clicks
that a model can learn, of some 1,500 categories.
"""
import random

FIELDS = 26
NUMBERS = 13


def fresh(rows, rng):
    """Each category of each row occurs only once, except for a few in a thousand."""
    for _ in range(rows):
        token = rng.randbytes(4 * FIELDS).hex()
        yield [token[i:i + 8] for i in range(0, len(token), 8)]


def frequent_and_rare(rows, rng, categories):
    """In each field the n-th category occurs in proportion to 1 / n (Zipf)."""
    of_a_field = categories // FIELDS
    uniform = rng.random
    for _ in range(rows):
        yield ["%x" % int(of_a_field ** uniform()) for _ in range(FIELDS)]


def write(path, rows_of_categories, rng):
    with open(path, "w", encoding="ascii") as out:
        for tokens in rows_of_categories:
            numbers = "\t".join(map(str, rng.randbytes(NUMBERS)))
            out.write(f"{rng.random() < 0.25:d}\t{numbers}\t" + "\t".join(tokens) + "\n")


def seeded(seed):
    return random.Random(seed)
