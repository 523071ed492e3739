//! Lists of an unchanging store, without a message to its server.

use super::reader::{RemoteStore, damaged};
use crate::transport::{ByteRange, Moment, Result};
use jindou_model::{Direction, PredicateId};

/// The position of a list in its file, in bytes, and its number of neighbours; `None` for a key without a list.
type KeyPlace = Option<(u64, u32)>;

impl RemoteStore {
    /// Appends the default graph's lists of `keys` to `values`, and the end of each to `ends`. Returns false, with
    /// nothing appended, if a message must be sent instead: the summary does not fit into memory, or the lists have
    /// more than `most` neighbours, which a message splits into pages.
    ///
    /// # Errors
    /// The transport's errors, and an error for a peer that sent invalid data; the appended values are then invalid.
    pub fn lists(
        &self,
        (predicate, direction): (PredicateId, Direction),
        keys: &[u32],
        most: u32,
        (ends, values): (&mut Vec<u32>, &mut Vec<u32>),
        deadline: Moment,
    ) -> Result<bool> {
        let Some(located) = self.places((predicate, direction), keys, deadline)? else {
            return Ok(false);
        };
        let file = self.served(direction).file;
        let total: u64 = located.iter().flatten().map(|&(_, n)| u64::from(n)).sum();
        let from = values.len();
        // Too many for 32-bit byte counts.
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
            let into = values.get_mut(from..).unwrap_or(&mut []);
            self.peer()
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

    /// Numbers of neighbours of `keys` in the default graph, which need no read once the summary is present. `None` if
    /// a message has to be sent, as always when the predicate has edges in named graphs.
    ///
    /// # Errors
    /// As [`Self::lists`].
    pub fn degrees(
        &self,
        (predicate, direction): (PredicateId, Direction),
        keys: &[u32],
        deadline: Moment,
    ) -> Result<Option<Vec<u64>>> {
        if self
            .entry(predicate, direction)
            .is_none_or(|e| e.named_edges > 0)
        {
            return Ok(None);
        }
        let located = self.places((predicate, direction), keys, deadline)?;
        let degree = |place: KeyPlace| place.map_or(0, |(_, n)| u64::from(n));
        Ok(located.map(|all| all.into_iter().map(degree).collect()))
    }

    /// The offset of each key's list in the segment file and its length, if it exists. `None` if the summary does not
    /// fit into memory.
    fn places(
        &self,
        (predicate, direction): (PredicateId, Direction),
        keys: &[u32],
        deadline: Moment,
    ) -> Result<Option<Vec<KeyPlace>>> {
        let Some(entry) = self.entry(predicate, direction) else {
            return Ok(None);
        };
        if entry.edges == 0 {
            return Ok(Some(vec![None; keys.len()]));
        }
        let summary = self.summary(self.served(direction), predicate, deadline)?;
        Ok(summary.map(|summary| {
            let mut located = Vec::with_capacity(keys.len());
            summary.locate_many(keys, &mut located);
            located
        }))
    }

    /// Reads a few bytes at several places in a segment file, for measurements.
    ///
    /// # Errors
    /// The transport's errors.
    pub fn touch(&self, places: u32, deadline: Moment) -> Result<()> {
        /// Bytes of a short list.
        const LIST: u32 = 16;
        let file = self.served(Direction::Out).file;
        let len = u64::from(LIST).min(file.len) as u32;
        let last = file.len - u64::from(len);
        let at = |i| last / u64::from(places.max(1)) * u64::from(i);
        let ranges: Vec<ByteRange> = (0..places)
            .map(|i| ByteRange { offset: at(i), len })
            .collect();
        let mut into = vec![0; len as usize * ranges.len()];
        self.peer().read_many(file, &ranges, &mut into, deadline)
    }
}
