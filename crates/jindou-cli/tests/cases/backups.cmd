# Backups, and stores that are made of them.
-- file head.ttl
@prefix : <http://e/> .
:a :p :b ; :q "x\ty"@en . :b :p :c .
$ seq 0 399 | sed 's/.*/:s& :n & ./' | cat head.ttl - > data.ttl
$ jindou load --quiet --store store data.ttl
...

== A store is backed up, reclustered and restored
$ jindou update --store store 'INSERT DATA { <http://e/new1> <http://e/n> 1 }'
...
$ jindou backup --store store --to backups
[..]snapshots 0 to 1[..]
...
$ jindou update --store store 'INSERT DATA { <http://e/new2> <http://e/n> 2 }'
...
$ jindou recluster --store store --memory 64M --quiet
[..]405 quads[..]snapshot 2[..]
...
$ jindou update --store store 'INSERT DATA { <http://e/new3> <http://e/n> 3 }'
...
$ jindou backup --store store --to backups
...
$ jindou backup --to backups --list | grep -c .
2
$ jindou backup --to backups --list
...
[..]snapshots 2 to 3[..]
...
$ jindou query --store store --format csv 'SELECT (COUNT(*) AS ?n) { ?s ?p ?o }'
n
406
$ jindou restore --from backups --store newest
...
$ jindou query --store newest --format csv 'SELECT (COUNT(*) AS ?n) { ?s ?p ?o }'
n
406
$ jindou check --store newest
...
$ jindou restore --from backups --store first --snapshot 1
...
$ jindou query --store first --format csv 'SELECT (COUNT(*) AS ?n) { ?s ?p ?o }'
n
404
# Nothing is written over.
$ jindou restore --from backups --store first
? 1
jindou: [..]not empty[..]
$ jindou restore --from backups --store x --at 2001-01-01T00:00:00Z
? 1
jindou: [..]no backup includes[..]2001-01-01T00:00:00Z[..]

== Times and places that are none
$ jindou backup --store store --to backups
...
$ jindou restore --from backups --store x --at yesterday
? 2
...
$ jindou backup --store store --to s3://bucket/place
? 1
jindou: [..]s3://bucket/place[..]

== Old backups are removed
$ jindou backup --store store --to places/of/backups
...
$ jindou update --store store 'INSERT DATA { <http://e/b> <http://e/p> 2 }'
...
$ jindou backup --store store --to places/of/backups
...
$ jindou restore --from places/of/backups --store r
[..]snapshot 1,[..]
$ jindou backup --store store --to places/of/backups --keep 1
...
[..]removed 2 backups[..]
...
$ jindou backup --to places/of/backups --list | grep -c .
1
$ jindou restore --from places/of/backups --store u
[..]snapshot 1,[..]

== An older backup is restored by its name
$ jindou backup --store store --to backups | sed -n '1s/ of .*//p' > older
$ jindou update --store store 'INSERT DATA { <urn:b> <urn:p> 2 }'
...
$ jindou backup --store store --to backups | sed -n '1s/ of .*//p' > newest
...
# Reading the list of the newest one hangs.
$ rm backups/$(cat newest); mkfifo backups/$(cat newest)
$ timeout 20 jindou restore --from backups --store r 2> err
? 1
$ grep -q '^jindou: ' err && grep -qFf newest err && grep -qF -e "--backup $(cat older)" err
$ jindou restore --from backups --store r --backup $(cat older)
...
$ jindou query --store r --format csv 'SELECT (COUNT(*) AS ?n) { ?s ?p ?o }'
n
403
