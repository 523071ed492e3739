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
