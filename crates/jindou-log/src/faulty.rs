//! A simulated disk in memory that fails like real disks, for tests.

use crate::files::{File, Files};
use jindou_model::random::splitmix64;
use jindou_model::sync;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

const SECTOR: usize = 512;

/// Kinds of faults. Rates are per million operations.
#[derive(Clone, Debug, Default)]
pub struct DiskFaults {
    /// Rate of writes that fail after a part of the data was written.
    pub write: u32,
    /// Rate of syncs of files that fail. The unsynced data may then be lost, although reading still returns it and the
    /// next sync succeeds, as on Linux.
    pub sync: u32,
    /// Rate of syncs of the directory that fail.
    pub sync_directory: u32,
    /// Rate of failures of all other operations that modify the disk.
    pub other: u32,
    /// Number of bytes that fit on the disk; a write beyond it is cut short and fails with `StorageFull`.
    pub room: Option<u64>,
    /// Error with which every modification fails: `ReadOnlyFilesystem`, `PermissionDenied`, …
    pub refuse: Option<io::ErrorKind>,
    /// Number of operations after which the process dies, in the middle of one. All later operations fail.
    pub die_after: Option<u64>,
    /// Duration of a file's sync.
    pub sync_time: Duration,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// The process was killed: what it wrote is in the page cache, except for pages that a failed sync lost.
    Kill,
    /// The machine lost power: any part of the unsynced data may survive.
    Power,
}

/// A simulated disk that fails according to [`DiskFaults`]. [`Faulty::crash`] makes it lose unsynced data, sector by
/// sector and in any order, and unsynced changes of names. Clones share the disk.
#[derive(Clone)]
pub struct Faulty(Arc<Mutex<FaultyState>>);

#[derive(Default)]
struct FaultyState {
    inodes: Vec<Inode>,
    names: BTreeMap<String, usize>,
    durable: BTreeMap<String, usize>,
    renames: Vec<Rename>,
    faults: DiskFaults,
    random: u64,
    dead: bool,
    has_lost: bool,
    /// Number of the current process. Writes through files that an earlier process opened have no effect.
    process: u64,
}

/// A creation, renaming or removal of a name that was not synced.
#[derive(Clone)]
enum Rename {
    Set(String, usize),
    Move(String, String, usize),
    Remove(String),
}

impl Rename {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            Self::Set(name, inode) => {
                names.insert(name.clone(), *inode);
            }
            Self::Move(from, to, inode) => {
                if names.get(from) == Some(inode) {
                    names.remove(from);
                }
                names.insert(to.clone(), *inode);
            }
            Self::Remove(name) => {
                names.remove(name);
            }
        }
    }
}

#[derive(Default, Clone)]
struct Inode {
    /// The content that reading returns.
    cache: Vec<u8>,
    /// The content that survives a loss of power for certain. Each of `changes` may or may not survive.
    disk: Vec<u8>,
    changes: Vec<Change>,
    /// True if a failed sync has lost some of the changes.
    lost: bool,
}

#[derive(Clone)]
enum Change {
    Write(usize, Vec<u8>),
    Truncate(usize),
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write(at, new) => {
            if bytes.len() < at + new.len() {
                bytes.resize(at + new.len(), 0);
            }
            bytes[*at..at + new.len()].copy_from_slice(new);
        }
        Change::Truncate(length) => bytes.resize(*length, 0),
    }
}

fn dead() -> io::Error {
    io::Error::other("the process is dead")
}

impl FaultyState {
    fn random(&mut self, below: u64) -> u64 {
        splitmix64(&mut self.random) % below.max(1)
    }

    fn happens(&mut self, rate: u32) -> bool {
        rate > 0 && self.random(1_000_000) < u64::from(rate)
    }

    /// Counts an operation; `Ok(true)` if the process dies during this one.
    fn operation(&mut self) -> io::Result<bool> {
        if self.dead {
            return Err(dead());
        }
        match &mut self.faults.die_after {
            Some(0) => {
                self.dead = true;
                Ok(true)
            }
            Some(n) => {
                *n -= 1;
                Ok(false)
            }
            None => Ok(false),
        }
    }

    /// Counts an operation that modifies the disk and fails with this rate; `Ok(true)` if the process dies during it.
    fn change(&mut self, rate: u32) -> io::Result<bool> {
        let dies = self.operation()?;
        if let Some(kind) = self.faults.refuse {
            return Err(kind.into());
        }
        if !dies && self.happens(rate) {
            return Err(io::Error::other("injected"));
        }
        Ok(dies)
    }

    fn change_names(&mut self, rate: u32, rename: Rename) -> io::Result<()> {
        let dies = self.change(rate)?;
        if dies && self.random(2) == 0 {
            return Err(dead());
        }
        rename.apply(&mut self.names);
        self.renames.push(rename);
        if dies { Err(dead()) } else { Ok(()) }
    }

    fn find(&self, name: &str) -> io::Result<usize> {
        let found = self.names.get(name).copied();
        found.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Chooses at random which changes of a file survive a loss of power: none, all, the first ones, or some sectors.
    fn tear(&mut self, inode: usize) {
        let Inode {
            mut disk, changes, ..
        } = std::mem::take(&mut self.inodes[inode]);
        match self.random(4) {
            0 => {}
            1 => changes.iter().for_each(|c| apply(&mut disk, c)),
            2 => {
                let whole = self.random(changes.len() as u64 + 1) as usize;
                changes[..whole].iter().for_each(|c| apply(&mut disk, c));
                if let Some(Change::Write(at, bytes)) = changes.get(whole) {
                    let part = self.random(bytes.len() as u64 + 1) as usize;
                    apply(&mut disk, &Change::Write(*at, bytes[..part].to_vec()));
                }
            }
            _ => {
                let keep = self.random(101);
                for change in &changes {
                    let Change::Write(at, bytes) = change else {
                        if self.random(100) < keep {
                            apply(&mut disk, change);
                        }
                        continue;
                    };
                    let mut from = 0;
                    while from < bytes.len() {
                        let to = (from + SECTOR - (at + from) % SECTOR).min(bytes.len());
                        if self.random(100) < keep {
                            apply(
                                &mut disk,
                                &Change::Write(at + from, bytes[from..to].to_vec()),
                            );
                        }
                        from = to;
                    }
                }
            }
        }
        self.inodes[inode] = Inode {
            cache: disk.clone(),
            disk,
            ..Inode::default()
        };
    }

    fn tear_names(&mut self) {
        let renames = std::mem::take(&mut self.renames);
        let mode = self.random(4);
        let prefix = self.random(renames.len() as u64 + 1) as usize;
        for (i, rename) in renames.into_iter().enumerate() {
            let kept = match mode {
                0 => false,
                1 => true,
                2 => i < prefix,
                _ => self.random(2) == 0,
            };
            if kept {
                rename.apply(&mut self.durable);
            }
        }
        self.names = self.durable.clone();
    }
}

impl Faulty {
    /// An empty disk without faults. Its random choices are determined by `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(FaultyState {
            random: seed,
            ..FaultyState::default()
        })))
    }

    fn disk(&self) -> MutexGuard<'_, FaultyState> {
        sync::lock(&self.0)
    }

    /// Sets the faults of operations from now on.
    pub fn set(&self, faults: DiskFaults) {
        self.disk().faults = faults;
    }

    /// True once the process has died by [`DiskFaults::die_after`].
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.disk().dead
    }

    /// True if a failed sync has lost data. Then even data that a killed process had written may be lost.
    #[must_use]
    pub fn has_lost(&self) -> bool {
        self.disk().has_lost
    }

    /// Ends the process, whose open files have no effect afterwards, and starts another one on a disk without faults.
    pub fn crash(&self, crash: Crash) {
        let mut disk = self.disk();
        disk.dead = false;
        disk.process += 1;
        disk.faults = DiskFaults::default();
        match crash {
            Crash::Power => {
                for inode in 0..disk.inodes.len() {
                    disk.tear(inode);
                }
                disk.tear_names();
            }
            Crash::Kill => {
                for i in 0..disk.inodes.len() {
                    if disk.inodes[i].lost && disk.random(2) == 0 {
                        // Lost pages count as clean, so the cache may drop them; reading then returns what is on the
                        // disk.
                        let inode = &mut disk.inodes[i];
                        inode.cache = inode.disk.clone();
                        for change in &inode.changes {
                            apply(&mut inode.cache, change);
                        }
                        inode.lost = false;
                    }
                }
            }
        }
    }

    /// Flips one bit of a file, on the disk and in the cache. False if the file does not have that many bytes.
    pub fn flip(&self, name: &str, byte: u64, bit: u32) -> bool {
        let mut disk = self.disk();
        let Ok(inode) = disk.find(name) else {
            return false;
        };
        let Inode { cache, disk, .. } = &mut disk.inodes[inode];
        let mut done = false;
        for bytes in [cache, disk] {
            if let Some(b) = bytes.get_mut(byte as usize) {
                *b ^= 1 << (bit % 8);
                done = true;
            }
        }
        done
    }

    /// An independent copy of the disk with the same content, names and unsynced changes, and without faults.
    #[must_use]
    pub fn copy(&self, seed: u64) -> Self {
        let disk = self.disk();
        Self(Arc::new(Mutex::new(FaultyState {
            inodes: disk.inodes.clone(),
            names: disk.names.clone(),
            durable: disk.durable.clone(),
            renames: disk.renames.clone(),
            random: seed,
            ..FaultyState::default()
        })))
    }
}

impl Files for Faulty {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut disk = self.disk();
        if disk.operation()? {
            return Err(dead());
        }
        Ok(disk.names.keys().cloned().collect())
    }

    fn read(&self, name: &str, limit: u64) -> io::Result<Vec<u8>> {
        let mut disk = self.disk();
        if disk.operation()? {
            return Err(dead());
        }
        let inode = disk.find(name)?;
        let cache = &disk.inodes[inode].cache;
        Ok(cache[..cache.len().min(limit as usize)].to_vec())
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn File>> {
        let mut disk = self.disk();
        let rate = disk.faults.other;
        let inode = match disk.find(name) {
            Ok(inode) => {
                if disk.change(rate)? {
                    return Err(dead());
                }
                let inode_ = &mut disk.inodes[inode];
                inode_.cache.clear();
                inode_.changes.push(Change::Truncate(0));
                inode
            }
            Err(_) => {
                disk.inodes.push(Inode::default());
                let inode = disk.inodes.len() - 1;
                disk.change_names(rate, Rename::Set(name.to_owned(), inode))?;
                inode
            }
        };
        Ok(self.handle(&disk, inode, name))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn File>> {
        let mut disk = self.disk();
        let rate = disk.faults.other;
        if disk.change(rate)? {
            return Err(dead());
        }
        let inode = disk.find(name)?;
        Ok(self.handle(&disk, inode, name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut disk = self.disk();
        let inode = disk.find(from)?;
        let rate = disk.faults.other;
        disk.change_names(rate, Rename::Move(from.to_owned(), to.to_owned(), inode))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut disk = self.disk();
        disk.find(name)?;
        let rate = disk.faults.other;
        disk.change_names(rate, Rename::Remove(name.to_owned()))
    }

    fn sync_directory(&self) -> io::Result<()> {
        let mut disk = self.disk();
        let rate = disk.faults.sync_directory;
        if disk.change(rate)? {
            return Err(dead());
        }
        for rename in std::mem::take(&mut disk.renames) {
            rename.apply(&mut disk.durable);
        }
        Ok(())
    }

    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from("faulty").join(name)
    }
}

impl Faulty {
    fn handle(&self, disk: &FaultyState, inode: usize, name: &str) -> Box<dyn File> {
        Box::new(Handle {
            disk: self.clone(),
            inode,
            name: name.to_owned(),
            process: disk.process,
        })
    }
}

struct Handle {
    disk: Faulty,
    inode: usize,
    name: String,
    process: u64,
}

impl Handle {
    fn disk(&self) -> io::Result<MutexGuard<'_, FaultyState>> {
        let disk = self.disk.disk();
        if disk.process == self.process {
            Ok(disk)
        } else {
            Err(dead())
        }
    }
}

impl File for Handle {
    fn len(&self) -> io::Result<u64> {
        Ok(self.disk()?.inodes[self.inode].cache.len() as u64)
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let mut disk = self.disk()?;
        let at = at as usize;
        let rate = disk.faults.write;
        let dies = disk.operation()?;
        if let Some(kind) = disk.faults.refuse {
            return Err(kind.into());
        }
        let mut part = bytes.len();
        let mut error = dies.then(dead);
        if !dies && disk.happens(rate) {
            error = Some(io::Error::other("injected"));
        }
        if error.is_some() {
            part = disk.random(bytes.len() as u64 + 1) as usize;
        }
        if let Some(room) = disk.faults.room {
            let used: usize = disk
                .names
                .values()
                .map(|&i| disk.inodes[i].cache.len())
                .sum();
            let here = disk.inodes[self.inode].cache.len();
            let fits = (room as usize).saturating_sub(used) + here;
            if at + part > fits {
                part = fits.saturating_sub(at).min(part);
                error = error.or_else(|| Some(io::ErrorKind::StorageFull.into()));
            }
        }
        if part > 0 {
            let change = Change::Write(at, bytes[..part].to_vec());
            let inode = &mut disk.inodes[self.inode];
            apply(&mut inode.cache, &change);
            inode.changes.push(change);
        }
        error.map_or(Ok(()), Err)
    }

    fn sync(&mut self) -> io::Result<()> {
        let time = self.disk()?.faults.sync_time;
        if !time.is_zero() {
            std::thread::sleep(time);
        }
        let mut disk = self.disk()?;
        let dies = disk.operation()?;
        if let Some(kind) = disk.faults.refuse {
            return Err(kind.into());
        }
        if dies {
            return Err(dead());
        }
        let rate = disk.faults.sync;
        let fails = disk.happens(rate);
        for change in std::mem::take(&mut disk.inodes[self.inode].changes) {
            if !fails || disk.random(2) == 0 {
                apply(&mut disk.inodes[self.inode].disk, &change);
            }
        }
        if fails {
            disk.inodes[self.inode].lost = true;
            disk.has_lost = true;
            return Err(io::Error::other("injected"));
        }
        Ok(())
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        let mut disk = self.disk()?;
        let rate = disk.faults.other;
        if disk.change(rate)? {
            return Err(dead());
        }
        let change = Change::Truncate(length as usize);
        let inode = &mut disk.inodes[self.inode];
        apply(&mut inode.cache, &change);
        inode.changes.push(change);
        Ok(())
    }

    fn in_place(&self) -> io::Result<bool> {
        let disk = self.disk()?;
        Ok(disk.names.get(&self.name) == Some(&self.inode))
    }
}
