//! The shell's own commands.

use super::session::{Next, RunMode, ShellSession};
use super::{ScriptOutcome, read, statement};
use crate::args::parse_prefix;
use crate::say::say;
use jindou::{Error, Result, ResultFormat};
use jindou_model::units::parse_duration;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Names of the commands, for completion.
pub const NAMES: &[&str] = &[
    ".all", ".exit", ".explain", ".format", ".graphs", ".help", ".limit", ".pager", ".prefix",
    ".profile", ".quit", ".read", ".timeout", ".timing",
];

const HELP: &str = "\
.help                 print this list (also: help)
.all [on|off]         show all rows of answers, in a pager, instead of the first 40
.explain QUERY        show the plan of a query, without running it
.profile QUERY        show the answer, and each step's rows, time and bytes
.format [FORMAT]      write answers as table, tsv, csv, json, ndjson, xml, nt, ttl, …; without one, as by default
.graphs [default|all] read the store's default graph, or the union of all graphs, in patterns outside GRAPH
.limit [ROWS|off]     show only so many rows
.pager [COMMAND|off]  show long answers page by page
.prefix               list the prefixes of the store and of this session
.prefix NAME IRI      declare a prefix
.read FILE            run the statements of a file
.timeout [TIME|off]   give up a query after this long
.timing [on|off]      show how long each statement took
.quit                 end the shell, as exit, quit and Ctrl-D do

Enter runs a complete query or update; a `;` after it is ignored. Alt-Enter begins another line of a complete one.
Tab completes keywords, prefixes, variables, and the store's predicates and classes. Ctrl-C cancels the running query.";

/// Maximum nesting of files that read other files with `.read`.
const DEEPEST: usize = 16;

fn wrong(message: impl Into<String>) -> Error {
    Error::Usage(message.into())
}

/// Runs a dot command.
pub fn run(session: &mut ShellSession, text: &str) -> Result<Next> {
    let text = statement::lone_word(text).unwrap_or(text);
    let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim();
    let value = (!rest.is_empty()).then_some(rest);
    match name {
        ".help" => say!("{HELP}"),
        ".quit" | ".exit" => return Ok(Next::Quit),
        ".explain" | ".profile" => {
            let how = if name == ".explain" {
                RunMode::Explain
            } else {
                RunMode::Profile
            };
            let query = statement::argument(text).filter(|q| !q.is_empty());
            let query = query.ok_or_else(|| wrong(format!("{name} needs a query")))?;
            session.query(query.strip_suffix(';').unwrap_or(query), how)?;
        }
        ".format" => {
            session.format = match value {
                None => None,
                Some(f) => Some(f.parse::<ResultFormat>().map_err(wrong)?),
            };
        }
        ".all" => session.all = switched(name, value, session.all)?,
        ".graphs" => session.set_graphs(value)?,
        ".limit" => {
            session.limit = match value {
                None | Some("off") => None,
                Some(n) => Some(n.parse().map_err(|_| {
                    wrong(format!(
                        "'{n}' is not a number of rows; write a number or off"
                    ))
                })?),
            };
        }
        ".pager" => {
            session.pager = match value {
                None => Some("less".into()),
                Some("off") => None,
                Some(command) => Some(command.into()),
            };
            session.all |= value.is_some_and(|v| v != "off");
        }
        ".prefix" => match value {
            None => {
                for (name, iri) in session.prefixes() {
                    say!("PREFIX {name}: <{iri}>");
                }
            }
            Some(both) => {
                let (name, iri) = parse_prefix(both).map_err(wrong)?;
                session.declare(name, iri);
            }
        },
        ".read" => {
            let file = value.ok_or_else(|| wrong(".read needs a file name"))?;
            return read_file(session, Path::new(file));
        }
        ".timeout" => {
            let limit = match value {
                None | Some("off") => None,
                Some(t) => Some(parse_duration(t).map_err(wrong)?),
            };
            session.set_timeout(limit)?;
        }
        ".timing" => session.timing = switched(name, value, session.timing)?,
        other => {
            let near = NAMES.iter().max_by(|a, b| {
                let near = |n: &str| strsim::jaro_winkler(other, n);
                near(a).total_cmp(&near(b))
            });
            let near = near.map_or("", |n| n);
            return Err(wrong(format!(
                "unknown command {other}; did you mean {near}? .help lists all commands"
            )));
        }
    }
    Ok(Next::GoOn)
}

/// The new state of a switch: `value` if it is given, otherwise the opposite of `now`.
fn switched(name: &str, value: Option<&str>, now: bool) -> Result<bool> {
    match value {
        None => Ok(!now),
        Some("on") => Ok(true),
        Some("off") => Ok(false),
        Some(other) => Err(wrong(format!("{name} takes on or off, not {other}"))),
    }
}

fn read_file(session: &mut ShellSession, path: &Path) -> Result<Next> {
    if session.depth == DEEPEST {
        return Err(wrong(format!(
            "{}: files .read one another in a circle",
            path.display()
        )));
    }
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    session.depth += 1;
    let outcome = read(session, BufReader::new(file), path);
    session.depth -= 1;
    match outcome? {
        ScriptOutcome::Good => Ok(Next::GoOn),
        ScriptOutcome::Quit => Ok(Next::Quit),
        ScriptOutcome::Failed => Err(wrong(format!(
            "{}: not all statements could be run",
            path.display()
        ))),
    }
}
