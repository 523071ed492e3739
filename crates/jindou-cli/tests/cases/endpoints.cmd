# Queries and updates at an endpoint, which `jindou serve` is. The data has no prefixes of its own, which an endpoint's tables
# do not have.
-- file d.ttl
@base <http://e/> .
<a> <http://xmlns.com/foaf/0.1/name> "Ann\t\"x\"", "Anne"@fr ; <age> 7, 7.5, 1e0, true ; <born> "2000-01-01"^^<http://www.w3.org/2001/XMLSchema#date> .
<b> <http://xmlns.com/foaf/0.1/knows> <a> ; <says> << <a> <age> 7 >> .
-- file tokens
read abcdefghijklmnopqrst
write 0123456789abcdefghij
$ jindou load -q --store s d.ttl > /dev/null

== An endpoint answers as the store does, in every format
& S jindou serve s --port 0 --log-level error
$ for format in table tsv csv json xml ndjson; do
>   for query in 'SELECT ?s ?p ?o ?none { ?s ?p ?o OPTIONAL { ?s <http://e/none> ?none } FILTER(!isBlank(?o) && !isTriple(?o)) } ORDER BY ?s ?p ?o' 'ASK { ?s foaf:name ?o }' 'SELECT ?x { ?x foaf:nobody ?y }' 'SELECT (COUNT(*) AS ?n) {}'; do
>     jindou query --endpoint $S/sparql "$query" --format $format > far && jindou query --store s "$query" --format $format > near && cmp far near || echo "$query" $format
>   done
> done

== Graphs of an endpoint are those of the store
& S jindou serve s --port 0 --log-level error
$ for query in 'CONSTRUCT { ?s ?p ?o } { ?s ?p ?o FILTER(!isTriple(?o)) }' 'DESCRIBE <http://e/a>'; do jindou query --endpoint $S/sparql "$query" --format nt | sort > far; jindou query --store s "$query" --format nt | sort > near; cmp far near && test -s far || echo "$query"; done

== A server is asked for its health
& S jindou serve s --port 0 --log-level error
$ jindou health $S
...
[..]ready[..]
...
$ jindou health http://127.0.0.1:1
? 1
...
[..]127.0.0.1:1/ready[..]
...

== Mistakes are named with the user's own line
& S jindou serve s --port 0 --log-level error
$ jindou query --endpoint $S/sparql 'SELECT ?name {
>  ?s foaf:name }' > out 2>&1
? 1
$ grep -c 400 out; grep -c 'line 2' out
1
1
$ jindou query --endpoint $S/sparql 'ASK { ?s none:name 1 }' --no-prefixes
? 1
...
[..]none[..]
...

== The time of a request is shown on demand
& S jindou serve s --port 0 --log-level error
$ jindou query --endpoint $S/sparql 'ASK {}' --time
true
[..]1 row in[..]

== A server that may only be read is not updated
& S jindou serve s --port 0 --log-level error
$ jindou update --endpoint $S/sparql 'CLEAR ALL'
? fails
...
[..]read-only[..]
...

== Both routes take updates, and make one of a key once
& S jindou serve s --port 0 --log-level error --writable
$ jindou update --endpoint $S/sparql 'INSERT DATA { <http://e/new> foaf:age 0 }' --idempotency-key 'key 0'
snapshot 1: 1 quad added, 0 removed by 1 operation
$ jindou update --endpoint $S/update 'INSERT DATA { <http://e/new> foaf:age 0 }' --idempotency-key 'key 0'
snapshot 1: 1 quad added, 0 removed by 1 operation
$ jindou update --endpoint $S/sparql 'CLEAR ALL' --idempotency-key 'key 0'
? 1
...
[..]422[..]
...
$ jindou update --endpoint $S/sparql 'CLEAR ALL' --idempotency-key 'key 0' 2>&1 | grep -c 'another request'
1
$ jindou update --endpoint $S/update 'INSERT DATA { <http://e/new> foaf:age 1 }' --idempotency-key 'key 1'
snapshot 2: 1 quad added, 0 removed by 1 operation
$ jindou update --endpoint $S/sparql 'INSERT DATA { <http://e/new> foaf:age 1 }' --idempotency-key 'key 1'
snapshot 2: 1 quad added, 0 removed by 1 operation
$ jindou update --endpoint $S/update --base http://e/ --json 'DELETE DATA { <new> foaf:age 1 }' | grep -o '"\(added\|removed\)": *[0-9]*' | tr -d ' '
"added":0
"removed":1
$ jindou query --endpoint $S/sparql 'SELECT ?n { <http://e/new> foaf:age ?n }' --format csv
n
0
$ jindou update --endpoint $S/update 'INSERT {'
? 1
...
[..]400[..]
...

== An update without a place
$ jindou update 'CLEAR ALL'
? 1
...
[..]--endpoint URL[..]
...

== Tokens are sent
& S jindou serve s --port 0 --log-level error --token-file tokens
$ jindou query --endpoint $S/sparql 'ASK {}' > out 2>&1
? 1
$ grep -c 401 out; grep -c -e --token out
1
1
$ jindou query --endpoint $S/sparql 'ASK {}' --token abcdefghijklmnopqrst
true
$ JINDOU_TOKEN=abcdefghijklmnopqrst jindou query --endpoint $S/sparql 'ASK {}'
true

== A token does not travel unencrypted
$ jindou query --endpoint http://example.org/ 'ASK {}' --token x
? 1
...
[..]unencrypted[..]
...

== Updates through the shell, with the token that may
& S jindou serve s --port 0 --log-level error --token-file tokens
$ printf ".prefix e http://e/\nINSERT DATA { e:new foaf:name 'new' }\n\nSELECT ?s { ?s foaf:name 'new' }\n" | jindou shell --write --endpoint $S/sparql --token 0123456789abcdefghij --format csv 2> /dev/null | tail -2
s
http://e/new

== A server begins with an empty store
$ mkdir empty
& S jindou serve new.store --port 0 --log-level error --writable
$ echo 'INSERT DATA { <http://e/mars> <http://e/moons> 2 }' | jindou shell --endpoint $S/sparql --write > /dev/null
& S jindou serve --store empty --port 0 --log-level error --writable
$ echo 'INSERT DATA { <http://e/mars> <http://e/moons> 2 }' | jindou shell --endpoint $S/sparql --write > /dev/null
# What was written is there when the server is gone, and so it is when it comes again.
& S jindou serve new.store --port 0 --log-level error --writable
$ jindou query --endpoint $S/sparql --format csv 'SELECT (COUNT(*) AS ?n) { ?s ?p ?o }'
n
1
$ jindou query --store empty --format csv 'SELECT (COUNT(*) AS ?n) { ?s ?p ?o }'
n
1
...
# Nothing else is left: no lock, no folder of a load.
$ ls
d.ttl
empty
new.store
s
tokens

== Stores are named by their place
& S jindou serve s --port 0 --log-level error
$ jindou query --endpoint $S/sparql 'ASK { ?s ?p 7 }'
true
$ printf 'ASK { ?s ?p 7 };\nexit\nASK {};\n' | jindou shell s
true
$ printf 'help\nQUIT;\nASK {};\n' | jindou shell s > out; grep -c '.graphs \[default|all\]' out; grep -c true out
? 1
1
0
# The place goes before the setting.
$ JINDOU_STORE=nowhere jindou shell s
