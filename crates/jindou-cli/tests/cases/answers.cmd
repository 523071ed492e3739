# A store and its answers: exit status, formats, and one clear sentence for whatever goes wrong.
-- file head.ttl
@prefix : <http://e/> .
:a :p :b ; :q "x\ty"@en . :b :p :c .
$ seq 0 399 | sed 's/.*/:s& :n & ./' | cat head.ttl - > data.ttl
$ jindou load --quiet --store store data.ttl
...

== Rows as TSV
$ jindou query --store store 'PREFIX : <http://e/> SELECT ?s ?o { ?s :p ?o } ORDER BY ?s' --format tsv
?s	?o
<http://e/a>	<http://e/b>
<http://e/b>	<http://e/c>

== Rows as CSV, whose lines end in CR LF
$ jindou query --store store 'PREFIX : <http://e/> SELECT ?s ?o { ?s :p ?o } ORDER BY ?s' --format csv
s,o
http://e/a,http://e/b
http://e/b,http://e/c
$ jindou query --store store 'ASK {} ' --format csv | od -c | head -1
0000000   t   r   u   e  \n
$ jindou query --store store 'SELECT (1 AS ?n) {}' --format csv | od -c | head -1
0000000   n  \r  \n   1  \r  \n

== True as JSON
$ jindou query --store store 'ASK { ?s <http://e/p> ?o }' --format json
{"head":{},"boolean":true}

== A graph as N-Triples
$ jindou query --store store 'CONSTRUCT { ?o ?p ?s } WHERE { ?s ?p ?o FILTER(isIRI(?o)) }' --format nt | sort
<http://e/b> <http://e/p> <http://e/a> .
<http://e/c> <http://e/p> <http://e/b> .

== Plans are shown
$ jindou query --store store 'PREFIX : <http://e/> SELECT ?s ?o { ?s :p ?o } ORDER BY ?s' --explain | grep -c spareval
? 1
0
$ jindou query --store store 'SELECT * { ?a <http://e/p>* ?b }' --explain
...
[..]native[..]
...

== A store is checked and described
$ jindou check --store store
...
[..]no damage[..]
...
$ jindou info --store store
...
quads [..]403[..]
...

== A constant pattern that is none is said behind the answer
$ jindou query --store store "SELECT * {
>  ?s ?p ?o FILTER(REGEX(STR(?o), 'a(b')) }"
?s	?p	?o
[..]line 2, column 18: REGEX: character 2 of the pattern[..]
$ jindou query --store store --explain "SELECT * {
>  ?s ?p ?o FILTER(REGEX(STR(?o), 'a(b')) }"
...
[..]remark: line 2, column 18: REGEX: character 2 of the pattern[..]
...
$ jindou query --store store "SELECT * {
>  ?s ?p ?o FILTER(REGEX(STR(?o), 'a(b)')) }"
?s	?p	?o

== All constant patterns, flags and replacements that are none are said
$ jindou query --store store --explain "SELECT * {
>  ?s ?p ?o FILTER(REGEX(?o, 'a(b') || regex(?o, 'x', 'k')) }" | grep -o 'remark: .*'
remark: line 2, column 18: REGEX: character [..] of the pattern[..]
remark: line 2, column 38: REGEX: character 1 of the flags[..]
$ jindou query --store store --explain "SELECT (REPLACE(?o, 'a*', 'b') AS ?a) (REPLACE(?o, 'a', '\$x') AS ?b)
>  (REPLACE(?o, '[z-a]', ?o) AS ?c) (REPLACE(?o, 'a', 'b', '?') AS ?d) (\\u0052EGEX(?o, '*') AS ?e) { ?s ?p ?o }" | grep -o 'remark: .*'
remark: [..]FORX0003[..]
remark: [..]FORX0004[..]
remark: [..] of the pattern[..]
remark: [..] of the flags[..]
remark: [..] of the pattern[..]

== Calls that may have a value are not said
$ jindou query --store store --explain "SELECT * { ?s ?p ?o FILTER(REGEX(?o, 'a(b)') || REGEX(?o, ?p) || REGEX(?o, '(', ?o) || REGEX(?o, '('@en)
>  || REGEX(?o, 5) || REPLACE(?o, 'a', '\$1') || REPLACE(?o, 'a', ?o) || CONTAINS(?o, 'regex(')) }" | grep -c remark
? 1
0

== A bad query gets line and column
$ jindou query --store store 'SELECT ?s
> WHERE { ?s ?p }'
? 1
jindou: not valid SPARQL
line 2, column 15: [..]
...

== Common prefixes are known unless they are switched off
$ jindou query --store store 'SELECT * { ?s foaf:name ?o }'
?s	?o
$ jindou query --store store 'SELECT * { ?s foaf:name ?o }' --no-prefixes
? 1
jindou: not valid SPARQL
line 1, column 15: [..]
...
[..]did you mean PREFIX foaf:[..]

== An update is no query
$ jindou query --store store 'CLEAR ALL'
? 1
jindou: [..]
...
[..]this is an update[..]
...
[..]jindou update[..]

== A file with a query that is not there
$ jindou query --store store -f missing.rq
? 1
jindou: [..]missing.rq[..]

== Bad data is located and leaves nothing
-- file bad.nt
<http://e/a> <http://e/p> "x" .
<http://e/a> <http://e/p> oops .
$ jindou load --quiet --store new bad.nt
? 1
jindou: [..]bad.nt:2:27[..]
...
[..]oops[..]
...
$ ls
bad.nt
data.ttl
head.ttl
store
$ jindou load --quiet --store new bad.nt --lenient
...
[..]skipped 1[..]
...
$ test -e new

== A store is replaced only on demand
-- file good.nt
<http://e/b> <http://e/p> "y" .
$ jindou load --quiet --store store good.nt
? 1
jindou: [..]--replace[..]
$ jindou load --quiet --store store good.nt --replace
...
$ jindou query --store store 'SELECT ?s { ?s ?p ?o }'
?s
<http://e/b>

== A load that fails leaves the old store
-- file bad.nt
<http://e/a> <http://e/p> "x" .
<http://e/a> <http://e/p> oops .
$ jindou load --quiet --store store bad.nt --replace
? 1
jindou: [..]bad.nt:2:27[..]
...
$ jindou query --store store 'SELECT (COUNT(*) AS ?n) { ?s ?p ?o }'
?n
403

== A document in another format than its name says does not empty the store
-- file csv.nt
a,b
1,2
$ jindou load --quiet --store store csv.nt --replace --lenient
? 1
jindou: csv.nt: no statement is valid, so the store was left[..]
...
$ jindou query --store store 'SELECT (COUNT(*) AS ?n) { ?s ?p ?o }'
?n
403

== Files that cannot be loaded are named
$ touch data.xyz; jindou load --quiet --store new data.xyz
? 1
jindou: [..]data.xyz[..]
$ jindou load --store new nowhere.nt
? 1
jindou: [..]nowhere.nt[..]

== What is no store is said in one sentence
-- file foreign/letter.txt
dear
$ jindou query --store nowhere 'ASK {}'
? 1
jindou: [..]nowhere[..]
$ jindou query --store foreign 'ASK {}'
? 1
jindou: [..]foreign[..]

== A folder that is not a store is never replaced
-- file foreign/letter.txt
dear
-- file a.nt
<http://e/b> <http://e/p> "y" .
$ jindou load --quiet --replace --store foreign a.nt
? 1
jindou: [..]foreign[..]
$ cat foreign/letter.txt
dear

== A newer format is told from damage
$ head -1 store/manifest.jd
jindou-store 1
$ sed -i 's/^jindou-store 1$/jindou-store 99/' store/manifest.jd; jindou query --store store 'ASK {}'
? 1
jindou: [..]version 99[..]newer[..]

== A changed byte of the manifest's first line is damage
$ sed -i 's/^jindou-store 1$/jindou-store 3/' store/manifest.jd; jindou query --store store 'ASK {}'
? 1
jindou: [..]manifest.jd[..]damaged[..]
$ sed -i 's/^jindou-store 3$/jindou-stOre 1/' store/manifest.jd; jindou query --store store 'ASK {}'
? 1
jindou: [..]manifest.jd[..]damaged[..]
$ sed -i 's/^jindou-stOre 1$/jindou-store !/' store/manifest.jd; jindou query --store store 'ASK {}'
? 1
jindou: [..]manifest.jd[..]damaged[..]

== Merging folds the log into the store
$ jindou update --store store 'INSERT DATA { <http://e/a> <http://e/late> "late" }'
...
$ jindou info --store store
...
in the log      1 transaction, part of all counts here[..]
...
$ jindou merge --store store
merged snapshot 1: 1 edit, 1 predicate with 2 edges[..]
...
$ jindou merge --store store
[..]nothing to merge[..]
...
$ jindou info --store store
...
merged          changes up to snapshot 1, in 1 generation
...
$ jindou info --store store | grep -c 'in the log'
? 1
0
$ jindou check --store store
...
[..]no damage found[..]
...
$ jindou query --store store 'SELECT ?o { <http://e/a> <http://e/late> ?o }'
?o
"late"

== A store that was merged is replaced as any other is
-- file other.nt
<http://e/a> <http://e/p> <http://e/b> .
$ jindou update --store store 'INSERT DATA { <http://e/a> <http://e/late> "late" }' && jindou merge --store store
...
$ test -e store/g1-segments-out.jd
$ jindou load --replace --quiet --store store other.nt
...
$ test -e store/g1-segments-out.jd
? 1

== A query that meets its time limit
$ jindou query --store store --timeout 100ms 'PREFIX : <http://e/> SELECT (COUNT(*) AS ?z) { ?a :n ?b . ?c :n ?d . ?e :n ?f . ?g :n ?h . ?i :n ?j FILTER(?b + ?d + ?f + ?h + ?j < 0) }'
? 124
?z
jindou: [..]time limit[..]--timeout[..]

== A query that meets its memory limit
$ jindou query --store store --memory 16M 'PREFIX : <http://e/> SELECT DISTINCT * { ?a :n ?b . ?c :n ?d . ?e :n ?f . ?g :n ?h . ?i :n ?j }' > /dev/null
? 1
jindou: [..]memory limit[..]--memory[..]

== A reader that leaves ends a query well and soon
$ { jindou query --format tsv --store store 'PREFIX : <http://e/> SELECT ?a ?c ?e { ?a :n ?b . ?c :n ?d . ?e :n ?f . ?g :n ?h . ?i :n ?j }'; echo $? > status; } | head -1
?a	?c	?e
$ cat status
0

== Byte order marks are passed over
$ printf '\357\273\277<http://e/s> <http://e/p> "1" .\n' | tee a.nt > a.nq
$ printf '\357\273\277@prefix e: <http://e/> . e:s e:p "1" .' | tee a.ttl > a.trig
$ printf '\357\273\277{"@id":"http://e/s","http://e/p":"1"}' > a.jsonld
$ printf '\357\273\277<?xml version="1.0"?><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/"><rdf:Description rdf:about="http://e/s"><e:p>1</e:p></rdf:Description></rdf:RDF>' > a.rdf
$ printf '\357\273\277ASK { <http://e/s> <http://e/p> "1" }' > query.rq
$ for f in a.*; do for more in '' --lenient; do jindou load -q --replace $more --store new $f > out && jindou query --store new -f query.rq || cat out; done; done
true
true
true
true
true
true
true
true
true
true
true
true

== Every answer has a sensible form in every format
$ echo '<http://e/s> <http://e/p> 1 .' > a.ttl; jindou load -q --store new a.ttl > /dev/null
$ jindou query --store new 'CONSTRUCT WHERE { ?s ?p ?o }' --format csv
subject,predicate,object
http://e/s,http://e/p,1
$ jindou query --store new 'CONSTRUCT WHERE { ?s ?p ?o }' --format tsv
?subject	?predicate	?object
<http://e/s>	<http://e/p>	1
$ jindou query --store new 'CONSTRUCT WHERE { ?s ?p ?o }' --format nt
<http://e/s> <http://e/p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .
$ jindou query --store new 'CONSTRUCT WHERE { ?s ?p ?o }' --format table
<http://e/s> <http://e/p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .
$ jindou query --store new 'CONSTRUCT WHERE { ?s ?p ?o }'
<http://e/s> <http://e/p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .
$ jindou query --store new 'CONSTRUCT WHERE { ?s ?p ?o }' --format json
...
[..]"@id"[..]
...
$ jindou query --store new 'CONSTRUCT WHERE { ?s ?p ?o }' --format xml
...
[..]rdf:RDF[..]
...

== Forms that a format does not have are refused
$ jindou query --store store 'ASK {}' --format ttl
? 1
jindou: [..]ASK returns true or false[..]Turtle[..]json[..]
$ jindou query --store store 'SELECT * { ?s ?p ?o }' --format nt
? 1
jindou: [..]SELECT returns rows[..]N-Triples[..]

== Tables have short names, files have whole IRIs
-- file b.ttl
@prefix f: <http://xmlns.com/foaf/0.1/> . @prefix e: <http://e/> .
e:a f:age 7 ; f:name "<http://e/a>" ; f:born "2000-01-01"^^<http://www.w3.org/2001/XMLSchema#date> .
$ jindou load -q --store new b.ttl > /dev/null
$ jindou query --store new --format table 'PREFIX : <http://e/> SELECT ?s ?p ?o { ?s ?p ?o } ORDER BY ?p'
?s[..]?p[..]?o[..]
[..]
[..]:a[..]│[..]f:age[..]│[..]7[..]
[..]:a[..]│[..]f:born[..]│[..]"2000-01-01"^^xsd:date[..]
[..]:a[..]│[..]f:name[..]│[..]"<http://e/a>"[..]
$ jindou query --store new --format table --no-prefixes 'PREFIX : <http://e/> SELECT ?s ?p ?o { ?s ?p ?o } ORDER BY ?p'
...
[..]│ <http://xmlns.com/foaf/0.1/age> [..]
[..]│ "2000-01-01"^^<http://www.w3.org/2001/XMLSchema#date>[..]
[..]
$ jindou query --store new 'SELECT ?p { ?s ?p 7 }' --format tsv
?p
<http://xmlns.com/foaf/0.1/age>

== A query is resolved against the base that is given
$ echo '<http://e/dir/a> <http://e/p> 1 .' > d.ttl; jindou load -q --store s d.ttl > /dev/null
$ jindou query --store s --format csv 'SELECT ?o { <a> </p> ?o }' --base http://e/dir/x
o
1
$ jindou query --store s --format csv 'SELECT ?o { <a> </p> ?o }' --base http://other/
o
$ jindou query --store s --format csv 'BASE <http://e/dir/> SELECT ?o { <a> </p> ?o }' --base http://other/
o
1
$ jindou query --store s --format csv "SELECT (IRI('b') AS ?i) {}" --base http://e/dir/
i
http://e/dir/b
$ jindou query --store s 'SELECT ?o { <a> </p> ?o }'
? fails
jindou: [..]
...
$ jindou query --store s --base dir/ 'SELECT ?o { <a> </p> ?o }'
? fails
...
[..]not an absolute IRI[..]
...

== Compressed files that are cut are named with their place
$ seq 0 2999 | sed 's/.*/<urn:s&> <urn:p> & ./' | gzip > whole.gz
$ head -c -9 whole.gz > cut.nt.gz; { cat whole.gz; echo more; } > long.nt.gz
$ for command in 'load --quiet --store s' 'convert --check'; do for file in cut long; do jindou $command $file.nt.gz && echo done; done; done
? fails
jindou: cut.nt.gz: [..]byte [..]
...
jindou: long.nt.gz: [..]byte [..]
...
jindou: cut.nt.gz: [..]byte [..]
...
jindou: long.nt.gz: [..]byte [..]
...
$ jindou convert --check cut.nt.gz 2>&1 | grep -c "byte $(stat -c %s cut.nt.gz)"
1
$ test -e s
? 1

== Files are queried without a store
-- file planets.ttl
@prefix : <http://e/> .
:mars :moons 2 . _:x :moons 0 .
-- file more.nt
<http://e/earth> <http://e/moons> "1" .
_:x <http://e/p> "o" .
-- file notes.txt
<http://e/a> <http://e/p> "x" .
# Blank nodes of two files are not the same.
$ jindou query --data planets.ttl --data more.nt --format csv 'SELECT (COUNT(DISTINCT ?s) AS ?n) (COUNT(*) AS ?m) { ?s ?p ?o }'
n,m
4,4
$ jindou query --data notes.txt --data-format nt "ASK { ?s ?p 'x' }"
true
$ JINDOU_STORE=nowhere jindou query --data planets.ttl 'ASK { ?s ?p 2 }'
true
$ jindou query --data planets.ttl --explain 'ASK { ?s ?p 2 }'
ASK[..]
...
$ ls
data.ttl
head.ttl
more.nt
notes.txt
planets.ttl
store

== What to use may be named in front
$ echo '<http://e/a> <http://e/p> 1 .' > d.ttl; jindou load -q s d.ttl > /dev/null
$ echo 'SELECT ?o { ?s ?p ?o }' > q.rq
$ jindou query --store s 'SELECT ?o { ?s ?p ?o }'
?o
1
$ jindou query s 'SELECT ?o { ?s ?p ?o }'
?o
1
$ jindou query d.ttl 'SELECT ?o { ?s ?p ?o }'
?o
1
$ jindou query s -f q.rq
?o
1
$ jindou query d.ttl --file q.rq
?o
1
$ test "$(jindou info s)" = "$(jindou info --store s)"
$ test "$(jindou dump s)" = "$(jindou dump --store s)"
$ jindou load s d.ttl
? fails
...
[..]--into s[..]
...

== Two documents are not a store and a document
$ echo '<http://e/a> <http://e/p> 1 .' | tee d.ttl > e.ttl; jindou load e.ttl d.ttl
? fails
...
[..]no destination[..]
...
