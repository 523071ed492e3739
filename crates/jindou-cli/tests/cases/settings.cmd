# Where settings come from: command line, environment, file, default, in this order; and what is said about mistakes.
# Stores `a`, `b` and `c`, each with its name.
$ for n in a b c; do echo "<http://e/s> <http://e/p> \"$n\" ." > d.nt; jindou load -q --store $n d.nt > /dev/null; done

== Without a setting there is no store
$ jindou query 'ASK {}'
? fails
[..]--store DIR[..]

== The file of the user's settings
-- file xdg/jindou/config.toml
store = 'c'
$ XDG_CONFIG_HOME="$PWD/xdg" jindou query 'SELECT ?o { ?s ?p ?o }'
?o
"c"
$ XDG_CONFIG_HOME="$PWD/xdg" JINDOU_CONFIG= jindou query 'ASK {}'
? fails
[..]--store DIR[..]

== A file that is named takes its place
-- file xdg/jindou/config.toml
store = 'c'
-- file jindou.toml
store = 'b' # this one
$ export XDG_CONFIG_HOME="$PWD/xdg"; JINDOU_CONFIG=jindou.toml jindou query 'SELECT ?o { ?s ?p ?o }'
?o
"b"
$ export XDG_CONFIG_HOME="$PWD/xdg"; JINDOU_CONFIG=. jindou query 'SELECT ?o { ?s ?p ?o }'
?o
"b"
$ export XDG_CONFIG_HOME="$PWD/xdg"; jindou query --config jindou.toml 'SELECT ?o { ?s ?p ?o }'
?o
"b"

== The environment comes before the file, and the option before the environment
-- file jindou.toml
store = 'b'
$ JINDOU_STORE=a jindou query --config=jindou.toml 'SELECT ?o { ?s ?p ?o }'
?o
"a"
$ JINDOU_STORE=a jindou query --config jindou.toml --store b 'SELECT ?o { ?s ?p ?o }'
?o
"b"
$ JINDOU_STORE=nope jindou query --store a 'ASK { ?s ?p ?o }'
true

== A file of settings that is not there
$ JINDOU_CONFIG=nowhere.toml jindou query 'ASK {}'
? fails
[..]nowhere.toml[..]

== A load takes its place from the environment
$ JINDOU_STORE=a jindou load -q d.nt
? fails
[..]a store already exists at a[..]
$ JINDOU_STORE=new jindou load -q d.nt > /dev/null && test -e new/manifest.jd
$ JINDOU_STORE=new jindou load -q --into a d.nt
...

== No other command asks for a store that the file names
-- file jindou.toml
store = 'b'
$ export JINDOU_CONFIG=jindou.toml; jindou check && jindou info && jindou dump -q && jindou merge && jindou backup --to backups && jindou backup --to backups --list && jindou update 'INSERT DATA { <http://e/s> <http://e/p> "b" }'
...

== Settings of one command, flags and lists
-- file jindou.toml
store = 'b'
no-prefixes = true
service-allow = ['example.org', 'localhost:81']
[query]
format = 'csv'
store = 'a'
$ jindou --config jindou.toml query 'SELECT ?o { ?s ?p ?o } ORDER BY ?o'
o
a
$ jindou --config jindou.toml query 'ASK { ?s foaf:p 1 }'
? fails
...
[..]foaf[..]
...
$ JINDOU_NO_PREFIXES=false jindou --config jindou.toml query 'ASK { ?s foaf:p 1 }'
false

== Memory and threads come from the environment
$ JINDOU_STORE=a JINDOU_MEMORY=64M JINDOU_THREADS=1 jindou query 'ASK { ?s ?p ?o }'
true

== The help names the variables
$ jindou serve --help > help; tr -s ' \n' '  ' < help > words; for name in STORE HOST PORT MEMORY THREADS TIMEOUT TOKEN_FILE LOG VERIFY; do grep -q "\[env: JINDOU_$name" words || echo no $name; done

== Settings are shown with where they come from, and without secrets
-- file j.toml
memory = '2G'
token = 'secret token'

[serve]
port = 81
$ chmod 600 j.toml; JINDOU_CONFIG=j.toml jindou settings --all --json > json; JINDOU_CONFIG=j.toml jindou settings > text; grep -c secret json text
? 1
json:0
text:0
$ JINDOU_CONFIG=j.toml jindou settings --json | grep -o '"file": *"j.toml"' | tr -d ' '
"file":"j.toml"
$ env -u JINDOU_PORT JINDOU_CONFIG=j.toml JINDOU_THREADS=3 JINDOU_HOST=localhost jindou settings --json --all | tr -d '\n ' | sed 's/{"command/\n&/g' | grep -E '"setting":"(memory|threads|verify|port|host|heavy-queue)"'
{"command":null,"from":"j.toml:1","setting":"memory","value":"2G"},
{"command":null,"from":"environmentJINDOU_THREADS","setting":"threads","value":"3"},
{"command":null,"from":"default","setting":"verify","value":"eager"},
{"command":"serve","from":"environmentJINDOU_HOST","setting":"host","value":"localhost"},
{"command":"serve","from":"j.toml:5","setting":"port","value":"81"},
{"command":"serve","from":"default","setting":"heavy-queue","value":"1024"},
$ JINDOU_CONFIG=j.toml jindou settings
...
[..]2G[..]j.toml:1[..]
...

== Mistake in the file of settings: memroy = '1G'
-- file j.toml
memroy = '1G'
$ chmod 644 j.toml; JINDOU_CONFIG=j.toml jindou settings
? fails
jindou: j.toml:1: [..]memroy[..]did you mean memory?[..]

== Mistake in the file of settings: port = 1
-- file j.toml


port = 1
$ chmod 644 j.toml; JINDOU_CONFIG=j.toml jindou settings
? fails
jindou: j.toml:3: [..][serve][..]

== Mistake in the file of settings: [serve] prot = 1
-- file j.toml
[serve]
prot = 1
$ chmod 644 j.toml; JINDOU_CONFIG=j.toml jindou settings
? fails
jindou: j.toml:2: [..]prot[..]did you mean port?[..]

== Mistake in the file of settings: [sevre] port = 1
-- file j.toml
[sevre]
port = 1
$ chmod 644 j.toml; JINDOU_CONFIG=j.toml jindou settings
? fails
jindou: j.toml:1: [..]sevre[..][serve][..]

== Mistake in the file of settings: [serve] port = 70000
-- file j.toml
[serve]
port = 70000
$ chmod 644 j.toml; JINDOU_CONFIG=j.toml jindou settings
? fails
jindou: j.toml:2: [..]70000[..]

== Mistake in the file of settings: memory = 'much'
-- file j.toml
memory = 'much'
$ chmod 644 j.toml; JINDOU_CONFIG=j.toml jindou settings
? fails
jindou: j.toml:1: [..]much[..]

== Mistake in the file of settings: verify = 'often'
-- file j.toml
verify = 'often'
$ chmod 644 j.toml; JINDOU_CONFIG=j.toml jindou settings
? fails
jindou: j.toml:1: [..]often[..]

== Mistake in the file of settings: no-prefixes = 'perhaps'
-- file j.toml
no-prefixes = 'perhaps'
$ chmod 644 j.toml; JINDOU_CONFIG=j.toml jindou settings
? fails
jindou: j.toml:1: [..]true or false[..]

== Mistake in the file of settings: threads = [1, 2]
-- file j.toml
threads = [1, 2]
$ chmod 644 j.toml; JINDOU_CONFIG=j.toml jindou settings
? fails
jindou: j.toml:1: [..]array[..]

== Mistake in the file of settings: threads = 0
-- file j.toml
threads = 0
$ chmod 644 j.toml; JINDOU_CONFIG=j.toml jindou settings
? fails
jindou: j.toml:1: [..]from 1 to 4096[..]

== Mistake in the file of settings: threads = 100000
-- file j.toml
threads = 100000
$ chmod 644 j.toml; JINDOU_CONFIG=j.toml jindou settings
? fails
jindou: j.toml:1: [..]from 1 to 4096[..]

== Mistake in the file of settings: a = 1 a = 2
-- file j.toml
a = 1
a = 2
$ chmod 644 j.toml; JINDOU_CONFIG=j.toml jindou settings
? fails
jindou: j.toml:2: [..]duplicate[..]

== Mistake in the file of settings: store = 'x
-- file j.toml
store = 'x
$ chmod 644 j.toml; JINDOU_CONFIG=j.toml jindou settings
? fails
jindou: j.toml:1: [..]

== Mistake in the file of settings: replace = true
-- file j.toml

replace = true
$ chmod 644 j.toml; JINDOU_CONFIG=j.toml jindou settings
? fails
jindou: j.toml:2: [..]applies to a single call[..]

== Mistake in the file of settings: [load] into = 'x'
-- file j.toml
[load]
into = 'x'
$ chmod 644 j.toml; JINDOU_CONFIG=j.toml jindou settings
? fails
jindou: j.toml:2: [..]applies to a single call[..]

== Mistake in the file of settings: [bench] x = 1
-- file j.toml
[bench]
x = 1
$ chmod 644 j.toml; JINDOU_CONFIG=j.toml jindou settings
? fails
jindou: j.toml:1: [..]no command bench[..]

== Mistake in the file of settings: token = 't'
-- file j.toml
token = 't'
$ chmod 644 j.toml; JINDOU_CONFIG=j.toml jindou settings
? fails
jindou: j.toml:1: [..]chmod 600[..]

== A file of settings ends
$ jindou --config /dev/zero settings
? fails
[..]/dev/zero: too long[..]

== Names of files of settings are bytes
$ name=$(printf 'odd-\377.toml'); echo "memory = '2G'" > "$name"; jindou settings --config="$name" | grep -c 2G; jindou settings --config "$name" | grep -c 2G
1
1
$ JINDOU_STORE=$(printf '\377') jindou settings
...
[..]environment JINDOU_STORE[..]
...

== A full disk is an error and no panic
$ jindou settings > /dev/full
? 1
[..]cannot write to standard output[..]

== A bad value of the environment names its variable
$ JINDOU_TIMEOUT=soon jindou query --store a 'ASK {}'
? fails
...
[..]JINDOU_TIMEOUT[..]
...
$ JINDOU_TIMEOUT=soon jindou query --store a --timeout soon 'ASK {}' 2>&1 | grep -c JINDOU_TIMEOUT
? 1
0
$ JINDOU_PORT=http jindou serve --store a
? fails
...
[..]JINDOU_PORT[..]
...
$ JINDOU_STORE=a JINDOU_PORT=x jindou serve
? fails
...
[..]--port[..]
...
