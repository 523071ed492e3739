//! Leftovers of processes that died in a directory.

use super::{Bucket, Failure, Lane};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// Age at which a file that was not put in its place is left by a process that died.
const LEFT: Duration = Duration::from_secs(24 * 3600);
/// Folders of the log, and levels of folders in them.
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
    /// Removes files that were staged in a directory a day ago or earlier, and not put in their places.
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
                    // One that is missing, or goes away, has none. One that cannot be read is left for others to report.
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

/// True if a file's name ends with `#` and a number, which no object's does.
fn staged(name: &str) -> bool {
    let number = name.rsplit_once('#').map_or("", |(_, number)| number);
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}
