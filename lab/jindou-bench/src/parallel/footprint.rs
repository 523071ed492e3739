//! Measures which pages of a store's files a query accesses, and drops those files from memory for cold runs.

use jindou::{Error, Result};
use std::path::Path;

/// Clears the marks of accessed pages of this process.
pub fn clear() -> Result<()> {
    let path = "/proc/self/clear_refs";
    std::fs::write(path, "1").map_err(|e| Error::io(path, e))?;
    forget_translations()
}

/// Flushes the processors' TLB entries of this process. Clearing the marks only changes the page tables, and a
/// processor marks a page again only when it reads the table. Unmapping more than some 33 accessed pages makes Linux
/// flush all TLB entries of a process.
fn forget_translations() -> Result<()> {
    const PAGES: usize = 256;
    const BYTES: usize = PAGES << 12;
    // SAFETY: a private mapping at an address that the system chooses cannot overlap other memory.
    let place = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            BYTES,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if place == libc::MAP_FAILED {
        let e = std::io::Error::last_os_error();
        return Err(Error::io("<anonymous memory>", e));
    }
    for page in 0..PAGES {
        // SAFETY: inside the mapping, which is writable and not yet unmapped.
        unsafe { place.cast::<u8>().add(page << 12).write_volatile(1) };
    }
    // SAFETY: exactly the mapping made above, to which no pointer remains in use.
    unsafe { libc::munmap(place, BYTES) };
    Ok(())
}

/// Bytes of files in `dir` that this process accessed through mappings since [`clear`]. Whole pages (4096 bytes) count,
/// as marked by the processor.
pub fn touched(dir: &Path) -> Result<u64> {
    let path = "/proc/self/smaps";
    let text = std::fs::read_to_string(path).map_err(|e| Error::io(path, e))?;
    let dir = dir.canonicalize().map_err(|e| Error::io(dir, e))?;
    Ok(referenced(&text, &dir))
}

fn referenced(smaps: &str, dir: &Path) -> u64 {
    let mut of_store = false;
    let mut bytes = 0;
    for line in smaps.lines() {
        match line.strip_prefix("Referenced:") {
            Some(rest) if of_store => {
                let kib = rest.split_whitespace().next().and_then(|n| n.parse().ok());
                bytes += kib.unwrap_or(0u64) << 10;
            }
            // First line of a mapping: addresses, permissions, offset, device, inode, path.
            None if line.split_once('-').is_some_and(|(a, _)| is_hexadecimal(a)) => {
                let file = line.find('/').map(|at| Path::new(&line[at..]));
                of_store = file.is_some_and(|f| f.starts_with(dir));
            }
            _ => {}
        }
    }
    bytes
}

fn is_hexadecimal(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Asks the system to drop the files in `dir` from its page cache. Pages that a process has mapped and accessed stay.
#[cfg(target_os = "linux")]
pub fn drop_from_cache(dir: &Path) -> Result<()> {
    for entry in std::fs::read_dir(dir).map_err(|e| Error::io(dir, e))? {
        let path = entry.map_err(|e| Error::io(dir, e))?.path();
        if path.is_file() {
            let file = std::fs::File::open(&path).map_err(|e| Error::io(&path, e))?;
            // SAFETY: the descriptor is open during the call, and the call accesses no memory of this process.
            unsafe {
                libc::posix_fadvise(
                    std::os::fd::AsRawFd::as_raw_fd(&file),
                    0,
                    0,
                    libc::POSIX_FADV_DONTNEED,
                )
            };
        }
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
pub fn drop_from_cache(_: &Path) -> Result<()> {
    Err(Error::Unsupported(
        "cold files on this system; give --cold-times 0,0 --cold-rounds 0".into(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_stores_mappings_count() {
        let smaps = "7f00-7f10 r--s 00000000 fe:00 12 /data/store/strings.jd\nRss: 64 kB\nReferenced:           40 kB\n\
            7f10-7f20 r--p 00000000 fe:00 12 /data/store2/strings.jd\nReferenced: 400 kB\n\
            7f20-7f30 rw-p 00000000 00:00 0 [heap]\nReferenced: 4000 kB\n\
            7f30-7f40 r--s 00000000 fe:00 12 /data/store/index.jd\nReferenced: 2 kB\n";
        assert_eq!(referenced(smaps, Path::new("/data/store")), 42 << 10);
    }

    #[test]
    fn a_touched_page_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, vec![1; 64 << 12]).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        // SAFETY: the file is this test's own, and no process changes it while it is mapped.
        let map = unsafe { memmap2::Mmap::map(&file) }.unwrap();
        let sum =
            |pages: std::ops::Range<usize>| pages.map(|p| u64::from(map[p << 12])).sum::<u64>();
        assert_eq!(sum(0..64), 64);
        if let Err(e) = clear() {
            println!("skipped: {e}");
            return;
        }
        assert_eq!(sum(10..13), 3);
        let bytes = touched(dir.path()).unwrap();
        assert_eq!(bytes, 3 << 12);
        assert_eq!(crate::measure::bytes_in(dir.path()), 64 << 12);
    }
}
