# Servers with some shards of a store: what they report, and one clear sentence for whatever cannot be.
$ printf '<http://e/a> <http://e/p> <http://e/b> , <http://e/c> .\n<http://e/b> a <http://e/C> .\n' > data.ttl
$ jindou load --quiet --store whole data.ttl
...
$ jindou load --quiet --store all --shards 4 data.ttl
...
$ mkdir part && cp -r all/cluster.jd all/shard-0 all/shard-2 part

== Shards that the store does not have
$ jindou serve --store all --log log --shards 9
? 1
jindou: the store has no shard 9: it has 4, from 0 to 3

== A shard that is named twice
$ jindou serve --store all --log log --shards 0,0
? 1
jindou: shard 0 is named twice

== A part beyond the last
$ jindou serve --store all --log log --part 4/3
? 1
jindou: there is no part 4 of 3: the first part is 0, the last is 2

== More copies than servers
$ jindou serve --store all --log log --part 0/3 --replicas 4
? 1
jindou: a shard cannot be at 4 of 3 servers: use 1 to 3 replicas

== A name without a number
$ jindou serve --store all --log log --part name/3 --name one
? 1
jindou: --part name/3 takes the number at the end of the server's name, and "one" ends with none

== Shards of a store that has none
$ jindou serve --store whole --log log --shards 0
? 1
jindou: the store at whole is not sharded, so a server cannot have some of its shards; load the data with --shards

== The other shards cannot be reached without an address
$ jindou serve --store part --log log
? 1
jindou: [..]this server has 2 of the store's 4 shards, and needs an address at which the servers with the others reach it (--peer-address HOST:PORT)

== Counts are those of the whole store, and bytes those of the shards here
$ jindou info --store all | head -4
store           all
quads           3 (0 in 0 named graphs)
terms           6 [..]
predicates      2
$ jindou info --store part | sed -n 2p
quads           3 (0 in 0 named graphs)

== No shard
$ jindou serve --store all --log log --shards ''
? fails
...
[..]'' is not a shard: write their numbers, as in 0,3[..]
...

== The cluster file of earlier versions
$ jindou serve --store part --cluster cluster.toml --server one
? 2
error: unexpected argument '--cluster' found
...
  tip: there is no cluster file any more: servers with some shards of a store follow a log, as in jindou serve --store DIR --log PLACE --name NAME --peer-address HOST:PORT --shards 0,1 (docs/replicas.md)
...
$ jindou serve --store part --server one
? 2
error: unexpected argument '--server' found
...
  tip: there is no cluster file any more[..]
...

== Without a log there is nothing to start or to ask
$ jindou cluster start --store all --servers 2
? 2
...
  --log <PLACE>
...
$ jindou cluster status cluster.toml
? 2
error: unexpected argument 'cluster.toml' found
...

== How other servers' memory is read
$ jindou serve --store part --log log --peer-address 127.0.0.1:0 --peer-reads mlx5_0:1
? 2
error: invalid value 'mlx5_0:1' for '--peer-reads <HOW>': 'mlx5_0:1' is not one of off, files, or ucx:DEVICES as in ucx:mlx5_0:1,eth0
...
$ jindou serve --store whole --log unsharded --peer-address 127.0.0.1:0 --peer-reads files
? 1
jindou: --peer-reads is for servers with some shards of a store, and this server has a store that is not sharded: leave it out, or load the data with --shards
== More copies than servers that are started
$ jindou cluster start --store all --log log --servers 3 --replicas 4
? 1
jindou: a shard cannot be at 4 of 3 servers: use 1 to 3 replicas

== Copies of the shards of a store that has none
$ jindou cluster start --store copies --log log --servers 2 --replicas 2
? 1
jindou: --replicas is for stores that were loaded with --shards; each server of another store has all of it
$ ls
all
data.ttl
part
whole

== A log is begun with a store
$ jindou cluster begin --store all --log begun
the log [..] begins with the store at all: [..] bytes were uploaded
$ jindou cluster begin --store all --log begun
the log [..] has the store at all already
$ jindou cluster begin --store whole --log begun
? 1
jindou: there is a log at this place already, the log [..] of another store, and nothing was changed: name a new place
$ jindou cluster begin --store all --log begun --no-upload
? 1
jindou: the log was begun with an upload of its store, or by a server
$ jindou cluster begin --store none --log begun
? 1
jindou: no store at none[..]
$ jindou cluster status --log begun | sed -n '3,$p'
groups not in spans: 0
base 0: [..] bytes, [..]; 0 groups since
shard 0: at no server; queries that need it are refused
shard 1: at no server; queries that need it are refused
shard 2: at no server; queries that need it are refused
shard 3: at no server; queries that need it are refused
A server writes its entry every ten minutes. Ask its own /ready whether it runs and is up to date.
# An empty folder is filled from it.
& S jindou serve --store one --log begun --name one --shards 0,1,2,3 --port 0 --log-level error
$ jindou query --endpoint $S/query 'SELECT (COUNT(*) AS ?n) { ?s ?p ?o }' --format csv
n
3

== A log is begun without an upload
$ jindou cluster begin --store all --log bare --no-upload
the log [..] begins with the store at all, which was not uploaded: copy it, or its shards, to each server
$ jindou cluster status --log bare | grep bases
bases: none, since the log was begun without an upload; an empty folder cannot be filled: copy the store, or the server's shards, into it
$ jindou serve --store one --log bare --name one --shards 0 --peer-address 127.0.0.1:0
? 1
jindou: the shared log: the log was begun without an upload of its store, so this server's folder, which is empty or lacks a shard, cannot be filled: copy the store, or the server's shards, into it first
$ jindou cluster repair --log bare
the log is whole: every group up to 0 can be read
& S jindou serve --store all --log bare --name one --port 0 --log-level error
$ jindou query --endpoint $S/query 'SELECT (COUNT(*) AS ?n) { ?s ?p ?o }' --format csv
n
3

== A store that was changed cannot be copied
$ jindou update --store all 'INSERT DATA { <http://e/x> <http://e/p> 1 }'
...
$ jindou cluster begin --store all --log log --no-upload
? 1
jindou: the store at all was changed since its load, so servers cannot tell whether they have copies of the same: upload it (without --no-upload)
$ jindou cluster begin --store all --log log
the log [..] begins with the store at all: [..] bytes were uploaded
& S jindou serve --store one --log log --name one --shards 0,1,2,3 --port 0 --log-level error
$ jindou query --endpoint $S/query 'SELECT (COUNT(*) AS ?n) { ?s ?p ?o }' --format csv
n
4

== A store that follows a log
& S jindou serve --store all --log log --name one --port 0 --log-level error
$ jindou cluster begin --store all --log other
? 1
jindou: the store at all follows a log already: start its server with that
$ jindou serve --store all --log other --name two --port 0
? fails
...

== Shards of another load
$ printf '<http://e/a> <http://e/p> <http://e/other> .\n' > other.ttl
$ jindou load --quiet --store other --shards 4 other.ttl
...
$ rm -r part/shard-0 && cp -r other/shard-0 part
$ jindou serve --store part --log log --peer-address 127.0.0.1:0
? 1
jindou: [..]part/shard-0 is of another load than cluster.jd next to it, and nothing was changed: remove the folder, and the server receives the shard from the log

== A log of another load
$ jindou cluster begin --store whole --log log
...
$ jindou serve --store all --log log --name one
? 1
jindou: the shared log: the log at this place is another store's, and nothing was changed. To serve the store in this folder, name a new place for its log. To follow this log instead, start with an empty folder, which will get the log's data and nothing of this store

== A shard that no server has
& S jindou serve --store part --log log --name one --peer-address 127.0.0.1:0 --port 0 --log-level error --writable
$ jindou query --endpoint $S/query 'SELECT * { ?s ?p ?o }'
? 1
jindou: [..]shard [..] of the store could not be read: no other server is known that could hold it[..]
$ jindou update --endpoint $S/update 'INSERT DATA { <http://e/a> <http://e/p> <http://e/new> }'
? 1
jindou: [..]shard [..] of the store could not be read: no other server is known that could hold it[..]
$ jindou cluster status --log log | grep -E 'newest|one:'
newest group: none yet
one: at [..], shards 0, 2, entry written [..]
