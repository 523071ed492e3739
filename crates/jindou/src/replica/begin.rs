//! Creation of a shared log from an existing store, without serving it.

use super::folder::OpenFiles;
use super::notes::Notes;
use super::repair::{failed, threads};
use super::shards::files_of_shard;
use super::{OpenOptions, fold_own_log};
use crate::database::Database;
use crate::runtime::Runtime;
use crate::update::{Access, Verify, follows_log};
use jindou_log::StoreLock;
use jindou_model::units::grouped;
use jindou_model::{Error, Result};
use jindou_replicas::{
    Base, BaseFiles, Bucket, Failure, Limits, LogBeginner, ShardFiles, upload_missing,
};
use jindou_store::directory::{BaseLocation, Manifest};
use jindou_store::shard::{CLUSTER, Cluster};
use std::path::Path;
use std::sync::Arc;

/// Creates the log at `s3://BUCKET/PREFIX` or in a directory, and uploads the store as its first base, so that servers
/// can start with empty folders. If `uploads` is false, only the log is created, and each server needs a copy of the
/// store or of its shards. Calling this again after a failure continues the upload. The store's data stays the same; if
/// the store has a log of its own, that is merged into the files. Returns a sentence that describes what was done.
///
/// # Errors
/// [`Error::Usage`] if the log belongs to another store, or if the store follows a log already; those of opening a
/// store and verifying its files; [`Error::Io`].
pub fn begin_log(place: &str, store: &Path, uploads: bool) -> Result<String> {
    if follows_log(store) {
        return Err(Error::Usage(format!(
            "the store at {} follows a log already: start its server with that",
            store.display()
        )));
    }
    let runtime = Runtime::default();
    let options = OpenOptions::default().with_runtime(runtime.clone());
    fold_own_log(store, &options, &runtime)?;
    // Many servers will read the uploaded files, so verify them first.
    let options = options.with_access(Access::Read).with_verify(Verify::Eager);
    drop(Database::open_with(store, &options)?);
    let _lock = StoreLock::acquire(store)?;
    let begins = Notes::of(store).id_of_new_log()?;
    let found = UploadFiles::read(store)?;
    if !uploads && found.loaded.is_none() {
        return Err(Error::Usage(format!(
            "the store at {} was changed since its load, so servers cannot tell whether they have copies of the same: upload it \
             (without --no-upload)",
            store.display()
        )));
    }
    let files = found.files.iter().flat_map(|files| files.files());
    let bytes: u64 = files.map(|(_, length)| length).sum();
    threads()?.block_on(async {
        let bucket = Bucket::open(place, Limits::default()).map_err(Error::Usage)?;
        let beginner = LogBeginner {
            begins,
            loaded: found.loaded,
            uploads,
        };
        let identity = beginner.begin(&bucket).await.map_err(Error::Usage)?;
        let log = identity.epoch;
        if !uploads {
            return Ok(format!(
                "the log {log:016x} begins with the store at {}, which was not uploaded: copy it, or its shards, to each server",
                store.display()
            ));
        }
        let start = super::random() as u64;
        let failed = |e: Failure| failed(place, e);
        let is_there = upload_missing(&bucket, (log, 0, start), found.shards).await;
        if is_there.map_err(failed)? {
            return Ok(format!(
                "the log {log:016x} has the store at {} already",
                store.display()
            ));
        }
        let uploaded = bucket.upload(log, start, &Base::default(), found.root).await;
        uploaded.map_err(failed)?;
        Ok(format!(
            "the log {log:016x} begins with the store at {}: {} bytes were uploaded",
            store.display(),
            grouped(bytes)
        ))
    })
}

/// The files of the store to upload.
struct UploadFiles {
    /// Id epoch of the store's load; `None` if the store was changed since.
    loaded: Option<u64>,
    shards: ShardFiles,
    /// The files that belong to no shard.
    root: Arc<dyn BaseFiles>,
    /// The files of the root and of all shards.
    files: Vec<Arc<dyn BaseFiles>>,
}

impl UploadFiles {
    fn read(dir: &Path) -> Result<Self> {
        let Some(cluster) = Cluster::read(dir)? else {
            let folder = BaseLocation::find(dir)?.folder();
            let manifest = Manifest::of_store(&folder)?;
            let root: Arc<dyn BaseFiles> = Arc::new(OpenFiles::open(&folder, manifest.names(), 0)?);
            return Ok(Self {
                loaded: (manifest.holds() == 0).then_some(manifest.epoch),
                shards: Vec::new(),
                files: vec![Arc::clone(&root)],
                root,
            });
        };
        let shards = (0..cluster.shards).map(|shard| {
            let files = files_of_shard(dir, &cluster, shard)?;
            Ok((shard, files))
        });
        let shards: ShardFiles = shards.collect::<Result<_>>()?;
        let root = OpenFiles::open(dir, [CLUSTER.to_owned()], cluster.shards)?;
        let root: Arc<dyn BaseFiles> = Arc::new(root);
        let of_shards = shards.iter().map(|(_, files)| Arc::clone(files));
        Ok(Self {
            loaded: (cluster.merged == 0).then_some(cluster.epoch),
            files: of_shards.chain([Arc::clone(&root)]).collect(),
            shards,
            root,
        })
    }
}
