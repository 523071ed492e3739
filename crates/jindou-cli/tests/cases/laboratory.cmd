# `generate`, `bench` and `peers` belong to a program next to this one, which gets their arguments as they are.

== Without the program, what builds it is named
$ cp "$(command -v jindou)" jindou; ./jindou bench lubm -n 1
? 1
...
[..]jindou-bench[..]
...
$ ./jindou bench lubm -n 1 2>&1 | grep -c 'cargo build'
1

== Arguments and status are passed on
$ cp "$(command -v jindou)" jindou; printf '#!/bin/sh\necho "$@"\nexit 7\n' > jindou-bench; chmod +x jindou-bench
$ ./jindou bench lubm -n 1 --help
? 7
lubm -n 1 --help
$ ./jindou peers list
? 7
peers list
$ ./jindou generate lubm -n 1 --config c
? 7
generate lubm -n 1 --config c

== Benchmarks name stores that are not there
$ for bench in updates merge 'live -n 1' stream operators; do
>   said=$(jindou bench $bench --store nope 2>&1 > /dev/null) && echo "$bench succeeds"
>   case $said in *SPARQL*|*panicked*) echo "$said" ;; *'no store at'*) ;; *) echo "$said" ;; esac
>   case $said in *nope*) ;; *) echo "$said" ;; esac
> done; ls

== Arguments are answered as those of other commands are
$ jindou generate lubm -n x
? fails
...
[..]--universities[..]
...
$ jindou bench papers --table 8
? fails
...
[..]table 8 needs[..]
...
$ { jindou generate lubm -n x; jindou bench papers --table 8; } 2>&1 | grep -c SPARQL
? 1
0

== Engines are where both names of the option say
$ for name in --engines --into; do jindou peers list $name here | grep -q oxigraph || echo no list; done
$ jindou peers list --help > help; grep -q -e --engines help && ! grep -e --into help
