//! Completion with Tab, by the same engine as the page's editor, and the test if Enter ends a statement.

use super::session::{ShellSession, ShellTarget};
use super::{dot, statement};
use jindou::complete::{self as engine, Item, Kind, Request};
use jindou::{Database, QueryOptions};
use rustyline::completion::{Completer, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper};

/// Most proposals for one word: as many as the terminal lists without asking first.
const MOST: usize = 100;

/// Completes and validates the input line.
pub struct Assistant {
    engine: engine::Completer,
    /// Prefixes and default graph of the session's statements.
    options: QueryOptions,
}

impl Assistant {
    pub fn new(session: &ShellSession) -> Self {
        let db = match &session.target {
            ShellTarget::Store(db) => db.clone(),
            // An endpoint's data is not known here, but keywords, prefixes and variables are.
            ShellTarget::Endpoint(..) => Database::in_memory(),
        };
        Self {
            engine: engine::Completer::new(db),
            options: session.completion_options(),
        }
    }

    /// Adopts the prefixes of a session.
    pub fn learn(&mut self, session: &ShellSession) {
        self.options = session.completion_options();
    }

    /// The beginning of the word before the cursor, and its possible completions.
    fn proposals(&self, line: &str, at: usize) -> (usize, Vec<String>) {
        let (before, after) = line.split_at(at);
        let mut begin = 0;
        if before.trim_start().starts_with('.') {
            match statement::argument(before) {
                Some(query) => begin = before.len() - query.len(),
                None => return commands(before),
            }
        }
        let text = &before[begin..];
        let found = self.engine.complete(&Request {
            limit: MOST,
            options: self.options.clone(),
            ..Request::new(text, after)
        });
        // The text is too long, or the store is damaged: statements report that.
        let Ok(found) = found else {
            return (at, vec![]);
        };
        let word = text.get(found.from..).unwrap_or_default();
        let all = found.items.into_iter();
        let all: Vec<String> = all.filter_map(|item| self.written(item, word)).collect();
        // The terminal completes the common beginning of all proposals. Proposals that only contain the word would
        // prevent that.
        let begins = |p: &String| {
            let beginning = p.get(..word.len());
            beginning.is_some_and(|b| b.eq_ignore_ascii_case(word))
        };
        let (near, far): (Vec<_>, Vec<_>) = all.into_iter().partition(begins);
        (begin + found.from, if near.is_empty() { far } else { near })
    }

    /// An item as it is written in the shell's statements, if that is possible.
    fn written(&self, item: Item, word: &str) -> Option<String> {
        // In lower case if the word began so.
        let lower = !word.is_empty() && !word.contains(char::is_uppercase);
        if lower && matches!(item.kind, Kind::Keyword | Kind::Function) {
            return Some(item.text.to_lowercase());
        }
        if item.declare.is_none() || self.options.common_prefixes {
            return Some(item.text);
        }
        // The page would declare the prefix; here it has to be known already.
        let is_name = !matches!(item.kind, Kind::Prefix | Kind::Literal);
        item.iri.filter(|_| is_name).map(|iri| format!("<{iri}>"))
    }
}

/// The beginning of a dot command, and the names that it may become.
fn commands(before: &str) -> (usize, Vec<String>) {
    let word = before.trim_start();
    let all = dot::NAMES.iter().filter(|n| n.starts_with(word));
    let all = all.map(|n| format!("{n} ")).collect();
    (before.len() - word.len(), all)
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
        // An empty line ends any statement, so that users are never stuck in one.
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
    use jindou::UpdateOptions;

    fn assistant(options: QueryOptions) -> Assistant {
        let db = Database::in_memory();
        let data = "PREFIX foaf: <http://xmlns.com/foaf/0.1/> \
            INSERT DATA { <http://e/s> foaf:name 'n' ; foaf:nick 'k' ; <http://e/p> <http://e/o> }";
        db.update(data, &UpdateOptions::default()).unwrap();
        Assistant {
            engine: engine::Completer::new(db),
            options,
        }
    }

    #[test]
    fn words_are_completed_by_their_place() {
        let a = assistant(QueryOptions::default().with_common_prefixes(true));
        for (line, start, some) in [
            ("SEL", 0, vec!["SELECT"]),
            (
                "select * { ?s ?p ?o . fil",
                22,
                vec!["filter", "filter exists", "filter not exists"],
            ),
            ("SELECT * { ?s foaf:n", 14, vec!["foaf:name", "foaf:nick"]),
            ("PREFIX : <http://e/> ASK { ?s :", 30, vec![":p"]),
            ("SELECT ?name ?n { ?s ?p ?na", 24, vec!["?name"]),
            ("SELECT * { ?s <http://e", 14, vec!["<http://e/p>"]),
            // A word that begins no name is completed by names that contain it.
            ("SELECT * { ?s ick", 14, vec!["foaf:nick"]),
            ("SELECT * { ?s <http://e/p> ", 27, vec!["<http://e/o>"]),
            ("SELECT * { ?s sko", 14, vec!["skos:", "skosxl:"]),
            // After a `;` the subject is known, and so are its predicates.
            (
                "SELECT * { ?s foaf:name 'n' ; foaf:ni",
                30,
                vec!["foaf:nick"],
            ),
            (".ti", 0, vec![".timeout ", ".timing "]),
            (".explain SELECT * { ?s foaf:ni", 23, vec!["foaf:nick"]),
            (".read foaf:ni", 0, vec![]),
        ] {
            let (at, found) = a.proposals(line, line.len());
            assert_eq!(at, start, "{line}");
            assert_eq!(found, some, "{line}");
        }
        let (at, mut found) = a.proposals("SELECT * { ?s foaf:name 'n' ; ", 30);
        found.sort();
        assert_eq!(at, 30);
        assert_eq!(found, ["<http://e/p>", "foaf:name", "foaf:nick"]);
        let (_, found) = a.proposals("SELECT * { ?s ?p 'é' } ", "SELECT * { ?s ?p 'é".len());
        assert!(found.is_empty());
    }

    #[test]
    fn names_are_written_as_the_session_can_read_them() {
        let own = vec![("ex".to_owned(), "http://e/".to_owned())];
        let a = assistant(
            QueryOptions::default()
                .with_prefixes(own)
                .with_common_prefixes(false)
                .with_store_prefixes(false),
        );
        let of = |line: &str| a.proposals(line, line.len()).1;
        assert_eq!(of("SELECT * { ?s ex:"), ["ex:p"]);
        assert_eq!(of("SELECT * { ?s e"), ["ex:p", "ex:"]);
        assert_eq!(of("SELECT * { ?s ni"), ["<http://xmlns.com/foaf/0.1/nick>"]);
        assert!(of("SELECT * { ?s sko").is_empty());
    }
}
