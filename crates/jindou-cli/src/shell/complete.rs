//! Completion with Tab, by the engine that also serves the web page's editor, and the check whether Enter ends a
//! statement.

use super::session::{ShellSession, ShellTarget};
use super::{dot, statement};
use jindou::complete::{self as engine, Item, Kind, Request};
use jindou::{Database, QueryOptions};
use rustyline::completion::{Completer, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper};

/// Maximum number of proposals for a word. For more, the terminal would ask before listing them.
const MOST: usize = 100;

/// Maximum number of characters of a label that are shown.
const LONGEST: usize = 40;

/// Completes words, and decides whether the typed text is a complete statement.
pub struct Assistant {
    engine: engine::Completer,
    /// The session's prefixes and default graph.
    options: QueryOptions,
}

/// A proposal: a text that can replace the word before the cursor.
struct Proposal {
    text: String,
    /// The label of the resource, if the word was found in the label.
    label: Option<String>,
}

impl Proposal {
    /// The proposal as it is listed among several.
    fn display(&self) -> String {
        match &self.label {
            Some(label) => {
                let mut label = label.replace(|c: char| c.is_control(), " ");
                if let Some((end, _)) = label.char_indices().nth(LONGEST) {
                    label.truncate(end);
                    label.push('…');
                }
                format!("{} ({label})", self.text)
            }
            None => self.text.clone(),
        }
    }
}

impl Assistant {
    pub fn new(session: &ShellSession) -> Self {
        let db = match &session.target {
            ShellTarget::Store(db) => db.clone(),
            // The data of an endpoint is not known here, but keywords, prefixes and variables can be completed.
            ShellTarget::Endpoint(..) => Database::in_memory(),
        };
        Self {
            engine: engine::Completer::new(db),
            options: session.completion_options(),
        }
    }

    /// Takes over the session's prefixes and default graph.
    pub fn learn(&mut self, session: &ShellSession) {
        self.options = session.completion_options();
    }

    /// The start of the word before the cursor, and its possible completions.
    fn proposals(&self, line: &str, at: usize) -> (usize, Vec<Proposal>) {
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
        // If the text is too long or the store is damaged, running the statement reports it.
        let Ok(found) = found else {
            return (at, vec![]);
        };
        let word = text.get(found.from..).unwrap_or_default();
        let all = found.items.into_iter();
        let proposal = |mut item: Item| {
            let label = item.label.take();
            let text = self.written(item, word)?;
            Some(Proposal { text, label })
        };
        let all = all.filter_map(proposal);
        // The terminal completes the word to the common beginning of all proposals. Proposals that only contain the
        // word would have another beginning, so they are offered only if there are no others.
        let begins = |p: &Proposal| {
            let beginning = p.text.get(..word.len());
            beginning.is_some_and(|b| b.eq_ignore_ascii_case(word))
        };
        let (near, far): (Vec<_>, Vec<_>) = all.into_iter().partition(begins);
        (begin + found.from, if near.is_empty() { far } else { near })
    }

    /// The text for an item in the shell's statements; `None` if it cannot be written there.
    fn written(&self, item: Item, word: &str) -> Option<String> {
        // Keywords are proposed in lower case if the user began the word in lower case.
        let lower = !word.is_empty() && !word.contains(char::is_uppercase);
        if lower && matches!(item.kind, Kind::Keyword | Kind::Function) {
            return Some(item.text.to_lowercase());
        }
        if item.declare.is_none() || self.options.common_prefixes {
            return Some(item.text);
        }
        // The web page would add a declaration of the prefix. The shell cannot, so the full IRI is proposed.
        let is_name = !matches!(item.kind, Kind::Prefix | Kind::Literal);
        item.iri.filter(|_| is_name).map(|iri| format!("<{iri}>"))
    }
}

/// The start of a dot command, and the names that complete it.
fn commands(before: &str) -> (usize, Vec<Proposal>) {
    let word = before.trim_start();
    let all = dot::NAMES.iter().filter(|n| n.starts_with(word));
    let proposal = |n: &&str| Proposal {
        text: format!("{n} "),
        label: None,
    };
    (before.len() - word.len(), all.map(proposal).collect())
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
        let pairs = found.into_iter().map(|p| Pair {
            display: p.display(),
            replacement: p.text,
        });
        Ok((start, pairs.collect()))
    }
}

impl Validator for Assistant {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let text = context.input();
        // An empty line ends any statement, so that users can always leave one.
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

    /// The start of the word at the end of a line, and its completions as they are listed.
    fn proposals(a: &Assistant, line: &str) -> (usize, Vec<String>) {
        let (at, found) = a.proposals(line, line.len());
        (at, found.iter().map(Proposal::display).collect())
    }

    #[test]
    fn words_are_completed_by_labels() {
        let db = Database::in_memory();
        let data = "PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> PREFIX wdt: <http://www.wikidata.org/prop/direct/> \
            INSERT DATA { <http://e/s> wdt:P31 <http://e/o> . wdt:P31 rdfs:label 'instance of'@en }";
        db.update(data, &UpdateOptions::default()).unwrap();
        let a = Assistant {
            engine: engine::Completer::new(db),
            options: QueryOptions::default(),
        };
        let line = "SELECT * { ?x instance";
        assert_eq!(
            proposals(&a, line),
            (14, vec!["wdt:P31 (instance of)".into()])
        );
        assert_eq!(a.proposals(line, line.len()).1[0].text, "wdt:P31");
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
            // No name begins with this word, so names that contain it are proposed.
            ("SELECT * { ?s ick", 14, vec!["foaf:nick"]),
            ("SELECT * { ?s <http://e/p> ", 27, vec!["<http://e/o>"]),
            ("SELECT * { ?s sko", 14, vec!["skos:", "skosxl:"]),
            // After `;` the subject is the same, so predicates of such subjects are proposed.
            (
                "SELECT * { ?s foaf:name 'n' ; foaf:ni",
                30,
                vec!["foaf:nick"],
            ),
            (".ti", 0, vec![".timeout ", ".timing "]),
            (".explain SELECT * { ?s foaf:ni", 23, vec!["foaf:nick"]),
            (".read foaf:ni", 0, vec![]),
        ] {
            let (at, found) = proposals(&a, line);
            assert_eq!(at, start, "{line}");
            assert_eq!(found, some, "{line}");
        }
        let (at, mut found) = proposals(&a, "SELECT * { ?s foaf:name 'n' ; ");
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
        let of = |line: &str| proposals(&a, line).1;
        assert_eq!(of("SELECT * { ?s ex:"), ["ex:p"]);
        assert_eq!(of("SELECT * { ?s e"), ["ex:p", "ex:"]);
        assert_eq!(of("SELECT * { ?s ni"), ["<http://xmlns.com/foaf/0.1/nick>"]);
        assert!(of("SELECT * { ?s sko").is_empty());
    }
}
