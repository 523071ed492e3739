//! Devices and small graphs for tests.

#![allow(dead_code)]

use jindou_engine::{CollectSink, ExecOptions, QueryTerms, execute_streaming};
use jindou_gpu::shim::{Shim, ShimOptions};
use jindou_gpu::{Backend, GpuExecutor, GpuOptions, ResultUse};
use jindou_plan::{Plan, PlanOptions, parse, plan};
use jindou_store::Snapshot;
use jindou_store::testing::{changed, store_of};
use oxrdf::{GraphName, Literal, NamedNode, Quad};
use std::path::PathBuf;
use std::sync::Arc;

/// The shim, its order drawn from a seed.
pub fn shim(seed: u64) -> Arc<dyn Backend> {
    Arc::new(
        Shim::open(ShimOptions {
            seed,
            ..ShimOptions::default()
        })
        .unwrap(),
    )
}

/// Rows of a plan on a device, sorted.
pub fn rows_on(
    gpu: &GpuExecutor,
    plan: &Plan,
    snapshot: &Snapshot,
    options: &GpuOptions,
) -> jindou_model::Result<Vec<Vec<u32>>> {
    let mut rows: Vec<Vec<u32>> = vec![];
    let mut sink = |columns: &[&[u32]], n: usize| {
        rows.extend((0..n).map(|i| columns.iter().map(|c| c[i]).collect()));
        Ok(())
    };
    let result = gpu.execute(plan, snapshot, ResultUse::Rows(&mut sink), options)?;
    assert_eq!(result.rows, rows.len() as u64);
    rows.sort_unstable();
    Ok(rows)
}

/// The CPU's.
pub fn rows_here(plan: &Plan, snapshot: &Snapshot) -> Vec<Vec<u32>> {
    let mut sink = CollectSink::default();
    let (options, terms) = (ExecOptions::default(), QueryTerms::new());
    execute_streaming(plan, snapshot, &options, &terms, &mut sink).unwrap();
    let mut rows: Vec<Vec<u32>> = sink.rows().map(<[u32]>::to_vec).collect();
    rows.sort_unstable();
    rows
}

/// A query over `http://e/` as a plan.
pub fn native(snapshot: &Snapshot, text: &str) -> Plan {
    let text = format!("PREFIX : <http://e/> {text}");
    plan(&parse(&text).unwrap(), snapshot, &PlanOptions::default()).unwrap()
}

/// The ring with edges added (`true`) or removed between nodes, as `(subject, predicate, object)`.
pub fn edited(snapshot: &Snapshot, edits: &[(u32, &str, u32, bool)]) -> Snapshot {
    let term = |name: String| {
        let iri = NamedNode::new_unchecked(format!("http://e/{name}"));
        jindou_model::term::encode(&iri.into())
    };
    let changes = edits.iter().map(|&(s, p, o, comes)| {
        let quad = [format!("n{s}"), p.to_owned(), format!("n{o}")].map(term);
        let [subject, predicate, object] = quad;
        ([subject, predicate, object, vec![]], comes)
    });
    changed(Snapshot::of_base(Arc::clone(snapshot.base())), changes)
}

/// `n` nodes in a ring: `:p` to the next `reach` ones, `:q` to the one seven further, `:v` to its number.
pub fn ring(n: u32, reach: u32) -> (tempfile::TempDir, Snapshot) {
    let iri = |name: String| NamedNode::new_unchecked(format!("http://e/{name}"));
    let node = |i: u32| iri(format!("n{}", i % n));
    let mut quads = vec![];
    for i in 0..n {
        for d in 1..=reach {
            quads.push(Quad::new(
                node(i),
                iri("p".into()),
                node(i + d),
                GraphName::DefaultGraph,
            ));
        }
        quads.push(Quad::new(
            node(i),
            iri("q".into()),
            node(i + 7),
            GraphName::DefaultGraph,
        ));
        let number = Literal::from(i64::from(i));
        quads.push(Quad::new(
            node(i),
            iri("v".into()),
            number,
            GraphName::DefaultGraph,
        ));
    }
    let (folder, base) = store_of(&quads);
    (folder, Snapshot::of_base(base))
}

/// The folder `part` of the shared inputs, or `None` with a message.
pub fn shared(part: &str) -> Option<PathBuf> {
    let root = std::env::var_os("JINDOU_SHARED").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    let path = root.join(part);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: there is no {}; set JINDOU_SHARED", path.display());
    None
}
