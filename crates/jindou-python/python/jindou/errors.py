"""Errors of Jindou. All derive from `Error`, and from the matching built-in exception where there is one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, List, Optional


@dataclass(frozen=True)
class Diagnostic:
    """A fault in the text of a query or an update. Lines and columns count characters from 1, `start` and `end` bytes from 0."""

    kind: str
    message: str
    start: int
    end: int
    line: int
    column: int
    end_line: int
    end_column: int
    found: Optional[str] = None
    expected: Optional[str] = None
    suggestions: List[str] = field(default_factory=list)


class Error(Exception):
    """Base class of all errors. `kind` is a short name for programs; further details are attributes."""

    kind = "error"

    def __init__(self, message: str = "", **data: Any) -> None:
        super().__init__(message)
        self.message = message
        for name, value in data.items():
            setattr(self, name, value)

    def __str__(self) -> str:
        return self.message

    def __reduce__(self):
        data = {k: v for k, v in self.__dict__.items() if k != "message"}
        return (_again, (type(self), self.message, data))


def _again(cls, message, data):
    return cls(message, **data)


class SparqlSyntaxError(Error):
    """A text that is not valid SPARQL; `diagnostics` has all faults found."""

    kind = "sparql-syntax"
    diagnostics: List[Diagnostic]

    @property
    def line(self) -> int:
        """Line of the first fault, from 1."""
        return self.diagnostics[0].line

    @property
    def column(self) -> int:
        """Column of the first fault in characters, from 1."""
        return self.diagnostics[0].column

    def _render_traceback_(self) -> List[str]:
        # A notebook shows the query with the error marked, not the stack trace in this package.
        return ["SparqlSyntaxError: " + self.message]


class QueryError(Error):
    """A query that cannot be run as it is."""

    kind = "query"


class UnsupportedError(Error):
    """Valid, but not supported by this version."""

    kind = "unsupported"


class TermError(Error, ValueError):
    """A text that is not an IRI, or not a label of a blank node."""

    kind = "term"


class RdfSyntaxError(Error):
    """A document that is not RDF in its format: `file`, `line`, `column` (from 1, or `None`), `text`."""

    kind = "rdf-syntax"
    file: str
    line: Optional[int]
    column: Optional[int]
    text: Optional[str]


class UnknownFormatError(Error, ValueError):
    """A document (`name`) whose format is unknown."""

    kind = "unknown-format"
    name: str


class FileError(Error, OSError):
    """A file or folder (`filename`) that could not be read or written."""

    kind = "file"


class StoreError(Error):
    """A store that cannot be served or changed, for one of the reasons below."""

    kind = "store"


class InUseError(StoreError):
    """A store (`filename`) that another process has open for writing."""

    kind = "in-use"
    filename: str


class DamagedError(StoreError):
    """A file (`filename`) of a store, a log or a backup that is missing, truncated or not as it was written.

    `offset` is the byte at which that was noticed, or `None`.
    """

    kind = "damaged"
    filename: str
    offset: Optional[int]


class VersionError(StoreError):
    """A store or a file of one (`filename`) of the format version `found`; this package reads the version `supported`."""

    kind = "version"
    filename: str
    found: int
    supported: int


class NotAStoreError(StoreError):
    """Something other than a store at `filename`."""

    kind = "not-a-store"
    filename: str


class ReadOnlyError(StoreError):
    """A change to a database that cannot be changed."""

    kind = "read-only"


class NoStoreError(StoreError, FileNotFoundError):
    """No store at `filename`."""

    kind = "no-store"


class StoreExistsError(StoreError, FileExistsError):
    """A store already exists at `filename`; `replace=True` replaces it."""

    kind = "store-exists"


class ClosedError(StoreError):
    """The database was closed."""

    kind = "closed"


class UsageError(Error, ValueError):
    """A call that cannot be carried out as it was made."""

    kind = "usage"


class LimitError(Error):
    """A limit was reached: `resource` names it (`"memory"`, …), `limit` is its value, or `None`."""

    kind = "limit"
    resource: str
    limit: Optional[int]


class BusyError(LimitError):
    """A shared limit is used up by others; retrying later may succeed."""

    kind = "busy"


class QueryTimeoutError(Error, TimeoutError):
    """The time limit of `seconds` passed."""

    kind = "timeout"
    seconds: float


class CancelledError(Error):
    """The query or update was cancelled."""

    kind = "cancelled"


class ConflictError(Error):
    """A change that conflicts with the current state."""

    kind = "conflict"


class TransactionError(Error):
    """A finished transaction, or an update outside the thread's open transaction."""

    kind = "transaction"


class ServiceError(Error):
    """Another endpoint (`endpoint`) that may not be called or did not answer."""

    kind = "service"
    endpoint: str


class DocumentError(Error):
    """A document that a LOAD names (`iri`), that may not be read or is not RDF."""

    kind = "document"
    iri: str


class InternalError(Error):
    """A bug in Jindou; please report it."""

    kind = "internal"
