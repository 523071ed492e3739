# Places that are not there are named and not made.
unchanged

== jindou query --store nope
$ jindou query --store nope 'ASK {}'
? fails
[..]no store at nope[..]

== jindou update --store nope
$ jindou update --store nope 'CLEAR ALL'
? fails
[..]no store at nope[..]

== jindou info --store nope
$ jindou info --store nope
? fails
[..]no store at nope[..]

== jindou check --store nope
$ jindou check --store nope
? fails
[..]no store at nope[..]

== jindou merge --store nope
$ jindou merge --store nope
? fails
[..]no store at nope[..]

== jindou recluster --store nope
$ jindou recluster --store nope
? fails
[..]no store at nope[..]

== jindou serve --store nope
$ jindou serve --store nope
? fails
[..]no store at nope[..]

== jindou backup --store nope --to b
$ jindou backup --store nope --to b
? fails
[..]no store at nope[..]

== jindou backup --list --to nope
$ jindou backup --list --to nope
? fails
[..]no backup folder at nope[..]

== jindou restore --from nope --store s
$ jindou restore --from nope --store s
? fails
[..]no backup folder at nope[..]

