//! `jindou bench bsbm`, `sp2b`, `watdiv` and `lubm --official`: runs a set of queries over generated data, on Jindou alone or on
//! other engines as well.

use super::measure::{Folder, measure, threads_or_all, verdict};
use super::peers::{PeerWork, Workload, run as run_peers};
use super::set::{Rows, load};
use crate::args::{BenchBsbm, BenchLubm, BenchMix, BenchSp2b, BenchWatdiv, BsbmMix};
use jindou::{Database, Error, QuadSource, QueryOptions, Result};
use jindou_parse::write::{TagCase, write_source};
use jindou_peers::Named;
use jindou_workloads::bsbm::Bsbm;
use jindou_workloads::lubm::{Inferred, Lubm};
use jindou_workloads::queries::{
    bsbm as bsbm_queries, lubm_official, sp2b as sp2b_queries, watdiv as watdiv_queries,
};
use jindou_workloads::sp2b::Sp2b;
use jindou_workloads::watdiv::{Watdiv, WatdivModel};
use serde_json::{Value, json};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::process::ExitCode;

/// A benchmark: its data and queries.
pub struct Mix<'a> {
    pub title: String,
    /// Name of the data file that other engines load.
    pub file: String,
    /// Makes the data's source; called for each load.
    pub source: &'a dyn Fn() -> Result<Box<dyn QuadSource>>,
    /// Number of statements, if it is known.
    pub statements: Option<u64>,
    pub queries: Vec<Named>,
}

/// Texts of a report besides the figures.
struct Says {
    heading: String,
    /// Fields of the whole report as JSON.
    head: Value,
    /// Fields that identify an instance, given the name of its query or template and its index there.
    named: fn(&str, usize) -> Value,
    /// Kind of a row of the table: a query or a template.
    each: &'static str,
}

impl Says {
    fn of_queries(title: &str, seed: u64) -> Self {
        Self {
            heading: title.to_owned(),
            head: json!({"title": title, "seed": seed}),
            named: |query, instance| json!({"query": query, "instance": instance}),
            each: "query",
        }
    }
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
    let data = Bsbm::new(a.products, a.seed);
    let queries = templates
        .iter()
        .flat_map(|t| t.instances(&data, a.instances))
        .map(Named::from)
        .collect();
    let title = format!("BSBM({} products)", a.products);
    let says = Says::of_queries(&title, a.seed);
    let mix = Mix {
        title,
        file: format!("bsbm-{}-{}.nt", a.products, a.seed),
        source: &|| Ok(Box::new(Bsbm::new(a.products, a.seed))),
        statements: None,
        queries,
    };
    run(mix, &says, None, &a.common)
}

pub fn sp2b(a: &BenchSp2b) -> Result<ExitCode> {
    let queries = sp2b_queries::QUERIES
        .iter()
        .map(|q| Named::new(q.name, q.text))
        .collect();
    let title = format!("after SP2Bench({} triples)", a.triples);
    let says = Says::of_queries(&title, a.seed);
    let mix = Mix {
        title,
        file: format!("sp2b-{}-{}.nt", a.triples, a.seed),
        source: &|| Ok(Box::new(Sp2b::new(a.triples, a.seed))),
        statements: None,
        queries,
    };
    run(mix, &says, None, &a.common)
}

/// WatDiv's 20 basic templates.
pub fn watdiv(a: &BenchWatdiv) -> Result<ExitCode> {
    let templates = watdiv_queries::templates();
    for w in &a.common.queries {
        if !templates.iter().any(|t| t.name.eq_ignore_ascii_case(w)) {
            return Err(Error::Usage(format!(
                "unknown WatDiv template '{w}': use L1 to L5, S1 to S7, F1 to F5 or C1 to C3"
            )));
        }
    }
    let queries = watdiv_queries::instances(a.scale, a.seed, a.instances)?
        .into_iter()
        .map(Named::from)
        .collect();
    let mix = Mix {
        title: format!("WatDiv({})", a.scale),
        file: format!("watdiv-{}-{}.nt", a.scale, a.seed),
        source: &|| {
            let source = Watdiv::new(&WatdivModel::standard(), a.scale, a.seed)?;
            Ok(Box::new(source))
        },
        statements: None,
        queries,
    };
    let says = Says {
        heading: format!("{}, seed {}", mix.title, a.seed),
        head: json!({"scale": a.scale, "seed": a.seed}),
        named: |template, i| json!({"template": template, "name": format!("{template}-{i}")}),
        each: "template",
    };
    // A scale has some 104,500 distinct triples; at scale 1 that varies by 2 %.
    run(mix, &says, Some(104_500.0 * f64::from(a.scale)), &a.common)
}

/// The official queries.
pub fn lubm(a: &BenchLubm) -> Result<ExitCode> {
    let queries = lubm_official::QUERIES
        .iter()
        .map(|q| Named {
            rows: a
                .inferred
                .then(|| lubm_official::inferred_rows(q.name, a.universities))
                .flatten(),
            ..Named::new(q.name, q.text)
        })
        .collect();
    let (how, suffix) = if a.inferred {
        ("with inferences", "-inferred")
    } else {
        ("as it is", "")
    };
    let title = format!("LUBM({}) {how}", a.universities);
    let says = Says::of_queries(&title, 0);
    let mix = Mix {
        title,
        file: format!("lubm-{}{suffix}.nt", a.universities),
        source: &|| {
            let lubm = Lubm::new(a.universities, 0);
            if a.inferred {
                return Ok(Box::new(Inferred::new(lubm)));
            }
            Ok(Box::new(lubm))
        },
        statements: None,
        queries,
    };
    run(mix, &says, None, &a.common)
}

/// A query's name, or its template's.
fn group(q: &Named) -> &str {
    q.template.as_deref().unwrap_or(&q.name)
}

/// Runs a benchmark. `about` is the number of triples that its data has, within some percent, if it is known.
fn run(mut mix: Mix<'_>, says: &Says, about: Option<f64>, a: &BenchMix) -> Result<ExitCode> {
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
        return beside_peers(mix, a);
    }
    let folder = Folder::new(a.store.as_deref())?;
    alone(&mix, says, about, a, &folder.dir)
}

/// Runs the queries on other engines, too. All are timed at the client, so `--repeat` does not apply. All engines load
/// the same file, so `--store` does not apply either.
pub fn beside_peers(mix: Mix<'_>, a: &BenchMix) -> Result<ExitCode> {
    let work = PeerWork::new(&a.peers)?;
    let data = work.file(&mix.file, |part| {
        let file = File::create(part).map_err(|e| Error::io(part, e))?;
        let mut out = BufWriter::with_capacity(1 << 20, file);
        write_source(&*(mix.source)()?, TagCase::Lower, &mut out)?;
        Ok(())
    })?;
    run_peers(
        &Workload {
            title: mix.title,
            data: &data,
            statements: mix.statements,
            queries: mix.queries,
            threads: threads_or_all(a.threads),
        },
        &a.peers,
        &work,
        a.json.as_deref(),
    )
}

fn alone(
    mix: &Mix<'_>,
    says: &Says,
    about: Option<f64>,
    a: &BenchMix,
    dir: &Path,
) -> Result<ExitCode> {
    let threads = threads_or_all(a.threads);
    let loaded = if dir.exists() {
        None
    } else {
        Some(load(dir, &*(mix.source)()?, a.memory, threads)?)
    };
    let info = Database::info(dir)?;
    if let Some(about) = about
        && (info.quads as f64 - about).abs() > 0.1 * about
    {
        return Err(Error::external(format!(
            "{} has {} triples, but {} has about {about:.0}; choose another --store or remove it",
            dir.display(),
            info.quads,
            mix.title
        )));
    }
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
        Some(to) => {
            let mut head = says.head.clone();
            head["threads"] = json!(threads);
            rows.write_json(to, head, says.named, loaded.as_ref(), &info)?;
        }
        None => {
            let heading = format!(
                "{}: {} triples, {threads} threads",
                says.heading, info.quads
            );
            rows.print(&heading, says.each, loaded.as_ref(), &info);
        }
    }
    Ok(verdict(&wrong))
}
