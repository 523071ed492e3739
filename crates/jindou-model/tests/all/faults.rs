//! Mapped files that are truncated while they are read. Cases that end their process run in one of their own.

use jindou_model::Error;
use jindou_model::mapped::{MappedFile, contradicts};
use std::fs::OpenOptions;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};

const PAGE: usize = 1 << 16;

/// A file of non-zero bytes.
fn file(dir: &Path, len: usize) -> std::path::PathBuf {
    let path = dir.join("some.jd");
    std::fs::write(&path, vec![7u8; len]).unwrap();
    path
}

fn cut(path: &Path, len: usize) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(len as u64).unwrap();
}

fn sum(map: &MappedFile) -> u64 {
    map.iter().map(|b| u64::from(*b)).sum()
}

fn assert_shrunk(map: &MappedFile, from: usize, to: usize) {
    let Err(said @ Error::Damaged { .. }) = map.check() else {
        panic!("the cut was not seen");
    };
    let wanted = format!("some.jd: the file has shrunk from {from} to {to} bytes");
    let said = said.to_string();
    assert!(said.contains(&wanted), "{said}");
}

#[test]
fn a_cut_anywhere_is_seen() {
    let dir = tempfile::tempdir().unwrap();
    let len = 3 * PAGE + 100;
    for to in [0, 1, PAGE - 1, PAGE, 2 * PAGE + 5, 3 * PAGE, 3 * PAGE + 99] {
        for read_before in [false, true] {
            let path = file(dir.path(), len);
            let map = MappedFile::open(&path).unwrap();
            if read_before {
                assert_eq!(sum(&map), 7 * len as u64);
            }
            map.check().unwrap();
            cut(&path, to);
            assert!(sum(&map) <= 7 * to as u64, "cut to {to}");
            assert_shrunk(&map, len, to);
            // A failed file stays failed, even if it is restored.
            std::fs::write(&path, vec![7u8; len]).unwrap();
            assert!(map.check().is_err());
            drop(map);
            let map = MappedFile::open(&path).unwrap();
            assert_eq!(sum(&map), 7 * len as u64);
            map.check().unwrap();
        }
    }
}

#[test]
fn a_reader_may_say_that_a_file_contradicts_itself() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), 2 * PAGE);
    let [map, other] = [(); 2].map(|()| MappedFile::open(&path).unwrap());
    contradicts(&map[PAGE..PAGE]);
    contradicts(&[1u8, 2]);
    map.check().unwrap();
    contradicts(&map[PAGE + 5..]);
    let said = map.check().unwrap_err().to_string();
    assert!(
        said.contains("some.jd: parts of the file contradict"),
        "{said}"
    );
    other.check().unwrap();
}

#[test]
fn zeros_at_the_end_are_no_cut() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("some.jd");
    for (ones, zeros) in [(10, 10), (0, 10), (PAGE, PAGE), (PAGE + 1, 3 * PAGE)] {
        let mut bytes = vec![1u8; ones];
        bytes.resize(ones + zeros, 0);
        std::fs::write(&path, &bytes).unwrap();
        let map = MappedFile::open(&path).unwrap();
        assert_eq!(sum(&map), ones as u64);
        map.check().unwrap();
        cut(&path, ones / 2);
        let now = sum(&map);
        // If the truncation did not change what is read, the check need not fail.
        assert!(map.check().is_err() || now == ones as u64);
    }
    std::fs::write(&path, b"").unwrap();
    assert!(matches!(MappedFile::open(&path), Err(Error::Io { .. })));
}

#[test]
fn threads_that_fault_together_go_on() {
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..20 {
        let len = 8 * PAGE;
        let path = file(dir.path(), len);
        let map = MappedFile::open(&path).unwrap();
        let start = std::sync::Barrier::new(5);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    start.wait();
                    for _ in 0..20 {
                        let sum = sum(&map);
                        // The sum is right, or the check fails.
                        assert!(sum == 7 * len as u64 || map.check().is_err());
                    }
                });
            }
            start.wait();
            cut(&path, PAGE + 3);
        });
        assert_shrunk(&map, len, PAGE + 3);
    }
}

#[test]
fn only_the_file_that_was_cut_has_failed() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (dir.path().join("one"), dir.path().join("two"));
    std::fs::create_dir(&one).unwrap();
    std::fs::create_dir(&two).unwrap();
    let (a, b) = (file(&one, 2 * PAGE), file(&two, 2 * PAGE));
    let [x, y, z] = [&a, &b, &a].map(|p| MappedFile::open(p).unwrap());
    cut(&a, 0);
    assert_eq!(sum(&x) + sum(&z), 0);
    assert!(x.check().is_err() && z.check().is_err());
    assert_eq!(sum(&y), 14 * PAGE as u64);
    y.check().unwrap();
}

/// Environment variable that is set in the processes that `run` starts.
const CHILD: &str = "JINDOU_FAULTS_CHILD";

/// Runs one of this file's ignored tests in its own process.
fn run(name: &str) -> Output {
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture"])
        .arg(format!("faults::{name}"))
        .env(CHILD, "1")
        .output()
        .unwrap()
}

/// True in a process that `run` started. Otherwise these tests do nothing, since they would end a run of all ignored
/// tests.
fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
}

#[test]
fn other_faults_end_the_process_as_before() {
    let other = run("child_faults_elsewhere");
    assert_eq!(
        other.status.signal(),
        Some(libc_sigbus()),
        "{}",
        said(&other)
    );
    let sent = run("child_is_sent_the_signal");
    assert_eq!(sent.status.signal(), Some(libc_sigbus()), "{}", said(&sent));
    let overflow = run("child_overflows_its_stack");
    assert!(
        said(&overflow).contains("has overflowed its stack"),
        "{}",
        said(&overflow)
    );
    assert!(overflow.status.signal().is_some());
}

#[test]
fn a_program_may_keep_the_signal() {
    let alone = run("child_leaves_the_signal_alone");
    assert_eq!(
        alone.status.signal(),
        Some(libc_sigbus()),
        "{}",
        said(&alone)
    );
    let own = run("child_has_a_handler_before");
    assert!(own.status.success(), "{}", said(&own));
    assert!(said(&own).contains("own handler: 1"), "{}", said(&own));
}

fn libc_sigbus() -> i32 {
    libc::SIGBUS
}

/// A truncated mapping that is not in the table.
fn foreign() -> memmap2::Mmap {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), 2 * PAGE);
    let open = std::fs::File::open(&path).unwrap();
    // SAFETY: the mapping is read-only; this test truncates its file on purpose.
    let map = unsafe { memmap2::Mmap::map(&open) }.unwrap();
    cut(&path, 0);
    map
}

#[test]
#[ignore = "ends its process: other_faults_end_the_process_as_before runs it"]
fn child_faults_elsewhere() {
    if !is_child() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let ours = MappedFile::open(&file(dir.path(), PAGE)).unwrap();
    let map = foreign();
    println!("{}", map.iter().map(|b| u64::from(*b)).sum::<u64>());
    drop(ours);
}

#[test]
#[ignore = "ends its process: other_faults_end_the_process_as_before runs it"]
fn child_is_sent_the_signal() {
    if !is_child() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let _ours = MappedFile::open(&file(dir.path(), PAGE)).unwrap();
    // SAFETY: the call takes no pointers.
    unsafe { libc::raise(libc::SIGBUS) };
    // The previous handler, that of Rust's runtime, restores the default action and returns.
    // SAFETY: as above.
    unsafe { libc::raise(libc::SIGBUS) };
}

#[test]
#[ignore = "ends its process: other_faults_end_the_process_as_before runs it"]
fn child_overflows_its_stack() {
    if !is_child() {
        return;
    }
    fn deep(n: u64) -> u64 {
        let here = std::hint::black_box([n; 64]);
        if n == u64::MAX {
            return 0;
        }
        deep(n + 1) + here[0]
    }
    let dir = tempfile::tempdir().unwrap();
    let _ours = MappedFile::open(&file(dir.path(), PAGE)).unwrap();
    println!("{}", deep(0));
}

#[test]
#[ignore = "ends its process: a_program_may_keep_the_signal runs it"]
fn child_leaves_the_signal_alone() {
    if !is_child() {
        return;
    }
    jindou_model::mapped::leave_signal_alone();
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), 2 * PAGE);
    let map = MappedFile::open(&path).unwrap();
    cut(&path, 0);
    println!("{}", sum(&map));
}

#[test]
#[ignore = "a_program_may_keep_the_signal runs it"]
fn child_has_a_handler_before() {
    if !is_child() {
        return;
    }
    use std::sync::atomic::{AtomicU32, Ordering};
    static CALLED: AtomicU32 = AtomicU32::new(0);
    extern "C" fn own(_: i32) {
        CALLED.fetch_add(1, Ordering::Relaxed);
    }
    // SAFETY: the handler only adds to an atomic.
    unsafe { libc::signal(libc::SIGBUS, own as extern "C" fn(i32) as usize) };
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), 2 * PAGE);
    let map = MappedFile::open(&path).unwrap();
    cut(&path, 0);
    assert_eq!(sum(&map), 0);
    assert!(map.check().is_err());
    // The fault was not passed to the program's own handler, but a signal that a process sends is.
    assert_eq!(CALLED.load(Ordering::Relaxed), 0);
    // SAFETY: the call takes no pointers.
    unsafe { libc::raise(libc::SIGBUS) };
    println!("own handler: {}", CALLED.load(Ordering::Relaxed));
}
