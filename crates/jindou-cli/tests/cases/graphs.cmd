# Stores whose data is in named graphs: what says so, and how queries see it.
-- file d.nq
<http://e/mars> <http://e/moons> "2" <http://e/g1> .
<http://e/earth> <http://e/moons> "1" <http://e/g2> .
<http://e/earth> <http://e/name> "Earth"@en <http://e/g2> .
$ jindou load -q --store s d.nq > /dev/null

== A search looks in all graphs unless it is told where
-- file e.nq
<http://e/a> <http://www.w3.org/2000/01/rdf-schema#label> "red stone" .
<http://e/b> <http://www.w3.org/2000/01/rdf-schema#label> "red sand" <http://e/g> .
$ jindou load -q --store t e.nq > /dev/null
$ for graphs in '' '--graphs all' '--graphs default' '--graph http://e/g' '--graph <http://e/g> --graph http://e/h'; do echo "$graphs": $(jindou search --store t red $graphs | grep -o 'http://e/[ab]' | sort -u); done
: http://e/a http://e/b
--graphs all: http://e/a http://e/b
--graphs default: http://e/a
--graph http://e/g: http://e/b
--graph <http://e/g> --graph http://e/h: http://e/b
$ jindou search --store t --timeout 0s red
...
[..]jindou recluster --text[..]
...

== A load says that all is in named graphs
$ jindou load -q --store t d.nq
...
All 3 quads are in 2 named graphs; query them with GRAPH ?g { … } or with --graphs all

== It does not where queries see them, or where the default graph has something
$ jindou load -q --store t --union-default-graph d.nq | grep -c 'named graphs'
? 1
0
$ echo '<http://e/a> <http://e/p> 1 .' > d.ttl; jindou load -q --store u d.ttl | grep -c .
1
$ jindou load -q --into u d.nq | grep -c 'named graphs'
? 1
0

== The option chooses what queries see
$ jindou query --store s --format csv 'SELECT (COUNT(*) AS ?n) { ?s ?p ?o }'
n
0
$ jindou query --store s --format csv 'SELECT (COUNT(*) AS ?n) { ?s ?p ?o }' --graphs all
n
3
$ jindou query --store s --format csv 'SELECT (COUNT(*) AS ?n) { ?s ?p ?o }' --union-default-graph
n
3
$ jindou query --store s --format csv 'SELECT (COUNT(*) AS ?n) { ?s ?p ?o }' --graphs default
n
0

== A store may be loaded with the choice
$ jindou load -q --replace --store s --union-default-graph d.nq > /dev/null
$ jindou query --store s --format csv 'SELECT (COUNT(*) AS ?n) { ?s ?p ?o }'
n
3
$ jindou query --store s --format csv 'SELECT (COUNT(*) AS ?n) { ?s ?p ?o }' --graphs default
n
0

== The shell says it and switches
$ printf 'SELECT (COUNT(*) AS ?n) { ?s ?p ?o };\n.graphs\n.graphs all\nSELECT (COUNT(*) AS ?n) { ?s ?p ?o };\n.graphs\n.graphs some\n' | jindou shell --store s --format csv
? fails
n
0
default: all 3 quads are in 2 named graphs
n
3
all: all 3 quads are in 2 named graphs
[..]the default graph is empty: all 3 quads are in 2 named graphs; query them with GRAPH ?g { … } or with .graphs all
[..].graphs takes default or all, not some[..]
