"""Data that many tests ask: made by numbers, so that answers are known, and given to pyoxigraph and RDFLib where they are the oracle."""

import random

import pytest

import jindou

EX = "http://example.org/"


def iri(name):
    return jindou.IRI(EX + name)


@pytest.fixture
def db():
    return jindou.memory()


def awkward_turtle(seed=1, things=60):
    """Turtle with every kind of term: numbers, dates, languages, blank nodes, quotes. Numbers are in the form that Oxigraph gives them."""
    rng = random.Random(seed)
    values = [
        "1", "-7", "2.5", '"1.5"^^xsd:double', "true", "false", '"plain"', '"Mars"@en', '"Mars"@de', '"1"',
        '"2020-02-29"^^xsd:date', '"2020-02-29T12:00:00.5Z"^^xsd:dateTime', '"2020-02-29T12:00:00"^^xsd:dateTime',
        '"quote \\" back \\\\ line\\n tab\\t"', '"ünïcödé 🚀"', "_:b1", "_:b2", "ex:thing1", '"x"^^ex:datatype', '"not a number"^^xsd:integer',
    ]
    lines = ["@prefix ex: <http://example.org/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> ."]
    for i in range(things):
        subject = f"ex:thing{i}" if i % 7 else f"_:s{i}"
        lines.append(f"{subject} a ex:Class{rng.randrange(4)} .")
        for _ in range(rng.randrange(1, 5)):
            lines.append(f"{subject} ex:p{rng.randrange(5)} {rng.choice(values)} .")
    return "\n".join(lines)


@pytest.fixture(scope="session")
def turtle():
    return awkward_turtle()
