# A newcomer's mistakes with what is said about them, to be read aloud. `JINDOU_REWRITE=1` writes the messages again.
unchanged
-- file planets.ttl
@prefix : <http://e/> .
:mars a :Planet ; :moons 2 .
-- file turtle.nt
@prefix : <http://e/> .
:mars :moons 2 .
-- file page.ttl
<!DOCTYPE html>
<html><body>No data here.</body></html>
-- file xml.ttl
<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>
-- file bad.nt
<http://e/a> <http://e/p> "good" .
<http://e/a> <http://e/p> bad .
-- file a.b.nt.gz
<http://e/a> <http://e/p> "x" .
-- file notes.txt
<http://e/a> <http://e/p> "x" .
-- file larger.rq
SELECT * { ?s ?p ?o }
-- file folder/letter.doc
Dear reader
$ jindou load -q --store my.store planets.ttl > /dev/null

== A query's file without -f
$ jindou query --store my.store larger.rq
? 1
jindou: larger.rq is a file: jindou query … -f larger.rq

== A query's file that is not there
$ jindou query --store my.store smaller.rq
? 1
jindou: smaller.rq is not SPARQL, and there is no file of that name; queries in files are named with -f FILE

== A query without anything to ask
$ jindou query 'ASK {}'
? 1
jindou: nothing to query: pass a store with --store DIR (or JINDOU_STORE), RDF files with --data FILE, or an endpoint with --endpoint URL

== An update's store before it, without --store
$ jindou update my.store 'CLEAR ALL'
? 2
error: unexpected argument 'CLEAR ALL' found

  tip: a store is named with --store: jindou update --store my.store …

Usage: jindou update [OPTIONS] [TEXT]

For more information, try '--help'.

== An RDF file as the store of a query
$ jindou query --store planets.ttl 'SELECT * { ?s ?p ?o }'
? 1
jindou: planets.ttl is an RDF file, not a store; query it with jindou query --data planets.ttl …, or make a store of it with jindou load --store planets.store planets.ttl

== A compressed RDF file to be served
$ jindou serve a.b.nt.gz
? 1
jindou: a.b.nt.gz is an RDF file, not a store; make a store of it with jindou load --store a.b.store a.b.nt.gz

== An RDF file to be served
$ jindou serve planets.ttl
? 1
jindou: planets.ttl is an RDF file, not a store; make a store of it with jindou load --store planets.store planets.ttl

== An address as the store
$ jindou query --store http://127.0.0.1:7878/sparql 'ASK {}'
? 1
jindou: http://127.0.0.1:7878/sparql is an address, not a store: use --endpoint http://127.0.0.1:7878/sparql

== An endpoint without http://
$ jindou query --endpoint 127.0.0.1:7878/sparql 'ASK {}'
? 1
jindou: 127.0.0.1:7878/sparql is not a URL; did you mean http://127.0.0.1:7878/sparql?

== The graphs of an endpoint
$ jindou query --endpoint http://127.0.0.1:7878/sparql --graphs all 'ASK {}'
? 1
jindou: --graphs is for stores: an endpoint chooses its default graph itself; name graphs with FROM <…>

== Graphs that are neither
$ jindou query --store my.store --graphs every 'ASK {}'
? 2
error: invalid value 'every' for '--graphs <WHICH>'
  [possible values: default, all]

For more information, try '--help'.

== A file of data that is not there
$ jindou query --data planet.ttl 'ASK {}'
? 1
jindou: planet.ttl: No such file or directory (os error 2)

== A file of data whose name tells nothing
$ jindou query --data notes.txt 'ASK {}'
? 1
jindou: notes.txt: cannot tell the RDF format from the name; name it with --data-format nt|nq|ttl|trig|rdf|jsonld

== Data and a store
$ jindou query --data planets.ttl --store my.store 'ASK {}'
? 1
jindou: both --data and --store name what to query; use one of them

== A format that is nearly one
$ jindou query --store my.store --format jsn 'ASK {}'
? 2
error: invalid value 'jsn' for '--format <FORMAT>': did you mean json?

For more information, try '--help'.

== A format that is none
$ jindou query --store my.store --format excel 'ASK {}'
? 2
error: invalid value 'excel' for '--format <FORMAT>': the formats are table, tsv, csv, json, ndjson, xml, nt, nq, ttl, trig, rdf, jsonld

For more information, try '--help'.

== A misspelt option
$ jindou query --store my.store --fromat json 'ASK {}'
? 2
error: unexpected argument '--fromat' found

  tip: a similar argument exists: '--format'

Usage: jindou query --store <DIR> --format <FORMAT> [TEXT]...

For more information, try '--help'.

== A memory without its unit
$ jindou query --store my.store --memory 2 'ASK {}'
? 2
error: invalid value '2' for '--memory <SIZE>': that is 2 bytes; did you mean 2G or 2M?

For more information, try '--help'.

== Three mistakes, the first at the beginning
$ jindou query --store my.store 'SELCT ?x { ?x foaff:name ?n FILTR(?n > 2) }'
? 1
jindou: not valid SPARQL
line 1, column 1: unknown keyword SELCT
  SELCT ?x { ?x foaff:name ?n FILTR(?n > 2) }
  ^^^^^
help: did you mean SELECT?
line 1, column 15: the prefix foaff: is not declared
  SELCT ?x { ?x foaff:name ?n FILTR(?n > 2) }
                ^^^^^^
help: did you mean foaf:?
line 1, column 29: unknown keyword FILTR
  SELCT ?x { ?x foaff:name ?n FILTR(?n > 2) }
                              ^^^^^
help: did you mean FILTER?

== An update as a query
$ jindou query --store my.store 'CLEAR ALL'
? 1
jindou: not valid SPARQL
line 1, column 1: this is an update, but a query is expected here
  CLEAR ALL
  ^^^^^
help: run it with 'jindou update'

== A query as an update
$ jindou update --store my.store 'ASK {}'
? 1
jindou: not valid SPARQL
line 1, column 1: this is a query, but an update is expected here
  ASK {}
  ^^^
help: run it with 'jindou query'

== A variable in INSERT DATA
$ jindou update --store my.store 'INSERT DATA { <a:a> <a:b> ?c }'
? 1
jindou: not valid SPARQL
line 1, column 27: INSERT DATA takes constants, not variables
  INSERT DATA { <a:a> <a:b> ?c }
                            ^^
help: write INSERT { … } WHERE { … } to use variables

== An IRI with a space and a dot
$ jindou query --store my.store 'SELECT * { ?s <http://e. org/p> ?o }'
? 1
jindou: not valid SPARQL
line 1, column 15: an IRI cannot contain spaces, quotes or braces
  SELECT * { ?s <http://e. org/p> ?o }
                ^^^^^^^^^^^^^^^^^
help: write %20 for a space

== A server without a store
$ jindou serve
? 1
jindou: nothing to serve: name a store, as in jindou serve my.store (or --store DIR, or JINDOU_STORE)

== A server of a store that is not there
$ jindou serve new.store
? 1
jindou: no store at new.store; create one with `jindou load --store new.store FILE…`, or add --writable to begin with an empty one

== A shell without a store
$ jindou shell
? 1
jindou: nothing to open: name a store, as in jindou shell my.store (or --store DIR, or JINDOU_STORE), or an endpoint with --endpoint URL

== Two stores for a server
$ jindou serve my.store --store other.store
? 1
jindou: both STORE and --store name what to serve; use one of them

== An empty store in a folder of other things
$ jindou serve folder --writable
? 1
jindou: folder: it has letter.doc, which is not part of a store; nothing was changed, choose another path

== An empty store in place of a file
$ jindou serve larger.rq --writable
? 1
jindou: larger.rq: exists and is not a folder; choose another path for the store

== A port that is in use
$ jindou serve my.store --port $PORT
? 1
jindou: port PORT of 127.0.0.1 is in use by another program; choose another with --port, or a free one with --port 0

== Turtle named .nt
$ jindou load -q --store new.store turtle.nt
? 1
jindou: turtle.nt:1:1: found `@`, expected a subject: an IRI in `<…>` or a blank node `_:label`
  in: @prefix : <http://e/> .
help: this looks like Turtle: --format ttl

== Turtle named .nt, asked
$ jindou query --data turtle.nt 'ASK {}'
? 1
jindou: turtle.nt:1:1: found `@`, expected a subject: an IRI in `<…>` or a blank node `_:label`
  in: @prefix : <http://e/> .
help: this looks like Turtle: --data-format ttl

== A web page named .ttl
$ jindou load -q --store new.store page.ttl
? 1
jindou: page.ttl:1:1: Invalid IRI code point ' ', expected valid Turtle
  in: <!DOCTYPE html>
help: page.ttl is an HTML page, not RDF

== RDF/XML named .ttl
$ jindou load -q --store new.store xml.ttl
? 1
jindou: xml.ttl:1:1: Invalid IRI code point ' ', expected valid Turtle
  in: <?xml version="1.0"?>
help: this looks like RDF/XML: --format rdf

== A statement that is not valid
$ jindou load -q --store new.store bad.nt
? 1
jindou: bad.nt:2:27: found `b`, expected an object: an IRI in `<…>`, a blank node `_:label`, a literal in "…" or a triple term `<<( … )>>`
  in: <http://e/a> <http://e/p> bad .
help: --lenient skips statements that are not valid, and lists them

== A store that is there already
$ jindou load -q --store my.store planets.ttl
? 1
jindou: a store already exists at my.store; pass --replace to overwrite it, or add to it with --into my.store in place of --store my.store

== A store in a folder that is not there
$ jindou load -q --store there/new.store planets.ttl
? 1
jindou: the folder there does not exist; create it first, or choose another path

== A file to load that has no format in its name
$ jindou load -q --store new.store notes.txt
? 1
jindou: notes.txt: cannot tell the RDF format from the name, and no format was given; name it with --format nt|nq|ttl|trig|rdf|jsonld

== Another program's name for loading
$ jindou import planets.ttl
? 2
error: unrecognized subcommand 'import'

  tip: here that is jindou load

Usage: jindou [OPTIONS] <COMMAND>

For more information, try '--help'.

== Another program's name for asking
$ jindou sparql 'ASK {}'
? 2
error: unrecognized subcommand 'sparql'

  tip: here that is jindou query

Usage: jindou [OPTIONS] <COMMAND>

For more information, try '--help'.

== A misspelt command
$ jindou sreve my.store
? 2
error: unrecognized subcommand 'sreve'

  tip: some similar subcommands exist: 'restore', 'serve'

Usage: jindou [OPTIONS] <COMMAND>

For more information, try '--help'.

== A store without a command
$ jindou my.store
? 2
error: unrecognized subcommand 'my.store'

  tip: jindou serve my.store

Usage: jindou [OPTIONS] <COMMAND>

For more information, try '--help'.

== A file without a command
$ jindou planets.ttl
? 2
error: unrecognized subcommand 'planets.ttl'

  tip: jindou query --data planets.ttl 'SELECT …'

Usage: jindou [OPTIONS] <COMMAND>

For more information, try '--help'.

== More statements for a store that exists
$ jindou load --store my.store bad.nt
? 1
jindou: a store already exists at my.store; pass --replace to overwrite it, or add to it with --into my.store in place of --store my.store

== A file to be written, named like one to be read
$ jindou convert planets.ttl planets.nt
? 1
jindou: there is no file planets.nt to read; to write it: jindou convert planets.ttl --out planets.nt

== The format of a dump, as a query's is named
$ jindou dump my.store --format ttl
? 2
error: unexpected argument '--format' found

  tip: the format to write is named by --to FORMAT, or by the extension of --out FILE

Usage: jindou dump <STORE>

For more information, try '--help'.

== Generated data as a source
$ jindou load --source lubm:5 --store my.store
? 2
error: unexpected argument '--source' found

  tip: generated data comes through a pipe: jindou generate lubm -n 5 | jindou load --store DIR --format nt -

Usage: jindou load --store <DIR> <FILE>...

For more information, try '--help'.

== A limit as an option
$ jindou query my.store 'SELECT * { ?s ?p ?o }' --limit 3
? 2
error: unexpected argument '--limit' found

  tip: write it into the query, as in 'SELECT … LIMIT 3'

Usage: jindou query <TEXT>...

For more information, try '--help'.

== A limit of a dump
$ jindou dump my.store --limit=3
? 2
error: unexpected argument '--limit' found

  tip: a dump has all statements; for some of them: jindou query STORE 'CONSTRUCT WHERE { ?s ?p ?o } LIMIT 3'

Usage: jindou dump <STORE>

For more information, try '--help'.

== A query as text and in a file
$ jindou query my.store 'ASK {}' -f larger.rq
? 1
jindou: the query is given as text and with -f FILE; leave one of them out

== Two stores to query
$ jindou query --store my.store planets.ttl 'ASK {}'
? 1
jindou: both STORE and --store name what to query; use one of them

== Two stores to dump
$ jindou dump my.store --store my.store
? 1
jindou: both STORE and --store name what to dump; use one of them

== No store to describe
$ jindou info
? 1
jindou: no store: name it, as in jindou info my.store (or --store DIR, or JINDOU_STORE)

== No backup kept
$ jindou backup --store my.store --to backups --keep 0
? 2
error: invalid value '0' for '--keep <N>': 0 is not in 1..=4294967295

For more information, try '--help'.
