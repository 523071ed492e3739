//! The host's requests to a device, counted by the shim. On a GPU each takes time, whatever the kernels do.

use crate::common::{edited, logging, native, ring, rows_here, rows_on, shim, until};
use jindou_engine::{CollectSink, ExecOptions, QueryTerms, execute_on};
use jindou_gpu::shim::{HostTraffic, Shim, ShimOptions};
use jindou_gpu::{GpuExecutor, GpuOptions, Kernel, ResultUse};
use jindou_plan::Plan;
use jindou_store::Snapshot;
use std::sync::Arc;
use std::time::Duration;

/// Bytes that a plan uploads in each run: the intervals from which it starts.
const OF_A_PLAN: u64 = 264;

fn device() -> (Arc<Shim>, GpuExecutor) {
    let shim = shim(ShimOptions::default());
    (shim.clone(), GpuExecutor::new(shim))
}

/// The requests of a run. Checks that it returns the CPU's rows.
fn traffic_of(shim: &Shim, gpu: &GpuExecutor, plan: &Plan, snapshot: &Snapshot) -> HostTraffic {
    let want = rows_here(plan, snapshot);
    let _ = shim.take_traffic();
    let rows = rows_on(gpu, plan, snapshot, &GpuOptions::default()).unwrap();
    let traffic = shim.take_traffic();
    assert_eq!(rows, want);
    traffic
}

#[test]
fn an_update_of_one_triple_uploads_its_overlay_and_no_segment() {
    let (_folder, base) = ring(3000, 5);
    for text in [
        // The queries start from a constant's list, from keys, and lead into the updated predicate.
        "SELECT ?b ?c WHERE { :n1 :p ?b . ?b :q ?c }",
        "SELECT ?a ?b ?c WHERE { ?a :q ?b . ?b :p ?c }",
        "SELECT ?a ?c WHERE { ?a :p ?b . ?b :v ?c }",
    ] {
        let (shim, gpu) = device();
        let whole = traffic_of(&shim, &gpu, &native(&base, text), &base);
        assert!(whole.upload_bytes > 20_000, "{text}: {whole:?}");
        // Each snapshot has some edits relative to the base: an edge added, a key's last edge removed, or several at
        // once.
        for edits in [
            &[(1, "p", 900, true)][..],
            &[(7, "q", 14, false)],
            &[
                (1, "p", 900, true),
                (1, "q", 2000, true),
                (2, "q", 9, false),
            ],
        ] {
            let snapshot = edited(&base, edits);
            let plan = native(&snapshot, text);
            let first = traffic_of(&shim, &gpu, &plan, &snapshot);
            let again = traffic_of(&shim, &gpu, &plan, &snapshot);
            // The base's own version needs no new upload either.
            let before = traffic_of(&shim, &gpu, &native(&base, text), &base);
            let message = format!("{text}, {edits:?}: {first:?}, {again:?}, before: {before:?}");
            assert!(
                first.upload_bytes < 1500 && first.uploads <= 12,
                "{message}"
            );
            assert!(again.upload_bytes <= OF_A_PLAN, "{message}");
            assert!(before.upload_bytes <= OF_A_PLAN, "{message}");
        }
    }
}

#[test]
fn overlays_of_many_versions_share_the_room_behind_a_segment() {
    let (_folder, base) = ring(500, 3);
    let (shim, gpu) = device();
    let text = "SELECT ?a ?b ?c WHERE { ?a :q ?b . ?b :p ?c }";
    traffic_of(&shim, &gpu, &native(&base, text), &base);
    let mut copied = 0;
    for n in 0..40u32 {
        let edits: Vec<_> = (0..=n).map(|i| (i, "p", i + 100, true)).collect();
        let snapshot = edited(&base, &edits);
        let t = traffic_of(&shim, &gpu, &native(&snapshot, text), &snapshot);
        copied += t.copies;
    }
    // The neighbours were copied once, to a buffer with space for all overlays.
    assert!(copied <= 2, "{copied} copies inside the device");
    let (held, now) = (shim.holdings().device, gpu.cache().bytes());
    assert!(now <= held && held < 400_000, "{held}, {now} in the cache");
}

#[test]
fn a_warm_query_pins_nothing_uploads_no_segment_and_waits_once_a_step() {
    let (_folder, snapshot) = ring(300, 4);
    let (shim, gpu) = device();
    let text = "SELECT ?a ?b ?c WHERE { ?a :p ?b . ?b :p ?c . ?c :q ?d }";
    let plan = native(&snapshot, text);
    let cold = traffic_of(&shim, &gpu, &plan, &snapshot);
    // At least two segments, at most two copies each, and both halves of the staging memory.
    assert!(cold.uploads >= 2 && cold.uploads <= 8, "{cold:?}");
    let warm = traffic_of(&shim, &gpu, &plan, &snapshot);
    let steps = plan.exploration().unwrap().steps.len() as u64;
    assert!(warm.pinned == 0 && warm.uploads <= 1, "{warm:?}");
    assert!(warm.upload_bytes <= OF_A_PLAN, "{warm:?}");
    // One wait for each step's count, and one for the result.
    assert!(warm.syncs <= steps + 1, "{steps} steps: {warm:?}");
    // The counters are cleared once, and the state of each prefix sum.
    assert!(warm.fills <= 1 + steps, "{steps} steps: {warm:?}");
    // One allocation for the counters, at most two per step, and one for the plan's intervals.
    assert!(warm.allocations <= 2 + 2 * steps, "{steps} steps: {warm:?}");
    // A query that only counts rows copies back only the count.
    let ran = gpu.execute(&plan, &snapshot, ResultUse::Count, &GpuOptions::default());
    ran.unwrap();
    let count = shim.take_traffic();
    assert!(count.download_bytes <= 64, "{count:?}");
}

/// The last step of a count produces no rows, however the count is written; other steps do.
#[test]
fn a_count_of_rows_makes_none_of_the_last_step() {
    use Kernel::{Expand, ExpandAny, ExpandWithin, Intersect};
    const MAKERS: [Kernel; 4] = [Expand, ExpandWithin, ExpandAny, Intersect];
    let (_folder, base) = ring(300, 4);
    let patched = edited(&base, &[(1, "p", 90, true), (7, "p", 8, false)]);
    let shim = logging();
    let gpu = GpuExecutor::new(shim.clone());
    let made = |shim: &Shim| {
        let log = shim.take_log();
        log.iter().filter(|(k, _)| MAKERS.contains(k)).count()
    };
    for (pattern, makers) in [
        // Number of launches that produce rows: one per expansion, none if each row has one neighbour, and none for the
        // last step.
        ("?a :q ?b . ?b :p ?c", 0),
        (":n1 :p ?a . :n2 :p ?b", 0),
        (":n1 :p ?b . ?b ?p ?c", 1),
        ("?a :p ?b . ?c :p ?d", 2),
        ("?a :p ?b . ?b :p ?c", 1),
    ] {
        for snapshot in [&base, &patched] {
            let plan = native(snapshot, &format!("SELECT * WHERE {{ {pattern} }}"));
            let rows = rows_here(&plan, snapshot).len() as u64;
            assert!(rows > 10, "{pattern}");
            let _ = (shim.take_log(), shim.take_traffic());
            let options = GpuOptions::default();
            let r = gpu.execute(&plan, snapshot, ResultUse::Count, &options);
            assert_eq!(r.unwrap().rows, rows, "{pattern}");
            assert!(shim.take_traffic().download_bytes <= 64, "{pattern}");
            assert_eq!(made(&shim), makers, "{pattern}");
            // The same query with the count as an operator of the engine, which gets rows without columns.
            let text = format!("SELECT (COUNT(*) AS ?n) WHERE {{ {pattern} }}");
            let plan = native(snapshot, &text);
            let options = ExecOptions::default();
            let (terms, mut sink) = (QueryTerms::new(), CollectSink::default());
            execute_on(&plan, snapshot, &options, &terms, &gpu, &mut sink).unwrap();
            let mut term = vec![];
            let id = jindou_model::VertexId(sink.ids[0]);
            assert!(terms.term(id, &mut term) || snapshot.term(id, &mut term));
            let digits = rows.to_string();
            assert_eq!(term[1..], *digits.as_bytes(), "{pattern}: {term:?}");
            assert!(shim.take_traffic().download_bytes <= 64, "{pattern}");
            assert_eq!(made(&shim), makers, "{pattern}");
        }
    }
    // The rows do not fit in the memory.
    let plan = native(&base, "SELECT * WHERE { ?a :p ?b . ?c :p ?d }");
    let options = GpuOptions {
        table_bytes: Some(400_000),
        ..GpuOptions::default()
    };
    let r = gpu.execute(&plan, &base, ResultUse::Count, &options);
    assert_eq!(r.unwrap().rows, 1200 * 1200);
}

#[test]
fn long_results_come_in_parts() {
    let (_folder, snapshot) = ring(800, 1);
    let (shim, gpu) = device();
    let plan = native(&snapshot, "SELECT ?a ?b WHERE { ?a :q ?x . ?b :q ?y }");
    let t = traffic_of(&shim, &gpu, &plan, &snapshot);
    // 640,000 rows of two columns, in ten blocks, through two pinned buffers.
    assert!(t.downloads >= 20 && t.downloads <= 26, "{t:?}");
    assert!(t.download_bytes >= 640_000 * 8, "{t:?}");
    assert!(t.pinned <= 4, "{t:?}");
}

/// A table never has more rows than 32-bit row numbers can express, however much memory there is.
#[test]
fn tables_are_cut_at_the_most_rows_where_memory_is_plenty() {
    let (_folder, snapshot) = ring(200, 1);
    let (_shim, gpu) = device();
    let plan = native(&snapshot, "SELECT ?a ?b WHERE { ?a :q ?x . ?b :q ?y }");
    let options = GpuOptions {
        table_rows: Some(4096),
        ..GpuOptions::default()
    };
    let rows = rows_on(&gpu, &plan, &snapshot, &options).unwrap();
    assert_eq!(rows, rows_here(&plan, &snapshot));
    assert_eq!(rows.len(), 40_000);
}

#[test]
fn an_idle_device_gives_unused_memory_back() {
    let (_folder, snapshot) = ring(300, 4);
    let shim = shim(ShimOptions::default());
    let gpu = GpuExecutor::idle_after(shim.clone(), Duration::from_millis(300));
    let plan = native(&snapshot, "SELECT ?a ?c WHERE { ?a :p ?b . ?b :p ?c }");
    for _ in 0..3 {
        rows_on(&gpu, &plan, &snapshot, &GpuOptions::default()).unwrap();
        // Between queries nothing is given back.
        assert_eq!(shim.take_traffic().trims, 0);
    }
    let held = shim.holdings();
    assert!(held.reserved > held.device, "{held:?}");
    let is_released = || shim.holdings().reserved <= shim.holdings().device;
    until(is_released, || format!("{:?}", shim.holdings()));
    assert_eq!(shim.take_traffic().trims, 1);
    // Cached data stays on the device.
    assert!(shim.holdings().device >= gpu.cache().bytes() && gpu.cache().bytes() > 0);
}
