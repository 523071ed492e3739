//! Advice on command lines that cannot be parsed: the most likely intention.

use clap::ArgMatches;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use jindou::{Error, Result};
use std::ffi::OsString;
use std::path::Path;

/// Names that other programs use for commands of this one.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("ask", "query"),
    ("browse", "serve"),
    ("console", "shell"),
    ("create", "load"),
    ("delete", "update"),
    ("endpoint", "serve"),
    ("export", "dump"),
    ("http", "serve"),
    ("import", "load"),
    ("index", "load"),
    ("insert", "update"),
    ("open", "shell"),
    ("repl", "shell"),
    ("rq", "query"),
    ("run", "serve"),
    ("select", "query"),
    ("server", "serve"),
    ("sparql", "query"),
    ("start", "serve"),
    ("stats", "info"),
    ("validate", "convert --check"),
    ("verify", "check"),
    ("version", "--version"),
];

/// The error with a tip, if the command line contains a common mistake.
pub fn advised(mut e: clap::Error, arguments: &[OsString]) -> clap::Error {
    let text = |kind| match e.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        _ => String::new(),
    };
    let tip = match e.kind() {
        ErrorKind::InvalidSubcommand => {
            let name = text(ContextKind::InvalidSubcommand).to_lowercase();
            let found = OTHER_NAMES.iter().find(|(other, _)| *other == name);
            found
                .map(|(_, command)| format!("here that is jindou {command}"))
                .or_else(|| file(arguments))
        }
        ErrorKind::UnknownArgument => store_before_query(arguments)
            .or_else(|| option(arguments, &text(ContextKind::InvalidArg))),
        _ => None,
    };
    if let Some(tip) = tip {
        e.remove(ContextKind::SuggestedSubcommand);
        e.remove(ContextKind::SuggestedArg);
        let tip = ContextValue::StyledStrs(vec![StyledStr::from(tip)]);
        e.insert(ContextKind::Suggested, tip);
    }
    e
}

/// The commands that a user may have meant who gave a file or a folder in place of a command.
fn file(arguments: &[OsString]) -> Option<String> {
    let path = Path::new(arguments.get(1)?);
    let name = path.display();
    match (path.is_dir(), path.is_file()) {
        (true, _) => Some(format!("jindou serve {name}")),
        (_, true) => Some(format!("jindou query --data {name} 'SELECT …'")),
        _ => None,
    }
}

/// Options of other commands or programs, and the ones to use instead.
const OTHER_OPTIONS: &[(&str, &str, &str)] = &[
    (
        "dump",
        "--format",
        "the format to write is named by --to FORMAT, or by the extension of --out FILE",
    ),
    (
        "dump",
        "--limit",
        "a dump has all statements; for some of them: jindou query STORE 'CONSTRUCT WHERE { ?s ?p ?o } LIMIT 3'",
    ),
    (
        "convert",
        "--format",
        "--to FORMAT is the format to write, and --from FORMAT that of the files",
    ),
    (
        "query",
        "--limit",
        "write it into the query, as in 'SELECT … LIMIT 3'",
    ),
    (
        "load",
        "--from",
        "files are named without an option; their format is --format FORMAT",
    ),
    (
        "load",
        "--source",
        "generated data comes through a pipe: jindou generate lubm -n 5 | jindou load --store DIR --format nt -",
    ),
    (
        "load",
        "--to-format",
        "a store has no format; --format FORMAT is that of the files",
    ),
    ("serve", "--cluster", OVER_A_LOG),
    ("serve", "--server", OVER_A_LOG),
];

/// In place of the cluster file that earlier versions had.
const OVER_A_LOG: &str = "there is no cluster file any more: servers with some shards of a store follow a log, as in jindou serve \
                          --store DIR --log PLACE --name NAME --peer-address HOST:PORT --shards 0,1 (docs/replicas.md)";

fn option(arguments: &[OsString], given: &str) -> Option<String> {
    let command = arguments.get(1)?;
    let name = given.split([' ', '=']).next()?;
    let found = OTHER_OPTIONS
        .iter()
        .find(|(of, option, _)| command == of && *option == name);
    found.map(|(_, _, instead)| (*instead).to_owned())
}

/// Advice for `jindou update my.store 'INSERT …'`, in which the store needs an option.
fn store_before_query(arguments: &[OsString]) -> Option<String> {
    let command = arguments.get(1)?;
    let store = arguments.get(2).filter(|a| Path::new(a).is_dir())?;
    (command == "update").then(|| {
        format!(
            "a store is named with --store: jindou update --store {} …",
            Path::new(store).display()
        )
    })
}

/// Checks that the command line names only one source to query or to serve.
///
/// # Errors
/// [`Error::Usage`] if it names two.
pub fn named_twice(command: &str, given: &ArgMatches) -> Result<()> {
    let is_given = |id: &str| {
        let known = given.try_contains_id(id).unwrap_or(false);
        known && given.value_source(id) == Some(ValueSource::CommandLine)
    };
    let twice = |other: &str| {
        Err(Error::Usage(format!(
            "both {other} and --store name what to {command}; use one of them"
        )))
    };
    match command {
        "serve" | "shell" | "info" | "dump" if is_given("at") && is_given("store") => {
            twice("STORE")
        }
        "query" if is_given("text") => {
            let words = given.get_many::<String>("text").map_or(0, |w| w.len());
            let is_placed = words + usize::from(is_given("file")) > 1;
            let other = ["store", "data", "endpoint"]
                .into_iter()
                .find(|id| is_given(id));
            match other {
                Some(id) if is_placed => Err(Error::Usage(format!(
                    "both STORE and --{id} name what to query; use one of them"
                ))),
                _ if is_given("data") && is_given("store") => twice("--data"),
                _ => Ok(()),
            }
        }
        "query" if is_given("data") && is_given("store") => twice("--data"),
        _ => Ok(()),
    }
}
