# What commands say to a beginner: help, versions, counts, arguments that cannot be right.

== The version says of what
$ jindou -V
jindou 0.[..]commit[..]
$ jindou --version
...
[..]commit[..]
...
$ for word in commit TLS profile 'store format'; do jindou --version | grep -q "$word" || echo no $word; done

== The help begins with what people do first
$ jindou --help | sed -n '/^Commands:/,$p' | grep -E '^  [a-z]' | head -4 | tr -s ' ' | cut -d' ' -f2
serve
load
query
shell
$ jindou --help | grep -ci in-memory
? 1
0
$ jindou --help
...
[..]Examples:[..]
...

== Short help names the long one, which has examples
$ for command in serve load query shell; do jindou $command -h > short; jindou $command --help > long; grep -A1 '^Examples:' long | grep -c '^  jindou '; grep -c "jindou $command --help" short; test $(grep -c '' short) -lt 40 && test $(grep -c '' short) -lt $(grep -c '' long) || echo too long; done
1
1
1
1
1
1
1
1

== Counts have their number, and nothing is not divided
$ : > none.nt; echo '<http://e/a> <http://e/p> <http://e/o> .' > one.nt
$ jindou load --quiet --store s none.nt
[..]0 quads[..]
$ jindou load --quiet --replace --store s none.nt | grep -c 'a quad'
? 1
0
$ jindou info --store s
...
[..]bytes, - a quad[..]
...
$ jindou load --quiet --into s one.nt
[..]1 quad added[..]
...
# As of now, though the base has nothing.
$ jindou info --store s
...
quads [..] 1 (0 in 0 named graphs)[..]
...
[..]<http://e/p>[..]
...
$ jindou info --json --store s 2> /dev/null | tr -d ' \n' | grep -o '"quads":1,\|"quads_in_files":0,\|"edges":1,' | sort -u
"edges":1,
"quads":1,
"quads_in_files":0,
$ jindou load --quiet --replace --store s one.nt
...
[..]1 quad ([..]
...

== A folder with nothing to load
-- file foreign/a.txt
x
$ mkdir empty; jindou load --quiet --store t empty
? fails
...
[..]nothing to load[..]
...
$ jindou load --quiet --store t foreign
? fails
...
[..]nothing to load[..]
...
$ jindou load --quiet --store t foreign 2>&1 | grep -c SPARQL
? 1
0

== A time that is none
$ jindou restore --from b --store s --at garbage
? fails
...
[..]garbage[..]not a time[..]2026-11-22T07:42:15Z[..]
...

== A file that is not there is named
$ jindou load --store s nope.nt
? fails
...
[..]nope.nt[..]
...

== A list of errors is for lenient loads
$ jindou load --store s --errors e x.nt
? fails
...
[..]--lenient[..]
...

== The values of an option are named
$ jindou query --store s --verify x 'ASK {}'
? fails
...
[..]eager[..]background[..]off[..]
...

== The option with a bad value is named
$ jindou serve --store s --port x
? fails
...
[..]--port[..]
...

== A lenient load says what it lost
$ seq 0 29 | sed 's/.*/<http:\/\/e\/s&> <http:\/\/e\/p> <relative> .\n<http:\/\/e\/s&> <http:\/\/e\/p> "&" ./' > bad.nt
$ jindou load --quiet --lenient --errors all.txt --store s bad.nt > out
...
[..]skipped 30 statements[..]all.txt[..]
...
$ jindou load --quiet --lenient --replace --store s bad.nt 2>&1 > out | grep -c '^  bad.nt:'
10
$ grep -c '^bad.nt' all.txt
30
$ jindou load --quiet --into s bad.nt --lenient 2> /dev/null | grep -c merged
? 1
0

== A large addition is merged at once
$ echo '<http://e/s> <http://e/p> "1" .' > one.nt; seq 0 11999 | sed 's/.*/<http:\/\/e\/t&> <http:\/\/e\/q> "&" ./' > many.nt
$ jindou load --quiet --store s one.nt > /dev/null; jindou load --quiet --into s many.nt
...
[..]12000 quads added[..]
[..]merged snapshot 1[..]
...
$ jindou info --store s | grep -c 'in the log'
? 1
0

== A reader that leaves ends a command quietly
$ seq 0 1999 | sed 's|.*|<http://e/s&> <http://e/p&> "&" .|' > many.nt; jindou load --quiet --store s many.nt > /dev/null
$ for args in 'info --store s --top 1000' 'query --store s --explain SELECT*{?s?p?o}' 'check --store s' 'peers list' 'backup --list --to s'; do
>   { sleep 0.2; jindou $args 2> err; echo $? > status; } | :
>   test "$(cat status)" = 0 && test ! -s err || echo "$args: $(cat status err)"
> done
