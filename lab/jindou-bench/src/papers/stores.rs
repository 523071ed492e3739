//! The stores that the tables of a report need, each made once.

use crate::measure::Folder;
use crate::set::load_options;
use jindou::{Database, Error, LoadOptions, Progress, QuadSource, Result};
use jindou_workloads::lubm::{Lubm, known};
use std::path::{Path, PathBuf};

/// A folder of stores.
pub struct Stores {
    folder: Folder,
    temporary: bool,
    options: LoadOptions,
}

/// Bytes of memory that LUBM takes per university: LUBM(2560) loads in 7.2 GiB, and queries use 4.8 GB of mapped files.
/// The estimate is twice the former, which leaves half of the memory to other processes.
const MEMORY_A_UNIVERSITY: u64 = 14 * (1 << 30) / 2_560;
/// Bytes on disk per university: the store, and the files that a load spills if memory is short.
const DISK_A_UNIVERSITY: u64 = 10 * (1 << 30) / 2_560;

impl Stores {
    pub fn new(given: Option<&Path>, threads: usize, memory: Option<u64>) -> Result<Self> {
        let folder = Folder::new(given)?;
        std::fs::create_dir_all(&folder.dir).map_err(|e| Error::io(&folder.dir, e))?;
        Ok(Self {
            folder,
            temporary: given.is_none(),
            options: load_options(memory, threads),
        })
    }

    /// The store of LUBM(`universities`), which is loaded if it does not exist.
    pub fn lubm(&self, universities: u32) -> Result<PathBuf> {
        let dir = self.folder.dir.join(format!("lubm-{universities}"));
        self.load(&dir, &Lubm::new(universities, 0))?;
        if let Some(t) = known::totals(universities) {
            let quads = Database::info(&dir)?.quads;
            if quads != t.distinct {
                return Err(Error::external(format!(
                    "{} has {quads} triples, but LUBM({universities}) has {}; remove it",
                    dir.display(),
                    t.distinct
                )));
            }
        }
        Ok(dir)
    }

    /// The store of the given data, in a folder named after its table.
    pub fn open(&self, name: &str, source: &dyn QuadSource) -> Result<PathBuf> {
        let dir = self.folder.dir.join(name);
        self.load(&dir, source)?;
        Ok(dir)
    }

    fn load(&self, dir: &Path, source: &dyn QuadSource) -> Result<()> {
        if dir.exists() {
            eprintln!("using the store {}", dir.display());
            return Ok(());
        }
        eprintln!("loading {}", dir.display());
        Database::load(dir, source, &self.options, &Progress::default()).map(|_| ())
    }

    /// Removes a store that no later table needs, unless the user keeps the stores.
    pub fn done_with(&self, dir: &Path) {
        if self.temporary {
            let _ = std::fs::remove_dir_all(dir);
        }
    }

    /// The reason why LUBM(`universities`) does not fit into this machine's free memory and disk, if it does not.
    pub fn too_large(&self, universities: u32) -> Option<String> {
        if self
            .folder
            .dir
            .join(format!("lubm-{universities}"))
            .exists()
        {
            return None;
        }
        let n = u64::from(universities);
        let lacks = |what: &str, need: u64, have: Option<u64>| {
            let have = have?;
            (need > have).then(|| {
                let gib = |b: u64| b as f64 / (1u64 << 30) as f64;
                format!(
                    "LUBM-{universities} left out: it needs some {:.1} GiB of {what}, {:.1} are free",
                    gib(need),
                    gib(have)
                )
            })
        };
        lacks(
            "memory",
            n * MEMORY_A_UNIVERSITY,
            super::machine::free_memory(),
        )
        .or_else(|| {
            lacks(
                "disk",
                n * DISK_A_UNIVERSITY,
                super::machine::free_disk(&self.folder.dir),
            )
        })
    }
}
