//! The core that a thread may use.

use jindou::{Error, Result};

/// The cores that this thread may use, given back to it when this is dropped. Threads and processes that it starts meanwhile have those
/// that it has then.
pub struct Cores(libc::cpu_set_t);

impl Cores {
    pub fn of_this_thread() -> Result<Self> {
        // SAFETY: a set of cores is plain bits, for which zeros are a value; the call writes into it no more than its size.
        let (set, done) = unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            let size = size_of::<libc::cpu_set_t>();
            let done = libc::sched_getaffinity(0, size, &raw mut set);
            (set, done)
        };
        if done != 0 {
            let why = std::io::Error::last_os_error();
            return Err(Error::external(format!(
                "cannot read the cores of this thread: {why}"
            )));
        }
        Ok(Self(set))
    }

    /// The numbers of the cores.
    pub fn numbers(&self) -> Vec<usize> {
        let all = 0..libc::CPU_SETSIZE as usize;
        // SAFETY: the set is one that the system wrote, and the numbers are below its size.
        all.filter(|&c| unsafe { libc::CPU_ISSET(c, &self.0) })
            .collect()
    }

    /// Leaves one core to this thread.
    pub fn only(&self, core: usize) -> Result<()> {
        // SAFETY: as above; the number comes from the set.
        let set = unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(core, &mut set);
            set
        };
        restrict(&set)
    }
}

impl Drop for Cores {
    fn drop(&mut self) {
        let _ = restrict(&self.0);
    }
}

fn restrict(set: &libc::cpu_set_t) -> Result<()> {
    // SAFETY: the call reads the set, which lives through it, no further than its size.
    let done = unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), set) };
    if done != 0 {
        let why = std::io::Error::last_os_error();
        return Err(Error::external(format!(
            "cannot start a thread on one core: {why}"
        )));
    }
    Ok(())
}
