//! Tests that a plan runs on the GPU exactly if the GPU's measured speeds make that worthwhile.

use super::faults::ring;
use super::{Chosen, Devices, GpuChoice};
use crate::Runtime;
use jindou_engine::{Executor, ExecutorChoice};
use jindou_gpu::shim::{Shim, ShimOptions};
use jindou_gpu::{Backend, Calibration, LazyGpu};
use jindou_plan::{Plan, PlanOptions, Weight, parse, plan};
use jindou_store::Snapshot;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Devices with an open GPU, which is the shim with these speeds.
fn devices(speeds: Option<Calibration>) -> Devices {
    let devices = unopened(speeds);
    assert!(devices.gpu(true).unwrap().is_some());
    devices
}

/// The shim as a GPU that takes this long to open.
fn shim(opening: Duration) -> LazyGpu {
    let open = move || {
        std::thread::sleep(opening);
        let shim = Shim::open(ShimOptions::default()).map_err(|e| e.to_string())?;
        Ok(Arc::new(shim) as Arc<dyn Backend>)
    };
    LazyGpu::with_opener(Box::new(open), Duration::from_secs(60))
}

fn unopened(speeds: Option<Calibration>) -> Devices {
    let gpu = shim(Duration::ZERO);
    Devices::with(vec![match speeds {
        Some(speeds) => gpu.with_calibration(speeds),
        None => gpu,
    }])
}

/// Speeds of an old GPU with a slow link.
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
    matches!(choice.unwrap().executor, ExecutorChoice::Rather(_))
}

#[test]
fn heavy_plans_go_to_a_fast_card_and_not_to_a_slow_one() {
    let (_folder, snapshot) = ring(3000);
    let mut plan = heavy(&snapshot);
    let (fast, old) = (devices(Some(Calibration::h200())), devices(Some(slow())));
    assert!(is_there(&fast, &plan, &snapshot, 1));
    assert!(!is_there(&old, &plan, &snapshot, 1));
    // With enough threads the CPU finishes before the GPU could return the number of rows.
    assert!(!is_there(&fast, &plan, &snapshot, 1000));
    // With `GpuChoice::On` the plan runs on the GPU even if that is slower.
    let demanded = old.choose(&plan, &snapshot, GpuChoice::On, 1).unwrap();
    assert!(matches!(demanded.executor, ExecutorChoice::Demanded(_)));
    for (devices, which) in [(&fast, "the GPU"), (&old, "the CPU")] {
        let lines = devices.explain(&plan, &snapshot, GpuChoice::Auto, 1);
        let lines: Vec<&str> = lines.lines().collect();
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert!(lines[0].starts_with("cpu: about "), "{lines:?}");
        assert!(lines[1].starts_with("gpu: about "), "{lines:?}");
        let chosen = format!("chosen: {which}");
        assert!(lines[2].starts_with(&chosen), "{lines:?}");
        assert_eq!(devices.explain(&plan, &snapshot, GpuChoice::Off, 1), "");
    }
    plan.weight = Weight::Light;
    assert!(!is_there(&fast, &plan, &snapshot, 1));
}

/// Plans that run on the CPU share its threads, so a further plan is expected to take longer there.
#[test]
fn a_busy_cpu_leaves_more_to_the_card() {
    let (_folder, snapshot) = ring(3000);
    let plan = heavy(&snapshot);
    let devices = devices(Some(slow()));
    let threads = |devices: &Devices| {
        let text = devices.explain(&plan, &snapshot, GpuChoice::Auto, 8);
        let (_, after) = text.split_once(" on ").unwrap();
        after.split(' ').next().unwrap().parse::<usize>().unwrap()
    };
    let choose = || {
        let chosen = devices.choose(&plan, &snapshot, GpuChoice::Auto, 8);
        chosen.unwrap()
    };
    assert_eq!(threads(&devices), 8);
    let one = choose();
    assert!(matches!(one.executor, ExecutorChoice::Here));
    assert_eq!(threads(&devices), 4);
    let more: Vec<_> = (0..2).map(|_| choose()).collect();
    assert_eq!(threads(&devices), 2);
    drop((one, more));
    assert_eq!(threads(&devices), 8);
}

/// A light plan neither runs on a device nor causes one to be opened, whatever the option says.
#[test]
fn light_plans_never_go_to_a_device() {
    let (_folder, snapshot) = ring(30);
    let mut plan = heavy(&snapshot);
    plan.weight = Weight::Light;
    let open = || panic!("a device was opened for a light plan");
    let gpu = LazyGpu::with_opener(Box::new(open), Duration::from_secs(60));
    let devices = Devices::with(vec![gpu]);
    for choice in [GpuChoice::Off, GpuChoice::Auto, GpuChoice::On] {
        let chosen = devices.choose(&plan, &snapshot, choice, 1).unwrap();
        assert!(
            matches!(chosen.executor, ExecutorChoice::Here),
            "{choice:?}"
        );
    }
    let open = self::devices(Some(Calibration::ideal()));
    for choice in [GpuChoice::Auto, GpuChoice::On] {
        let text = open.explain(&plan, &snapshot, choice, 1);
        assert!(
            text.ends_with("the CPU, since the query is light\n"),
            "{text}"
        );
    }
}

/// If uploading segments would make a plan too slow, they are uploaded in the background while the plan runs on the
/// CPU.
#[test]
fn what_is_not_there_comes_in_the_background() {
    let (_folder, snapshot) = ring(3000);
    let plan = heavy(&snapshot);
    let speeds = Calibration {
        upload: 1e8,
        ..Calibration::h200()
    };
    let devices = devices(Some(speeds));
    let text = devices.explain(&plan, &snapshot, GpuChoice::Auto, 1);
    assert!(
        text.contains("they are being uploaded in the background"),
        "{text}"
    );
    assert!(!is_there(&devices, &plan, &snapshot, 1));
    let began = Instant::now();
    while !is_there(&devices, &plan, &snapshot, 1) {
        assert!(began.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A plan for which the device is predicted to be faster runs on the CPU again after its run on the device was slow.
#[test]
fn the_choice_follows_what_runs_took() {
    let (_folder, snapshot) = ring(3000);
    let plan = heavy(&snapshot);
    let devices = devices(Some(Calibration::h200()));
    let gpu = devices.gpu(true).unwrap().unwrap();
    let choose = || {
        let chosen = devices.choose(&plan, &snapshot, GpuChoice::Auto, 1);
        chosen.unwrap()
    };
    let is_gpu = |chosen: &Chosen| matches!(chosen.executor, ExecutorChoice::Rather(_));
    let first = choose();
    assert!(is_gpu(&first));
    // The first run uploads the segments.
    let mut rows = jindou_engine::CountSink::default();
    let options = jindou_engine::ExecOptions::default();
    gpu.whole(&plan, &snapshot, &options, &mut rows).unwrap();
    let before = gpu.predict(&plan, &snapshot, 1).unwrap();
    let warm = choose();
    assert!(is_gpu(&warm));
    warm.ran(true, Duration::from_secs_f64(3.0 * before.cpu), 81_000);
    // This time on the CPU is ignored, because the choice predicted a run on the device.
    warm.ran(false, Duration::from_secs(1000), 81_000);
    let after = gpu.predict(&plan, &snapshot, 1).unwrap();
    assert_eq!(after.cpu, before.cpu);
    assert!(after.gpu() > before.cpu, "{before}\n{after}");
    let chosen = choose();
    assert!(!is_gpu(&chosen));
    chosen.ran(false, Duration::from_secs_f64(20.0 * before.cpu), 81_000);
    assert!(
        is_gpu(&choose()),
        "{}",
        gpu.predict(&plan, &snapshot, 1).unwrap()
    );
}

/// A driver takes half a second to open; `explain` waits neither for that nor for the measurement of the speeds.
#[test]
fn explaining_says_at_once_what_is_known() {
    let (_folder, snapshot) = ring(3000);
    let mut plan = heavy(&snapshot);
    let gpu = shim(Duration::from_millis(500));
    let runtime = Runtime::with_devices(Devices::with(vec![gpu]));
    let devices = runtime.devices();
    let began = jindou_testing::Stopwatch::start();
    let auto = devices.explain(&plan, &snapshot, GpuChoice::Auto, 1);
    let demanded = devices.explain(&plan, &snapshot, GpuChoice::On, 1);
    assert!(began.elapsed() < Duration::from_millis(400));
    assert_eq!(
        auto,
        "gpu: it is being opened, if there is one\nchosen: the CPU, until then\n"
    );
    assert!(
        demanded.contains("chosen: the GPU, which is required"),
        "{demanded}"
    );
    assert!(!runtime.wait_for_gpu(Duration::from_millis(1)));
    // A caller can wait explicitly.
    assert!(runtime.wait_for_gpu(Duration::from_secs(60)));
    let text = devices.explain(&plan, &snapshot, GpuChoice::Auto, 1);
    assert!(text.contains("\ngpu: about "), "{text}");
    plan.weight = Weight::Light;
    let text = devices.explain(&plan, &snapshot, GpuChoice::On, 1);
    assert!(
        text.ends_with("the CPU, since the query is light\n"),
        "{text}"
    );
    // Without a GPU, waiting ends at once and `explain` prints nothing.
    let none = LazyGpu::with_opener(
        Box::new(|| Err("no GPU is used: a test".into())),
        Duration::from_secs(60),
    );
    let runtime = Runtime::with_devices(Devices::with(vec![none]));
    assert!(runtime.wait_for_gpu(Duration::from_secs(60)));
    assert_eq!(
        runtime
            .devices()
            .explain(&plan, &snapshot, GpuChoice::Auto, 1),
        ""
    );
}

/// A driver takes half a second to open; the first queries run on the CPU at once, later ones on the device.
#[test]
fn first_queries_run_on_the_cpu_while_the_device_opens() {
    let (_folder, snapshot) = ring(3000);
    let plan = heavy(&snapshot);
    let gpu = shim(Duration::from_millis(500)).with_calibration(Calibration::ideal());
    let runtime = Runtime::with_devices(Devices::with(vec![gpu]));
    runtime.open_gpu();
    let began = Instant::now();
    let mut waited = Duration::ZERO;
    let mut here = 0;
    loop {
        let asked = Instant::now();
        let there = is_there(runtime.devices(), &plan, &snapshot, 1);
        waited = waited.max(asked.elapsed());
        if there {
            break;
        }
        here += 1;
        assert!(began.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(
        here > 5 && waited < Duration::from_millis(250),
        "{here}, {waited:?}"
    );
}

/// The first heavy plan runs on the CPU while the device's speeds are measured. Afterwards the shim is known to be
/// slow.
#[test]
fn speeds_are_measured_in_the_background() {
    let (_folder, snapshot) = ring(300);
    let plan = heavy(&snapshot);
    let devices = unopened(None);
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
