//! Notes in a store directory that say that it follows a shared log.

use jindou_store::directory::{BaseLocation, Manifest, ManifestState, REPLICA};
use jindou_store::shard::Cluster;
use std::path::{Path, PathBuf};

/// Path of the note for a snapshot of a base.
pub(crate) fn note_path(dir: &Path, base: u64, snapshot: u64) -> PathBuf {
    dir.join(REPLICA).join(format!("{base}-{snapshot}.jd"))
}

/// True if the store in a directory follows a shared log, so that changes must go through that log.
pub(crate) fn follows_log(dir: &Path) -> bool {
    let Ok(place) = BaseLocation::find(dir) else {
        return false;
    };
    if let Ok(Some(cluster)) = Cluster::read(dir) {
        return note_path(dir, place.number(), cluster.merged).exists();
    }
    match Manifest::read(&place.folder()) {
        Ok(ManifestState::Store(manifest)) => {
            note_path(dir, place.number(), manifest.holds()).exists()
        }
        _ => false,
    }
}
