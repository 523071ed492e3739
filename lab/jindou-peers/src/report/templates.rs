//! Instances of a template as one question.

use super::{Answer, QueryReport, Report, median};
use crate::Seen;
use std::borrow::Cow;

/// The report with the instances of each template folded into one question, in the order of their first instances;
/// the same report where no query has a template. O(runs · log(instances)).
///
/// A folded answer's runs are the medians of the instances, its rows and bytes their sums, its checksum agrees where
/// all of theirs do. It fails where one instance failed, and is over the limit where one was.
pub fn by_template(r: &Report) -> Cow<'_, Report> {
    if r.queries.iter().all(|q| q.template.is_none()) {
        return Cow::Borrowed(r);
    }
    let mut folded: Vec<(&str, Vec<&QueryReport>)> = Vec::new();
    for q in &r.queries {
        let name = q.template.as_deref().unwrap_or(&q.name);
        match folded.iter_mut().find(|(n, _)| *n == name) {
            Some((_, instances)) => instances.push(q),
            None => folded.push((name, vec![q])),
        }
    }
    Cow::Owned(Report {
        queries: folded.iter().map(|(name, of)| fold(name, of)).collect(),
        ..r.clone()
    })
}

fn fold(name: &str, instances: &[&QueryReport]) -> QueryReport {
    let engines = instances.iter().map(|q| q.answers.len()).min().unwrap_or(0);
    QueryReport {
        name: name.into(),
        template: None,
        text: instances.first().map_or(String::new(), |q| q.text.clone()),
        known_rows: instances.iter().map(|q| q.known_rows).sum(),
        answers: (0..engines)
            .map(|e| answer(instances.iter().map(|q| &q.answers[e])))
            .collect(),
    }
}

fn answer<'a>(instances: impl Iterator<Item = &'a Answer>) -> Answer {
    let mut out = Answer {
        seen: Some(Seen {
            rows: 0,
            checksum: 0,
        }),
        ..Answer::default()
    };
    for a in instances {
        out.seen = out.seen.zip(a.seen).map(|(sum, s)| Seen {
            rows: sum.rows + s.rows,
            // Instances are in the same order for each engine, so the order may count.
            checksum: sum.checksum.rotate_left(1) ^ s.checksum,
        });
        out.bytes += a.bytes;
        out.warm_up_ms = out.warm_up_ms.max(a.warm_up_ms);
        out.times_ms.extend(median(&a.times_ms));
        out.over_limit |= a.over_limit;
        if out.failure.is_none() {
            out.failure.clone_from(&a.failure);
        }
    }
    out.times_ms.sort_by(f64::total_cmp);
    out
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;

    #[test]
    fn folds_times_rows_and_failures() {
        let mut r = sample();
        assert!(matches!(by_template(&r), Cow::Borrowed(_)));
        for q in &mut r.queries[..2] {
            q.template = Some("T".into());
        }
        r.queries[3].template = Some("T2".into());
        let f = by_template(&r);
        let names: Vec<_> = f.queries.iter().map(|q| q.name.as_str()).collect();
        assert_eq!(names, ["T", "L3", "T2"]);
        // Medians 2 and 4 of the first engine; 20 and 2 of the second.
        assert_eq!(f.queries[0].answers[0].times_ms, [2.0, 4.0]);
        assert_eq!(f.queries[0].answers[1].median_ms(), Some(11.0));
        assert_eq!(f.queries[0].answers[0].seen.unwrap().rows, 20);
        assert!(f.queries[0].answers[2].median_ms().is_none());
        // One of the two has no known count.
        assert_eq!(f.queries[0].known_rows, None);
        assert!(f.queries[2].answers[1].over_limit);
    }
}
