//! `jindou bench operators --only overview`: questions for an overview of a graph, each in many wordings, of a store and
//! of a copy of it after random edits.
//!
//! Times include planning, since the planner answers these questions from counts. Every answer is compared with that of
//! a formulation that reads the triples.

use super::check::{self, Bag};
use super::questions::Questions;
use crate::args::BenchOperators;
use crate::measure::{Times, copy, cpu_time, run as checksum, write_json};
use crate::merge::{open, push};
use crate::updates::Draw;
use jindou::{Batch, Database, Error, PlannedQuery, QueryOptions, Result, UpdateOptions};
use jindou_plan::{Operator, Walk};
use oxrdf::vocab::xsd;
use oxrdf::{BlankNode, GraphNameRef, Literal, NamedNode, QuadRef, Term};
use serde_json::json;
use std::process::ExitCode;
use std::time::Duration;

/// Number of random edits.
const EDITS: usize = 10_000;

const UNIV_BENCH: &str = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#";

/// A question in several wordings.
struct Question {
    name: &'static str,
    /// Queries with the same answer that counts can give: the first as most would write it.
    wordings: Vec<&'static str>,
    /// A query with that answer which reads the triples.
    same: &'static str,
}

/// A wording's times in milliseconds of processor time.
struct Asked {
    text: &'static str,
    ms: Times,
    reads_edges: bool,
    is_right: bool,
}

/// A question's answer by reading the triples, and by its wordings.
struct Line {
    name: &'static str,
    same_ms: f64,
    asked: Vec<Asked>,
}

/// Reads questions. Each begins with a line `== NAME`. The other lines are a key and a query: `query`, `same`, and `again`
/// any number of times.
fn questions() -> Vec<Question> {
    let text = include_str!("overview.txt");
    let question = |text: &'static str| {
        let mut lines = text.lines().filter(|line| !line.is_empty());
        let mut question = Question {
            name: lines.next().expect("a name"),
            wordings: vec![],
            same: "",
        };
        for line in lines {
            match line.split_once(' ').expect("a key and a text") {
                ("query" | "again", text) => question.wordings.push(text),
                ("same", text) => question.same = text,
                (key, _) => panic!("{} has a line '{key}'", question.name),
            }
        }
        question
    };
    text.split("== ").skip(1).map(question).collect()
}

/// Asks the questions of the store, and of a copy of it after random edits.
pub fn run(a: &BenchOperators, db: &Database, set: &Questions) -> Result<ExitCode> {
    let options = QueryOptions::default()
        .with_threads(1)
        .with_timeout(a.timeout);
    let mut parts = vec![("loaded", ask(a, db, set, &options)?)];
    let folder = tempfile::tempdir().map_err(|e| Error::io(std::env::temp_dir(), e))?;
    let store = folder.path().join("store");
    copy(&a.store, &store).map_err(|e| Error::io(&a.store, e))?;
    let edited = open(&store)?.0;
    edit(&edited)?;
    parts.push(("edited", ask(a, &edited, set, &options)?));
    if a.json.is_none() {
        parts.iter().for_each(|(state, lines)| print(state, lines));
    }
    if let Some(to) = &a.json {
        let parts = parts.iter().map(|(state, lines)| (*state, lines));
        let parts: serde_json::Map<_, _> = parts
            .map(|(state, lines)| (state.to_owned(), lines.iter().map(as_json).collect()))
            .collect();
        write_json(to, &parts.into())?;
    }
    let asked = parts.iter().flat_map(|p| &p.1).flat_map(|l| &l.asked);
    let wrong: Vec<&Asked> = asked.filter(|x| !x.is_right).collect();
    for x in &wrong {
        eprintln!("WRONG ANSWER {}", x.text);
    }
    Ok(match wrong.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(3),
    })
}

fn ask(
    a: &BenchOperators,
    db: &Database,
    set: &Questions,
    options: &QueryOptions,
) -> Result<Vec<Line>> {
    let mut lines = vec![];
    for q in questions() {
        let start = cpu_time();
        let want = check::bag(db, set, q.same, options)?;
        let same_ms = ms(cpu_time().saturating_sub(start));
        let text = format!("{}{}", set.prefixes, q.same);
        if !reads_edges(&db.plan_uncached(&text, options)?) {
            let fault = format!("the check of '{}' is answered by counts", q.name);
            return Err(Error::Internal(fault));
        }
        let asked = q.wordings.iter();
        let asked = asked.map(|text| wording(a, db, set, options, text, want));
        lines.push(Line {
            name: q.name,
            same_ms,
            asked: asked.collect::<Result<_>>()?,
        });
    }
    Ok(lines)
}

fn wording(
    a: &BenchOperators,
    db: &Database,
    set: &Questions,
    options: &QueryOptions,
    text: &'static str,
    want: Bag,
) -> Result<Asked> {
    let is_right = a.no_check || check::bag(db, set, text, options)? == want;
    let whole = format!("{}{text}", set.prefixes);
    let mut times = vec![];
    let mut reads = false;
    for _ in 0..a.repeat.max(1) {
        let start = cpu_time();
        let plan = db.plan_uncached(&whole, options)?;
        checksum(db, &plan, options)?;
        times.push(cpu_time().saturating_sub(start));
        reads = reads_edges(&plan);
    }
    Ok(Asked {
        text,
        ms: Times::new(times),
        reads_edges: reads,
        is_right,
    })
}

fn reads_edges(query: &PlannedQuery) -> bool {
    let mut found = false;
    query.plan().root.walk(&mut |op| {
        found |= matches!(
            op,
            Operator::Explore(_) | Operator::Steps(_) | Operator::Path(_)
        );
        Walk::Into
    });
    found
}

/// Makes random changes: most add an edge between vertices of the graph or remove an edge, a fifth adds a new literal or
/// blank node.
fn edit(db: &Database) -> Result<()> {
    let plain = db.snapshot();
    let (mut draw, mut batch) = (Draw::new(&plain), Batch::new());
    for i in 0..EDITS {
        if i % 5 > 0 {
            push(&mut draw, &plain, &mut batch);
            continue;
        }
        let text = format!("edit {i}");
        let object: Term = match i % 25 {
            0 => Literal::new_language_tagged_literal_unchecked(text, "en").into(),
            5 => Literal::new_language_tagged_literal_unchecked(text, "de").into(),
            10 => Literal::new_typed_literal(i.to_string(), xsd::INTEGER).into(),
            15 => Literal::new_typed_literal(text, NamedNode::new_unchecked("http://e/d")).into(),
            _ => BlankNode::new_unchecked(format!("edit{i}")).into(),
        };
        let subject = NamedNode::new_unchecked(format!("http://e/edit{}", i % 1_000));
        let predicate = ["name", "takesCourse", "emailAddress"][i % 3];
        let predicate = NamedNode::new_unchecked(format!("{UNIV_BENCH}{predicate}"));
        let quad = QuadRef::new(&subject, &predicate, &object, GraphNameRef::DefaultGraph);
        batch.insert(quad);
    }
    db.apply(&batch, &UpdateOptions::default())?;
    Ok(())
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

impl Line {
    fn slowest(&self) -> f64 {
        let times = self.asked.iter().map(|x| x.ms.median());
        times.fold(0.0, f64::max)
    }
}

fn print(state: &str, lines: &[Line]) {
    println!(
        "{state}, ms of processor time with one thread{:>9} {:>9} {:>9} {:>12} {:>7}",
        "query", "slowest", "read", "from counts", "right"
    );
    for l in lines {
        let [known, right] = [
            l.asked.iter().filter(|x| !x.reads_edges).count(),
            l.asked.iter().filter(|x| x.is_right).count(),
        ];
        let all = l.asked.len();
        println!(
            "{:<46} {:>9.3} {:>9.3} {:>9.1} {:>12} {:>7}",
            l.name,
            l.asked.first().map_or(f64::NAN, |x| x.ms.median()),
            l.slowest(),
            l.same_ms,
            format!("{known} of {all}"),
            format!("{right}"),
        );
        for x in l.asked.iter().filter(|x| x.reads_edges) {
            println!("    reads triples, {:.1} ms: {}", x.ms.median(), x.text);
        }
    }
}

fn as_json(l: &Line) -> serde_json::Value {
    let asked = l.asked.iter().map(|x| {
        json!({
            "query": x.text, "cpu_ms": x.ms.median(), "reads_edges": x.reads_edges, "right": x.is_right,
        })
    });
    json!({ "name": l.name, "read_cpu_ms": l.same_ms, "wordings": asked.collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_have_twenty_other_wordings() {
        let all = questions();
        assert_eq!(all.len(), 12);
        for q in all {
            assert_eq!(q.wordings.len(), 21, "{}", q.name);
            assert!(!q.same.is_empty(), "{}", q.name);
        }
    }
}
