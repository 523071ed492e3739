//! Measures a device's speeds: those that the cost model uses, and those of the host's calls.

use crate::figures::{Goal, say_figure};
use crate::{Options, median, say, seconds_between};
use jindou_gpu::{Calibration, Device, DeviceBuffer};
use jindou_model::{CancelToken, Result};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time for measuring the cost model's speeds, many times the time that a server allows.
const BUDGET: Duration = Duration::from_secs(5);

pub fn measure(device: &Arc<Device>, o: &Options) -> Result<bool> {
    let (speeds, refused) = Calibration::measure_and_say(device, BUDGET, &CancelToken::new())?;
    say(json!({ "speeds": speeds.to_json() }));
    // The speeds that a server measures in its 150 ms should be near those.
    let (quick, quick_refused) =
        Calibration::measure_and_say(device, BUDGET / 33, &CancelToken::new())?;
    say(json!({ "speeds_in_150_ms": quick.to_json() }));
    let all: Vec<&String> = refused.iter().chain(&quick_refused).collect();
    let count = Some(all.len() as f64);
    let more = json!({ "refused": all });
    say_figure(
        o,
        "speeds that cannot be",
        "figures",
        Some(Goal::AtMost(0.0)),
        count,
        more,
    );
    for (what, slow, fast) in [
        ("streaming", quick.stream, speeds.stream),
        ("copies to the device", quick.upload, speeds.upload),
        ("copies from the device", quick.download, speeds.download),
    ] {
        let what = format!("{what} in 150 ms, of what 5 s measure");
        let (goal, had) = (Goal::AtLeast(0.8), Some(slow / fast));
        say_figure(o, &what, "ratio", Some(goal), had, json!({}));
    }
    if let Some(file) = std::env::var_os("JINDOU_GPU_CALIBRATION").map(PathBuf::from) {
        let kept = speeds.save(&file, &device.identity());
        say(json!({ "kept": kept.is_ok(), "file": file.to_string_lossy() }));
    }
    for mib in [1usize, 64] {
        let bytes = mib << 20;
        let (mut alloc, mut fill, mut pin) = (vec![], vec![], vec![]);
        for _ in 0..o.repeat.max(3) {
            let began = Instant::now();
            let buffer = DeviceBuffer::new(device, bytes)?;
            device.sync()?;
            alloc.push(began.elapsed().as_secs_f64());
            let a = device.mark()?;
            buffer.clear()?;
            let b = device.mark()?;
            fill.push(seconds_between(device, a, b)?);
            let began = Instant::now();
            let pinned = device.alloc_host(bytes)?;
            pin.push(began.elapsed().as_secs_f64());
            // SAFETY: just allocated with this length, and no copy from or to it was started.
            unsafe { device.free_host(pinned, bytes) };
        }
        say(json!({
            "mib": mib, "allocate_us": median(&mut alloc) * 1e6, "fill_gb_s": bytes as f64 / median(&mut fill) / 1e9,
            "pin_us": median(&mut pin) * 1e6,
        }));
    }
    Ok(true)
}
