//! The arrays of a segment in the form that kernels read.

use crate::device::ALIGN;
use crate::params;

/// The arrays of a segment in the form that kernels read, before they are on the device.
pub(crate) struct Described<'a> {
    /// The parameters, with addresses 0.
    pub params: params::SegmentParams,
    pub table: &'a [u8],
    pub keys: &'a [u32],
    pub offsets: &'a [u32],
    /// True if the arrays were computed, because those of the store have a form that kernels do not read.
    pub is_made: bool,
}

impl<'a> Described<'a> {
    fn places(&self) -> [usize; 4] {
        let keys = self.table.len().next_multiple_of(ALIGN);
        let offsets = (keys + size_of_val(self.keys)).next_multiple_of(ALIGN);
        let end = (offsets + size_of_val(self.offsets)).next_multiple_of(ALIGN);
        [0, keys, offsets, end]
    }

    /// Bytes of the index: finder, keys and offsets, each aligned.
    pub fn index_bytes(&self) -> usize {
        self.places()[3]
    }

    /// The arrays of the index, each with its offset in bytes.
    pub fn parts(&self) -> Vec<(usize, &'a [u8])> {
        let [table, keys, offsets, _] = self.places();
        vec![
            (table, self.table),
            (keys, bytemuck::cast_slice(self.keys)),
            (offsets, bytemuck::cast_slice(self.offsets)),
        ]
    }

    /// The parameters if the index and the neighbours are at these addresses. An empty array has address 0.
    pub fn at(&self, index: u64, neighbours: u64) -> params::SegmentParams {
        let mut p = self.params;
        let [table, keys, offsets, _] = self.places();
        let place = |at: usize, bytes: usize| if bytes == 0 { 0 } else { index + at as u64 };
        p.table = place(table, self.table.len());
        p.keys = place(keys, self.keys.len());
        p.offsets = place(offsets, self.offsets.len());
        p.neighbours = if p.edges == 0 { 0 } else { neighbours };
        p
    }
}
