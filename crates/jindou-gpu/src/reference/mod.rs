//! Checks every kernel against plain Rust code on random data: on the shim in tests, on a GPU in `bench/gpu.sh`.
//!
//! Each launch is recorded with the bytes that the kernel's comment says it moves, and a test compares these with the
//! bytes that the shim counts.

mod any;
mod expansion;
mod group;
mod model;
mod operators;
mod rows;
mod select;

pub use crate::random::XorShift;
pub use model::Model;

use crate::backend::Backend;
use crate::backend::Kernel;
use crate::buffer::DeviceBuffer;
use crate::device::Device;
use crate::params::STRIP_TILE;
use jindou_model::{Error, Result};
use std::sync::Arc;

/// Runs kernels, compares their results, and records the bytes that they should move.
pub struct Checker {
    device: Arc<Device>,
    random: XorShift,
    /// The launches so far, each with the bytes that its kernel's comment states.
    pub launches: Vec<(Kernel, u64)>,
    /// Number by which the row count passed by the host exceeds the true one, which kernels read on the device.
    /// Simulates a host that only knows an upper bound; 0 for exact counts.
    pub spare: u32,
    counts: Vec<DeviceBuffer>,
}

/// The names of the groups of checks.
pub const GROUPS: [&str; 12] = [
    "starts",
    "filters",
    "checks",
    "expand-one",
    "expansions",
    "intersections",
    "sets",
    "any",
    "checksums",
    "operators",
    "groups",
    "first-rows",
];

/// The error of a failed check.
fn wrong(what: impl Into<String>) -> Error {
    Error::Internal(what.into())
}

impl Checker {
    /// A checker on this device.
    #[must_use]
    pub fn new(backend: Arc<dyn Backend>, seed: u64) -> Self {
        let device = Device::new(backend);
        Self {
            device,
            random: XorShift::new(seed),
            launches: Vec::new(),
            spare: 0,
            counts: Vec::new(),
        }
    }

    /// Runs all checks with tables of about `rows` rows. The error names the kernel and the difference.
    pub fn all(&mut self, rows: u32) -> Result<()> {
        GROUPS.into_iter().try_for_each(|g| self.group(g, rows))
    }

    /// Runs the checks of one of [`GROUPS`].
    pub fn group(&mut self, group: &str, rows: u32) -> Result<()> {
        match group {
            "starts" => self.starts(rows),
            "filters" => self.filters(rows),
            "checks" => self.checks(rows),
            "expand-one" => self.expand_one(rows),
            "expansions" => self.expansions(rows),
            "intersections" => self.intersections(rows),
            "sets" => self.sets(rows),
            "any" => self.any(rows),
            "checksums" => self.checksums(rows),
            "operators" => self.operators(rows),
            "groups" => self.groups(rows),
            "first-rows" => self.first_rows(rows),
            other => Err(wrong(format!("no group of kernels is called '{other}'"))),
        }
    }

    fn upload<T: bytemuck::NoUninit>(&self, content: &[T]) -> Result<DeviceBuffer> {
        DeviceBuffer::with(&self.device, content)
    }

    fn room(&self, words: u64) -> Result<DeviceBuffer> {
        DeviceBuffer::new(&self.device, words as usize * 4)
    }

    fn zeros(&self, bytes: usize) -> Result<DeviceBuffer> {
        let b = DeviceBuffer::new(&self.device, bytes)?;
        b.clear()?;
        Ok(b)
    }

    /// The row count that the host passes for a table of `rows` rows, and the address of the true count (0 if they are
    /// equal).
    fn rows(&mut self, rows: u32) -> Result<(u32, u64)> {
        if self.spare == 0 {
            return Ok((rows, 0));
        }
        let count = self.upload(&[rows])?;
        let at = count.at();
        self.counts.push(count);
        Ok((rows + self.spare, at))
    }

    /// Runs a kernel over `units` and waits for it. Does nothing for 0 units (an empty strip), since a GPU rejects an
    /// empty grid.
    fn launch<P: bytemuck::NoUninit>(
        &mut self,
        kernel: Kernel,
        units: u64,
        p: &P,
        bytes: u64,
    ) -> Result<()> {
        // The host always knows the exact row count of these kernels.
        let begins = matches!(
            kernel,
            Kernel::StartIntervals
                | Kernel::StartRuns
                | Kernel::StartBits
                | Kernel::Mark
                | Kernel::Gather
                | Kernel::GroupAdd
                | Kernel::GroupSlots
                | Kernel::GroupRows
                | Kernel::GroupKeys
                | Kernel::GroupIds
        );
        let spare = match (begins, kernel.tile() == STRIP_TILE) {
            (false, false) => u64::from(self.spare),
            _ => 0,
        };
        let grid = kernel.grid(units + spare).unwrap_or(0);
        if grid == 0 {
            return Ok(());
        }
        self.launches.push((kernel, bytes));
        // SAFETY: callers build parameters over buffers that live until this returns, with the lengths that the
        // kernels document.
        unsafe { self.device.launch(kernel, grid, bytemuck::bytes_of(p))? };
        self.device.sync()
    }
}

/// The rows of several columns, sorted, so that equal multisets of rows compare equal.
fn sorted_rows(columns: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let n = columns.first().map_or(0, Vec::len);
    let mut rows: Vec<Vec<u32>> = (0..n)
        .map(|i| columns.iter().map(|c| c[i]).collect())
        .collect();
    rows.sort_unstable();
    rows
}

/// The ids of an ascending list that lie in a hull, and the bytes that clipping the list to it reads.
fn cut(list: &[u32], hull: [u32; 2]) -> (&[u32], u64) {
    let ([first, ..], [.., last]) = (list, list) else {
        return (list, 0);
    };
    let inside = |v: &u32| hull[0] <= *v && *v < hull[1];
    let ends = [*first < hull[0], *last >= hull[1] && *first < hull[1]];
    let searches = ends.iter().filter(|e| **e).count() as u64;
    let from = list.iter().position(inside).unwrap_or(0);
    let n = list.iter().filter(|v| inside(v)).count();
    (
        &list[from..from + n],
        8 + searches * (search_bytes(list.len()) - 4),
    )
}

/// Bytes that a binary search in a list of `n` ids reads.
fn search_bytes(n: usize) -> u64 {
    if n == 0 {
        0
    } else {
        4 * (u64::from(n.next_power_of_two().trailing_zeros()) + 1)
    }
}
