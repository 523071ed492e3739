# Documents of LOAD. One with named graphs is not for one graph, whatever its format; without INTO GRAPH it keeps them.
-- file a.nq
<http://e/d> <http://e/b> <http://e/c> .
<http://e/a> <http://e/b> <http://e/c> <http://e/g> .
-- file a.trig
<http://e/d> <http://e/b> <http://e/c> . <http://e/g> { <http://e/a> <http://e/b> <http://e/c> }
-- file a.jsonld
{"@id": "http://e/g", "@graph": {"@id": "http://e/a", "http://e/b": {"@id": "http://e/c"}}}
-- file own.trig
<http://e/z> { <http://e/a> <http://e/b> 1 } <http://e/d> <http://e/b> 2 .
$ : > none.nt; jindou load -q --store s none.nt > /dev/null

== N-Quads of another graph are not loaded into one
$ jindou update --store s --load-from . "LOAD <file://$(realpath a.nq)> INTO GRAPH <http://e/z>"
? fails
...
[..]<http://e/g>[..]
...
$ jindou update --store s --load-from . "LOAD SILENT <file://$(realpath a.nq)> INTO GRAPH <http://e/z>"
[..]0 quads added[..]
...
$ jindou dump s

== TriG of another graph is not loaded into one
$ jindou update --store s --load-from . "LOAD <file://$(realpath a.trig)> INTO GRAPH <http://e/z>"
? fails
...
[..]<http://e/g>[..]
...
$ jindou update --store s --load-from . "LOAD SILENT <file://$(realpath a.trig)> INTO GRAPH <http://e/z>"
[..]0 quads added[..]
...
$ jindou dump s

== JSON-LD of another graph is not loaded into one
$ jindou update --store s --load-from . "LOAD <file://$(realpath a.jsonld)> INTO GRAPH <http://e/z>"
? fails
...
[..]<http://e/g>[..]
...
$ jindou update --store s --load-from . "LOAD SILENT <file://$(realpath a.jsonld)> INTO GRAPH <http://e/z>"
[..]0 quads added[..]
...
$ jindou dump s

== Statements of the very graph, and of none, are for it
$ jindou update --store s --load-from . "LOAD <file://$(realpath own.trig)> INTO GRAPH <http://e/z>"
[..]2 quads added[..]
...
$ jindou dump s 2> /dev/null | sort
<http://e/a> <http://e/b> "1"^^<http://www.w3.org/2001/XMLSchema#integer> <http://e/z> .
<http://e/d> <http://e/b> "2"^^<http://www.w3.org/2001/XMLSchema#integer> <http://e/z> .

== Without INTO GRAPH the graphs are kept
$ jindou update --store s --load-from . "LOAD <file://$(realpath a.nq)>"
...
$ jindou dump s 2> /dev/null | sort
<http://e/a> <http://e/b> <http://e/c> <http://e/g> .
<http://e/d> <http://e/b> <http://e/c> .
