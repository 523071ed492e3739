//! Removal of temporary files that crashed processes left in a directory.

use super::{Bucket, Failure, Lane};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// Minimum age at which a temporary file is assumed to be left by a crashed process.
const LEFT: Duration = Duration::from_secs(24 * 3600);
/// Folders of the log, each with the number of levels of subfolders in it.
const FOLDERS: [(&str, usize); 7] = [
    ("", 0),
    ("log", 0),
    ("span", 0),
    ("base", 0),
    ("servers", 0),
    ("probe", 0),
    ("parts", 1),
];

impl Bucket {
    /// Removes temporary files that are older than a day.
    pub(super) async fn remove_staged(&self) -> Result<(), Failure> {
        let Some(root) = self.folder().map(Path::to_owned) else {
            return Ok(());
        };
        let end = Instant::now() + self.0.limits.request * 10;
        let permit = self.permit(Lane::Bulk, end).await?;
        let request = async move {
            let remove = move || {
                let before = SystemTime::now().checked_sub(LEFT);
                for (folder, levels) in FOLDERS {
                    // A missing folder contains no temporary files. A folder that cannot be read is reported by other
                    // operations.
                    let _ = remove_in(
                        &root.join(folder),
                        levels,
                        before.unwrap_or(SystemTime::UNIX_EPOCH),
                    );
                }
            };
            let _ = tokio::task::spawn_blocking(remove).await;
            Ok(())
        };
        self.within(end, permit, request).await.map(|_| ())
    }
}

fn remove_in(folder: &Path, levels: usize, before: SystemTime) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if levels > 0 && entry.file_type()?.is_dir() {
            let _ = remove_in(&entry.path(), levels - 1, before);
        } else if staged(&entry.file_name().to_string_lossy())
            && let Ok(meta) = entry.metadata()
            && meta.is_file()
            && meta.modified().is_ok_and(|at| at < before)
        {
            let _ = std::fs::remove_file(entry.path());
        }
    }
    Ok(())
}

/// True for the name of a temporary file, which ends with `#` and a number. No object's name does.
fn staged(name: &str) -> bool {
    let number = name.rsplit_once('#').map_or("", |(_, number)| number);
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}
