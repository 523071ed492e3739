"""Queries for event loops."""

from __future__ import annotations

import asyncio

from ._jindou import CancelToken, Solutions


async def query(db, text, bindings, keywords):
    """The whole answer of a query, which runs on another thread. If the task is cancelled, so is the query."""
    keywords = dict(keywords or {})
    if "keep" in keywords:
        raise TypeError("query_async keeps all rows: leave out keep=, or call query on a thread")
    cancel = keywords["cancel"] = keywords.get("cancel") or CancelToken()

    def run():
        answer = db.query(text, bindings, **keywords)
        if isinstance(answer, Solutions):
            # Waits for all rows, so that reading them does not hold up the event loop.
            len(answer)
        return answer

    try:
        return await asyncio.to_thread(run)
    except asyncio.CancelledError:
        cancel.cancel()
        raise
