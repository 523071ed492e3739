# `jindou dump` and `jindou convert`: what cannot be written is said, and leaves nothing.
-- file data.nq
<http://e/a> <http://xmlns.com/foaf/0.1/name> "Ann" .
<http://e/a> <http://xmlns.com/foaf/0.1/name> "Anne"@fr-CA <http://e/g1> .
<http://e/a> <http://e/p> "x"^^<http://e/dt> <http://e/g1> .
_:b1 <http://e/p> _:b2 <http://e/g1> .
_:b1 <http://e/q> <<( <http://e/a> <http://e/p> "t" )>> <http://e/g2> .
-- file bad.nt
<http://e/a> <http://e/p> <http://e/b> .
<http://e/a> <http://e/p> oops .
$ jindou load -q --store s data.nq > /dev/null

== Named graphs do not go into Turtle
$ jindou dump --store s --out all.ttl
? 1
...
[..]named graphs[..]--to trig[..]
...
$ test -e all.ttl
? 1

== A graph that is not there
$ jindou dump --store s --graph http://e/none
? 1
...
[..]no graph <http://e/none>[..]

== A name that tells no format
$ jindou dump --store s --out all.docx
? 1
[..]all.docx[..]--to[..]

== Triple terms do not go into JSON-LD
$ jindou dump --store s --graph http://e/g2 --to jsonld
? 1
...
[..]triple terms[..]

== A folder that is not there
$ jindou dump --store s --out no/folder.nq
? 1
[..]no/folder.nq[..]

== Turtle declares the prefixes that it uses
$ jindou dump --store s --graph http://e/g1 --to ttl
...
@prefix foaf: <http://xmlns.com/foaf/0.1/> .
...
[..]foaf:name[..]
...
$ jindou dump --store s --graph http://e/g1 --to ttl | grep -c skos
? 1
0
$ jindou dump --store s --graph http://e/g1 --to ttl --no-prefixes --prefix e=http://e/ > out; grep -c 'foaf:' out; grep -c e:a out
0
1

== Quads keep their graph on demand
$ jindou dump --store s --graph http://e/g1 --keep-graph | grep -c '<http://e/g1> .'
3

== A link stays a link, and a private file private
$ echo old > private.nq; chmod 600 private.nq; ln -s private.nq link.nq; jindou dump --store s --out link.nq > /dev/null 2>&1
$ test -L link.nq; stat -c %a private.nq; jindou dump --store s | cmp - private.nq
600

== A file that was there stays if its successor cannot be made
$ echo old > all.trig; jindou convert bad.nt --out all.trig
? 1
...
[..]bad.nt:2:27[..]
...
$ jindou convert bad.nt --out all.trig 2>&1 | grep -c oops
1
$ cat all.trig
old

== Statements that are not valid are skipped on demand
$ jindou convert bad.nt --out all.trig --lenient --errors errors.txt
...
[..]skipped 1[..]
...
$ grep -c oops errors.txt
1
$ jindou convert bad.nt --check
? 1
...
[..]bad.nt:2:27[..]
...
$ jindou convert all.trig --check --quiet
1 statement

== RDF/XML cannot express a predicate that is no name
-- file one.nt
<http://e/x> <http://e/p> <http://e/y> .
<http://e/a> <http://e/1> <http://e/b> .
$ jindou convert one.nt --out one.rdf
? 1
...
[..]predicates as names[..]
...
$ ls
bad.nt
data.nq
one.nt
s

== RDF/XML cannot express a class that is no name
-- file one.nt
<http://e/x> <http://e/p> <http://e/y> .
<http://e/a> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e/1> .
$ jindou convert one.nt --out one.rdf
? 1
...
[..]classes as names[..]
...
$ ls
bad.nt
data.nq
one.nt
s

== RDF/XML cannot express a character that XML does not have
-- file one.nt
<http://e/x> <http://e/p> <http://e/y> .
<http://e/a> <http://e/p> "\u0001" .
$ jindou convert one.nt --out one.rdf
? 1
...
[..]character[..]
...
$ ls
bad.nt
data.nq
one.nt
s

== RDF/XML cannot express a predicate in a triple term
-- file one.nt
<http://e/x> <http://e/p> <http://e/y> .
<http://e/a> <http://e/p> <<( <http://e/a> <http://e/p> <<( <http://e/a> <http://e/1> "" )>> )>> .
$ jindou convert one.nt --out one.rdf
? 1
...
[..]predicates as names[..]
...
$ ls
bad.nt
data.nq
one.nt
s

== RDF/XML cannot express a predicate of the namespace of namespaces
-- file one.nt
<http://e/x> <http://e/p> <http://e/y> .
<http://e/a> <http://www.w3.org/2000/xmlns/b> "" .
$ jindou convert one.nt --out one.rdf
? 1
...
[..]predicates as names[..]
...
$ ls
bad.nt
data.nq
one.nt
s

== RDF/XML cannot express a predicate that means something else
-- file one.nt
<http://e/x> <http://e/p> <http://e/y> .
<http://e/a> <http://www.w3.org/1999/02/22-rdf-syntax-ns#bagID> "" .
$ jindou convert one.nt --out one.rdf
? 1
...
[..]predicates as names[..]
...
$ ls
bad.nt
data.nq
one.nt
s

