//! `jindou search`.

use super::{indexes, runtime};
use crate::args::{GraphChoice, SearchArgs, SearchFormat};
use crate::say::say;
use jindou::search::{Found, LabelOptions, Search as Asked, Searched};
use jindou::{Access, Database, DatasetChoice, OpenOptions, QueryOptions, Result};
use jindou_server::documents;
use std::process::ExitCode;
use std::time::Instant;

pub fn run(a: &SearchArgs) -> Result<ExitCode> {
    let options = OpenOptions::default()
        .with_access(Access::Read)
        .with_verify(a.verify.verify)
        .with_indexes(indexes()?)
        .with_runtime(runtime(None, a.memory));
    let db = Database::open_with(&a.store, &options)?;
    super::tell_copy(&a.store);
    let mut query = QueryOptions::default().with_union_default(a.graphs.map(GraphChoice::is_union));
    if !a.named_graphs.is_empty() {
        query.dataset = Some(DatasetChoice {
            default: a.named_graphs.clone(),
            named: Vec::new(),
        });
    }
    let mut labels = LabelOptions::default()
        .with_languages(a.languages.clone())
        .with_query(query);
    if !a.label_properties.is_empty() {
        labels = labels.with_properties(a.label_properties.clone());
    }
    let words = a.words.join(" ");
    let asked = Asked::new(&words)
        .with_limit(a.limit.into())
        .with_patience(a.timeout)
        .with_labels(labels);
    let begun = Instant::now();
    let searched = db.search(&asked)?;
    match a.format {
        SearchFormat::Json => say!("{:#}", documents::searched(&searched, begun.elapsed())),
        SearchFormat::Table => table(&searched),
    }
    Ok(ExitCode::SUCCESS)
}

/// Maximum number of characters of a label that are printed.
const WIDEST: usize = 50;

/// The text on one line, cut if it is long.
fn short(text: &str) -> String {
    let mut line: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(WIDEST + 1)
        .collect();
    if line.chars().count() > WIDEST {
        line = line.chars().take(WIDEST - 1).collect();
        line.push('…');
    }
    line
}

fn table(searched: &Searched) {
    let label = |f: &Found| short(f.label.as_ref().map_or(&f.matched, |l| &l.text));
    let width = |texts: Vec<usize>| texts.into_iter().max().unwrap_or(0).max(5);
    let found = &searched.found;
    let labels = width(found.iter().map(|f| label(f).chars().count()).collect());
    let iris = width(found.iter().map(|f| f.iri.chars().count()).collect());
    if !found.is_empty() {
        say!("{:<labels$}  {:<iris$}  class", "label", "IRI");
    }
    for f in found {
        let class = f.class.as_deref().unwrap_or("");
        let line = format!("{:<labels$}  {:<iris$}  {class}", label(f), f.iri);
        say!("{}", line.trim_end());
    }
    if found.is_empty() && searched.complete {
        say!("nothing has these words");
    }
    if !searched.complete {
        eprintln!("jindou: there may be more: the search ended before it had looked at everything");
        if !searched.indexed {
            eprintln!("jindou: {}", documents::NO_WORD_INDEX);
        }
    }
}
