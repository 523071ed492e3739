//! Devices and small graphs for tests.
//!
//! Tests that use [`TestDevice`] or [`device`] run on the shim, or, with `JINDOU_TEST_DEVICE=card` in the environment,
//! on this machine's GPU. Tests that need the shim (delayed work, counted requests, injected faults) always use it.

mod small_pages;

use jindou_engine::{CollectSink, ExecOptions, QueryTerms, execute_streaming};
use jindou_gpu::shim::{Shim, ShimOptions};
use jindou_gpu::{Backend, GpuExecutor, GpuOptions, ResultUse};
use jindou_plan::{Plan, PlanOptions, parse, plan};
use jindou_store::Snapshot;
use jindou_store::testing::{changed, store_of};
use oxrdf::{GraphName, Literal, NamedNode, Quad};
use small_pages::SmallPages;
use std::sync::{Arc, OnceLock};

/// The environment variable that selects the device.
const DEVICE: &str = "JINDOU_TEST_DEVICE";

/// This machine's GPU if tests are to run on it, opened once; `None` for the shim. Panics if there is no GPU, or if the
/// variable has an unknown value.
fn card() -> Option<Arc<dyn Backend>> {
    static CARD: OnceLock<Result<Option<Arc<dyn Backend>>, String>> = OnceLock::new();
    let opened = CARD.get_or_init(|| match std::env::var(DEVICE).as_deref() {
        Err(_) | Ok("" | "shim") => Ok(None),
        Ok("card") => jindou_gpu::open().map(Some),
        Ok(other) => Err(format!("'{other}' is not one of card, shim")),
    });
    match opened {
        Ok(card) => card.clone(),
        Err(why) => panic!("{DEVICE} asks for a device that cannot be had: {why}"),
    }
}

/// A device for a test.
pub struct TestDevice {
    pub backend: Arc<dyn Backend>,
    /// The shim; `None` for a GPU.
    shim: Option<Arc<Shim>>,
}

impl TestDevice {
    /// A shim with these options, even if tests run on a GPU.
    pub fn on_shim(options: ShimOptions) -> Self {
        let shim = Arc::new(Shim::open(options).unwrap());
        Self {
            backend: shim.clone(),
            shim: Some(shim),
        }
    }

    /// A shim with these options, or the GPU; with small pages, if the options say so.
    pub fn open(options: ShimOptions) -> Self {
        match card() {
            None => Self::on_shim(options),
            Some(card) if options.page > 0 => Self {
                backend: Arc::new(SmallPages::new(card, options.page)),
                shim: None,
            },
            Some(card) => Self {
                backend: card,
                shim: None,
            },
        }
    }

    /// Bytes of device memory held by the pool. Always 0 on a GPU: all tests share its pool, so a test cannot tell
    /// which bytes are its own.
    pub fn reserved(&self) -> u64 {
        self.shim.as_ref().map_or(0, |s| s.holdings().reserved)
    }

    /// Panics if memory or markers are still allocated. Does nothing for a GPU.
    pub fn holds_nothing(&self, case: &str) {
        if let Some(shim) = &self.shim {
            let held = shim.holdings();
            assert_eq!((held.device, held.pinned, held.marks), (0, 0, 0), "{case}");
        }
    }
}

/// The device; a shim runs threads in an order drawn from `seed`.
pub fn device(seed: u64) -> Arc<dyn Backend> {
    TestDevice::open(ShimOptions {
        seed,
        ..ShimOptions::default()
    })
    .backend
}

/// The rows of a plan on a device, sorted.
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

/// The rows of a plan on the CPU, sorted.
pub fn rows_here(plan: &Plan, snapshot: &Snapshot) -> Vec<Vec<u32>> {
    let mut sink = CollectSink::default();
    let (options, terms) = (ExecOptions::default(), QueryTerms::new());
    execute_streaming(plan, snapshot, &options, &terms, &mut sink).unwrap();
    let mut rows: Vec<Vec<u32>> = sink.rows().map(<[u32]>::to_vec).collect();
    rows.sort_unstable();
    rows
}

/// The plan of a query with the prefix `:` for `http://e/`.
pub fn native(snapshot: &Snapshot, text: &str) -> Plan {
    let text = format!("PREFIX : <http://e/> {text}");
    plan(&parse(&text).unwrap(), snapshot, &PlanOptions::default()).unwrap()
}

/// A snapshot of [`ring`] with edges added (`true`) or removed (`false`): numbers of subject and object, and the
/// predicate.
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

/// `n` nodes in a ring, each with an edge `:p` to the next `reach` nodes, `:q` to the seventh node after it, and `:v`
/// to its number.
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
