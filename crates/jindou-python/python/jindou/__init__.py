"""Jindou: a fast RDF triple store with SPARQL 1.1, inside this process.

    >>> import jindou
    >>> db = jindou.memory()
    >>> db.update("INSERT DATA { <http://example.org/mars> a <http://example.org/Planet> }").added
    1
    >>> [row.planet.value for row in db.query("SELECT ?planet { ?planet a ?class }")]
    ['http://example.org/mars']

`jindou.load` makes a store directory of RDF files, `jindou.open` opens one, `jindou.memory` needs none. `Database.query` gives
`Solutions` (rows, or `arrow()`, `pandas()`, `polars()`), a `bool`, or `Triples`. Errors are classes of `jindou.errors`.
"""

from ._jindou import (
    BlankNode,
    CancelToken,
    Database,
    IRI,
    Literal,
    LoadReport,
    Prefixes,
    Profile,
    Quad,
    Quads,
    Row,
    Rows,
    Solutions,
    Transaction,
    Triple,
    Triples,
    UpdateReport,
    __version__,
    backups,
    check,
    load,
    memory,
    open,
    restore,
)
from ._progress import Progress
from ._reports import BackupInfo, BackupReport, CheckReport, RestoreReport
from .errors import Error

__all__ = [
    "BackupInfo",
    "BackupReport",
    "BlankNode",
    "CancelToken",
    "CheckReport",
    "Database",
    "Error",
    "IRI",
    "Literal",
    "LoadReport",
    "Prefixes",
    "Profile",
    "Progress",
    "Quad",
    "Quads",
    "RestoreReport",
    "Row",
    "Rows",
    "Solutions",
    "Transaction",
    "Triple",
    "Triples",
    "UpdateReport",
    "__version__",
    "backups",
    "check",
    "load",
    "memory",
    "open",
    "restore",
]


# The names of DuckDB and polars for the same methods.
for _answer in (Solutions, Triples):
    for _other, _method in [("df", "pandas"), ("pl", "polars"), ("to_arrow", "arrow"), ("to_pandas", "pandas")]:
        setattr(_answer, _other, getattr(_answer, _method))


def load_ipython_extension(shell):
    """`%load_ext jindou`: the notebook magic `%%sparql`."""
    from .magic import register

    register(shell)
