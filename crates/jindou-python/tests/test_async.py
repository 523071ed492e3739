"""Queries that are awaited: the event loop goes on, and a cancelled task cancels its query."""

import asyncio

import pytest

import jindou
from conftest import iri
from jindou import errors


@pytest.fixture
def db(db):
    db.add_all((iri(f"v{i}"), iri("p"), i) for i in range(1000))
    return db


ENDLESS = "SELECT (COUNT(*) AS ?n) { ?a ?p ?b . ?c ?q ?d . ?e ?r ?f . ?g ?s ?h . ?i ?t ?j . FILTER(?b + ?d + ?f + ?h < ?j) }"


def test_answers(db):
    async def main():
        rows, yes, triples = await asyncio.gather(
            db.query_async("SELECT ?o { ?s ?p ?o } ORDER BY ?o"),
            db.query_async("ASK { ?s ?p ?o }", {"o": 7}),
            db.query_async("CONSTRUCT WHERE { ?s ?p ?o } LIMIT 3", timeout=60),
        )
        assert len(rows) == 1000 and rows[7].o.to_python() == 7 and yes is True and len(triples) == 3
        with pytest.raises(errors.SparqlSyntaxError):
            await db.query_async("SELECT")
        for keywords in ({"keep": False}, {"colour": 1}):
            with pytest.raises(TypeError):
                await db.query_async("SELECT * {}", **keywords)

    asyncio.run(main())


def test_a_cancelled_task_cancels_its_query(db):
    token = jindou.CancelToken()
    ticks = []

    async def tick():
        while True:
            ticks.append(1)
            await asyncio.sleep(0.01)

    async def main():
        ticking = asyncio.ensure_future(tick())
        task = asyncio.ensure_future(db.query_async(ENDLESS, cancel=token))
        await asyncio.sleep(0.5)
        assert not task.done() and len(ticks) > 2
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(db.query_async(ENDLESS), 0.2)
        ticking.cancel()

    # This returns only after the queries' threads have ended.
    asyncio.run(main())
    assert token.cancelled
