//! The store of a study, and its queries.

use crate::args::parallel::BenchParallel;
use jindou::{Database, Error, LoadOptions, Progress, QuadSource, Result};
use jindou_parse::Sources;
use jindou_workloads::lubm::{Lubm, known};
use jindou_workloads::queries::{lubm, lubm_official, watdiv};
use jindou_workloads::watdiv::{Watdiv, WatdivModel};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A query, or some instances of a template.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    pub name: String,
    /// One text, or several that differ in their constants. Data parallelism runs only the first.
    pub texts: Vec<String>,
    /// The known number of rows of the first text, if any.
    pub rows: Option<u64>,
}

/// A store and its queries.
pub struct Workload {
    pub title: String,
    pub store: PathBuf,
    pub queries: Vec<Query>,
}

/// Makes the store in the folder `work`, or finds it there, and makes the queries.
pub fn workload(a: &BenchParallel, work: &Path) -> Result<Workload> {
    let (title, queries) = match (a.lubm, a.watdiv, &a.queries) {
        (Some(n), ..) => (format!("LUBM({n})"), of_lubm(n, a)),
        (_, Some(n), _) => (format!("WatDiv({n})"), of_watdiv(n, a)?),
        (.., Some(dir)) => {
            let name = dir.file_name().map(|n| n.to_string_lossy().into_owned());
            (name.unwrap_or_default(), of_folder(dir)?)
        }
        _ => {
            return Err(Error::Usage("give --lubm, --watdiv or --queries".into()));
        }
    };
    let store = a.store.clone().unwrap_or_else(|| work.join("store"));
    if !store.exists() {
        let load = |source: &dyn QuadSource| {
            Database::load(
                &store,
                &source,
                &LoadOptions::default(),
                &Progress::default(),
            )
        };
        if !a.files.is_empty() {
            let mut sources = Sources::builder();
            for f in &a.files {
                sources = sources.path(f);
            }
            load(&sources.build()?)?;
        } else if let Some(n) = a.lubm {
            load(&Lubm::new(n, 0))?;
        } else if let Some(n) = a.watdiv {
            load(&Watdiv::new(&WatdivModel::standard(), n, a.seed)?)?;
        } else {
            return Err(Error::external(format!(
                "{} is not a store; pass --files to load one",
                store.display()
            )));
        }
    }
    let info = Database::info(&store)?;
    if let Some(right) = a.lubm.and_then(known::totals)
        && info.quads != right.distinct
    {
        return Err(Error::external(format!(
            "{} has {} triples, but {title} has {}; choose another --store or remove it",
            store.display(),
            info.quads,
            right.distinct
        )));
    }
    Ok(Workload {
        title: format!("{title}, {} triples", info.quads),
        store,
        queries,
    })
}

fn of_lubm(universities: u32, a: &BenchParallel) -> Vec<Query> {
    let mut out = vec![];
    for q in lubm::QUERIES.iter().take(7) {
        out.push(Query {
            name: q.name.into(),
            texts: vec![q.text.into()],
            rows: q.rows(universities),
        });
    }
    for q in &lubm_official::QUERIES {
        out.push(Query {
            name: q.name.into(),
            texts: vec![q.text.into()],
            rows: None,
        });
    }
    let mut constants = lubm::Constants::new(universities, 0, a.seed);
    for t in lubm::EMULATOR {
        let drawn = (0..a.instances).filter_map(|_| constants.draw(t.class));
        out.push(Query {
            name: t.name.into(),
            texts: drawn.map(|iri| t.with(&iri)).collect(),
            rows: None,
        });
    }
    out.retain(|q| !q.texts.is_empty());
    out
}

fn of_watdiv(scale: u32, a: &BenchParallel) -> Result<Vec<Query>> {
    let mut out: Vec<Query> = vec![];
    for i in watdiv::instances(scale, a.seed, a.instances)? {
        match out.last_mut() {
            Some(q) if q.name == i.template => q.texts.push(i.text),
            _ => out.push(Query {
                name: i.template,
                texts: vec![i.text],
                rows: None,
            }),
        }
    }
    for q in &mut out {
        // Instances of a template without constants are all the same.
        q.texts.dedup();
    }
    Ok(out)
}

fn of_folder(dir: &Path) -> Result<Vec<Query>> {
    let read = |path: &Path| std::fs::read_to_string(path).map_err(|e| Error::io(path, e));
    let counts = dir.join("counts.tsv");
    let mut rows: BTreeMap<String, u64> = BTreeMap::new();
    if counts.exists() {
        for line in read(&counts)?.lines().skip(1) {
            if let Some((name, n)) = line.split_once('\t')
                && let Ok(n) = n.trim().parse()
            {
                rows.insert(name.into(), n);
            }
        }
    }
    let named = crate::files::queries(dir)?;
    Ok(named
        .into_iter()
        .map(|q| Query {
            rows: rows.get(&q.name).copied(),
            name: q.name,
            texts: vec![q.text],
        })
        .collect())
}
