"""DataFrames: of answers, and as streams of Arrow arrays."""

from __future__ import annotations


def pandas_of(table):
    """A `pyarrow.Table` as a `DataFrame`. Integers and truth values of which some are missing get the types that have a missing value."""
    import pandas  # type: ignore[import-untyped,unused-ignore]
    import pyarrow  # type: ignore[import-untyped,unused-ignore]

    missing = {pyarrow.int64(): pandas.Int64Dtype(), pyarrow.bool_(): pandas.BooleanDtype()}
    names = table.column_names
    kept = [n for n, column in enumerate(table.columns) if column.type in missing and column.null_count]
    frame = table.select([n for n in range(len(names)) if n not in kept]).to_pandas()
    for n in kept:
        frame.insert(n, names[n], table.column(n).to_pandas(types_mapper=missing.get))
    return frame


def stream_of(frame):
    """The Arrow C stream of a DataFrame or a table."""
    stream = getattr(frame, "__arrow_c_stream__", None)
    if stream is not None:
        return stream()
    if any(base.__module__.startswith("pandas.") and base.__name__ == "DataFrame" for base in type(frame).__mro__):
        import pyarrow  # type: ignore[import-untyped,unused-ignore]

        return pyarrow.Table.from_pandas(frame, preserve_index=False).__arrow_c_stream__()
    raise TypeError(
        f"an object of the class {type(frame).__name__} is neither a DataFrame nor a table: it has no Arrow stream (__arrow_c_stream__)"
    )
