//! The structure of help texts: common tasks come first, and `-h` is short.

use clap::Command;

/// Options that `-h` lists; `--help` lists all. Commands that are not listed here have few options.
const SHORT: &[(&str, &[&str])] = &[
    (
        "serve",
        &[
            "at",
            "store",
            "host",
            "port",
            "writable",
            "token_file",
            "graphs",
            "timeout",
            "memory",
            "backup_to",
            "tls_cert",
            "tls_key",
        ],
    ),
    (
        "load",
        &[
            "store", "into", "files", "format", "graph", "lenient", "errors", "replace", "memory",
            "quiet",
        ],
    ),
    (
        "query",
        &[
            "store", "data", "endpoint", "text", "file", "format", "graphs", "all", "no_pager",
            "explain", "profile", "time", "timeout", "memory",
        ],
    ),
    (
        "shell",
        &[
            "at", "store", "endpoint", "write", "format", "graphs", "all", "no_pager", "limit",
            "timeout",
        ],
    ),
    (
        "update",
        &[
            "store",
            "text",
            "file",
            "timeout",
            "memory",
            "load_from",
            "json",
        ],
    ),
];

const FIRST: &str = "\
Examples:
  jindou query --data planets.ttl 'SELECT * { ?s ?p ?o }'   ask a file
  jindou load --store my.store planets.ttl moons.nq.gz      make a store
  jindou query --store my.store 'SELECT * { ?s ?p ?o }'     ask it
  jindou serve my.store                                     page and endpoint
  jindou serve new.store --writable                         begin with nothing
";

const EXAMPLES: &[(&str, &str)] = &[
    (
        "serve",
        "\
Examples:
  jindou serve my.store                 read-only, at http://127.0.0.1:7878
  jindou serve new.store --writable     takes uploads; made empty if need be
  jindou serve my.store --graphs all    patterns outside GRAPH read all graphs
  jindou serve my.store --host 0.0.0.0 --token-file tokens.txt
",
    ),
    (
        "load",
        "\
Examples:
  jindou load --store my.store planets.ttl moons.nq.gz   two files
  jindou load --store my.store --replace data/           a folder's files
  jindou load --into my.store more.ttl                   add to a store
  jindou load --store my.store --lenient dump.nt.bz2     skip bad statements
  cat d.ttl | jindou load --store my.store --format ttl -
",
    ),
    (
        "query",
        "\
Examples:
  jindou query --store my.store 'SELECT * { ?s ?p ?o } LIMIT 10'
  jindou query --store my.store -f larger.rq --format csv > larger.csv
  jindou query --data planets.ttl 'SELECT * { ?s ?p ?o }'
  jindou query --store my.store --graphs all 'ASK { ?s ?p \"Titan\"@en }'
  jindou query --endpoint https://example.org/sparql 'ASK { ?s ?p ?o }'
",
    ),
    (
        "shell",
        "\
Examples:
  jindou shell my.store
  jindou shell my.store --write
  jindou shell my.store < questions.rq
",
    ),
];

/// The command line with its examples, and with short lists of options for `-h`.
pub fn shaped(command: Command) -> Command {
    command.after_help(FIRST).mut_subcommands(|mut sub| {
        let name = sub.get_name().to_owned();
        let Some((_, short)) = SHORT.iter().find(|s| s.0 == name) else {
            return sub;
        };
        sub = sub.after_help(format!(
            "'jindou {name} --help' lists all options, with examples."
        ));
        if let Some((_, examples)) = EXAMPLES.iter().find(|e| e.0 == name) {
            sub = sub.after_long_help(*examples);
        }
        sub.mut_args(|arg| {
            let is_short = short.contains(&arg.get_id().as_str());
            arg.hide_short_help(!is_short)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Args;
    use clap::CommandFactory;

    #[test]
    fn short_lists_name_options_that_there_are() {
        let mut command = Args::command();
        command.build();
        for (name, short) in SHORT {
            let sub = command.find_subcommand(name).expect(name);
            for id in *short {
                let found = sub.get_arguments().any(|a| a.get_id() == id);
                assert!(found, "{name} has no {id}");
            }
        }
        for (name, _) in EXAMPLES {
            assert!(command.find_subcommand(name).is_some(), "{name}");
        }
    }
}
