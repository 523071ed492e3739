//! Examples at the end of help texts.

/// Examples of the whole command.
pub const FIRST: &str = "\
Examples:
  jindou query --data planets.ttl 'SELECT * { ?s ?p ?o }'   ask a file
  jindou load --store my.store planets.ttl moons.nq.gz      make a store
  jindou query --store my.store 'SELECT * { ?s ?p ?o }'     ask it
  jindou serve my.store                                     page and endpoint
  jindou serve new.store --writable                         begin with nothing
";

/// Examples of each command: its name, and indented lines.
const OF_COMMANDS: &str = "\
serve
  jindou serve my.store                 read-only, at http://127.0.0.1:7878
  jindou serve new.store --writable     takes uploads; made empty if need be
  jindou serve my.store --graphs all    patterns outside GRAPH read all graphs
  jindou serve my.store --host 0.0.0.0 --token-file tokens.txt

load
  jindou load --store my.store planets.ttl moons.nq.gz   two files
  jindou load --store my.store --replace data/           a folder's files
  jindou load --into my.store more.ttl                   add to a store
  jindou load --store my.store --lenient dump.nt.bz2     skip bad statements
  cat d.ttl | jindou load --store my.store --format ttl -

query
  jindou query --store my.store 'SELECT * { ?s ?p ?o } LIMIT 10'
  jindou query --store my.store -f larger.rq --format csv > larger.csv
  jindou query --data planets.ttl 'SELECT * { ?s ?p ?o }'
  jindou query --store my.store --graphs all 'ASK { ?s ?p \"Titan\"@en }'
  jindou query --endpoint https://example.org/sparql 'ASK { ?s ?p ?o }'

shell
  jindou shell my.store
  jindou shell my.store --write
  jindou shell my.store < questions.rq

search
  jindou search --store my.store new york
  jindou search --store my.store --graphs all --lang de,en --format json saturn

update
  jindou update --store my.store 'INSERT DATA { <http://e/a> <http://e/b> 1 }'
  jindou update --store my.store -f changes.ru
  jindou update --endpoint http://127.0.0.1:7878/update 'CLEAR DEFAULT'

check
  jindou check --store my.store && echo undamaged

info
  jindou info --store my.store
  jindou info --store my.store --json

prefixes
  jindou prefixes --store my.store
  jindou prefixes --store my.store set ex http://example.org/
  jindou prefixes --store my.store remove ex

dump
  jindou dump --store my.store --out all.nq.gz
  jindou dump --store my.store --default-graph --out default.ttl
  jindou dump --store my.store --graph http://example.org/g --to nt | wc -l

convert
  jindou convert planets.ttl --out planets.nt.gz
  jindou convert --check dump.nt.bz2

backup
  jindou backup --store my.store --to backups
  jindou backup --list --to backups

restore
  jindou restore --from backups --store restored.store
  jindou restore --from backups --store older.store --at 2026-11-22T07:42:15Z
  jindou restore --from s3://my-bucket/graph --store before.store --at 2026-11-22T07:42:15Z

merge
  jindou merge --store my.store

recluster
  jindou recluster --store my.store
  jindou recluster --store my.store --text     adds an index of words

health
  jindou health && echo ready
  jindou health http://127.0.0.1:7879

settings
  JINDOU_STORE=my.store jindou settings
  jindou settings --all

completions
  jindou completions bash > ~/.local/share/bash-completion/completions/jindou

man
  jindou man ~/.local/share/man/man1";

/// The commands that have examples, each with the text that is shown after its options.
pub fn of_commands() -> impl Iterator<Item = (&'static str, String)> {
    OF_COMMANDS.split("\n\n").filter_map(|section| {
        let (name, lines) = section.split_once('\n')?;
        Some((name, format!("Examples:\n{lines}\n")))
    })
}
