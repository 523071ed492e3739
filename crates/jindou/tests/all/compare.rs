//! Comparison of answers as multisets of rows.

use jindou::{Answer, AnswerSink, Database, QueryOptions, results::Collector};

/// Runs a query with default options.
pub fn run(db: &Database, text: &str) -> Answer {
    run_with(db, text, &QueryOptions::default())
}

pub fn run_with(db: &Database, text: &str, options: &QueryOptions) -> Answer {
    let mut collector = Collector::new(db.runtime().memory().clone());
    let sink: &mut dyn AnswerSink = &mut collector;
    db.run(text, options, sink)
        .unwrap_or_else(|e| panic!("{text}: {e}"));
    collector.into_answer()
}

/// Rounds `xsd:float` values to four digits, since a sum of floats depends on the order of its terms.
pub fn round_floats(answer: &mut Answer) {
    let Answer::Solutions { rows, .. } = answer else {
        return;
    };
    for term in rows.iter_mut().flatten().flatten() {
        if let oxrdf::Term::Literal(l) = term
            && l.datatype() == oxrdf::vocab::xsd::FLOAT
            && let Ok(value) = l.value().parse::<f64>()
        {
            *term = oxrdf::Literal::new_simple_literal(format!("{value:.3e}")).into();
        }
    }
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
    assert_same_rows(name, &bag(got), &bag(want));
}

/// As [`assert_equal`], for rows as [`bag`] returns them.
pub fn assert_same_rows(name: &str, got: &[String], want: &[String]) {
    if got != want {
        let at = got.iter().zip(want).take_while(|(a, b)| a == b).count();
        panic!(
            "{name}: {} rows, wanted {}; first difference at {at}:\n  got  {:?}\n  want {:?}",
            got.len(),
            want.len(),
            got.get(at),
            want.get(at)
        );
    }
}
