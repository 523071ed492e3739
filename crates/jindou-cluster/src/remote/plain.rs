//! Reads of lists of an unchanged base, without a message to its server.

use super::reader::{RemoteStore, damaged};
use super::summary::SegmentEntry;
use crate::transport::{ByteRange, Result};
use jindou_model::{Direction, PredicateId};
use std::time::Instant;

/// Byte offset of a list in its file, and its number of neighbours; `None` if the vertex is not a key.
type KeyPlace = Option<(u64, u32)>;

impl RemoteStore {
    /// Appends the default graph's lists of `keys` to `values`, and the end of each list to `ends`. Returns false, with
    /// nothing appended, if the lists must be requested by message: the summary has not arrived or exceeds the memory
    /// limit, or the lists have more than `most` neighbours, which a message splits into pages.
    ///
    /// # Errors
    /// The transport's errors, and an error if the peer sent invalid data. Then the appended values are invalid.
    pub fn lists(
        &self,
        (predicate, direction): (PredicateId, Direction),
        keys: &[u32],
        most: u32,
        (ends, values): (&mut Vec<u32>, &mut Vec<u32>),
        deadline: Instant,
    ) -> Result<bool> {
        let Some((entry, located)) = self.places((predicate, direction), keys) else {
            return Ok(false);
        };
        let total: u64 = located.iter().flatten().map(|&(_, n)| u64::from(n)).sum();
        let from = values.len();
        // The reply would be too large, or byte counts would exceed 32 bits.
        if total > u64::from(most.min(u32::MAX / 8)) {
            return Ok(false);
        }
        let ranges: Vec<ByteRange> = located
            .iter()
            .flatten()
            .map(|&(offset, n)| ByteRange { offset, len: 4 * n })
            .collect();
        values.resize(from + total as usize, 0);
        if !ranges.is_empty() {
            let file = self.file(entry.file, direction);
            let file = file.ok_or_else(|| damaged("summary"))?;
            let into = values.get_mut(from..).unwrap_or(&mut []);
            self.link()
                .read_many(file, &ranges, bytemuck::cast_slice_mut(into), deadline)?;
        }
        let mut end = from as u32;
        ends.extend(located.iter().map(|place| {
            end += place.map_or(0, |(_, n)| n);
            end
        }));
        if end as usize != values.len() {
            return Err(damaged("summary"));
        }
        Ok(true)
    }

    /// Numbers of neighbours of `keys` in the default graph, from the summary, without a read. `None` if a message must
    /// be sent; this is always so if the predicate has edges in named graphs.
    pub fn degrees(
        &self,
        (predicate, direction): (PredicateId, Direction),
        keys: &[u32],
    ) -> Option<Vec<u64>> {
        let (entry, located) = self.places((predicate, direction), keys)?;
        let degree = |place: KeyPlace| place.map_or(0, |(_, n)| u64::from(n));
        (entry.named_keys == 0).then(|| located.into_iter().map(degree).collect())
    }

    /// The location of each key's list in the segment file; `None` without a summary.
    fn places(
        &self,
        (predicate, direction): (PredicateId, Direction),
        keys: &[u32],
    ) -> Option<(SegmentEntry, Vec<KeyPlace>)> {
        let segment = self.segment(predicate, direction)?;
        if segment.entry.edges == 0 {
            return Some((segment.entry, vec![None; keys.len()]));
        }
        let summary = segment.summary.as_ref()?;
        let mut located = Vec::with_capacity(keys.len());
        summary.locate_many(keys, &mut located);
        Some((segment.entry, located))
    }

    /// Reads a few bytes at `places` positions in a segment file, for measurements.
    ///
    /// # Errors
    /// The transport's errors.
    pub fn touch(&self, places: u32, deadline: Instant) -> Result<()> {
        /// Length of a short list in bytes.
        const LIST: u32 = 16;
        let file = self.file(0, Direction::Out);
        let file = file.ok_or_else(|| damaged("catalogue"))?;
        let len = u64::from(LIST).min(file.len) as u32;
        let last = file.len - u64::from(len);
        let at = |i| last / u64::from(places.max(1)) * u64::from(i);
        let ranges: Vec<ByteRange> = (0..places)
            .map(|i| ByteRange { offset: at(i), len })
            .collect();
        let mut into = vec![0; len as usize * ranges.len()];
        self.link().read_many(file, &ranges, &mut into, deadline)
    }
}
