//! Devices and small graphs for tests.

#![allow(dead_code)]

use jindou_gpu::Backend;
use jindou_gpu::shim::{Shim, ShimOptions};
use jindou_store::Snapshot;
use jindou_store::testing::store_of;
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

/// The folder `part` of the shared inputs, or `None` with a word about it.
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
