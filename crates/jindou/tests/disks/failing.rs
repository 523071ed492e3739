//! Stores on a disk that fails: reads of one file give EIO, for mapped and for ordinary reads. Answers are right or an
//! error that names the file, the process lives, and all is there once the disk is well again.
//!
//! The disk is a loop device over an image that is cut short: reads beyond its end fail, as the kernel passes on what a broken
//! disk says. Needs root, `losetup` and `mkfs.ext4`.

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

/// Bytes of an image besides its file: what the file system needs for itself.
const ROOM: u64 = 16 << 20;

/// Runs a command. Its output; in its place why it did not run.
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

/// A disk with one file, which stands in a store where the file was.
struct Disk {
    folder: tempfile::TempDir,
    device: String,
    /// The image as it must be.
    good: Vec<u8>,
    /// Where in the image the file begins.
    at: u64,
    /// The file's place in the store.
    path: PathBuf,
}

impl Disk {
    /// Puts a file of a store on a disk of its own.
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
        // The file that was there stays below.
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

    /// From this byte of the file on, the disk gives nothing any more.
    fn fail_from(&self, byte: u64) {
        let whole = self.at + byte / 4096 * 4096;
        let image = self.folder.path().join("image");
        let file = File::options().write(true).open(&image).unwrap();
        file.set_len(whole).unwrap();
        self.look_again();
    }

    /// The disk is well again.
    fn heal(&self) {
        // Written in place: the device keeps the file open.
        fs::write(self.folder.path().join("image"), &self.good).unwrap();
        self.look_again();
    }

    fn look_again(&self) {
        run("losetup", &["--set-capacity", &self.device]).unwrap();
        self.forget();
    }

    /// Has the system read the file again, for all that it is mapped by this process.
    fn forget(&self) {
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let path = self.path.to_str().unwrap();
        for line in maps.lines().filter(|l| l.ends_with(path)) {
            let range = line.split(' ').next().unwrap();
            let [from, to] = [0, 1].map(|i| {
                let hex = range.split('-').nth(i).unwrap();
                usize::from_str_radix(hex, 16).unwrap()
            });
            // SAFETY: it is a mapping of a file that is only read: its pages come from the file again.
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

/// False, and a line that says so, where no such disk can be had.
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

/// A store with a merge and a record after it, in a folder that goes with it.
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
                    // A small file may have the bytes of another, which are read once.
                    Ok(_) => {
                        let place = disk.folder.path().join(format!("restored-{from}"));
                        let newest = RestoreTo::Newest;
                        Database::restore(&backup, &place, newest, &cancel, &progress).unwrap();
                        assert_whole(&place, 2);
                    }
                    Err(e) => assert!(e.to_string().contains(&file), "{e}"),
                }
            }
            // Other processes cannot open it, or get correct answers.
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
            // It stays so until the store is opened again.
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
        // The lock's text is for people.
        .filter(|p| p.is_file() && fs::metadata(p).unwrap().len() > 0 && !p.ends_with("lock"))
        .collect();
    files.sort();
    let logs = files.iter().filter(|f| f.parent() != Some(&*dir));
    let newest = logs.max().unwrap().clone();
    let mut refusals = 0;
    for path in &files {
        // Opening a store changes its log. Equal stores have equal names of files.
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
        // The log's older file has what the merge brought into the base, and is not read any more.
        let is_over = said == "[]" && path.parent() != Some(dir) && path != newest;
        assert!(said.contains(&file) || is_over, "{file}: {said}");
        drop(disk);
        assert_whole(dir, 2);
    }
    drop(first);
    println!("{refusals} of {} openings were refused", files.len() * 2);
    assert!(refusals > files.len(), "{refusals}");
}
