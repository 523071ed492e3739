//! Tests of the choice of plans for a GPU: it gets those that its measured speeds make worthwhile.

use super::faults::ring;
use super::{Devices, GpuChoice};
use jindou_engine::ExecutorChoice;
use jindou_gpu::shim::{Shim, ShimOptions};
use jindou_gpu::{Backend, Calibration, LazyGpu};
use jindou_plan::{Plan, PlanOptions, Weight, parse, plan};
use jindou_store::Snapshot;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn devices(speeds: Option<Calibration>) -> Devices {
    let open = || {
        let shim = Shim::open(ShimOptions::default()).map_err(|e| e.to_string())?;
        Ok(Arc::new(shim) as Arc<dyn Backend>)
    };
    let gpu = LazyGpu::with_opener(Box::new(open), Duration::from_secs(60));
    Devices::with(vec![match speeds {
        Some(speeds) => gpu.with_calibration(speeds),
        None => gpu,
    }])
}

/// Speeds of an old card behind a slow link.
fn slow() -> Calibration {
    Calibration {
        stream: 5e9,
        random: vec![(1e9, 1e9)],
        launch: 50e-6,
        sync: 500e-6,
        upload: 5e8,
        download: 5e8,
    }
}

fn heavy(snapshot: &Snapshot) -> Plan {
    let text = "PREFIX : <http://e/> SELECT ?a ?d { ?a :p ?b . ?b :p ?c . ?c :p ?d }";
    let mut plan = plan(&parse(text).unwrap(), snapshot, &PlanOptions::default()).unwrap();
    plan.weight = Weight::Heavy;
    plan
}

fn is_there(devices: &Devices, plan: &Plan, snapshot: &Snapshot, threads: usize) -> bool {
    let choice = devices.choose(plan, snapshot, GpuChoice::Auto, threads);
    matches!(choice.unwrap(), ExecutorChoice::Rather(_))
}

#[test]
fn heavy_plans_go_to_a_fast_card_and_not_to_a_slow_one() {
    let (_folder, snapshot) = ring(3000);
    let mut plan = heavy(&snapshot);
    let (fast, old) = (devices(Some(Calibration::h200())), devices(Some(slow())));
    assert!(is_there(&fast, &plan, &snapshot, 1));
    assert!(!is_there(&old, &plan, &snapshot, 1));
    // With enough threads the CPU finishes before the card would return a count.
    assert!(!is_there(&fast, &plan, &snapshot, 1000));
    // A demanded GPU gets every plan.
    let demanded = old.choose(&plan, &snapshot, GpuChoice::On, 1).unwrap();
    assert!(matches!(demanded, ExecutorChoice::Demanded(_)));
    for (devices, which) in [(&fast, "the GPU"), (&old, "the CPU")] {
        let lines = devices.explain(&plan, &snapshot, GpuChoice::Auto, 1);
        let lines: Vec<&str> = lines.lines().collect();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].starts_with("cpu: about "), "{lines:?}");
        assert!(
            lines[1].starts_with("gpu: about ") && lines[1].ends_with(which),
            "{lines:?}"
        );
        assert_eq!(devices.explain(&plan, &snapshot, GpuChoice::Off, 1), "");
    }
    plan.weight = Weight::Light;
    assert!(!is_there(&fast, &plan, &snapshot, 1));
}

/// A segment whose transfer alone would make a plan too slow is transferred once plans have lost as much time without
/// it.
#[test]
fn what_is_not_there_comes_when_its_absence_has_cost_its_transfer() {
    let (_folder, snapshot) = ring(3000);
    let plan = heavy(&snapshot);
    let speeds = Calibration {
        upload: 2e7,
        ..Calibration::h200()
    };
    let devices = devices(Some(speeds));
    let first = (0..1000).position(|_| is_there(&devices, &plan, &snapshot, 1));
    let first = first.expect("it comes in the end");
    assert!(first > 1, "{first}");
}

/// The first heavy plan runs on the CPU while the device is measured; the measurement then shows how slow the shim is.
#[test]
fn speeds_are_measured_in_the_background() {
    let (_folder, snapshot) = ring(300);
    let plan = heavy(&snapshot);
    let devices = devices(None);
    let began = Instant::now();
    assert!(!is_there(&devices, &plan, &snapshot, 1));
    assert!(began.elapsed() < Duration::from_secs(5));
    let gpu = devices.gpu(true).unwrap().unwrap();
    while gpu.predict(&plan, &snapshot, 1).is_none() {
        assert!(began.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(5));
    }
    let p = gpu.predict(&plan, &snapshot, 1).unwrap();
    assert!(p.gpu() > 0.0 && p.gpu().is_finite() && p.cpu > 0.0, "{p}");
    assert!(
        !p.is_worth_it(),
        "kernels on the CPU are slower than the CPU's engine: {p}"
    );
}
