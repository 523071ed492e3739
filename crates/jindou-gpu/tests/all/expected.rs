//! Row counts that stay on the device: programs that produce many more rows than in earlier runs, and the number of
//! waits that are saved.

use crate::common::{logging, native, rows_here, rows_on, sum_here};
use jindou_gpu::shim::Shim;
use jindou_gpu::{GpuExecutor, GpuOptions, Kernel, ResultUse};
use jindou_plan::Plan;
use jindou_store::Snapshot;
use jindou_store::testing::store_of;
use jindou_testing::{named, triple};
use std::sync::Arc;

/// `:few` has five neighbours by `:p`, and `:many` has 300. Each of them has thirty neighbours by `:q`, and these have
/// up to two by `:r`. One node has 20,000 by `:q`, so that the longest list is a poor bound.
fn graph() -> (tempfile::TempDir, Snapshot) {
    let mut quads = vec![];
    let mut edge = |s: &str, p: &str, o: String| quads.push(triple(s, p, named(&o)));
    for i in 0..300 {
        let m = format!("m{i}");
        edge("many", "p", m.clone());
        for j in 0..30 {
            edge(&m, "q", format!("x{}", (i * 61 + j * 13) % 20_000));
        }
    }
    for i in 0..5 {
        edge("few", "p", format!("m{}", i * 50));
    }
    for i in 0..20_000 {
        let x = format!("x{i}");
        edge("hub", "q", x.clone());
        for j in 0..i % 3 {
            edge(&x, "r", format!("y{}", i * 2 + j));
        }
    }
    let (folder, base) = store_of(&quads);
    (folder, Snapshot::of_base(base))
}

fn device() -> (Arc<Shim>, GpuExecutor) {
    let shim = logging();
    (shim.clone(), GpuExecutor::new(shim))
}

fn plans(snapshot: &Snapshot) -> [Plan; 2] {
    ["few", "many"].map(|s| {
        let text = format!("SELECT ?b ?c ?d WHERE {{ :{s} :p ?b . ?b :q ?c . ?c :r ?d }}");
        native(snapshot, &text)
    })
}

/// Number of launches that measured lists since the last call, and number of waits.
fn work(shim: &Shim) -> (usize, u64) {
    let log = shim.take_log();
    let measures = [Kernel::Measure, Kernel::MeasureCut];
    let measured = log.iter().filter(|l| measures.contains(&l.0)).count();
    (measured, shim.take_traffic().syncs)
}

#[test]
fn a_run_begins_again_where_there_are_more_rows_than_expected() {
    let (_folder, snapshot) = graph();
    let [few, many] = plans(&snapshot);
    let want = rows_here(&many, &snapshot);
    assert!(want.len() > 8000, "{}", want.len());
    let (_, checksum) = sum_here(&many, &snapshot);
    for output in 0..3 {
        let (shim, gpu) = device();
        let run = |plan: &Plan| match output {
            0 => rows_on(&gpu, plan, &snapshot, &GpuOptions::default()).map(|rows| {
                assert!(plan.output.len() == 3 && (rows == want || rows.len() < 400));
                rows.len() as u64
            }),
            _ => {
                let of = match output {
                    1 => ResultUse::Checksum,
                    _ => ResultUse::Count,
                };
                let r = gpu.execute(plan, &snapshot, of, &GpuOptions::default());
                r.map(|r| {
                    let is_right = r.checksum == Some(checksum);
                    assert_eq!(is_right, output == 1 && r.rows > 400);
                    r.rows
                })
            }
        };
        for _ in 0..2 {
            assert!(run(&few).unwrap() < 400);
        }
        let _ = work(&shim);
        assert_eq!(run(&many).unwrap(), want.len() as u64);
        let (first, _) = work(&shim);
        assert_eq!(run(&many).unwrap(), want.len() as u64);
        let (second, waits) = work(&shim);
        // Lists are measured again, and not a second time.
        assert_eq!((first, second), (4, 2));
        assert!(waits <= 2, "{waits}");
        // A query with few rows runs as before.
        assert!(run(&few).unwrap() < 400);
        assert_eq!(work(&shim).0, 2);
    }
}

/// From the second run on there is a single wait instead of one per step, and the profile counts the same rows.
#[test]
fn a_plan_waits_once_when_it_is_known() {
    let (_folder, snapshot) = graph();
    let [_, many] = plans(&snapshot);
    let (shim, gpu) = device();
    let run = |wait_for_counts: bool| {
        let options = GpuOptions {
            wait_for_counts,
            ..GpuOptions::default()
        };
        let _ = work(&shim);
        let ran = gpu.execute(&many, &snapshot, ResultUse::Checksum, &options);
        let steps = ran.unwrap().profile.steps;
        let rows: Vec<_> = steps.iter().map(|s| (s.rows_in, s.rows_out)).collect();
        let bytes: Vec<f64> = steps.iter().map(|s| s.bytes()).collect();
        (work(&shim).1, rows, bytes)
    };
    let (first, rows, bytes) = run(false);
    let (second, again, more) = run(false);
    let (all, waited, most) = run(true);
    let waits = [first, second, all];
    assert!(first >= 2 && second == 1 && all >= 3, "{waits:?}");
    assert_eq!((&rows, &rows), (&again, &waited));
    assert_eq!((&bytes, &bytes), (&more, &most));
}
