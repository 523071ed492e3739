//! Verification of a store's files: comparing their bytes with their hashes.

use super::background::spawn;
use jindou_model::{Error, Result};
use jindou_store::Base;
use jindou_store::directory::{Manifest, verify};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// When a store's files are verified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verify {
    /// Never. Damaged bytes may give wrong answers without an error, unless they point outside of their arrays.
    /// (`Database::check` finds such damage.)
    #[default]
    Off,
    /// In the background while queries are answered. Once damage is found, every new query and update is refused, and
    /// running ones fail. Answers given before may be wrong.
    Background,
    /// Before any query is answered: opening reads all files.
    Eager,
}

impl std::str::FromStr for Verify {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "eager" => Ok(Self::Eager),
            "background" => Ok(Self::Background),
            "off" => Ok(Self::Off),
            _ => Err(format!("'{text}' is not one of eager, background and off")),
        }
    }
}

/// Compares all files of a base with their hashes, except those shared with `before`. Returns the number of bytes
/// compared.
///
/// # Errors
/// [`Error::Damaged`], with the damaged file; [`Error::Io`]; [`Error::Cancelled`].
pub(crate) fn compare(
    folder: &Path,
    base: &Base,
    before: Option<&Manifest>,
    stop: &dyn Fn() -> bool,
) -> Result<u64> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    verify(folder, base.manifest(), before, threads, stop)
}

/// Progress and result of verifying an open store's files.
#[derive(Debug, Default)]
pub struct Trust {
    damage: OnceLock<Error>,
    verified: AtomicU64,
    done: AtomicBool,
    stop: AtomicBool,
}

impl Trust {
    /// The state for files that have all been verified, with their size in bytes.
    pub(crate) fn of_verified(bytes: u64) -> Arc<Self> {
        Arc::new(Self {
            verified: AtomicU64::new(bytes),
            done: AtomicBool::new(true),
            ..Self::default()
        })
    }

    /// Starts to verify a base in the background.
    pub(crate) fn begin(folder: PathBuf, base: Arc<Base>) -> Arc<Self> {
        let trust = Arc::new(Self::default());
        let told = Arc::clone(&trust);
        let work = move || {
            let stop = || told.stop.load(Ordering::Relaxed);
            match compare(&folder, &base, None, &stop) {
                Ok(bytes) => {
                    told.verified.store(bytes, Ordering::Relaxed);
                    told.done.store(true, Ordering::Release);
                }
                Err(Error::Cancelled) => {}
                // The base was merged or replaced meanwhile, and its files were removed.
                Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                    told.done.store(true, Ordering::Release);
                }
                Err(e) => {
                    let _ = told.damage.set(e);
                    told.done.store(true, Ordering::Release);
                }
            }
        };
        let failure = "cannot start a thread to verify the store's files";
        if let Err(e) = spawn("jindou-verify", failure, work) {
            let _ = trust.damage.set(e);
        }
        trust
    }

    /// Records damage that was found elsewhere.
    pub(crate) fn found(&self, damage: &Error) {
        let _ = self.damage.set(damage.duplicate());
    }

    /// Ok while no damage is known.
    ///
    /// # Errors
    /// [`Error::Damaged`] once damage was found.
    pub fn check(&self) -> Result<()> {
        match self.damage.get() {
            None => Ok(()),
            Some(damage) => Err(damage.duplicate()),
        }
    }

    /// Number of bytes compared, once the verification is complete without damage.
    #[must_use]
    pub fn verified(&self) -> Option<u64> {
        let whole = self.done.load(Ordering::Acquire) && self.damage.get().is_none();
        whole.then(|| self.verified.load(Ordering::Relaxed))
    }

    /// The damage, if any was found.
    #[must_use]
    pub fn damage(&self) -> Option<&Error> {
        self.damage.get()
    }
}

/// Cancels a running verification when dropped, together with the database.
#[derive(Debug)]
pub(crate) struct VerificationHandle(pub Arc<Trust>);

impl Drop for VerificationHandle {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }
}
