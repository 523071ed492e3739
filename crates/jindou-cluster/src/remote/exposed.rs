//! A store's files and their summaries, as peers read them.

use super::files::StoreFiles;
use super::summary::Summaries;
use super::wire;
use crate::transport::{Memory, RegionDescriptor, Result, Transport};
use jindou_model::Direction;
use std::sync::Arc;

/// The default graph's segments of one store, with the information by which a reader finds each list.
pub struct Exposed {
    files: Arc<StoreFiles>,
    summaries: [Arc<Summaries>; 2],
}

struct EntryMemory(Arc<Summaries>);

// SAFETY: the summaries never change once they are made, and the `Arc` keeps them where they are.
unsafe impl Memory for EntryMemory {
    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0.entries)
    }
}

struct WordMemory(Arc<Summaries>);

// SAFETY: the summaries never change once they are made, and the `Arc` keeps them where they are.
unsafe impl Memory for WordMemory {
    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0.words)
    }
}

impl Exposed {
    /// Summarises the segments. O(keys), about a second for 50 million. `named_edges` has the number of edges in named
    /// graphs, which readers do not see, by dense predicate id.
    #[must_use]
    pub fn new(files: Arc<StoreFiles>, named_edges: &[u64]) -> Self {
        let summaries = [Direction::Out, Direction::In]
            .map(|d| Arc::new(Summaries::summarise(&files, named_edges, d)));
        Self { files, summaries }
    }

    /// Bytes of all summaries, which is the memory of a reader that uses every segment.
    #[must_use]
    pub fn summary_bytes(&self) -> u64 {
        let words = self.summaries.iter().map(|s| s.words.len() as u64);
        8 * words.sum::<u64>()
    }

    /// Lets peers read all of it in the transport's present epoch. Returns the catalogue for readers, and the numbers
    /// of the regions.
    ///
    /// # Errors
    /// The transport's errors; nothing is left registered.
    pub fn register(&self, transport: &dyn Transport) -> Result<(Vec<u8>, Vec<u64>)> {
        let mut catalogue = Vec::new();
        let mut regions = Vec::new();
        wire::put(&mut catalogue, self.summaries[0].entries.len() as u32);
        for (d, s) in [Direction::Out, Direction::In]
            .into_iter()
            .zip(&self.summaries)
        {
            let parts: [Arc<dyn Memory>; 3] = [
                self.files.memory(d),
                Arc::new(EntryMemory(Arc::clone(s))),
                Arc::new(WordMemory(Arc::clone(s))),
            ];
            for memory in parts {
                let registered: Result<RegionDescriptor> = transport.register(memory);
                match registered {
                    Ok(descriptor) => {
                        descriptor.encode(&mut catalogue);
                        regions.push(descriptor.region);
                    }
                    Err(e) => {
                        for region in regions {
                            let _ = transport.release(region);
                        }
                        return Err(e);
                    }
                }
            }
        }
        Ok((catalogue, regions))
    }
}
