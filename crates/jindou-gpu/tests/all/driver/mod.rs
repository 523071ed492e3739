//! `src/cuda.rs` over a fake of the driver's library (`fake_cuda.cpp`), which runs the shim's kernels; each call is
//! made to fail in turn.
//!
//! The bindings search for the library once per process, by `LD_LIBRARY_PATH`, so each test starts itself again as a
//! child process with that variable set.

use crate::common::{edited, native, ring, rows_here, rows_on, until};
use cudarc::driver::sys::culib;
use jindou_gpu::shim::{Shim, ShimOptions};
use jindou_gpu::{Backend, Cuda, GpuExecutor, GpuOptions, Kernel};
use jindou_plan::Plan;
use jindou_store::Snapshot;
use std::ffi::{CStr, c_char, c_void};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

const MARKER: &str = "JINDOU_FAKE_CUDA";

/// Builds the fake library with `flags` and runs the test again in a child process that loads it. Returns false in that
/// child, and if the library cannot be built.
fn is_parent(test: &str, flags: &[&str]) -> bool {
    if std::env::var_os(MARKER).is_some() {
        return false;
    }
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("libcuda.so.1");
    let made = Command::new("g++")
        .args(["-std=c++17", "-O1", "-shared", "-fPIC", "-o"])
        .arg(&library)
        .args(flags)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/driver/fake_cuda.cpp"))
        .output();
    match made {
        Err(e) => println!("skipped: there is no g++: {e}"),
        Ok(o) => {
            assert!(o.status.success(), "{}", String::from_utf8_lossy(&o.stderr));
            std::fs::copy(&library, folder.path().join("libcuda.so")).unwrap();
            child(test, folder.path());
        }
    }
    true
}

fn child(test: &str, folder: &Path) {
    let o = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("driver::{test}")])
        .args(["--nocapture", "--test-threads", "1"])
        .env("LD_LIBRARY_PATH", folder)
        .env(MARKER, "1")
        .output()
        .unwrap();
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    print!("{}", text(&o.stdout));
    assert!(o.status.success(), "{}{}", text(&o.stdout), text(&o.stderr));
    assert!(text(&o.stdout).contains("1 passed"), "{}", text(&o.stdout));
}

/// The struct of the same name in `fake_cuda.cpp`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Control {
    version: i32,
    fail_at: u64,
    code: i32,
    sticky: i32,
    no_binary: i32,
    calls: u64,
    calls_after_loss: u64,
    device_bytes: u64,
    reserved_bytes: u64,
    host_bytes: u64,
    events: u64,
    streams: u64,
    modules: u64,
    pools: u64,
    contexts: u64,
    pages: u64,
    addresses: u64,
    handles: u64,
}

#[repr(C)]
struct Callbacks {
    alloc: extern "C" fn(usize) -> u64,
    free: extern "C" fn(u64, usize),
    launch: unsafe extern "C" fn(*const c_char, u32, *const c_void) -> i32,
    reserve: extern "C" fn(usize) -> u64,
    unreserve: extern "C" fn(u64, usize),
    map: extern "C" fn(u64, usize) -> i32,
    unmap: extern "C" fn(u64, usize),
}

extern "C" fn reserve(bytes: usize) -> u64 {
    shim().reserve(bytes).unwrap_or(0)
}

extern "C" fn unreserve(at: u64, bytes: usize) {
    // SAFETY: the library releases what it reserved, once, without mapped pages.
    unsafe { shim().unreserve(at, bytes) };
}

extern "C" fn map(at: u64, bytes: usize) -> i32 {
    // SAFETY: the library maps each page of reserved addresses once.
    i32::from(unsafe { shim().map_page(at, bytes) }.is_err())
}

extern "C" fn unmap(at: u64, bytes: usize) {
    // SAFETY: the library unmaps only what it mapped.
    unsafe { shim().unmap_page(at, bytes) };
}

fn shim() -> &'static Shim {
    static SHIM: OnceLock<Shim> = OnceLock::new();
    SHIM.get_or_init(|| Shim::open(ShimOptions::default()).unwrap())
}

extern "C" fn alloc(bytes: usize) -> u64 {
    shim().alloc(bytes).unwrap_or(0)
}

extern "C" fn free(at: u64, bytes: usize) {
    // SAFETY: the library frees what it allocated, once.
    unsafe { shim().free(at, bytes) };
}

unsafe extern "C" fn launch(name: *const c_char, grid: u32, params: *const c_void) -> i32 {
    // SAFETY: the library passes a name that it was given.
    let name = unsafe { CStr::from_ptr(name) };
    let kernel = Kernel::ALL
        .iter()
        .find(|k| k.symbol().as_bytes() == name.to_bytes());
    let Some(&kernel) = kernel else { return 1 };
    // SAFETY: `src/cuda.rs` checked that the kernel's parameters have this size.
    let params = unsafe { std::slice::from_raw_parts(params.cast::<u8>(), kernel.params_size()) };
    // SAFETY: the parameters refer to the shim's memory.
    match unsafe { shim().launch(kernel, grid, params) } {
        Ok(()) => 0,
        Err(e) => {
            println!("{e}");
            1
        }
    }
}

/// The fake library's state. Only one test at a time uses it.
struct Fake(Mutex<*mut Control>);

impl Fake {
    fn load() -> Self {
        let callbacks = Callbacks {
            alloc,
            free,
            launch,
            reserve,
            unreserve,
            map,
            unmap,
        };
        // SAFETY: the functions of `fake_cuda.cpp`, with the types that they have there.
        unsafe {
            let set = culib().get::<unsafe extern "C" fn(*const Callbacks)>(b"fake_callbacks");
            set.unwrap()(&raw const callbacks);
            let control = culib().get::<unsafe extern "C" fn() -> *mut Control>(b"fake_control");
            Self(Mutex::new(control.unwrap()()))
        }
    }

    fn now(&self) -> Control {
        // SAFETY: the library's state lives as long as the library.
        unsafe { self.0.lock().unwrap().read_volatile() }
    }

    fn set(&self, change: impl FnOnce(&mut Control)) {
        let mut control = self.0.lock().unwrap();
        // SAFETY: as above; no call is in progress while a test changes it.
        unsafe { change(&mut **control) };
    }

    /// Waits until a lost context has been released, which another thread does.
    fn released(&self) {
        until(|| self.now().contexts == 0, || format!("{:?}", self.now()));
    }
}

const QUERIES: [&str; 2] = [
    "SELECT ?a ?c WHERE { ?a :p ?b . ?b :q ?c }",
    "SELECT ?x ?c WHERE { :n3 ?x ?b . ?b :p ?c }",
];

fn options() -> GpuOptions {
    GpuOptions {
        // With a profile, events are used, too.
        profile: true,
        ..GpuOptions::default()
    }
}

/// A plan, its snapshot, and the expected rows.
type Case = (Plan, Snapshot, Vec<Vec<u32>>);

fn cases() -> (tempfile::TempDir, Vec<Case>) {
    let (folder, base) = ring(30, 3);
    let patched = edited(&base, &[(3, "p", 20, true), (4, "q", 11, false)]);
    let case = |(text, snapshot): (&str, Snapshot)| {
        let plan = native(&snapshot, text);
        let want = rows_here(&plan, &snapshot);
        (plan, snapshot, want)
    };
    let cases = QUERIES.into_iter().zip([base, patched]).map(case);
    (folder, cases.collect())
}

#[test]
fn whole_queries_run_over_the_driver_and_give_everything_back() {
    let test = "whole_queries_run_over_the_driver_and_give_everything_back";
    if is_parent(test, &[]) {
        return;
    }
    let fake = Fake::load();
    let (_folder, cases) = cases();
    let cuda = Cuda::open().unwrap();
    assert_eq!(cuda.name(), "Fake GPU");
    let gpu = GpuExecutor::idle_after(Arc::new(cuda), Duration::from_millis(200));
    for (plan, snapshot, want) in &cases {
        assert_eq!(&rows_on(&gpu, plan, snapshot, &options()).unwrap(), want);
    }
    let held = fake.now();
    assert!(held.reserved_bytes > held.device_bytes, "{held:?}");
    assert!(held.device_bytes > 0, "{held:?}");
    assert!(held.host_bytes > 0 && held.events > 0, "{held:?}");
    // When idle, the pool releases unused memory.
    let is_released = || fake.now().reserved_bytes <= fake.now().device_bytes;
    until(is_released, || format!("{:?}", fake.now()));
    drop(gpu);
    let c = fake.now();
    let memory = [c.device_bytes, c.host_bytes];
    let handles = [c.events, c.streams, c.modules, c.pools, c.contexts];
    assert_eq!((memory, handles), ([0; 2], [0; 5]), "{c:?}");
    assert_eq!(shim().holdings().device, 0);
}

/// An invalid argument only fails the query. A failed launch loses the context: after it, the only call is the one that
/// releases the context, and opening the device again works.
#[test]
fn every_call_that_fails_is_an_error_and_lost_contexts_are_left_alone() {
    let test = "every_call_that_fails_is_an_error_and_lost_contexts_are_left_alone";
    if is_parent(test, &[]) {
        return;
    }
    let fake = Fake::load();
    let (_folder, cases) = cases();
    let run = |plan: &Plan, snapshot: &Snapshot| -> Result<(Vec<Vec<u32>>, bool), String> {
        let gpu = GpuExecutor::new(Arc::new(Cuda::open()?));
        let rows = rows_on(&gpu, plan, snapshot, &options());
        let lost = gpu.failure().is_some();
        match rows {
            Ok(rows) => Ok((rows, lost)),
            Err(e) if lost => Err(format!("lost: {e}")),
            Err(e) => Err(e.to_string()),
        }
    };
    let mut seen = [0u32; 4];
    for (number, (plan, snapshot, want)) in cases.iter().enumerate() {
        fake.set(|c| (c.calls, c.fail_at) = (0, 0));
        assert_eq!(&run(plan, snapshot).unwrap().0, want);
        let calls = fake.now().calls;
        assert!(calls > 80, "{calls} calls");
        // Launch failed, invalid value, out of memory. The last two are tried only with the shorter query, since this
        // takes long.
        let codes = [(719, 1), (1, 0), (2, 0)];
        for (code, sticky) in codes.into_iter().take(if number == 0 { 3 } else { 1 }) {
            for at in 1..=calls {
                let case = format!("code {code} at call {at} of {calls}");
                fake.set(|c| {
                    (c.calls, c.fail_at, c.code, c.sticky) = (0, at, code, sticky);
                    c.calls_after_loss = 0;
                });
                match run(plan, snapshot) {
                    Ok((rows, _)) => {
                        seen[0] += 1;
                        assert_eq!(&rows, want, "{case}");
                    }
                    Err(e) => {
                        assert!(!e.contains('\n'), "{case}: {e}");
                        seen[1] += 1;
                        seen[2] += u32::from(e.starts_with("lost: "));
                        seen[3] += u32::from(e.starts_with("no GPU is used: "));
                    }
                }
                fake.released();
                let c = fake.now();
                assert_eq!(c.calls_after_loss, 0, "{case}");
                // Handles that could not be released were freed with the context.
                assert_eq!((c.device_bytes, c.contexts), (0, 0), "{case}");
                assert_eq!(shim().holdings().device, 0, "{case}");
                fake.set(|c| c.fail_at = 0);
                if sticky == 0 && at % 8 != 0 {
                    continue;
                }
                assert_eq!(&run(plan, snapshot).unwrap().0, want, "after {case}");
            }
        }
    }
    println!("runs that were right, that failed, of these lost, and not opened: {seen:?}");
    assert!(seen.iter().all(|n| *n > 20), "{seen:?}");
}

#[test]
fn a_driver_that_is_too_old_is_told_in_a_sentence() {
    if is_parent("a_driver_that_is_too_old_is_told_in_a_sentence", &[]) {
        return;
    }
    let fake = Fake::load();
    let sentence = || match Cuda::open() {
        Ok(_) => panic!("it was opened"),
        Err(why) => why,
    };
    fake.set(|c| c.version = 12_040);
    let why = sentence();
    assert!(why.starts_with("no GPU is used: "), "{why}");
    assert!(why.contains("CUDA 12.4") && why.contains("580"), "{why}");
    assert_eq!(fake.now().calls, 0, "nothing else was called");
    fake.set(|c| (c.version, c.no_binary) = (13_010, 1));
    let why = sentence();
    assert!(why.contains("Turing"), "{why}");
    assert_eq!(fake.now().contexts, 0);
    fake.set(|c| c.no_binary = 0);
    assert!(Cuda::open().is_ok());
}

#[test]
fn a_driver_without_a_function_is_told_in_a_sentence() {
    let test = "a_driver_without_a_function_is_told_in_a_sentence";
    if is_parent(test, &["-DWITHOUT_ELAPSED"]) {
        return;
    }
    let why = Cuda::open().map(|_| ()).unwrap_err();
    assert!(why.contains("cuEventElapsedTime_v2"), "{why}");
    assert!(why.contains("580"), "{why}");
    assert_eq!(why.lines().count(), 1);
}
