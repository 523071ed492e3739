//! Opening a store that is cut into shards.

use super::durable::{self, Access, OpenOptions, Opened};
use super::trust::{Held, Trust, Verify, compare};
use super::writer::Writer;
use jindou_model::{Error, Result};
use jindou_store::Snapshot;
use jindou_store::shard::{Cluster, open_shards, shard_folder};
use std::path::Path;
use std::sync::Arc;

/// Opens a store directory, cut into shards or not.
///
/// # Errors
/// As [`durable::open`]; [`Error::Store`] for a shard that is missing, damaged or of another load.
pub(crate) fn open(dir: &Path, options: &OpenOptions) -> Result<Opened> {
    match Cluster::read(dir)? {
        Some(cluster) => open_shards_of(dir, &cluster, options),
        None => durable::open(dir, options),
    }
}

/// Opens all shards of a store in this process, to be read.
fn open_shards_of(dir: &Path, cluster: &Cluster, options: &OpenOptions) -> Result<Opened> {
    const WHY: &str = "a store of several shards cannot be changed yet";
    if options.access == Access::Write {
        return Err(Error::Unsupported(WHY.into()));
    }
    let shards = open_shards(dir, cluster)?;
    let mut verified = Held(Arc::default());
    // Whoever wants it later has it now.
    if options.verify != Verify::Off {
        let mut bytes = 0;
        for (s, base) in (0..).zip(shards.shards()) {
            bytes += compare(&dir.join(shard_folder(s)), base, None, &|| false)?;
        }
        verified = Held(Trust::of_verified(bytes));
    }
    let first = shards.shards().first().ok_or_else(|| {
        Error::Store(format!(
            "{} names no shard; load the data again",
            dir.display()
        ))
    })?;
    let snapshot = Snapshot::of_shard(Arc::clone(first), Arc::new(shards.clone()))?;
    Ok(Opened {
        writer: Writer::new(snapshot, Err(WHY.into())),
        recovery: None,
        disk: None,
        reader: None,
        trust: verified,
    })
}
