"""The engine. See `jindou`, which re-exports all of this."""

import datetime as dt
import os
from decimal import Decimal
from types import EllipsisType, TracebackType
from typing import AbstractSet, Any, Callable, Coroutine, Final, Iterable, Iterator, Literal as OneOf, Mapping, Optional, Sequence, Union, final, overload
from typing_extensions import Self, TypeAlias

from ._progress import Progress
from ._reports import BackupInfo, BackupReport, CheckReport, RestoreReport

__version__: Final[str]

Term: TypeAlias = Union["IRI", "BlankNode", "Literal", "Triple"]
#: Values of Python that become literals, and terms of RDFLib and pyoxigraph, are terms, too.
TermLike: TypeAlias = Any
QuadLike: TypeAlias = Union["Quad", "Triple", Sequence[TermLike]]
Path: TypeAlias = Union[str, os.PathLike[str]]
ProgressLike: TypeAlias = Union[bool, Callable[[Progress], Any]]
Syntax: TypeAlias = OneOf["plain", "ntriples"]
#: The answer of SELECT, ASK, and CONSTRUCT or DESCRIBE. `Database.select`, `ask` and `construct` give one of them.
Answer: TypeAlias = Union["Solutions", bool, "Triples"]
#: A term for a variable, or a list of terms of which it takes any.
Binding: TypeAlias = Union[TermLike, Sequence[TermLike], AbstractSet[TermLike]]
#: A DataFrame of pandas or polars, or any table with an Arrow stream.
FrameLike: TypeAlias = Any

@final
class Prefixes:
    """The prefixes of a database with their IRIs, without the common ones. A name has no colon."""

    def asdict(self) -> dict[str, str]:
        """A dict of names and IRIs, as of now."""
    def origin(self, name: str) -> Optional[OneOf["data", "set"]]:
        """The origin of a prefix: `"data"` or `"set"`; `None` if there is no such prefix."""
    def get(self, name: str, default: Any = None) -> Any:
        """The IRI of a prefix, or `default`."""
    def keys(self) -> Iterable[str]:
        """The names."""
    def values(self) -> Iterable[str]:
        """The IRIs."""
    def items(self) -> Iterable[tuple[str, str]]:
        """Names and IRIs."""
    def __getitem__(self, name: str, /) -> str: ...
    def __setitem__(self, name: str, iri: str, /) -> None: ...
    def __delitem__(self, name: str, /) -> None: ...
    def __contains__(self, name: str, /) -> bool: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[str]: ...

@final
class IRI:
    """An IRI."""

    __match_args__ = ("value",)
    def __new__(cls, value: str) -> Self: ...
    @property
    def value(self) -> str:
        """The IRI as text."""
    def to_python(self) -> str:
        """The IRI as text."""
    def n3(self) -> str:
        """N-Triples syntax: `<http://example.org/>`."""
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __getnewargs__(self) -> tuple[str]: ...

@final
class BlankNode:
    """A blank node. Without a label, it gets a random, unique one."""

    __match_args__ = ("value",)
    def __new__(cls, value: Optional[str] = None) -> Self: ...
    @property
    def value(self) -> str:
        """The label, without `_:`."""
    def to_python(self) -> str:
        """N-Triples syntax, since Python has no other value for a blank node."""
    def n3(self) -> str:
        """N-Triples syntax: `_:b1`."""
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __getnewargs__(self) -> tuple[str]: ...

@final
class Literal:
    """A literal: its lexical form and its datatype, or its language.

    `Literal("text")`, `Literal("Mars", language="en")`, `Literal("1", datatype=IRI("…#byte"))`. Without a datatype,
    Python's numbers, truth values, dates and times get theirs: `Literal(1)` is an `xsd:integer`, `Literal(1.5)` an
    `xsd:double`. `int()` and `float()` accept literals that are numbers. A literal is equal only to the same literal,
    never to text: compare its `value` with text.
    """

    __match_args__ = ("value",)
    def __new__(
        cls,
        value: Union[str, int, float, bool, Decimal, dt.date, dt.time, dt.timedelta, bytes],
        language: Optional[str] = None,
        datatype: Optional[Union[IRI, str]] = None,
    ) -> Self: ...
    @property
    def value(self) -> str:
        """The lexical form: `"01"` of `"01"^^xsd:integer`."""
    @property
    def language(self) -> Optional[str]:
        """The language in lower case, or `None`."""
    @property
    def direction(self) -> Optional[str]:
        """The base direction (`"ltr"`, `"rtl"`), or `None`."""
    @property
    def datatype(self) -> IRI:
        """The datatype; `rdf:langString` for a text with a language."""
    def to_python(self) -> Any:
        """The value as a Python object: `int`, `float`, `Decimal`, `bool`, `date`, `datetime`, `time`, `timedelta`,
        `bytes`. Returns the lexical form if Python has no such type, or if the lexical form is invalid for the
        datatype.
        """
    def n3(self) -> str:
        """N-Triples syntax."""
    def __float__(self) -> float: ...
    def __int__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __getnewargs__(self) -> tuple[str, Optional[str], Optional[IRI]]: ...

@final
class Triple:
    """A triple, which can be unpacked into its parts. It is a term, too (RDF 1.2)."""

    def __new__(cls, subject: TermLike, predicate: TermLike, object: TermLike) -> Self: ...
    @property
    def subject(self) -> Union[IRI, BlankNode]: ...
    @property
    def predicate(self) -> IRI: ...
    @property
    def object(self) -> Term: ...
    def n3(self) -> str:
        """N-Triples syntax of a triple term (RDF 1.2)."""
    def to_python(self) -> Self:
        """The triple itself."""
    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Term: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __hash__(self) -> int: ...
    def __getnewargs__(self) -> tuple[Any, ...]: ...

@final
class Quad:
    """A quad; `graph_name` is `None` in the default graph."""

    def __new__(cls, subject: TermLike, predicate: TermLike, object: TermLike, graph_name: Optional[TermLike] = None) -> Self: ...
    @property
    def subject(self) -> Union[IRI, BlankNode]: ...
    @property
    def predicate(self) -> IRI: ...
    @property
    def object(self) -> Term: ...
    @property
    def graph_name(self) -> Optional[Union[IRI, BlankNode]]: ...
    @property
    def triple(self) -> Triple:
        """The quad without its graph."""
    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __hash__(self) -> int: ...
    def __getnewargs__(self) -> tuple[Any, ...]: ...

@final
class Quads:
    """The quads that match a pattern, as they were when it was asked for."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Quad]: ...
    def __getitem__(self, index: int, /) -> Quad: ...

@final
class QuadIterator:
    def __iter__(self) -> Self: ...
    def __next__(self) -> Quad: ...

@final
class Row:
    """A row: a sequence of terms (`None` for unbound variables), which can also be accessed by name: `row["x"]`,
    `row.x`.
    """

    @property
    def variables(self) -> list[str]:
        """Names of the columns, without `?`."""
    def keys(self) -> list[str]:
        """Names of the columns, so that `dict(row)` works. Its values are terms, or `None` for unbound variables."""
    def asdict(self) -> dict[str, Term]:
        """The terms by name, without unbound variables."""
    def to_python(self) -> tuple[Any, ...]:
        """The terms as Python values, as a tuple."""
    def get(self, name: str, default: Any = None) -> Any:
        """The term of a variable, or `default` where it is unbound or no such column."""
    def __getitem__(self, key: Union[int, str], /) -> Any: ...
    def __getattr__(self, name: str, /) -> Any: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Rows:
    """An iterator over the rows of an answer."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> Row: ...

@final
class Solutions:
    """The rows of a SELECT: iterate over it for `Row`s, take one as `solutions[0]`, or all as `arrow()`, `pandas()`, `polars()`. `print`
    shows the first twenty as a table.

    The query runs while rows are read, a little ahead. What was read is kept, four bytes a cell, so it can be read again, unless
    `keep=False` was asked for.
    """

    @property
    def variables(self) -> list[str]:
        """Names of the columns, without `?`."""
    def arrow(self, *, typed: bool = True, syntax: Syntax = "plain") -> Any:
        """The answer as a `pyarrow.Table`, handed over without a copy. Waits for the query's end.

        A column of which all values are integers is `int64`, numbers `float64`, truth values `bool`, `xsd:dateTime` a `timestamp[us]`
        (with the zone UTC if all values have a zone, without if none has), `xsd:date` a `date32`. All other columns are dictionary-encoded
        text; with `typed=False` all columns are plain text. With `syntax="plain"` that text is the IRI, the lexical form of a literal,
        `_:label`; with `syntax="ntriples"` it is N-Triples, where literals keep language and datatype.
        """
    def pandas(self, *, typed: bool = True, syntax: Syntax = "plain") -> Any:
        """The answer as a `pandas.DataFrame`; needs pandas and pyarrow. Text columns are categories, or plain text with
        `typed=False`. Columns of integers or truth values with unbound cells have the types `Int64` and `boolean`. See
        `arrow`.
        """
    def polars(self, *, typed: bool = True, syntax: Syntax = "plain") -> Any:
        """The answer as a `polars.DataFrame`; needs polars. Text columns are categories, or plain text with
        `typed=False`. See `arrow`.
        """
    def df(self, *, typed: bool = True, syntax: Syntax = "plain") -> Any:
        """The same as `pandas()`, under DuckDB's name."""
    def pl(self, *, typed: bool = True, syntax: Syntax = "plain") -> Any:
        """The same as `polars()`, under DuckDB's name."""
    def to_arrow(self, *, typed: bool = True, syntax: Syntax = "plain") -> Any:
        """The same as `arrow()`, under polars' name."""
    def to_pandas(self, *, typed: bool = True, syntax: Syntax = "plain") -> Any:
        """The same as `pandas()`, under polars' name."""
    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows as a list of tuples of Python values, as `Row.to_python` returns them; `None` for unbound variables.
        Waits for the end of the query.
        """
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...
    def _repr_html_(self) -> str: ...
    def __iter__(self) -> Rows: ...
    @overload
    def __getitem__(self, key: int, /) -> Row: ...
    @overload
    def __getitem__(self, key: slice, /) -> list[Row]: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...

@final
class Triples:
    """The triples that a CONSTRUCT or DESCRIBE returns: a sequence of `Triple`."""

    def serialize(self, format: str = "ntriples") -> bytes:
        """The triples as a document: `"ntriples"` or `"turtle"`."""
    def rdflib(self) -> Any:
        """An `rdflib.Graph` with the triples."""
    def arrow(self, *, typed: bool = True, syntax: Syntax = "plain") -> Any:
        """A `pyarrow.Table` with the columns `subject`, `predicate`, `object`; see `Solutions.arrow`."""
    def pandas(self, *, typed: bool = True, syntax: Syntax = "plain") -> Any:
        """A `pandas.DataFrame` with the columns `subject`, `predicate`, `object`; see `Solutions.pandas`."""
    def polars(self, *, typed: bool = True, syntax: Syntax = "plain") -> Any:
        """A `polars.DataFrame` with the columns `subject`, `predicate`, `object`; see `Solutions.polars`."""
    def df(self, *, typed: bool = True, syntax: Syntax = "plain") -> Any:
        """The same as `pandas()`, under DuckDB's name."""
    def pl(self, *, typed: bool = True, syntax: Syntax = "plain") -> Any:
        """The same as `polars()`, under DuckDB's name."""
    def to_arrow(self, *, typed: bool = True, syntax: Syntax = "plain") -> Any:
        """The same as `arrow()`, under polars' name."""
    def to_pandas(self, *, typed: bool = True, syntax: Syntax = "plain") -> Any:
        """The same as `pandas()`, under polars' name."""
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...
    def _repr_html_(self) -> str: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Triple]: ...
    def __getitem__(self, index: int, /) -> Triple: ...
    def __contains__(self, triple: QuadLike, /) -> bool: ...

@final
class CancelToken:
    """Cancels calls from another thread: give the same token to a call as `cancel=`. A token that was cancelled stays so."""

    def __new__(cls) -> Self: ...
    def cancel(self) -> None:
        """Ends all calls that were given this token, at their next batch of rows."""
    @property
    def cancelled(self) -> bool:
        """True if `cancel` was called."""

@final
class UpdateReport:
    """Report on an update: its changes, and its duration."""

    @property
    def snapshot(self) -> int:
        """Number of the snapshot that contains the changes."""
    @property
    def operations(self) -> int:
        """Number of operations."""
    @property
    def added(self) -> int:
        """Number of quads that were added."""
    @property
    def removed(self) -> int:
        """Number of quads that were removed."""
    @property
    def seconds(self) -> float:
        """Total time in seconds."""

@final
class LoadReport:
    """Report on a load: counts, sizes, and seconds of each phase."""

    @property
    def quads_read(self) -> int:
        """Number of quads that were read, duplicates included."""
    @property
    def quads(self) -> int:
        """Number of distinct quads in the store."""
    @property
    def terms(self) -> int:
        """Number of distinct terms."""
    @property
    def phases(self) -> dict[str, float]:
        """Duration of each phase in seconds, by its name."""
    @property
    def seconds(self) -> float:
        """Total time in seconds."""
    @property
    def store_bytes(self) -> int:
        """Total size of the store's files in bytes."""
    @property
    def peak_bytes(self) -> int:
        """Largest number of bytes that the load had in memory at any time."""
    @property
    def skipped(self) -> int:
        """Number of statements that were skipped (with `lenient=True`)."""
    @property
    def skipped_first(self) -> list[str]:
        """Descriptions of the first statements that were skipped."""

@final
class Profile:
    """The profile of a query that was run: `print` it, or walk through its `tree`."""

    @property
    def rows(self) -> int:
        """Number of rows of the answer."""
    @property
    def plan_seconds(self) -> float:
        """Seconds for parsing and planning."""
    @property
    def run_seconds(self) -> float:
        """Seconds for running the plan, and for decoding and writing its rows."""
    @property
    def plan_cached(self) -> bool:
        """True if the plan was in the cache."""
    @property
    def tree(self) -> Optional[dict[str, Any]]:
        """The steps as nested dicts: `name`, `place`, `rows_in`, `rows_out`, `seconds`, `bytes`, `inputs`."""
    @property
    def text(self) -> str:
        """The steps as a readable table."""

@final
class Transaction:
    """A transaction of several calls. Its changes are visible to its own queries at once, and to others after `commit`,
    all together. In a `with` statement, it is committed at the end, or rolled back if an exception is raised.

    While it is open, other updates of the database wait.
    """

    def update(
        self,
        text: str,
        *,
        timeout: Optional[float] = None,
        memory: Optional[int] = None,
        threads: Optional[int] = None,
        base: Optional[str] = None,
        graph: Optional[TermLike] = None,
        using_graphs: Optional[Iterable[TermLike]] = None,
        using_named_graphs: Optional[Iterable[TermLike]] = None,
        union_default_graph: Optional[bool] = None,
        common_prefixes: bool = True,
        store_prefixes: bool = True,
        load_from: Optional[Path] = None,
        cancel: Optional[CancelToken] = None,
    ) -> UpdateReport:
        """Runs a SPARQL update on top of the transaction's earlier changes. If it fails, it has changed nothing, and
        the transaction can continue.
        """
    def add(self, quad: QuadLike) -> UpdateReport:
        """Adds a quad (or a triple, to the default graph)."""
    def add_all(self, quads: Iterable[QuadLike]) -> UpdateReport:
        """Adds any number of quads."""
    def add_frame(
        self,
        frame: FrameLike,
        columns: Optional[Mapping[str, TermLike]] = None,
        *,
        subject: str = "subject",
        predicate: str = "predicate",
        object: str = "object",
        iris: Iterable[str] = (),
        graph_name: Optional[TermLike] = None,
        syntax: Syntax = "plain",
        timeout: Optional[float] = None,
        memory: Optional[int] = None,
        threads: Optional[int] = None,
        cancel: Optional[CancelToken] = None,
    ) -> UpdateReport:
        """Adds the rows of a DataFrame or of an Arrow table as triples, as `Database.add_frame` does."""
    def remove(self, quad: QuadLike) -> UpdateReport:
        """Removes a quad."""
    def remove_all(self, quads: Iterable[QuadLike]) -> UpdateReport:
        """Removes any number of quads."""
    def load(
        self,
        *files: Union[Path, Sequence[Path]],
        format: Optional[str] = None,
        graph: Optional[TermLike] = None,
        base: Optional[str] = None,
        text: Optional[Union[str, bytes]] = None,
        lenient: bool = False,
        progress: Optional[ProgressLike] = None,
        timeout: Optional[float] = None,
        memory: Optional[int] = None,
        threads: Optional[int] = None,
        cancel: Optional[CancelToken] = None,
    ) -> UpdateReport:
        """Adds the quads of files or of a text, as `Database.load` does."""
    def query(
        self,
        text: str,
        bindings: Optional[Mapping[str, Binding]] = None,
        *,
        timeout: Optional[float] = None,
        memory: Optional[int] = None,
        temp: Optional[int] = None,
        threads: Optional[int] = None,
        default_graphs: Optional[Iterable[TermLike]] = None,
        named_graphs: Optional[Iterable[TermLike]] = None,
        union_default_graph: Optional[bool] = None,
        common_prefixes: bool = True,
        store_prefixes: bool = True,
        cancel: Optional[CancelToken] = None,
        keep: bool = True,
    ) -> Answer:
        """Answers a query over the database with the transaction's changes so far; see `Database.query`."""
    def commit(self) -> UpdateReport:
        """Makes all changes durable and visible."""
    def rollback(self) -> None:
        """Discards all changes."""
    @property
    def is_open(self) -> bool:
        """True if the transaction was neither committed nor rolled back."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: Optional[type[BaseException]], _value: Optional[BaseException], _trace: Optional[TracebackType]
    ) -> bool: ...

@final
class Database:
    """A database: a store directory (`jindou.open`) or one in memory (`jindou.memory`). Any number of threads may use
    it.

    A query sees the data as of the moment when the query began.
    """

    def query(
        self,
        text: str,
        bindings: Optional[Mapping[str, Binding]] = None,
        *,
        timeout: Optional[float] = None,
        memory: Optional[int] = None,
        temp: Optional[int] = None,
        threads: Optional[int] = None,
        default_graphs: Optional[Iterable[TermLike]] = None,
        named_graphs: Optional[Iterable[TermLike]] = None,
        union_default_graph: Optional[bool] = None,
        common_prefixes: bool = True,
        store_prefixes: bool = True,
        cancel: Optional[CancelToken] = None,
        keep: bool = True,
    ) -> Answer:
        """Answers a SPARQL query: `Solutions` for SELECT, a `bool` for ASK, `Triples` for CONSTRUCT and DESCRIBE.

        `bindings` replaces variables by terms (or plain values): `db.query(text, {"planet": IRI(…)})`. A variable with
        a list, a tuple or a set takes any of its terms, as with VALUES at the start of the WHERE clause. Keywords:
        `timeout` (seconds), `memory` (bytes), `temp` (bytes of temporary files if that is not enough; 0 for none),
        `threads`, `default_graphs`, `named_graphs` (IRIs, in place of FROM),
        `union_default_graph`, `common_prefixes` (`rdf:`, `foaf:`, … need no PREFIX; true by default), `store_prefixes`
        (those of `prefixes()` need no PREFIX; true by default), `cancel` (a `CancelToken`), `keep` (if false, rows are
        dropped after they were read, so that memory does not grow with the answer).
        """
    def select(
        self,
        text: str,
        bindings: Optional[Mapping[str, Binding]] = None,
        *,
        timeout: Optional[float] = None,
        memory: Optional[int] = None,
        temp: Optional[int] = None,
        threads: Optional[int] = None,
        default_graphs: Optional[Iterable[TermLike]] = None,
        named_graphs: Optional[Iterable[TermLike]] = None,
        union_default_graph: Optional[bool] = None,
        common_prefixes: bool = True,
        store_prefixes: bool = True,
        cancel: Optional[CancelToken] = None,
        keep: bool = True,
    ) -> Solutions:
        """As `query`, for a SELECT. Another query is a `QueryError`."""
    def ask(
        self,
        text: str,
        bindings: Optional[Mapping[str, Binding]] = None,
        *,
        timeout: Optional[float] = None,
        memory: Optional[int] = None,
        temp: Optional[int] = None,
        threads: Optional[int] = None,
        default_graphs: Optional[Iterable[TermLike]] = None,
        named_graphs: Optional[Iterable[TermLike]] = None,
        union_default_graph: Optional[bool] = None,
        common_prefixes: bool = True,
        store_prefixes: bool = True,
        cancel: Optional[CancelToken] = None,
    ) -> bool:
        """As `query`, for an ASK. Another query is a `QueryError`."""
    def construct(
        self,
        text: str,
        bindings: Optional[Mapping[str, Binding]] = None,
        *,
        timeout: Optional[float] = None,
        memory: Optional[int] = None,
        temp: Optional[int] = None,
        threads: Optional[int] = None,
        default_graphs: Optional[Iterable[TermLike]] = None,
        named_graphs: Optional[Iterable[TermLike]] = None,
        union_default_graph: Optional[bool] = None,
        common_prefixes: bool = True,
        store_prefixes: bool = True,
        cancel: Optional[CancelToken] = None,
    ) -> Triples:
        """As `query`, for a CONSTRUCT or a DESCRIBE. Another query is a `QueryError`."""
    def query_async(
        self,
        text: str,
        bindings: Optional[Mapping[str, Binding]] = None,
        *,
        timeout: Optional[float] = None,
        memory: Optional[int] = None,
        temp: Optional[int] = None,
        threads: Optional[int] = None,
        default_graphs: Optional[Iterable[TermLike]] = None,
        named_graphs: Optional[Iterable[TermLike]] = None,
        union_default_graph: Optional[bool] = None,
        common_prefixes: bool = True,
        store_prefixes: bool = True,
        cancel: Optional[CancelToken] = None,
    ) -> Coroutine[Any, Any, Answer]:
        """As `query`, to be awaited: other tasks of the event loop continue in the meantime. Returns when the whole
        answer is there. Cancelling the task cancels the query, and with it the token that is given as `cancel`.
        """
    def update(
        self,
        text: str,
        *,
        timeout: Optional[float] = None,
        memory: Optional[int] = None,
        threads: Optional[int] = None,
        base: Optional[str] = None,
        graph: Optional[TermLike] = None,
        using_graphs: Optional[Iterable[TermLike]] = None,
        using_named_graphs: Optional[Iterable[TermLike]] = None,
        union_default_graph: Optional[bool] = None,
        common_prefixes: bool = True,
        store_prefixes: bool = True,
        load_from: Optional[Path] = None,
        cancel: Optional[CancelToken] = None,
    ) -> UpdateReport:
        """Runs a SPARQL update: all of its operations, or none.

        Keywords: `timeout`, `memory`, `threads`, `base`, `graph` (the only graph that the update may change, and the
        one that it uses where it names none), `using_graphs`, `using_named_graphs`, `union_default_graph`,
        `common_prefixes`, `store_prefixes`, `load_from` (the folder from which LOAD may read `file:` IRIs), `cancel`.
        """
    def transaction(
        self, *, timeout: Optional[float] = None, memory: Optional[int] = None, cancel: Optional[CancelToken] = None
    ) -> Transaction:
        """Opens a transaction of several calls. Waits while another transaction is open. Keywords: `timeout`, `memory`,
        `cancel`.
        """
    def load(
        self,
        *files: Union[Path, Sequence[Path]],
        format: Optional[str] = None,
        graph: Optional[TermLike] = None,
        base: Optional[str] = None,
        text: Optional[Union[str, bytes]] = None,
        lenient: bool = False,
        progress: Optional[ProgressLike] = None,
        timeout: Optional[float] = None,
        memory: Optional[int] = None,
        threads: Optional[int] = None,
        cancel: Optional[CancelToken] = None,
    ) -> UpdateReport:
        """Adds the quads of files or of a text in one transaction. Their blank nodes are new ones.

        Keywords: `format`, `graph`, `base`, `text`, `lenient`, `progress`, as for `jindou.load`; and `timeout`,
        `memory`, `threads`, `cancel`.
        """
    def add(self, quad: QuadLike) -> UpdateReport:
        """Adds a quad (or a triple, to the default graph)."""
    def add_all(self, quads: Iterable[QuadLike]) -> UpdateReport:
        """Adds any number of quads in one transaction."""
    def add_frame(
        self,
        frame: FrameLike,
        columns: Optional[Mapping[str, TermLike]] = None,
        *,
        subject: str = "subject",
        predicate: str = "predicate",
        object: str = "object",
        iris: Iterable[str] = (),
        graph_name: Optional[TermLike] = None,
        syntax: Syntax = "plain",
        timeout: Optional[float] = None,
        memory: Optional[int] = None,
        threads: Optional[int] = None,
        cancel: Optional[CancelToken] = None,
    ) -> UpdateReport:
        """Adds the rows of a DataFrame (pandas, polars) or of an Arrow table as triples, in one transaction. A pandas
        DataFrame needs pyarrow.

        Without `columns`, each row is a triple, from the columns that `subject`, `predicate` and `object` name. With
        `columns`, a dict from names of columns to predicates, each cell of these columns is the object of a triple,
        whose subject is in the row's column `subject`. An empty cell (null, NaN, NaT) makes no triple.

        In subjects, predicates and the columns that `iris` lists, text is an IRI or, as `_:label`, a blank node; in
        other objects it is a plain literal. With `syntax="ntriples"`, all text is in N-Triples syntax. Integers,
        floats, decimals, truth values, dates and times become literals of their datatypes. Other keywords:
        `graph_name`, `timeout`, `memory`, `threads`, `cancel`.
        """
    def remove(self, quad: QuadLike) -> UpdateReport:
        """Removes a quad."""
    def remove_all(self, quads: Iterable[QuadLike]) -> UpdateReport:
        """Removes any number of quads in one transaction."""
    def quads(
        self,
        subject: Optional[TermLike] = None,
        predicate: Optional[TermLike] = None,
        object: Optional[TermLike] = None,
        graph_name: Union[TermLike, EllipsisType, None] = ...,
    ) -> Quads:
        """The quads with these terms, as of the moment of the call. `None` stands for any term; `graph_name=None` is
        the default graph, `...` any graph. A blank node is the one with that label in the store.
        """
    def graphs(self) -> list[Union[IRI, BlankNode]]:
        """Names of the named graphs that contain a quad."""
    def prefixes(self) -> Prefixes:
        """The prefixes that queries need not declare, in addition to the common ones: those that loaded documents
        declare, and those that are set here. Works as a dict: `db.prefixes()["ex"]`. Setting or deleting a prefix
        changes the database.
        """
    def explain(
        self,
        text: str,
        *,
        timeout: Optional[float] = None,
        memory: Optional[int] = None,
        temp: Optional[int] = None,
        threads: Optional[int] = None,
        default_graphs: Optional[Iterable[TermLike]] = None,
        named_graphs: Optional[Iterable[TermLike]] = None,
        union_default_graph: Optional[bool] = None,
        common_prefixes: bool = True,
        store_prefixes: bool = True,
        cancel: Optional[CancelToken] = None,
    ) -> str:
        """How a query would run, step by step, with estimates; it is not run. Keywords as of `query`."""
    def why_empty(
        self,
        text: str,
        *,
        timeout: Optional[float] = None,
        memory: Optional[int] = None,
        temp: Optional[int] = None,
        threads: Optional[int] = None,
        default_graphs: Optional[Iterable[TermLike]] = None,
        named_graphs: Optional[Iterable[TermLike]] = None,
        union_default_graph: Optional[bool] = None,
        common_prefixes: bool = True,
        store_prefixes: bool = True,
        cancel: Optional[CancelToken] = None,
    ) -> list[dict[str, Any]]:
        """Reasons why a query has no answer, to be asked after one without rows: a dict for each reason, with `kind`, `message`, `line`,
        `column` (`None` where it has no place) and `suggestions`. An empty list for a query that has rows."""
    def profile(
        self,
        text: str,
        *,
        timeout: Optional[float] = None,
        memory: Optional[int] = None,
        temp: Optional[int] = None,
        threads: Optional[int] = None,
        default_graphs: Optional[Iterable[TermLike]] = None,
        named_graphs: Optional[Iterable[TermLike]] = None,
        union_default_graph: Optional[bool] = None,
        common_prefixes: bool = True,
        store_prefixes: bool = True,
        cancel: Optional[CancelToken] = None,
    ) -> Profile:
        """Runs a query and says what each step of it did: rows, time, bytes. Its rows are counted and forgotten."""
    @overload
    def serialize(
        self,
        text: str,
        format: str = "json",
        *,
        to: None = None,
        timeout: Optional[float] = None,
        memory: Optional[int] = None,
        temp: Optional[int] = None,
        threads: Optional[int] = None,
        default_graphs: Optional[Iterable[TermLike]] = None,
        named_graphs: Optional[Iterable[TermLike]] = None,
        union_default_graph: Optional[bool] = None,
        common_prefixes: bool = True,
        store_prefixes: bool = True,
        cancel: Optional[CancelToken] = None,
    ) -> bytes: ...
    @overload
    def serialize(
        self,
        text: str,
        format: str = "json",
        *,
        to: Path,
        timeout: Optional[float] = None,
        memory: Optional[int] = None,
        temp: Optional[int] = None,
        threads: Optional[int] = None,
        default_graphs: Optional[Iterable[TermLike]] = None,
        named_graphs: Optional[Iterable[TermLike]] = None,
        union_default_graph: Optional[bool] = None,
        common_prefixes: bool = True,
        store_prefixes: bool = True,
        cancel: Optional[CancelToken] = None,
    ) -> int:
        """Answers a query as text: `format` is `"json"`, `"xml"`, `"csv"`, `"tsv"`, `"ndjson"`, `"table"`; for triples `"turtle"`,
        `"ntriples"` and others. Gives the bytes, or writes them to the file `to` and gives the number of rows."""
    @overload
    def dump(self, to: None = None, *, graph_name: Union[TermLike, EllipsisType, None] = ...) -> bytes: ...
    @overload
    def dump(self, to: Path, *, graph_name: Union[TermLike, EllipsisType, None] = ...) -> int:
        """Writes all quads, or those of one graph, as N-Quads. Returns the bytes, or writes them to the file `to` and
        returns the number of quads. `graph_name=None` is the default graph, `...` all graphs. For many millions of
        quads, use the command `jindou dump`, which can also write other formats.
        """
    def summary(self) -> dict[str, Any]:
        """Counts: triples, quads of named graphs, terms, predicates with their statements, classes with their instances."""
    def merge(self) -> int:
        """Merges what updates changed into the files of the store, so that it opens and answers as if loaded."""
    def backup(self, to: Path, *, keep: Optional[int] = None, cancel: Optional[CancelToken] = None) -> BackupReport:
        """Backs up the store to a folder; the store can be used meanwhile. Only files that the folder does not have yet
        are copied. `keep` is the number of backups to keep there; older ones are removed. `jindou.restore` makes a
        store from a backup.
        """
    def refresh(self) -> bool:
        """For a database that is open read-only: shows what another process has changed in the store since. Queries see
        the store as of the time when it was opened or last refreshed. Returns true if there was something new.
        """
    def close(self) -> None:
        """Closes the database. Answers that are still being read can be read to their end."""
    @property
    def snapshot(self) -> int:
        """Number of the current snapshot. Each update that changes something makes a new one."""
    @property
    def path(self) -> Optional[os.PathLike[str]]:
        """The store's directory; `None` for a database in memory."""
    @property
    def writable(self) -> bool:
        """True if the database can be changed."""
    def __contains__(self, quad: QuadLike, /) -> bool: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_exception: object) -> None: ...

def open(
    path: Path,
    *,
    create: bool = False,
    read_only: Optional[bool] = None,
    verify: str = "eager",
    durability: str = "batch",
    threads: Optional[int] = None,
    memory: Optional[int] = None,
    temp_dir: Optional[Path] = None,
    temp_limit: Optional[int] = None,
) -> Database:
    """Opens a store directory. The database can be changed if no other process is changing the store. With
    `read_only=True` nothing in the directory is changed; with `read_only=False` it is an error if the database cannot
    be changed.

    `verify` tells when the store's files are compared with their checksums: `"eager"` (before this returns; some 3 GB
    per second if they are in memory), `"background"` (afterwards; answers that were given before damage is found may be
    wrong) or `"off"` (damage may lead to wrong answers). `durability`: `"batch"` (an update that has returned is never
    lost), or `"none"` (a power failure may lose it). `threads` and `memory` (bytes) limit all queries together. Queries
    that need more memory write temporary files into `temp_dir` (the store's own folder by default), together at most
    `temp_limit` bytes. With `create=True`, an empty store is created if there is none.
    """

def memory() -> Database:
    """An empty database in memory, which is lost with the object. For many millions of quads, load a store."""

def load(
    store: Path,
    *files: Union[Path, Sequence[Path]],
    format: Optional[str] = None,
    graph: Optional[TermLike] = None,
    base: Optional[str] = None,
    text: Optional[Union[str, bytes]] = None,
    lenient: bool = False,
    replace: bool = False,
    union_default_graph: bool = False,
    threads: Optional[int] = None,
    memory: Optional[int] = None,
    progress: Optional[ProgressLike] = None,
    cancel: Optional[CancelToken] = None,
) -> LoadReport:
    """Loads RDF files into a new store directory, all or nothing; `jindou.open` opens it. Without files and text, the
    store is empty.

    Files may be folders, and may be compressed (gzip, bzip2, xz, zstd). Keywords: `format` (of all files, whatever
    their names suggest), `graph` (for statements that name none), `base`, `text` (a document in place of files),
    `lenient` (skip bad statements), `replace` (an existing store), `union_default_graph`, `threads`, `memory` (bytes),
    `progress` (`True` for a line on standard error, or a function that gets a `Progress` a few times per second),
    `cancel`.
    """

def backups(folder: Path) -> list[Union[BackupInfo, Exception]]:
    """The backups in a folder, in the order in which they were taken. A damaged one is a `DamagedError` in the list."""

def restore(
    folder: Path,
    store: Path,
    *,
    backup: Optional[str] = None,
    snapshot: Optional[int] = None,
    at: Union[dt.datetime, str, None] = None,
    cancel: Optional[CancelToken] = None,
) -> RestoreReport:
    """Restores a backup to a new store directory, all or nothing. Every byte is compared with its checksum.

    Restores the newest backup in the folder, or the one that `backup` names. With `snapshot`, the store is restored as
    of that snapshot; with `at` (a `datetime` with a time zone, or text such as `"2026-11-22T07:42:15Z"`), as of that
    time.
    """

def check(store: Path) -> CheckReport:
    """Compares every byte of a store directory with its checksums, and reads all records of its log. Damage is not
    raised as an exception but part of the report. Other processes may have the store open.
    """
