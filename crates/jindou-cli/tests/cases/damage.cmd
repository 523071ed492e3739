# Files of a store that are cut, lost or changed; two writers; signals; and a line that does not fit into memory.
-- file head.ttl
@prefix : <http://e/> .
:a :p :b ; :q "x\ty"@en . :b :p :c .
-- file flip.sh
at=$(($(stat -c %s $1) / 2))
byte=$(od -An -tu1 -j $at -N 1 $1 | tr -d ' ')
printf %b "\\0$(printf %03o $((byte ^ 1)))" | dd of=$1 bs=1 seek=$at conv=notrunc status=none
-- file names.sh
jindou query --store store 'ASK {}' 2> err
test $? = 1 && test $(grep -c '' err) = 1 && grep -q "^jindou: .*$1" err || echo "$1: $(cat err)"
$ seq 0 399 | sed 's/.*/:s& :n & ./' | cat head.ttl - > data.ttl
$ jindou load --quiet --store store data.ttl
...

== Files that are cut or lost are named
$ ls store | grep '\.jd$' | grep -v checksums > files; test $(grep -c . files) -gt 2
$ while read file; do
>   cp store/$file good; head -c $(($(stat -c %s good) / 2)) good > store/$file; sh names.sh $file
>   rm store/$file; sh names.sh $file
>   cp good store/$file
> done < files
$ jindou query --store store 'ASK {}'
true

== The file in which a bit changed is named
$ sh flip.sh store/segments-in.jd; jindou check --store store 2> /dev/null
? 2
...
[..]segments-in.jd[..]
...

== The merged file in which a bit changed is named
$ jindou update --store store 'INSERT DATA { <http://e/a> <http://e/late> "late" }' && jindou merge --store store
...
$ sh flip.sh store/g1-segments-out.jd; jindou check --store store 2> /dev/null
? 2
...
[..]g1-segments-out.jd[..]
...

== The log of updates is checked
$ jindou check --store store > before 2> /dev/null
$ jindou update --store store 'INSERT DATA { <http://e/a> <http://e/late> "a long enough text to hit" }'
...
$ jindou check --store store > after 2> /dev/null
$ cmp -s before after
? 1
$ grep -l 'long enough' store/log/* | head -1 | xargs basename > name
$ LC_ALL=C sed -i 's/long enough/long dnough/' store/log/$(cat name); jindou check --store store > out 2> /dev/null
? 2
$ grep -qFf name out
# The store is refused, since without the lost data answers would be wrong.
$ jindou query --store store 'ASK {}' 2> err
? 1
$ grep -qFf name err

== Ctrl-C ends a query with its own status
$ timeout --foreground --preserve-status -s INT 1 jindou query --store store 'PREFIX : <http://e/> SELECT * { ?a :n ?b . ?c :n ?d . ?e :n ?f . ?g :n ?h . ?i :n ?j }' > /dev/null
? 130
jindou: [..]cancelled[..]
...
$ timeout --foreground --preserve-status -s INT 1 jindou query --store store 'PREFIX : <http://e/> SELECT * { ?a :n ?b . ?c :n ?d . ?e :n ?f . ?g :n ?h . ?i :n ?j BIND(STR(?a) AS ?k) FILTER(?k = "") }' > /dev/null
? 130
jindou: [..]cancelled[..]
...

== Two writers of one store
$ head -2 head.ttl > a.ttl; mkfifo input
# The first writer waits for standard input, and holds the store's lock meanwhile.
$ jindou load --quiet --format nt --store new - < input > /dev/null 2>&1 & exec 3> input; sleep 1; jindou load --quiet --store new a.ttl 3>&-; echo $?; exec 3>&-; wait $!; echo $?
1
0
jindou: [..]another process is writing the store[..]

== A line that memory has no room for is refused
$ { printf '<http://e/a> <http://e/p> "'; head -c 50331648 /dev/zero | tr '\0' x; echo '" .'; } > long.nt
$ jindou load --quiet --memory 2G --replace --store store long.nt > /dev/null
$ jindou load --quiet --memory 128M --replace --store store long.nt 2> err
? 1
$ grep -c '' err; grep -c '^jindou: .*long.nt' err; grep -c 'MiB and has not ended yet' err
1
1
1
# The store from before the failed load is still there.
$ jindou query --store store --format csv 'SELECT (COUNT(*) AS ?n) { ?s ?p ?o }'
n
1
