//! Stores on a disk that fails: reads of one file fail with EIO, both mapped and ordinary ones. Answers are right, or
//! an error that names the file; the process does not end; and no data is lost once the disk works again.
//!
//! The disk is a loop device over an image file that is truncated: the kernel reports reads beyond its end as it
//! reports errors of a broken disk. Needs root, `losetup` and `mkfs.ext4`.

use crate::persons::{all_right, assert_named, assert_whole, insert, mapped, name, open, text};
use jindou::testing::Store;
use jindou::{
    Access, BackupTarget, CancelToken, Database, Error, MergeOptions, OpenOptions, Progress,
    ReclusterOptions, RestoreTo, Verify,
};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Bytes of an image in addition to its file, for the file system itself.
const ROOM: u64 = 16 << 20;

/// Runs a command. Returns its output, or the reason why it failed.
fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let done = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|e| format!("{program}: {e}"))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned());
    }
    let said = String::from_utf8_lossy(&done.stderr).trim().to_owned();
    Err(format!("{program}: {said}"))
}

/// A disk with one file, which is mounted over that file of a store.
struct Disk {
    folder: tempfile::TempDir,
    device: String,
    /// Content of the intact image.
    good: Vec<u8>,
    /// Offset of the file in the image.
    at: u64,
    /// Path of the file in the store.
    path: PathBuf,
}

impl Disk {
    /// Copies a file of a store to a disk of its own, and mounts that over the file.
    fn with(path: &Path) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
        let bytes = fs::read(path).unwrap();
        let length = bytes.len() as u64;
        let (image, mounted) = (folder.path().join("image"), folder.path().join("mounted"));
        let file = File::create(&image).unwrap();
        file.set_len(ROOM + length.next_multiple_of(1 << 20))
            .unwrap();
        fs::create_dir(&mounted).unwrap();
        let image_name = image.to_str().unwrap();
        let options = ["-q", "-b", "4096", "-m", "0", "-O", "^has_journal"];
        run("mkfs.ext4", &[&options[..], &[image_name]].concat())?;
        let mut disk = Self {
            device: run("losetup", &["--find", "--show", image_name])?,
            folder,
            good: vec![],
            at: 0,
            path: path.to_owned(),
        };
        disk.mount("rw")?;
        fs::write(mounted.join("file"), &bytes).unwrap();
        File::open(mounted.join("file"))
            .unwrap()
            .sync_all()
            .unwrap();
        let _ = run("umount", &[mounted.to_str().unwrap()]);
        disk.mount("ro")?;
        disk.good = fs::read(&image).unwrap();
        let begin = &bytes[..bytes.len().min(4096)];
        let found = disk.good.chunks(4096).position(|b| b.starts_with(begin));
        disk.at = found.ok_or("the file is not in the image")? as u64 * 4096;
        assert_eq!(
            &disk.good[disk.at as usize..][..bytes.len()],
            &bytes[..],
            "the file is in one piece"
        );
        // The mount hides the original file, which stays intact.
        let (from, to) = (mounted.join("file"), path.to_str().unwrap());
        run("mount", &["--bind", from.to_str().unwrap(), to])?;
        Ok(disk)
    }

    fn mount(&self, how: &str) -> Result<(), String> {
        let mounted = self.folder.path().join("mounted");
        let options = format!("{how},noatime");
        let arguments = ["-o", &options, &self.device, mounted.to_str().unwrap()];
        run("mount", &arguments).map(|_| ())
    }

    /// Makes reads of the file fail from the block with this byte on.
    fn fail_from(&self, byte: u64) {
        let whole = self.at + byte / 4096 * 4096;
        let image = self.folder.path().join("image");
        let file = File::options().write(true).open(&image).unwrap();
        file.set_len(whole).unwrap();
        self.look_again();
    }

    /// Makes all reads succeed again.
    fn heal(&self) {
        // Overwritten in place, since the loop device has the image file open.
        fs::write(self.folder.path().join("image"), &self.good).unwrap();
        self.look_again();
    }

    fn look_again(&self) {
        run("losetup", &["--set-capacity", &self.device]).unwrap();
        self.forget();
    }

    /// Drops the file's pages from this process's mappings and from the page cache, so that they are read from the disk
    /// again.
    fn forget(&self) {
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let path = self.path.to_str().unwrap();
        for line in maps.lines().filter(|l| l.ends_with(path)) {
            let range = line.split(' ').next().unwrap();
            let [from, to] = [0, 1].map(|i| {
                let hex = range.split('-').nth(i).unwrap();
                usize::from_str_radix(hex, 16).unwrap()
            });
            // SAFETY: the range is a mapping of a file that is only read, so its pages are read from the file again.
            let done = unsafe {
                let start = std::ptr::without_provenance_mut(from);
                libc::madvise(start, to - from, libc::MADV_DONTNEED)
            };
            assert_eq!(done, 0);
        }
        let file = File::open(&self.path).unwrap();
        // SAFETY: the call takes no pointers.
        let done =
            unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        assert_eq!(done, 0);
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let mounted = self.folder.path().join("mounted");
        let _ = run("umount", &["-l", self.path.to_str().unwrap()]);
        let _ = run("umount", &["-l", mounted.to_str().unwrap()]);
        let _ = run("losetup", &["--detach", &self.device]);
    }
}

/// Returns false and prints the reason if such a disk cannot be set up.
fn can_fail() -> bool {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, vec![7; 100_000]).unwrap();
    let disk = match Disk::with(&file) {
        Ok(disk) => disk,
        Err(why) => {
            println!("skipped: no disk that fails: {why}");
            return false;
        }
    };
    disk.fail_from(8192);
    let e = fs::read(&file).unwrap_err();
    assert_eq!(e.raw_os_error(), Some(libc::EIO), "{e}");
    disk.heal();
    assert_eq!(fs::read(&file).unwrap(), vec![7; 100_000]);
    true
}

/// A store with a merge and a record after it, and the temporary folder that contains it.
fn store() -> (tempfile::TempDir, PathBuf) {
    let store = Store::of_trig(&text());
    drop(store.db);
    let db = open(&store.dir);
    insert(&db, 1).unwrap();
    db.merge(&MergeOptions::default(), &Progress::default())
        .unwrap();
    insert(&db, 2).unwrap();
    (store.folder, store.dir)
}

#[test]
#[ignore = "needs root and a loop device"]
fn a_mapped_file_that_cannot_be_read_gives_its_name_or_the_right_answer() {
    if !can_fail() {
        return;
    }
    let (_folder, dir) = &store();
    let (mut refusals, mut tries) = (0, 0);
    for (path, good) in mapped(dir) {
        let (file, len) = (name(&path), good.len() as u64);
        let disk = Disk::with(&path).unwrap();
        for from in [0, len / 2] {
            disk.forget();
            let db = open(dir);
            disk.fail_from(from);
            tries += 1;
            let right = all_right(&db, &file);
            println!(
                "{file} of {len} bytes, from {from}: {}",
                if right { "right" } else { "refused" }
            );
            if !right {
                refusals += 1;
                assert_named(&insert(&db, 3).unwrap_err(), &file);
                let merged = db.merge(&MergeOptions::default(), &Progress::default());
                assert_named(&merged.unwrap_err(), &file);
                let anew = db.recluster(&ReclusterOptions::default(), &Progress::default());
                assert_named(&anew.unwrap_err(), &file);
                let place = disk.folder.path().join(format!("backup-{from}"));
                let backup = BackupTarget::folder(place.to_str().unwrap()).unwrap();
                let (cancel, progress) = (CancelToken::new(), Progress::default());
                match db.backup(&backup, &cancel, &progress) {
                    // The backup can succeed if an intact file has the same content as a part of this one, since each
                    // part is read once.
                    Ok(_) => {
                        let place = disk.folder.path().join(format!("restored-{from}"));
                        let newest = RestoreTo::Newest;
                        Database::restore(&backup, &place, newest, &cancel, &progress).unwrap();
                        assert_whole(&place, 2);
                    }
                    Err(e) => assert!(e.to_string().contains(&file), "{e}"),
                }
            }
            // A newly opened store fails, or gives right answers.
            for verify in [Verify::Off, Verify::Eager] {
                let options = OpenOptions::default().with_verify(verify);
                match Database::open_with(dir, &options.with_access(Access::Read)) {
                    Ok(other) => {
                        let right = all_right(&other, &file);
                        assert!(right || verify == Verify::Off, "{file} was read whole");
                    }
                    Err(e) => assert!(e.to_string().contains(&file), "{file}: {e}"),
                }
            }
            let found = Database::check(dir).map(|report| format!("{:?}", report.damages));
            let said = found.unwrap_or_else(|e| e.to_string());
            assert!(said.contains(&file) || right, "{file}: {said}");
            // After the disk works again, the open store still refuses; once it is opened again, it does not.
            disk.heal();
            assert_eq!(all_right(&db, &file), right, "{file}");
            drop(db);
            assert_whole(dir, 2);
        }
        drop(disk);
        assert_whole(dir, 2);
    }
    println!("{refusals} of {tries} were refused");
    assert_eq!(refusals, tries);
}

#[test]
#[ignore = "needs root and a loop device"]
fn a_file_that_cannot_be_read_gives_its_name() {
    if !can_fail() {
        return;
    }
    let (first, dir) = store();
    let mut files: Vec<PathBuf> = [dir.clone(), dir.join("log")]
        .iter()
        .flat_map(|d| fs::read_dir(d).unwrap())
        .map(|e| e.unwrap().path())
        // Without the lock, whose content only people read.
        .filter(|p| p.is_file() && fs::metadata(p).unwrap().len() > 0 && !p.ends_with("lock"))
        .collect();
    files.sort();
    let logs = files.iter().filter(|f| f.parent() != Some(&*dir));
    let newest = logs.max().unwrap().clone();
    let mut refusals = 0;
    for path in &files {
        // A new store for each file, since opening a store changes its log. Files have the same names in all of them.
        let (_folder, new) = &store();
        let path = new.join(path.strip_prefix(&dir).unwrap());
        let newest = new.join(newest.strip_prefix(&dir).unwrap());
        let dir = new;
        let file = name(&path);
        let disk = Disk::with(&path).unwrap();
        disk.fail_from(0);
        for verify in [Verify::Off, Verify::Eager] {
            let options = OpenOptions::default().with_verify(verify);
            match Database::open_with(dir, &options.with_access(Access::Read)) {
                Ok(db) => {
                    all_right(&db, &file);
                }
                Err(e) => {
                    refusals += 1;
                    let disk = matches!(e, Error::Io { .. } | Error::Damaged { .. });
                    assert!(disk && e.to_string().contains(&file), "{file}: {e}");
                }
            }
        }
        let found = Database::check(dir).map(|report| format!("{:?}", report.damages));
        let said = found.unwrap_or_else(|e| e.to_string());
        // The older log file is not read any more: the merge has written its records to the base.
        let is_over = said == "[]" && path.parent() != Some(dir) && path != newest;
        assert!(said.contains(&file) || is_over, "{file}: {said}");
        drop(disk);
        assert_whole(dir, 2);
    }
    drop(first);
    println!("{refusals} of {} openings were refused", files.len() * 2);
    assert!(refusals > files.len(), "{refusals}");
}
