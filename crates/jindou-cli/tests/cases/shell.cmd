# The shell, from a pipe.
$ { echo '@prefix foaf: <http://xmlns.com/foaf/0.1/> . @prefix e: <http://e/> .'; seq 0 299 | sed 's/.*/e:s& foaf:nick "n&" ; e:n & ./'; } > d.ttl
$ jindou load -q --store s d.ttl > /dev/null

== Statements are run one after the other
-- file in
# first
SELECT ?o
{ <http://e/s1> foaf:nick ?o }
LIMIT 5

.prefix e http://e/
SELECT ?o {

 e:s2 e:n ?o };
ASK { e:s3 e:n 3 }
.format tsv
SELECT ?o { e:s4 foaf:nick ?o }
$ jindou shell --store s --format csv < in
o
n1
o
2
true
?o
"n4"

== A mistake does not end it, but counts
-- file in
SELECT ?x {
 ?x foaf:nick }

INSERT DATA { <a:b> <a:b> 1 }

.fromat csv
ASK {}
$ jindou shell --store s --format csv < in
? 1
true
...
[..]line 2, column 15[..]
...
[..]--write[..]
...
[..]did you mean .format?[..]

== Rows are limited and timed on demand
-- file in
SELECT ?s { ?s foaf:nick ?o } ;
.limit off
CONSTRUCT WHERE { ?s foaf:nick ?o };
.timing on
ASK {};
.quit
ASK {}
$ jindou shell --store s --format csv --limit 3 < in > out
[..]only the first 3 rows[..]
[..] ms[..]
$ head -1 out; grep -c . out; grep -c true out
s
306
1

== Files are read, plans and profiles shown
-- file q.rq
.prefix e http://e/
SELECT ?o { e:s7 e:n ?o }
-- file loop
.read loop
-- file in
.read q.rq
ASK { e:s7 e:n 7 };
.explain SELECT * {
 ?s foaf:nick ?o }

.profile ASK {};
.read loop
.read nowhere
.timeout 1ns
SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i };
.help
$ jindou shell --store s --format csv < in
? fails
o
7
true
...
[..]SELECT, native[..]
...
[..].timeout [TIME|off][..]
...
[..]files .read one another[..]
...
[..]nowhere[..]
[..]time limit[..]
...

== Updates must be allowed
-- file in
.prefix e http://e/
INSERT DATA { e:new e:n 'new' };
SELECT ?s { ?s e:n 'new' }

DELETE WHERE { e:new ?p ?o }

ASK { e:new ?p ?o }
$ jindou shell --store s --format csv --write < in
[..]1 quad added[..]
s
http://e/new
[..]
false
...

== Nothing is run when the reader of the answers has left
$ { sleep 1; printf 'ASK {};\nINSERT DATA { <http://e/late> <http://e/p> 1 };\n'; } | { jindou shell --store s --write; echo $? > status; } | true
$ while [ ! -s status ]; do sleep 0.1; done; cat status
0
$ jindou query --store s 'ASK { <http://e/late> ?p ?o }'
false

== An endless line is refused, and what follows is run
$ printf '.read /dev/zero\nASK { ?s ?p 7 }\n' | jindou shell --store s --format csv
? 1
true
[..]/dev/zero[..]longer than 64 MiB[..]
