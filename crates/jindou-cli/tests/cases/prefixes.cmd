# Prefixes that data declares, and those that are set: known to queries, written by dumps, kept by all that keeps a store.
-- file planets.ttl
@prefix acme: <http://acme.example/terms#> .
@prefix : <http://acme.example/d/> .
:mars a acme:Planet ; acme:moons 2 .
:earth a acme:Planet ; acme:moons 1 .
$ jindou load -q --store s planets.ttl > /dev/null

== Prefixes of the data are known
$ jindou prefixes --store s 2> /dev/null | tr -s ' '
: <http://acme.example/d/> data
acme: <http://acme.example/terms#> data
$ jindou query --store s --format csv 'SELECT (COUNT(*) AS ?n) { ?x a acme:Planet ; acme:moons ?m }'
n
2

== Strict SPARQL does not know them
$ jindou query --store s --no-prefixes 'SELECT (COUNT(*) AS ?n) { ?x a acme:Planet ; acme:moons ?m }'
? fails
...
[..]the prefix acme: is not declared[..]
...

== What is near is offered
$ jindou query --store s 'ASK { ?x a acne:Planet }'
? fails
...
[..]did you mean acme:?[..]

== A table is written with them
$ jindou query --store s --format table 'SELECT ?x { ?x acme:moons 2 }' | tr -d ' '
?x
[..]
:mars

== A graph is written with them
$ jindou query --store s --format ttl 'CONSTRUCT { ?x acme:has ?m } { ?x acme:moons ?m }'
...
@prefix acme: <http://acme.example/terms#> .
...
:mars acme:has 2[..]
...

== A dump is written with them
$ jindou dump --store s --to ttl --out - --default-graph
...
@prefix acme: <http://acme.example/terms#> .
...
:mars acme:moons 2 ;
[..]a acme:Planet .
...

== What is set wins over the data, and what a query declares wins over all
$ jindou prefixes --store s set acme http://other.example/
...
$ jindou query --store s --format csv 'SELECT (COUNT(*) AS ?n) { ?x a acme:Planet ; acme:moons ?m }'
n
0
$ jindou query --store s --format csv 'PREFIX acme: <http://acme.example/terms#> SELECT (COUNT(*) AS ?n) { ?x a acme:Planet ; acme:moons ?m }'
n
2
$ jindou prefixes --store s 2> /dev/null | tr -s ' '
: <http://acme.example/d/> data
acme: <http://other.example/> set
$ jindou prefixes --store s remove acme: | tr -s ' '
...
[..]<http://acme.example/terms#> data
...
$ jindou prefixes --store s 2> /dev/null | tr -s ' '
: <http://acme.example/d/> data
acme: <http://acme.example/terms#> data

== Prefixes that cannot be removed or set
$ jindou prefixes --store s remove nothing
? fails
[..]the store has no prefix nothing:[..]
$ jindou prefixes --store s remove foaf
? fails
[..]foaf: is a common one[..]
$ jindou prefixes --store s set 1x http://e/
? fails
...
[..]is not [..]
...
$ jindou prefixes --store s set x nowhere
? fails
...
[..]is not [..]
...

== An update that fails brings no prefix, one that loads a document brings its own
-- file zoo.rdf
<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:zoo='http://zoo.example/' xmlns:acme='http://late.example/'>
<rdf:Description rdf:about='http://zoo.example/leo'><zoo:legs>4</zoo:legs></rdf:Description></rdf:RDF>
$ jindou update --store s --load-from . "LOAD <file://$(realpath zoo.rdf)> ; CREATE GRAPH <http://e/g> ; LOAD <file:///nowhere.ttl>"
? fails
...
$ jindou prefixes --store s 2> /dev/null | tr -s ' '
: <http://acme.example/d/> data
acme: <http://acme.example/terms#> data
$ jindou update --store s --load-from . "LOAD <file://$(realpath zoo.rdf)>"
...
$ jindou prefixes --store s 2> /dev/null | tr -s ' '
: <http://acme.example/d/> data
acme: <http://acme.example/terms#> data
rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> data
zoo: <http://zoo.example/> data

== Prefixes survive merges, reclusterings and backups
-- file zoo.ttl
@prefix zoo: <http://zoo.example/> .
zoo:leo zoo:legs 4 .
$ jindou load -q --into s zoo.ttl && jindou prefixes --store s set mine '<http://mine.example/>' && jindou check --store s && jindou backup --store s --to before && jindou merge --store s
...
$ jindou prefixes --store s 2> /dev/null | tr -s ' '
: <http://acme.example/d/> data
acme: <http://acme.example/terms#> data
mine: <http://mine.example/> set
zoo: <http://zoo.example/> data
$ jindou check --store s && jindou prefixes --store s remove zoo && jindou recluster -q --store s && jindou check --store s
...
$ jindou prefixes --store s | grep -c .
3
$ jindou prefixes --store s set zoo http://zoo.example/ && jindou backup --store s --to after
...
$ for from in before after; do jindou restore --from $from --store r > /dev/null; jindou prefixes --store r | tr -s ' ' | tail -1; jindou query --store r --format csv 'SELECT (COUNT(*) AS ?n) { ?x a acme:Planet ; acme:moons ?m }' | tail -1; rm -r r; done 2> /dev/null
zoo: <http://zoo.example/> data
2
zoo: <http://zoo.example/> set
2

== Prefixes as JSON, with the common ones
$ jindou prefixes --store s set mine http://mine.example/ && jindou prefixes --store s --json --all | tr -d ' \n'
...
[..]{"from":"data","iri":"http://acme.example/terms#","prefix":"acme"}[..]{"from":"common","iri":"http://xmlns.com/foaf/0.1/","prefix":"foaf"}[..]{"from":"set","iri":"http://mine.example/","prefix":"mine"}[..]
...

== Shards know the prefixes of their data
$ jindou load -q --shards 3 --store shards planets.ttl > /dev/null
$ jindou prefixes --store shards | grep -c .
2
$ jindou query --store shards --format csv 'SELECT (COUNT(*) AS ?n) { ?x a acme:Planet ; acme:moons ?m }'
n
2
$ jindou check --store shards
...

== The first of several files wins
$ for n in 1 2 3 4; do printf "@prefix a: <http://a$n/> .\n@prefix b$n: <http://b/> .\na:s a:p a:o .\n" > $n.ttl; done
$ jindou load -q --store m 1.ttl 2.ttl 3.ttl 4.ttl > /dev/null; jindou prefixes --store m | tr -s ' ' | head -1
a: <http://a1/> data

== Too many prefixes are left out
$ { seq -f '%05.0f' 0 49999 | sed 's|.*|@prefix p&: <http://e/&/> .|'; echo '<http://e/s> <http://e/p> 1 .'; } > many.ttl
$ jindou load -q --store m many.ttl
...
[..]more prefixes than a store keeps[..]
...
$ jindou prefixes --store m | grep -c .
4096
$ jindou check --store m
...

== Damage of the file is found
$ sed -i 's/acme/acne/' s/prefixes.jd; jindou check --store s
? fails
...
[..]prefixes.jd[..]
...
$ jindou query --store s 'SELECT (COUNT(*) AS ?n) { ?x a acme:Planet }'
? fails
[..]prefixes.jd[..]
$ : > s/prefixes.jd; jindou check --store s
? fails
...
[..]prefixes.jd[..]
...
$ jindou query --store s 'SELECT (COUNT(*) AS ?n) { ?x a acme:Planet }'
? fails
[..]prefixes.jd[..]
$ rm s/prefixes.jd; jindou check --store s
? fails
...
$ jindou query --store s 'SELECT (COUNT(*) AS ?n) { ?x a acme:Planet }'
? fails
...

== Names of XML that are no prefixes of Turtle are not declared
-- file a.rdf
<r:RDF xmlns:r='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:_x='http://e/' xmlns:_='http://f/' xmlns:y='http://g/'><r:Description r:about='http://e/s' _x:p='1' _:p='2' y:p='3'/></r:RDF>
$ jindou convert a.rdf --to ttl > a.ttl; grep -c '@prefix y: <http://g/> .' a.ttl; grep -c '@prefix _' a.ttl; jindou convert a.ttl --to nt | grep -c .
1
0
3

== Documents declare the prefixes that they use
$ { seq 0 299 | sed 's|.*|@prefix p&: <http://e/&/> .|'; echo '@prefix own: <http://xmlns.com/foaf/0.1/> .'; seq 0 19999 | sed 's/.*/p7:s& own:age & ./'; echo 'p7:x p280:p p290:o .'; } > many.ttl
$ jindou load -q --store many many.ttl > /dev/null
$ jindou dump --store many --to ttl > again.ttl; sed -n 's/^@prefix \([^:]*\):.*/\1/p' again.ttl | sort; jindou convert again.ttl --to nt | grep -c .
own
p280
p290
p7
20001
$ jindou convert many.ttl --to ttl > again.ttl; sed -n 's/^@prefix \([^:]*\):.*/\1/p' again.ttl | sort; jindou convert again.ttl --to nt | grep -c .
own
p280
p290
p7
20001
$ jindou convert many.ttl --to ttl --prefix mine=http://mine/ > again.ttl; sed -n 's/^@prefix \([^:]*\):.*/\1/p' again.ttl | sort; jindou convert again.ttl --to nt | grep -c .
mine
own
p280
p290
p7
20001
