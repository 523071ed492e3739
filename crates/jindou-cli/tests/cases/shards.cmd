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
