//! The progress bar of a load: triples, rate, phase and time left.

use indicatif::{ProgressBar, ProgressStyle};
use jindou::{Progress, RECLUSTER_PHASES};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Shows a [`Progress`] at a terminal until it is dropped. Shows nothing if `quiet` or without a terminal.
pub struct Bar {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Bar {
    pub fn start(progress: Arc<Progress>, total: Option<u64>, quiet: bool) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        if quiet {
            return Self { stop, thread: None };
        }
        let seen = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let bar = ProgressBar::new(1000);
            bar.set_style(
                ProgressStyle::with_template("{prefix:>22} [{bar:30}] {msg}")
                    .unwrap_or_else(|_| ProgressStyle::default_bar())
                    .progress_chars("=> "),
            );
            let start = Instant::now();
            let (mut phase, mut phase_start) = (0, start);
            while !seen.load(Ordering::Relaxed) {
                draw(&bar, &progress, total, start, &mut phase, &mut phase_start);
                std::thread::park_timeout(Duration::from_millis(100));
            }
            bar.finish_and_clear();
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }
}

fn draw(
    bar: &ProgressBar,
    p: &Progress,
    total: Option<u64>,
    start: Instant,
    phase: &mut u64,
    phase_start: &mut Instant,
) {
    let now = p.phase.load(Ordering::Relaxed);
    if now != *phase {
        *phase = now;
        *phase_start = Instant::now();
    }
    let quads = p.quads.load(Ordering::Relaxed);
    let seconds = start.elapsed().as_secs_f64();
    let part = if now == 0 {
        total
            .filter(|&t| t > 0)
            .map(|t| p.done.load(Ordering::Relaxed) as f64 / t as f64)
    } else {
        Some(p.phase_permille.load(Ordering::Relaxed) as f64 / 1000.0)
    };
    // A recluster's first phases have the same names as those of a load, so its list serves both.
    let name = RECLUSTER_PHASES.get(now as usize);
    bar.set_prefix(name.copied().unwrap_or("working"));
    let left = match part {
        Some(x) if x > 0.01 => {
            let gone = phase_start.elapsed().as_secs_f64();
            format!(
                ", {:.0} s left in this phase",
                gone / x * (1.0 - x).max(0.0)
            )
        }
        _ => String::new(),
    };
    bar.set_position((part.unwrap_or(0.0).clamp(0.0, 1.0) * 1000.0) as u64);
    bar.set_message(format!(
        "{:.1} M triples, {:.2} M/s, {seconds:.0} s{left}",
        quads as f64 / 1e6,
        quads as f64 / 1e6 / seconds.max(0.001)
    ));
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(t) = self.thread.take() {
            t.thread().unpark();
            let _ = t.join();
        }
    }
}
