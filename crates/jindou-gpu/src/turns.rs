//! Queries that run on a device at the same time: how many share its memory, and when it has none.

use crate::device::Device;
use jindou_model::sync;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

/// Counts the running queries. When there has been none for a while, memory that nothing uses goes back to the system.
pub(crate) struct Turns {
    device: Arc<Device>,
    idle: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: u64,
    /// When the last one ended.
    ended: Option<Instant>,
    /// Somebody waits to trim.
    waiting: bool,
}

/// One running query.
pub(crate) struct Turn(Arc<Turns>);

impl Turns {
    pub fn new(device: &Arc<Device>, idle: Duration) -> Arc<Self> {
        Arc::new(Self {
            device: Arc::clone(device),
            idle,
            state: Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        sync::lock(&self.state)
    }

    /// A query begins; it ends when the guard goes.
    pub fn begin(self: &Arc<Self>) -> Turn {
        self.state().running += 1;
        Turn(Arc::clone(self))
    }

    /// Queries that run, at least 1.
    pub fn running(&self) -> u64 {
        self.state().running.max(1)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.running -= 1;
        if state.running > 0 {
            return;
        }
        state.ended = Some(Instant::now());
        if !state.waiting {
            let (turns, idle) = (Arc::downgrade(&self.0), self.0.idle);
            let waiter = std::thread::Builder::new().name("gpu-idle".into());
            // Without a thread for it, the next query's end tries again.
            state.waiting = waiter.spawn(move || trim_when_idle(&turns, idle)).is_ok();
        }
    }
}

fn trim_when_idle(turns: &Weak<Turns>, idle: Duration) {
    let mut wait = idle;
    loop {
        std::thread::sleep(wait);
        let Some(turns) = turns.upgrade() else {
            return;
        };
        let mut state = turns.state();
        let past = state.ended.map_or(idle, |at| at.elapsed());
        if state.running > 0 {
            state.waiting = false;
            return;
        }
        if past >= idle {
            state.waiting = false;
            drop(state);
            turns.device.trim();
            return;
        }
        wait = idle - past;
    }
}
