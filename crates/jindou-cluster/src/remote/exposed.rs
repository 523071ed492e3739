//! Registration of a base's segment files, so that peers can read them.

use crate::transport::{Memory, Result, Transport};
use jindou_model::Direction;
use jindou_store::Base;
use std::path::Path;
use std::sync::Arc;

/// A segment file: its base, its number and its direction.
struct FileMemory(Arc<Base>, usize, Direction);

// SAFETY: the bytes are a mapping of a file that is never written again after it was renamed to its final name; the
// base keeps the file mapped.
unsafe impl Memory for FileMemory {
    fn bytes(&self) -> &[u8] {
        let file = self.0.segment_file(self.1, self.2);
        file.map_or(&[], |file| file.bytes())
    }

    fn file(&self) -> Option<&Path> {
        self.0.segment_file(self.1, self.2)?.path()
    }
}

/// Registers the segment files of a base (default graph) so that peers can read them. Returns the catalogue for readers
/// (the number of files in each direction, and their descriptors), and the numbers of the registered regions.
///
/// # Errors
/// The transport's errors. Then nothing stays registered.
pub fn expose(base: &Arc<Base>, transport: &dyn Transport) -> Result<(Vec<u8>, Vec<u64>)> {
    let files = 1 + base.generations();
    let mut catalogue = (files as u32).to_le_bytes().to_vec();
    let mut regions = Vec::new();
    for direction in [Direction::Out, Direction::In] {
        for number in 0..files {
            match transport.register(Arc::new(FileMemory(Arc::clone(base), number, direction))) {
                Ok((region, descriptor)) => {
                    descriptor.encode(&mut catalogue);
                    regions.push(region);
                }
                Err(e) => {
                    regions.into_iter().for_each(|r| transport.release(r));
                    return Err(e);
                }
            }
        }
    }
    Ok((catalogue, regions))
}
