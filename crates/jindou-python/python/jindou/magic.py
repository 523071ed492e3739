"""The notebook magic `%%sparql`.

    %load_ext jindou
    db = jindou.open("my.store")

    %%sparql
    SELECT ?s WHERE { ?s a ?class } LIMIT 10
"""

from __future__ import annotations

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, magics_class, needs_local_scope
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import HTML

from . import _html
from ._jindou import Database, Solutions, Triples
from .errors import SparqlSyntaxError


@magics_class
class SparqlMagics(Magics):
    """`%%sparql`: the cell is a query or an update."""

    @magic_arguments()
    @argument("db", nargs="?", help="the variable with the database; by default `db`, or the only database there is")
    @argument("-o", "--out", metavar="NAME", help="put the answer into this variable, too")
    @argument("-b", "--bind", metavar="NAME=VARIABLE", action="append", default=[], help="the term for a variable of the query")
    @argument("-r", "--rows", type=int, default=_html.ROWS, help="rows to show (%(default)s)")
    @argument("-t", "--timeout", type=float, help="time limit in seconds")
    @argument("--as", dest="form", choices=("table", "pandas", "polars", "arrow"), default="table", help="what the answer becomes")
    @argument("--explain", action="store_true", help="show how the query would run")
    @argument("--profile", action="store_true", help="run the query and show what each step did")
    @needs_local_scope
    @cell_magic
    def sparql(self, line, cell, local_ns=None):
        """Runs the cell as SPARQL and shows the answer: a table, a graph for CONSTRUCT and DESCRIBE, a report for an update."""
        args = parse_argstring(self.sparql, line)
        names = {**self.shell.user_ns, **(local_ns or {})}
        db = self._database(args.db, names)
        if args.explain:
            print(db.explain(cell, timeout=args.timeout))
            return None
        if args.profile:
            print(db.profile(cell, timeout=args.timeout))
            return None
        bindings = {}
        for pair in args.bind:
            name, _, variable = pair.partition("=")
            if variable not in names:
                raise UsageError(f"--bind {pair}: there is no variable {variable!r}")
            bindings[name] = names[variable]
        answer = self._answer(db, cell, bindings, args.timeout)
        if args.form != "table" and isinstance(answer, (Solutions, Triples)):
            answer = getattr(answer, args.form)()
        if args.out:
            self.shell.user_ns[args.out] = answer
        if isinstance(answer, Solutions):
            return HTML(_html.of_solutions(answer, args.rows))
        if isinstance(answer, Triples):
            return HTML(_html.of_triples(answer, args.rows))
        return answer

    @staticmethod
    def _answer(db, text, bindings, timeout):
        try:
            return db.query(text, bindings or None, timeout=timeout)
        except SparqlSyntaxError as error:
            if error.diagnostics[0].kind != "update-not-query":
                raise
        if bindings:
            raise UsageError("--bind is for queries: an update has no bindings")
        return db.update(text, timeout=timeout)

    @staticmethod
    def _database(name, names):
        if name:
            db = names.get(name)
            if not isinstance(db, Database):
                raise UsageError(f"there is no database {name!r}: {name} = jindou.open(…)")
            return db
        if isinstance(names.get("db"), Database):
            return names["db"]
        found = {id(v): v for k, v in names.items() if isinstance(v, Database) and not k.startswith("_")}
        if len(found) != 1:
            many = "several databases: name one, %%sparql NAME" if found else "no database: db = jindou.open(…)"
            raise UsageError(f"there is {many}")
        return next(iter(found.values()))


def register(shell):
    """Makes `%%sparql` known to a shell."""
    shell.register_magics(SparqlMagics)
