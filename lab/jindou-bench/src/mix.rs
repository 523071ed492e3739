//! `jindou bench bsbm`, `sp2b` and `lubm --official`: runs a set of queries over generated data, on Jindou alone or on
//! other engines as well.

use super::measure::{StoreFolder, measure, threads_or_all, verdict};
use super::peers::{PeerWork, Workload, run as run_peers};
use super::set::{Rows, load};
use crate::args::{BenchBsbm, BenchLubm, BenchMix, BenchSp2b, BsbmMix};
use jindou::{Database, Error, QuadSource, QueryOptions, Result};
use jindou_parse::write::{TagCase, write_source};
use jindou_peers::Named;
use jindou_workloads::bsbm::Bsbm;
use jindou_workloads::lubm::{Inferred, Lubm};
use jindou_workloads::queries::{bsbm as bsbm_queries, lubm_official, sp2b as sp2b_queries};
use jindou_workloads::sp2b::Sp2b;
use serde_json::json;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::process::ExitCode;

/// A benchmark: its data and queries.
struct Mix<'a> {
    title: String,
    /// Name of the data file that other engines load.
    file: String,
    /// Makes the data's source; called for each load.
    source: &'a dyn Fn() -> Box<dyn QuadSource>,
    queries: Vec<Named>,
}

pub fn bsbm(a: &BenchBsbm) -> Result<ExitCode> {
    let templates: Vec<_> = bsbm_queries::EXPLORE
        .iter()
        .filter(|_| a.mix != BsbmMix::Bi)
        .chain(
            bsbm_queries::BUSINESS
                .iter()
                .filter(|_| a.mix != BsbmMix::Explore),
        )
        .collect();
    let data = Bsbm::new(a.products, a.common.seed);
    let queries = templates
        .iter()
        .flat_map(|t| t.instances(&data, a.instances))
        .map(|i| Named {
            name: i.name,
            template: Some(i.template),
            text: i.text,
            rows: None,
        })
        .collect();
    run(
        Mix {
            title: format!("BSBM({} products)", a.products),
            file: format!("bsbm-{}-{}.nt", a.products, a.common.seed),
            source: &|| Box::new(Bsbm::new(a.products, a.common.seed)),
            queries,
        },
        &a.common,
    )
}

pub fn sp2b(a: &BenchSp2b) -> Result<ExitCode> {
    let queries = sp2b_queries::QUERIES
        .iter()
        .map(|q| Named {
            name: q.name.into(),
            template: None,
            text: q.text(),
            rows: None,
        })
        .collect();
    run(
        Mix {
            title: format!("after SP2Bench({} triples)", a.triples),
            file: format!("sp2b-{}-{}.nt", a.triples, a.common.seed),
            source: &|| Box::new(Sp2b::new(a.triples, a.common.seed)),
            queries,
        },
        &a.common,
    )
}

/// The official queries.
pub fn lubm(a: &BenchLubm) -> Result<ExitCode> {
    let queries = lubm_official::QUERIES
        .iter()
        .map(|q| Named {
            name: q.name.into(),
            template: None,
            text: q.text.into(),
            rows: a
                .inferred
                .then(|| lubm_official::inferred_rows(q.name, a.universities))
                .flatten(),
        })
        .collect();
    let (how, suffix) = if a.inferred {
        ("with inferences", "-inferred")
    } else {
        ("as it is", "")
    };
    run(
        Mix {
            title: format!("LUBM({}) {how}", a.universities),
            file: format!("lubm-{}{suffix}.nt", a.universities),
            source: &|| {
                let lubm = Lubm::new(a.universities, 0);
                if a.inferred {
                    Box::new(Inferred::new(lubm))
                } else {
                    Box::new(lubm)
                }
            },
            queries,
        },
        &BenchMix {
            seed: 0,
            queries: a.queries.clone(),
            threads: a.threads,
            repeat: a.repeat,
            store: a.store.clone(),
            memory: a.memory,
            json: a.json.clone(),
            peers: a.peers.clone(),
        },
    )
}

/// A query's name, or its template's.
fn group(q: &Named) -> &str {
    q.template.as_deref().unwrap_or(&q.name)
}

fn run(mut mix: Mix<'_>, a: &BenchMix) -> Result<ExitCode> {
    for w in &a.queries {
        if !mix.queries.iter().any(|q| group(q).eq_ignore_ascii_case(w)) {
            return Err(Error::Usage(format!(
                "{} has no query '{w}' in this mix",
                mix.title
            )));
        }
    }
    mix.queries.retain(|q| {
        a.queries.is_empty() || a.queries.iter().any(|w| group(q).eq_ignore_ascii_case(w))
    });
    if !a.peers.peers.is_empty() {
        return beside_peers(&mix, a);
    }
    alone(&mix, a, &StoreFolder::new(a.store.as_deref())?.dir)
}

/// Runs the queries on other engines, too. All are timed at the client, so `--repeat` does not apply. All engines load
/// the same file, so `--store` does not apply either.
fn beside_peers(mix: &Mix<'_>, a: &BenchMix) -> Result<ExitCode> {
    let work = PeerWork::new(&a.peers)?;
    let data = work.file(&mix.file, |part| {
        let file = File::create(part).map_err(|e| Error::io(part, e))?;
        let mut out = BufWriter::with_capacity(1 << 20, file);
        write_source(&*(mix.source)(), TagCase::Lower, &mut out)?;
        Ok(())
    })?;
    run_peers(
        &Workload {
            title: mix.title.clone(),
            data: &data,
            statements: None,
            queries: mix.queries.clone(),
            threads: threads_or_all(a.threads),
        },
        &a.peers,
        &work,
        a.json.as_deref(),
    )
}

fn alone(mix: &Mix<'_>, a: &BenchMix, dir: &Path) -> Result<ExitCode> {
    let threads = threads_or_all(a.threads);
    let loaded = if dir.exists() {
        None
    } else {
        Some(load(dir, &*(mix.source)(), a.memory, threads)?)
    };
    let info = Database::info(dir)?;
    let db = Database::open(dir)?;
    let options = QueryOptions::default().with_threads(threads);
    let mut rows = Rows::default();
    let mut wrong = vec![];
    for q in &mix.queries {
        let measured = measure(&db, &q.text, &options, a.repeat)?;
        if q.rows.is_some_and(|rows| rows != measured.seen.rows) {
            wrong.push(format!(
                "{}: {} rows, {} are right",
                q.name,
                measured.seen.rows,
                q.rows.unwrap_or_default()
            ));
        }
        rows.add(group(q), measured);
    }
    match &a.json {
        Some(to) => rows.write_json(
            to,
            json!({"title": mix.title, "seed": a.seed, "threads": threads}),
            |query, instance| json!({"query": query, "instance": instance}),
            loaded.as_ref(),
            &info,
        )?,
        None => {
            let heading = format!("{}: {} triples, {threads} threads", mix.title, info.quads);
            rows.print(&heading, "query", loaded.as_ref(), &info);
        }
    }
    Ok(verdict(&wrong))
}
