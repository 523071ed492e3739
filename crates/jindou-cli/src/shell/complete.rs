//! Completion with Tab, and whether Enter ends a statement.

use super::session::{Session, Target};
use super::{dot, statement};
use jindou::results::Prefixes;
use rustyline::completion::{Completer, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper};
use std::collections::BTreeSet;

/// Predicates and classes that are completed: the most frequent ones.
const TERMS: usize = 5_000;
/// Most proposals for one word.
const MOST: usize = 200;

const KEYWORDS: &[&str] = &[
    "ABS",
    "ADD",
    "ALL",
    "ASC",
    "ASK",
    "AVG",
    "BASE",
    "BIND",
    "BNODE",
    "BOUND",
    "BY",
    "CEIL",
    "CLEAR",
    "COALESCE",
    "CONCAT",
    "CONSTRUCT",
    "CONTAINS",
    "COPY",
    "COUNT",
    "CREATE",
    "DATATYPE",
    "DAY",
    "DEFAULT",
    "DELETE",
    "DELETE DATA",
    "DELETE WHERE",
    "DESC",
    "DESCRIBE",
    "DISTINCT",
    "DROP",
    "ENCODE_FOR_URI",
    "EXISTS",
    "FILTER",
    "FILTER NOT EXISTS",
    "FLOOR",
    "FROM",
    "FROM NAMED",
    "GRAPH",
    "GROUP BY",
    "GROUP_CONCAT",
    "HAVING",
    "HOURS",
    "IF",
    "IN",
    "INSERT",
    "INSERT DATA",
    "INTO",
    "IRI",
    "LANG",
    "LANGMATCHES",
    "LCASE",
    "LIMIT",
    "LOAD",
    "MAX",
    "MD5",
    "MIN",
    "MINUS",
    "MINUTES",
    "MONTH",
    "MOVE",
    "NAMED",
    "NOT",
    "NOT EXISTS",
    "NOW",
    "OFFSET",
    "OPTIONAL",
    "ORDER BY",
    "PREFIX",
    "RAND",
    "REDUCED",
    "REGEX",
    "REPLACE",
    "ROUND",
    "SAMPLE",
    "SECONDS",
    "SELECT",
    "SEPARATOR",
    "SERVICE",
    "SHA1",
    "SHA256",
    "SHA512",
    "SILENT",
    "STR",
    "STRAFTER",
    "STRBEFORE",
    "STRDT",
    "STRENDS",
    "STRLANG",
    "STRLEN",
    "STRSTARTS",
    "STRUUID",
    "SUBSTR",
    "SUM",
    "TIMEZONE",
    "TO",
    "TZ",
    "UCASE",
    "UNDEF",
    "UNION",
    "URI",
    "USING",
    "UUID",
    "VALUES",
    "WHERE",
    "WITH",
    "YEAR",
    "isBlank",
    "isIRI",
    "isLiteral",
    "isNumeric",
    "sameTerm",
    "true",
    "false",
];

/// Completes and validates what is typed.
pub struct Assistant {
    prefixes: Prefixes,
    /// IRIs of predicates and classes.
    iris: Vec<String>,
    /// The same by their prefixes.
    names: BTreeSet<String>,
}

impl Assistant {
    pub fn new(session: &Session) -> Self {
        let mut iris = vec![];
        if let Target::Store(db) = &session.target {
            let summary = db.summary();
            let both = summary.predicates.into_iter().take(TERMS);
            iris = both
                .chain(summary.classes.into_iter().take(TERMS))
                .map(|t| t.0)
                .collect();
        }
        let mut this = Self {
            prefixes: Prefixes::new(),
            iris,
            names: BTreeSet::new(),
        };
        this.learn(session);
        this
    }

    /// Takes over the prefixes of a session.
    pub fn learn(&mut self, session: &Session) {
        let prefixes = session.names();
        if prefixes == self.prefixes {
            return;
        }
        self.names = self
            .iris
            .iter()
            .filter_map(|i| prefixes.shorten(i))
            .collect();
        self.prefixes = prefixes;
    }

    /// Where the word before the cursor begins, and what it can become.
    fn proposals(&self, line: &str, at: usize) -> (usize, Vec<String>) {
        let before = &line[..at];
        let part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | ':' | '?' | '$' | '.');
        let iri = before
            .rfind('<')
            .filter(|s| !before[*s..].contains(['>', ' ', '\n']));
        let start = iri.unwrap_or_else(|| {
            let end = before.char_indices().rev().find(|(_, c)| !part(*c));
            end.map_or(0, |(i, c)| i + c.len_utf8())
        });
        let word = &before[start..];
        let found: Vec<String> = if iri.is_some() {
            let all = self.iris.iter().map(|i| format!("<{i}>"));
            all.filter(|i| i.starts_with(word)).collect()
        } else if word.starts_with('.') && before[..start].trim().is_empty() {
            let all = dot::NAMES.iter().filter(|n| n.starts_with(word));
            all.map(|n| format!("{n} ")).collect()
        } else if word.starts_with(['?', '$']) {
            variables(line, start)
                .filter(|v| v.starts_with(word))
                .collect()
        } else if word.contains(':') {
            let mut prefixes = self.prefixes.clone();
            prefixes.declare_of(line);
            let own = self.iris.iter().filter_map(|i| prefixes.shorten(i));
            let all: BTreeSet<String> = self.names.iter().cloned().chain(own).collect();
            all.into_iter().filter(|n| n.starts_with(word)).collect()
        } else if word.is_empty() {
            vec![]
        } else {
            let upper = word.to_uppercase();
            let lower = word.chars().all(|c| !c.is_uppercase());
            let words = KEYWORDS
                .iter()
                .filter(|k| k.to_uppercase().starts_with(&upper));
            // As it was begun: in small letters or as everyone writes it.
            let words = words.map(|k| {
                if lower {
                    k.to_lowercase()
                } else {
                    (*k).to_owned()
                }
            });
            let mut all: Vec<String> = words.collect();
            let mut prefixes = self.prefixes.clone();
            prefixes.declare_of(line);
            let names = prefixes.iter().filter(|p| p.0.starts_with(word));
            let mut names: Vec<String> = names.map(|p| format!("{}:", p.0)).collect();
            names.sort();
            all.extend(names);
            all
        };
        (start, found.into_iter().take(MOST).collect())
    }
}

/// The variables of a text, the word at `except` aside.
fn variables(text: &str, except: usize) -> impl Iterator<Item = String> {
    let marks = text
        .match_indices(['?', '$'])
        .filter(move |(at, _)| *at != except);
    let all: BTreeSet<String> = marks
        .map(|(at, mark)| {
            let name = |c: &char| c.is_alphanumeric() || *c == '_';
            let name: String = text[at + 1..].chars().take_while(name).collect();
            format!("{mark}{name}")
        })
        .filter(|v| v.len() > 1)
        .collect();
    all.into_iter()
}

impl Completer for Assistant {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, found) = self.proposals(line, at);
        let pairs = found.into_iter().map(|word| Pair {
            display: word.clone(),
            replacement: word,
        });
        Ok((start, pairs.collect()))
    }
}

impl Validator for Assistant {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let text = context.input();
        // An empty line ends whatever was typed: no one is caught in a statement.
        let gives_up = text.contains('\n')
            && text
                .rsplit('\n')
                .next()
                .is_some_and(|l| l.trim().is_empty());
        Ok(match gives_up || statement::is_whole(text) {
            true => ValidationResult::Valid(None),
            false => ValidationResult::Incomplete,
        })
    }
}

impl Highlighter for Assistant {}

impl Hinter for Assistant {
    type Hint = String;
}

impl Helper for Assistant {}

#[cfg(test)]
mod tests {
    use super::*;

    fn assistant() -> Assistant {
        let prefixes = Prefixes::common();
        let iris = [
            "http://xmlns.com/foaf/0.1/name",
            "http://xmlns.com/foaf/0.1/nick",
            "http://e/p",
        ];
        Assistant {
            names: iris.iter().filter_map(|i| prefixes.shorten(i)).collect(),
            iris: iris.map(str::to_owned).to_vec(),
            prefixes,
        }
    }

    #[test]
    fn words_are_completed_by_what_they_are() {
        let a = assistant();
        for (line, start, some) in [
            ("SEL", 0, vec!["SELECT"]),
            ("select * { ?s fil", 14, vec!["filter", "filter not exists"]),
            ("SELECT * { ?s foaf:n", 14, vec!["foaf:name", "foaf:nick"]),
            ("PREFIX : <http://e/> ASK { ?s :", 30, vec![":p"]),
            ("SELECT ?name ?n { ?s ?p ?na", 24, vec!["?name"]),
            ("SELECT * { ?s <http://e", 14, vec!["<http://e/p>"]),
            (".ti", 0, vec![".timeout ", ".timing "]),
            ("SELECT * { ?s sko", 14, vec!["skos:", "skosxl:"]),
            ("SELECT * { ", 11, vec![]),
        ] {
            let (at, found) = a.proposals(line, line.len());
            assert_eq!(at, start, "{line}");
            assert_eq!(found, some, "{line}");
        }
        let (_, found) = a.proposals("SELECT * { ?s ?p 'é' } ", "SELECT * { ?s ?p 'é".len());
        assert!(found.is_empty());
    }
}
