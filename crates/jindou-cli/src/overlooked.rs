//! Hints for answers that are empty because the data is in named graphs.

use jindou::oxrdf::Triple;
use jindou::results::{AnswerSink, RowText, Rows};
use jindou::{Database, GraphCounts, QueryOptions, QueryReport, Result, decode_term};

/// The sentence for a store whose quads are all in named graphs. `remedy` is the option with which queries see them.
pub fn sentence(counts: &GraphCounts, remedy: &str) -> String {
    format!("{counts}; query them with GRAPH ?g {{ … }} or with {remedy}")
}

/// The sentence of [`sentence`] with a capital letter at its beginning.
pub fn capitalised(counts: &GraphCounts, remedy: &str) -> String {
    let text = sentence(counts, remedy);
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => text,
    }
}

/// Answers a query. Also returns a hint if the answer is empty because all data is in named graphs.
///
/// # Errors
/// The errors of [`Database::run`].
pub fn run(
    db: &Database,
    text: &str,
    options: &QueryOptions,
    sink: &mut dyn AnswerSink,
    remedy: &str,
) -> Result<(QueryReport, Option<String>)> {
    // An invalid query is reported by `db.run` below.
    let Some(counts) = db.overlooked_graphs(text, options).ok().flatten() else {
        return Ok((db.run(text, options, sink)?, None));
    };
    let mut watched = ContentCheck {
        inner: sink,
        says_something: false,
    };
    let report = db.run(text, options, &mut watched)?;
    let said = (!watched.says_something).then(|| {
        let what = match report.rows {
            0 => "no rows, because the default graph is empty",
            _ => "the default graph is empty",
        };
        format!("{what}: {}", sentence(&counts, remedy))
    });
    Ok((report, said))
}

/// Passes an answer on to `inner`, and finds out whether it has content: a row with a value other than an aggregate of
/// no rows, `true` of an ASK query, or a triple.
struct ContentCheck<'s> {
    inner: &'s mut dyn AnswerSink,
    says_something: bool,
}

/// True if the value may be the result of an aggregate over no rows: unbound, 0 or an empty string.
fn is_of_nothing(cell: Option<&[u8]>) -> bool {
    let Some(cell) = cell else {
        return true;
    };
    match decode_term(cell) {
        Some(jindou::oxrdf::Term::Literal(l)) => l.value() == "0" || l.value().is_empty(),
        _ => false,
    }
}

impl AnswerSink for ContentCheck<'_> {
    fn solutions(&mut self, variables: &[String]) -> Result<()> {
        self.inner.solutions(variables)
    }

    fn rows(&mut self, rows: &Rows) -> Result<()> {
        if !self.says_something {
            self.says_something =
                (0..rows.rows).any(|r| rows.row(r).any(|cell| !is_of_nothing(cell)));
        }
        self.inner.rows(rows)
    }

    fn row_text(&self) -> Option<RowText> {
        // The values must be inspected, so rows are not delivered as text.
        None
    }

    fn raw(&mut self, text: &[u8], rows: u64) -> Result<()> {
        self.says_something |= rows > 0;
        self.inner.raw(text, rows)
    }

    fn boolean(&mut self, value: bool) -> Result<()> {
        self.says_something |= value;
        self.inner.boolean(value)
    }

    fn graph(&mut self) -> Result<()> {
        self.inner.graph()
    }

    fn triple(&mut self, triple: &Triple) -> Result<()> {
        self.says_something = true;
        self.inner.triple(triple)
    }

    fn finish(&mut self) -> Result<()> {
        self.inner.finish()
    }
}
