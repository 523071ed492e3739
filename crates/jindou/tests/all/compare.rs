//! Comparison of answers as multisets of rows.

use jindou::{Answer, AnswerSink, Database, QueryOptions, results::Collector};

/// Runs a query with default options.
pub fn run(db: &Database, text: &str) -> Answer {
    let options = QueryOptions::default();
    let mut collector = Collector::new(db.runtime().memory().clone());
    let sink: &mut dyn AnswerSink = &mut collector;
    db.run(text, &options, sink)
        .unwrap_or_else(|e| panic!("{text}: {e}"));
    collector.into_answer()
}

/// The rows as sorted text, with columns sorted by name. Blank nodes are written without their labels.
pub fn bag(answer: &Answer) -> Vec<String> {
    let cell = |t: &oxrdf::Term| match t {
        oxrdf::Term::BlankNode(_) => "_:".to_owned(),
        t => t.to_string(),
    };
    let mut out: Vec<String> = match answer {
        Answer::Boolean(b) => vec![b.to_string()],
        Answer::Graph(g) => g
            .iter()
            .map(|t| {
                let s: oxrdf::Term = t.subject.clone().into();
                format!("{} {} {}", cell(&s), t.predicate, cell(&t.object))
            })
            .collect(),
        Answer::Solutions { variables, rows } => {
            let mut order: Vec<usize> = (0..variables.len()).collect();
            order.sort_by_key(|&i| &variables[i]);
            rows.iter()
                .map(|r| {
                    order
                        .iter()
                        .map(|&i| {
                            let value = r[i].as_ref().map_or("-".to_owned(), cell);
                            format!("{}={value} ", variables[i])
                        })
                        .collect()
                })
                .collect()
        }
    };
    out.sort();
    if matches!(answer, Answer::Graph(_)) {
        out.dedup();
    }
    out
}

/// Panics with the first difference, if two answers differ as multisets of rows.
pub fn assert_equal(name: &str, got: &Answer, want: &Answer) {
    let (got, want) = (bag(got), bag(want));
    if got != want {
        let at = got.iter().zip(&want).take_while(|(a, b)| a == b).count();
        panic!(
            "{name}: {} rows, wanted {}; first difference at {at}:\n  got  {:?}\n  want {:?}",
            got.len(),
            want.len(),
            got.get(at),
            want.get(at)
        );
    }
}
