//! `jindou bench watdiv`: WatDiv's 20 basic templates, over data that this process generates.

use super::measure::{StoreFolder, measure, threads_or_all};
use super::peers::{PeerWork, Workload as Compared, run as run_peers};
use super::set::{Rows, load};
use crate::args::BenchWatdiv;
use jindou::{Database, Error, QueryOptions, Result};
use jindou_parse::Sources;
use jindou_parse::write::{TagCase, write_source};
use jindou_peers::Named;
use jindou_workloads::queries::watdiv::{Instance, instances, templates};
use jindou_workloads::watdiv::{Watdiv, WatdivModel};
use serde_json::json;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// A workload for any engine: a file of N-Triples, and queries.
pub struct Workload {
    pub data: PathBuf,
    pub queries: Vec<Instance>,
}

/// Writes the data of a scale to the file `data`, unless it exists, and draws the queries.
pub fn workload(data: &Path, scale: u32, seed: u64, instances_each: u32) -> Result<Workload> {
    if !data.exists() {
        // Written under another name and then renamed, since an existing file is taken as complete.
        let part = data.with_extension("part");
        let write = || {
            let file = File::create(&part).map_err(|e| Error::io(&part, e))?;
            let mut out = BufWriter::with_capacity(1 << 20, file);
            let source = Watdiv::new(&WatdivModel::standard(), scale, seed)?;
            write_source(&source, TagCase::Lower, &mut out)?;
            drop(out);
            std::fs::rename(&part, data).map_err(|e| Error::io(data, e))
        };
        write().inspect_err(|_| {
            let _ = std::fs::remove_file(&part);
        })?;
    }
    Ok(Workload {
        data: data.to_owned(),
        queries: instances(scale, seed, instances_each)?,
    })
}

pub fn run(a: &BenchWatdiv) -> Result<ExitCode> {
    let is_wanted =
        |name: &str| a.queries.is_empty() || a.queries.iter().any(|w| w.eq_ignore_ascii_case(name));
    for w in &a.queries {
        if !templates().iter().any(|t| t.name.eq_ignore_ascii_case(w)) {
            return Err(Error::Usage(format!(
                "unknown WatDiv template '{w}': use L1 to L5, S1 to S7, F1 to F5 or C1 to C3"
            )));
        }
    }
    if !a.peers.peers.is_empty() {
        return beside_peers(a, &is_wanted);
    }
    let folder = StoreFolder::new(a.store.as_deref())?;
    bench(a, &folder.dir, &is_wanted)
}

/// Runs the same instances on other engines, too. All are timed at the client, so `--repeat` does not apply. All
/// engines load the same file, so `--store` does not apply either.
fn beside_peers(a: &BenchWatdiv, is_wanted: &dyn Fn(&str) -> bool) -> Result<ExitCode> {
    let work = PeerWork::new(&a.peers)?;
    let name = format!("watdiv-{}-{}.nt", a.scale, a.seed);
    let data = a.data.clone().unwrap_or_else(|| work.dir.join(name));
    let drawn = workload(&data, a.scale, a.seed, a.instances)?;
    let mut of_template = 0;
    let mut last = None;
    let queries = drawn
        .queries
        .into_iter()
        .filter(|q| is_wanted(&q.template))
        .map(|q| {
            of_template = if last.as_ref() == Some(&q.template) {
                of_template + 1
            } else {
                0
            };
            last = Some(q.template.clone());
            Named {
                name: format!("{}-{of_template}", q.template),
                template: Some(q.template),
                text: q.text,
                rows: None,
            }
        })
        .collect();
    run_peers(
        &Compared {
            title: format!("WatDiv({})", a.scale),
            data: &data,
            statements: None,
            queries,
            threads: threads_or_all(a.threads),
        },
        &a.peers,
        &work,
        a.json.as_deref(),
    )
}

fn bench(a: &BenchWatdiv, dir: &Path, is_wanted: &dyn Fn(&str) -> bool) -> Result<ExitCode> {
    let threads = threads_or_all(a.threads);
    let mut loaded = None;
    let queries = match &a.data {
        Some(data) => {
            let w = workload(data, a.scale, a.seed, a.instances)?;
            if !dir.exists() {
                let file = Sources::builder().path(&w.data).build()?;
                loaded = Some(load(dir, &file, a.memory, threads)?);
            }
            w.queries
        }
        None => {
            if !dir.exists() {
                let source = Watdiv::new(&WatdivModel::standard(), a.scale, a.seed)?;
                loaded = Some(load(dir, &source, a.memory, threads)?);
            }
            instances(a.scale, a.seed, a.instances)?
        }
    };
    let info = Database::info(dir)?;
    // A scale has some 104,500 distinct triples; at scale 1 that varies by 2 %.
    let about = 104_500.0 * f64::from(a.scale);
    if (info.quads as f64 - about).abs() > 0.1 * about {
        return Err(Error::external(format!(
            "{} has {} triples, but WatDiv({}) has about {about:.0}; choose another --store or remove it",
            dir.display(),
            info.quads,
            a.scale
        )));
    }
    let db = Database::open(dir)?;
    let options = QueryOptions::default().with_threads(threads);
    let mut rows = Rows::default();
    for q in queries.iter().filter(|q| is_wanted(&q.template)) {
        let measured = measure(&db, &q.text, &options, a.repeat)?;
        rows.add(&q.template, measured);
    }
    match &a.json {
        Some(to) => rows.write_json(
            to,
            json!({"scale": a.scale, "seed": a.seed, "threads": threads}),
            |template, i| json!({"template": template, "name": format!("{template}-{i}")}),
            loaded.as_ref(),
            &info,
        )?,
        None => {
            let heading = format!(
                "WatDiv({}), seed {}: {} triples, {threads} threads",
                a.scale, a.seed, info.quads
            );
            rows.print(&heading, "template", loaded.as_ref(), &info);
        }
    }
    Ok(ExitCode::SUCCESS)
}
