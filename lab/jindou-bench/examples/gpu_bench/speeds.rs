//! A device's speeds: those of the cost model, and what the host asks for besides.

use crate::{median, say, seconds_between};
use jindou_gpu::{Calibration, Device, DeviceBuffer};
use jindou_model::{CancelToken, Result};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time for the cost model's figures: many times what a server takes.
const BUDGET: Duration = Duration::from_secs(5);

pub fn measure(device: &Arc<Device>, repeat: usize) -> Result<bool> {
    let speeds = Calibration::measure(device, BUDGET, &CancelToken::new())?;
    say(json!({ "speeds": speeds.to_json() }));
    // What a server measures in its 150 ms should be near.
    let quick = Calibration::measure(device, BUDGET / 33, &CancelToken::new())?;
    say(json!({ "speeds_in_150_ms": quick.to_json() }));
    if let Some(file) = std::env::var_os("JINDOU_GPU_CALIBRATION").map(PathBuf::from) {
        let kept = speeds.save(&file, &device.identity());
        say(json!({ "kept": kept.is_ok(), "file": file.to_string_lossy() }));
    }
    for mib in [1usize, 64] {
        let bytes = mib << 20;
        let (mut alloc, mut fill, mut pin) = (vec![], vec![], vec![]);
        for _ in 0..repeat.max(3) {
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
            // SAFETY: just given, and nothing was copied to it.
            unsafe { device.free_host(pinned, bytes) };
        }
        say(json!({
            "mib": mib, "allocate_us": median(&mut alloc) * 1e6, "fill_gb_s": bytes as f64 / median(&mut fill) / 1e9,
            "pin_us": median(&mut pin) * 1e6,
        }));
    }
    Ok(true)
}
