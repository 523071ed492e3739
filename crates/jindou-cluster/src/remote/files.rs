//! The segment files of a store directory, to be served.

use super::server::EdgeSource;
use crate::transport::Memory;
use jindou_model::{Direction, Error, PredicateId, Result};
use jindou_store::directory::{
    Bytes, NAMED_IN, NAMED_OUT, SEGMENTS_IN, SEGMENTS_OUT, SegmentFile,
};
use jindou_store::QuadEdit;
use jindou_store::segment::{Edit, EdgeView, Patch, PatchBuilder, Segment};
use rustc_hash::FxHashMap;
use std::path::Path;
use std::sync::Arc;

/// The four files, mapped. Files of named graphs may be missing.
#[derive(Debug)]
pub struct StoreFiles {
    default: [SegmentFile; 2],
    named: [Option<SegmentFile>; 2],
}

impl StoreFiles {
    /// Maps the files of a store directory. An error if one is missing, foreign, newer or truncated.
    pub fn open(directory: &Path) -> Result<Arc<Self>> {
        let open = |name: &str| {
            let path = directory.join(name);
            SegmentFile::open(Bytes::map(&path)?, &path.display().to_string())
        };
        let maybe = |name: &str| match open(name) {
            Ok(f) => Ok(Some(f)),
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                Ok(None)
            }
            Err(e) => Err(e),
        };
        Ok(Arc::new(Self {
            default: [open(SEGMENTS_OUT)?, open(SEGMENTS_IN)?],
            named: [maybe(NAMED_OUT)?, maybe(NAMED_IN)?],
        }))
    }

    /// Files in ordinary memory, by direction.
    #[must_use]
    pub fn of(default: [SegmentFile; 2], named: [Option<SegmentFile>; 2]) -> Arc<Self> {
        Arc::new(Self { default, named })
    }

    /// The default graph's file.
    #[must_use]
    pub fn default(&self, direction: Direction) -> &SegmentFile {
        &self.default[direction as usize]
    }

    /// The named graphs' segment of a predicate.
    #[must_use]
    pub fn named(&self, p: PredicateId, direction: Direction) -> Segment<'_> {
        match &self.named[direction as usize] {
            Some(f) => f.segment(p.0),
            None => Segment::EMPTY,
        }
    }

    /// Predicates, in any file.
    #[must_use]
    pub fn predicates(&self) -> u32 {
        let files = self.default.iter().chain(self.named.iter().flatten());
        files.map(|f| f.records().len() as u32).max().unwrap_or(0)
    }

    /// The bytes of one default-graph file as memory that can be registered.
    #[must_use]
    pub(super) fn memory(self: &Arc<Self>, direction: Direction) -> Arc<dyn Memory> {
        Arc::new(FileMemory(Arc::clone(self), direction))
    }
}

/// Files with edits laid over them: what a probe or a test serves in place of a whole snapshot.
pub struct PatchedFiles {
    files: Arc<StoreFiles>,
    number: u32,
    patches: [FxHashMap<u32, Patch>; 2],
}

impl PatchedFiles {
    /// The files as of snapshot `number`. O(edits log edits).
    #[must_use]
    pub fn new(files: Arc<StoreFiles>, number: u32, edits: &[QuadEdit]) -> Self {
        let mut builders: [FxHashMap<u32, PatchBuilder>; 2] = Default::default();
        for e in edits {
            for (d, key, neighbour) in [(0, e.subject, e.object), (1, e.object, e.subject)] {
                let edit = Edit {
                    neighbour,
                    graph: e.graph,
                    snapshot: e.snapshot,
                    added: e.added,
                };
                builders[d].entry(e.predicate).or_default().push(key, edit);
            }
        }
        let patches = builders.map(|m| m.into_iter().map(|(p, b)| (p, b.finish())).collect());
        Self {
            files,
            number,
            patches,
        }
    }
}

impl EdgeSource for PatchedFiles {
    fn edges(&self, p: PredicateId, direction: Direction) -> EdgeView<'_> {
        EdgeView {
            patch: self.patches[direction as usize].get(&p.0),
            snapshot: self.number,
            ..self.files.edges(p, direction)
        }
    }

    fn predicates(&self) -> u32 {
        self.files.predicates()
    }

    fn number(&self) -> u32 {
        self.number
    }
}

struct FileMemory(Arc<StoreFiles>, Direction);

impl Memory for FileMemory {
    fn bytes(&self) -> &[u8] {
        self.0.default(self.1).bytes()
    }
}

/// The files alone: snapshot 0, no patches.
impl EdgeSource for StoreFiles {
    fn edges(&self, p: PredicateId, direction: Direction) -> EdgeView<'_> {
        EdgeView {
            default: self.default(direction).segment(p.0),
            named: self.named(p, direction),
            patch: None,
            snapshot: 0,
        }
    }

    fn predicates(&self) -> u32 {
        Self::predicates(self)
    }

    fn number(&self) -> u32 {
        0
    }
}
