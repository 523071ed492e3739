//! Expected answers from `spareval` over `oxrdf`'s dataset, which share no code with our store, planner and engine.

use jindou::Answer;
use jindou::algebra::Query;
pub use jindou_testing::w3c::{dataset, lower_tags};
use oxrdf::Dataset;
use spareval::{QueryEvaluator, QueryResults};

/// The answer that `spareval` computes, including its handling of FROM.
pub fn answer(data: &Dataset, query: &Query) -> Result<Answer, String> {
    let evaluator = QueryEvaluator::new();
    let results = evaluator
        .prepare(&query.into())
        .execute(data)
        .map_err(|e| e.to_string())?;
    Ok(match results {
        QueryResults::Boolean(b) => Answer::Boolean(b),
        QueryResults::Solutions(s) => Answer::Solutions {
            variables: s
                .variables()
                .iter()
                .map(|v| v.as_str().to_owned())
                .collect(),
            rows: s
                .map(|r| r.map(|r| r.values().to_vec()))
                .collect::<Result<_, _>>()
                .map_err(|e| e.to_string())?,
        },
        QueryResults::Graph(g) => {
            Answer::Graph(g.collect::<Result<_, _>>().map_err(|e| e.to_string())?)
        }
    })
}
