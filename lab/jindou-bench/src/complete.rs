//! `jindou bench complete`: measures completion at positions of real queries. At each position a predicate or an object
//! begins and the text is cut off; the token that the original query has there should be among the items offered.

use crate::args::BenchComplete;
use crate::lookup::Random;
use crate::measure::write_json;
use jindou::complete::{Completer, Item, Request, Slot};
use jindou::{Database, Error, Result};
use jindou_syntax::COMMON_PREFIXES;
use jindou_syntax::place::{CursorPlace, place};
use jindou_workloads::bsbm::Bsbm;
use jindou_workloads::queries::{bsbm, lubm, lubm_official, ted, watdiv};
use serde_json::json;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Number of items that users see without scrolling.
const FIRST: usize = 10;

/// A position in a query, and the token that the query has there.
struct Position {
    query: String,
    at: usize,
    token: String,
    kind: &'static str,
}

/// For positions of one kind: how many there are, and how often the token was among the first [`FIRST`] items.
#[derive(Default)]
struct Tally {
    places: u64,
    found: u64,
}

pub fn run(a: &BenchComplete) -> Result<ExitCode> {
    let each = a.positions.div_ceil(a.sets.len().max(1));
    let mut all_times = Vec::new();
    let mut all: BTreeMap<&str, Tally> = BTreeMap::new();
    let mut sets = Vec::new();
    for set in &a.sets {
        let (name, dir) = set.split_once('=').ok_or_else(|| {
            Error::Query(format!("--set {set}: write NAME=STORE, as lubm=lubm.store"))
        })?;
        let db = Database::open(dir)?;
        let quads = db.quads();
        let completer = Completer::new(db);
        let positions = draw(texts(name, a)?, each, a.seed);
        let begin = Instant::now();
        completer.complete(&Request::new("SELECT * { ?s ", ""))?;
        let first = begin.elapsed();
        let mut times = Vec::new();
        let mut tallies: BTreeMap<&str, Tally> = BTreeMap::new();
        let mut missed = Vec::new();
        for p in &positions {
            let before = &p.query[..p.at];
            let begin = Instant::now();
            let found = completer.complete(&Request::new(before, ""))?;
            times.push(begin.elapsed());
            let wanted = Wanted::parse(&p.token, &place(before, ""));
            let hit = found.items.iter().take(FIRST).any(|i| wanted.is(i));
            for tallies in [&mut tallies, &mut all] {
                let tally = tallies.entry(p.kind).or_default();
                tally.places += 1;
                tally.found += u64::from(hit);
            }
            if !hit {
                missed.push(json!({ "kind": p.kind, "token": p.token, "before": tail(before) }));
            }
        }
        all_times.extend(times.iter().copied());
        println!("{name}: {quads} quads; first call {:.1} ms", ms(first));
        let times = report(&mut times, &tallies);
        sets.push(json!({ "set": name, "quads": quads, "first_ms": ms(first), "result": times, "missed": missed }));
    }
    println!("all:");
    let result = report(&mut all_times, &all);
    if let Some(path) = &a.json {
        let document =
            json!({ "seed": a.seed, "positions": all_times.len(), "all": result, "sets": sets });
        write_json(path, &document)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The queries of a set.
fn texts(name: &str, a: &BenchComplete) -> Result<Vec<String>> {
    Ok(match name {
        "lubm" => lubm::QUERIES
            .iter()
            .chain(&lubm_official::QUERIES)
            .map(|q| q.text.to_owned())
            .collect(),
        "watdiv" => watdiv::instances(a.watdiv_scale, 0, 1)?
            .into_iter()
            .map(|i| i.text)
            .collect(),
        "bsbm" => {
            let data = Bsbm::new(a.bsbm_products, 0);
            let templates = bsbm::EXPLORE.iter().chain(&bsbm::BUSINESS);
            let texts = templates.flat_map(|t| t.instances(&data, 1));
            texts.map(|i| i.text).collect()
        }
        "ted" => ted::QUERIES.iter().map(|q| q.text.to_owned()).collect(),
        other => {
            return Err(Error::Query(format!(
                "no queries for '{other}'; use lubm, watdiv, bsbm or ted"
            )));
        }
    })
}

/// Draws positions from all predicates and objects of the queries, each at most once.
fn draw(queries: Vec<String>, n: usize, seed: u64) -> Vec<Position> {
    let mut all: Vec<Position> = queries.into_iter().flat_map(positions).collect();
    let mut random = Random(seed);
    let mut drawn = Vec::new();
    while drawn.len() < n && !all.is_empty() {
        let at = random.below(all.len() as u64) as usize;
        drawn.push(all.swap_remove(at));
    }
    drawn
}

/// Positions at which a predicate or an object begins after white space.
fn positions(query: String) -> Vec<Position> {
    let mut out = Vec::new();
    let mut space = true;
    for (at, c) in query.char_indices() {
        let begins = space && !c.is_whitespace();
        space = c.is_whitespace();
        if !begins {
            continue;
        }
        let here = place(&query[..at], "");
        if !matches!(here.slot, Slot::Predicate | Slot::Object) || here.from != at {
            continue;
        }
        let Some(token) = token(&query[at..]) else {
            continue;
        };
        let kind = match (here.slot, token.as_bytes()[0]) {
            (Slot::Predicate, b'?' | b'$') => "variable predicate",
            (Slot::Predicate, _) => "predicate",
            (_, b'?' | b'$') if here.variables.iter().any(|v| v[1..] == token[1..]) => {
                "variable that was named before"
            }
            (_, b'?' | b'$') => "new variable",
            _ => "constant object",
        };
        out.push(Position {
            at,
            token: token.to_owned(),
            kind,
            query: query.clone(),
        });
    }
    out
}

/// The term with which a text begins; `None` for punctuation.
fn token(text: &str) -> Option<&str> {
    let first = text.as_bytes().first()?;
    let end = match first {
        b'<' => text.find('>')? + 1,
        b'"' => text[1..].find('"')? + 2,
        _ => text
            .find(|c: char| c.is_whitespace() || ";,(){}[]/|*+^".contains(c))
            .unwrap_or(text.len()),
    };
    let token = text.get(..end)?.trim_end_matches('.');
    let word = |c: char| c.is_alphanumeric() || "<\"?$:_".contains(c);
    token.starts_with(word).then_some(token)
}

/// The expected token, in the forms in which an item may write it.
struct Wanted {
    text: String,
    iri: Option<String>,
}

impl Wanted {
    fn parse(token: &str, place: &CursorPlace) -> Self {
        let iri = if token == "a" {
            Some("http://www.w3.org/1999/02/22-rdf-syntax-ns#type".to_owned())
        } else if let Some(iri) = token.strip_prefix('<') {
            Some(iri.trim_end_matches('>').to_owned())
        } else if token.starts_with(['?', '$', '"']) {
            None
        } else {
            token.split_once(':').and_then(|(prefix, local)| {
                let own = place.prefixes.iter().rev().find(|p| p.0 == prefix);
                let own = own.map(|p| p.1.as_str());
                let common = || COMMON_PREFIXES.iter().find(|p| p.0 == prefix).map(|p| p.1);
                Some(own.or_else(common)?.to_owned() + local)
            })
        };
        Self {
            text: token.to_owned(),
            iri,
        }
    }

    fn is(&self, item: &Item) -> bool {
        item.text == self.text || self.iri.is_some() && item.iri == self.iri
    }
}

fn tail(text: &str) -> String {
    let shown: Vec<char> = text.chars().rev().take(100).collect();
    shown.into_iter().rev().collect()
}

fn ms(d: Duration) -> f64 {
    d.as_secs_f64() * 1e3
}

/// Prints times and shares, and returns them as JSON.
fn report(times: &mut [Duration], tallies: &BTreeMap<&str, Tally>) -> serde_json::Value {
    times.sort_unstable();
    let at = |share: f64| {
        let last = times.len().saturating_sub(1);
        let rank = (times.len() as f64 * share).ceil() as usize;
        times
            .get(rank.saturating_sub(1).min(last))
            .map_or(0.0, |d| ms(*d))
    };
    let (half, most, max) = (at(0.5), at(0.95), at(1.0));
    println!(
        "  {} places: p50 {half:.2} ms, p95 {most:.2} ms, max {max:.2} ms",
        times.len()
    );
    let mut kinds = serde_json::Map::new();
    let mut known = Tally::default();
    for (kind, t) in tallies {
        println!("  {:>4} of {:>4} {kind}", t.found, t.places);
        kinds.insert((*kind).to_owned(), json!([t.found, t.places]));
        // The name of a variable that does not exist yet cannot be known.
        if *kind != "new variable" && *kind != "variable predicate" {
            known.places += t.places;
            known.found += t.found;
        }
    }
    let share = known.found as f64 / known.places.max(1) as f64;
    println!(
        "  the next token is among the first {FIRST}: {} of {} ({:.0} %), names of new variables aside",
        known.found,
        known.places,
        share * 100.0
    );
    json!({ "p50_ms": half, "p95_ms": most, "max_ms": max, "first_ten": [known.found, known.places], "kinds": kinds })
}
