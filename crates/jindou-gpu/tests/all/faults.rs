//! A fault at each call to the device in turn: the query must return the correct rows or an error and leave no memory
//! allocated, and if the device still works, the next query must return the correct rows.

use crate::common::{edited, holds_nothing, native, ring, rows_here, rows_on, shim};
use jindou_gpu::faults::{DeviceFault, DeviceFaults};
use jindou_gpu::shim::ShimOptions;
use jindou_gpu::{Backend, Device, GpuExecutor, GpuOptions, RingOptions};
use jindou_model::{CancelToken, Error};
use std::sync::Arc;
use std::time::Duration;

const QUERIES: [&str; 9] = [
    "SELECT ?a ?b ?c WHERE { ?a :p ?b . ?b :p ?c . ?a :p ?c }",
    "SELECT ?a ?x ?c WHERE { ?a :p ?b . ?b ?x ?c . ?c :q ?d }",
    "SELECT ?a ?c WHERE { ?a :p ?b . ?b :q ?c FILTER(?c != :n3 && ?c != ?b) }",
    "SELECT ?s ?p ?o WHERE { ?s ?p ?o }",
    // Operators above patterns.
    "SELECT ?a ?v WHERE { ?a :p ?b . ?b :v ?v FILTER(?v >= 10 && ?v < 30) }",
    "SELECT DISTINCT ?c WHERE { ?a :p ?b . ?b :p ?c } LIMIT 50",
    "SELECT ?a ?b WHERE { ?a :p ?b FILTER EXISTS { ?b :p ?c } FILTER NOT EXISTS { ?b :v ?v FILTER(?v < 7) } }",
    "SELECT ?a ?b WHERE { ?a :p ?b MINUS { ?b :q ?c . ?c :p ?a } }",
    "SELECT ?a ?b ?c WHERE { ?a :p ?b OPTIONAL { ?b :q ?c . ?c :v ?v FILTER(?v > 20) } }",
];

#[test]
fn a_fault_at_any_call_gives_an_error_or_the_right_rows_and_leaves_nothing() {
    faults_at_calls(3, &|backend| GpuExecutor::new(backend));
}

/// Segments are uploaded through a ring of six small pieces that three threads fill, so which call gets the fault
/// differs from run to run.
#[test]
fn a_fault_while_threads_fill_the_ring_gives_an_error_or_the_right_rows() {
    faults_at_calls(5, &|backend| {
        let ring = RingOptions {
            threads: 3,
            piece: 256,
            ..RingOptions::default()
        };
        let device = Device::with_ring(backend, u64::MAX, ring);
        GpuExecutor::on(device, Duration::from_secs(60))
    });
}

#[test]
#[ignore = "half a minute: every call"]
fn a_fault_at_each_call_gives_an_error_or_the_right_rows_and_leaves_nothing() {
    faults_at_calls(1, &|backend| GpuExecutor::new(backend));
}

/// Runs queries on a device that fails at one call, for every `step`-th call and each kind of fault.
fn faults_at_calls(step: usize, open: &dyn Fn(Arc<dyn Backend>) -> GpuExecutor) {
    let (_folder, base) = ring(40, 3);
    let patched = edited(&base, &[(3, "p", 30, true), (4, "q", 11, false)]);
    let (mut runs, mut failed) = (0, 0);
    for (number, text) in QUERIES.iter().enumerate() {
        // Each query starts at a different call.
        let first = 1 + number as u64 % step as u64;
        let snapshot = if number % 2 == 0 { &patched } else { &base };
        let plan = native(snapshot, text);
        let want = rows_here(&plan, snapshot);
        assert!(!want.is_empty(), "{text}");
        let options = GpuOptions {
            // Small tables are divided, and kernels are timed, so that more kinds of calls occur.
            table_bytes: Some(250_000),
            profile: number == 2,
            ..GpuOptions::default()
        };
        let calls = {
            let shim = shim(ShimOptions::default());
            let whole = Arc::new(DeviceFaults::new(shim.clone(), DeviceFault::Error, 0));
            let gpu = open(whole.clone());
            assert_eq!(rows_on(&gpu, &plan, snapshot, &options).unwrap(), want);
            whole.calls()
        };
        assert!(calls > 15, "{text}: {calls} calls");
        for fault in DeviceFault::ALL {
            for at in (first..=calls).step_by(step) {
                let case = format!("{text}: {fault:?} at call {at} of {calls}");
                let shim = shim(ShimOptions::default());
                let broken = Arc::new(DeviceFaults::new(shim.clone(), fault, at));
                let gpu = open(broken.clone());
                runs += 1;
                match rows_on(&gpu, &plan, snapshot, &options) {
                    Ok(rows) => assert_eq!(rows, want, "{case}"),
                    Err(e) => {
                        failed += 1;
                        let e = e.to_string();
                        assert!(!e.is_empty() && !e.contains('\n'), "{case}: {e}");
                        assert_eq!(
                            gpu.failure().is_some(),
                            matches!(fault, DeviceFault::Lost | DeviceFault::Hang),
                            "{case}: {e}"
                        );
                    }
                }
                // Threads that wait query a varying number of times, so the call with the fault may not be reached.
                let came = broken.calls() >= at;
                broken.arm(0);
                match gpu.failure() {
                    None if fault != DeviceFault::Hang || !came => {
                        let again = rows_on(&gpu, &plan, snapshot, &options);
                        assert_eq!(again.unwrap(), want, "{case}, the next time");
                    }
                    // A lost device refuses at once.
                    _ => drop(rows_on(&gpu, &plan, snapshot, &options).unwrap_err()),
                }
                drop((gpu, broken));
                holds_nothing(&shim, &case);
            }
        }
    }
    println!("{runs} runs, of which {failed} failed");
    assert!(failed > runs / 2, "{failed} of {runs} failed");
}

/// A query that waits for an unresponsive device ends at its deadline, long before the device counts as lost.
#[test]
fn deadlines_hold_while_the_device_hangs() {
    let (_folder, snapshot) = ring(40, 3);
    let plan = native(&snapshot, QUERIES[0]);
    let shim = shim(ShimOptions::default());
    let slow =
        DeviceFaults::new(shim.clone(), DeviceFault::Hang, 1).patient(Duration::from_secs(3));
    let slow = Arc::new(slow);
    let gpu = GpuExecutor::new(slow.clone());
    let options = GpuOptions {
        cancel: CancelToken::with_deadline(Duration::from_millis(30)),
        ..GpuOptions::default()
    };
    let began = jindou_testing::Stopwatch::start();
    let e = rows_on(&gpu, &plan, &snapshot, &options).unwrap_err();
    assert!(matches!(e, Error::Timeout(_)), "{e}");
    assert!(began.elapsed() < Duration::from_secs(2));
    assert_eq!(slow.failure(), None);
    slow.lose("the test is over");
    drop((gpu, slow));
    holds_nothing(&shim, "after the deadline");
}
