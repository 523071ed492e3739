//! Memory and processors that this process may use.

use std::path::{Path, PathBuf};

/// Memory assumed for a machine that does not report it, in bytes.
const UNKNOWN: u64 = 4 << 30;

/// Memory and processors that this process may use. Detecting them takes some system calls, so a program does it once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Bytes of memory: the machine's, or less if the control groups of this process (cgroups v1 or v2) limit it.
    pub memory: u64,
    /// Processors that this process can run on at once, considering quotas of control groups; at least 1.
    pub cores: usize,
}

impl Machine {
    /// Detects the memory and the cores of this machine or container.
    #[must_use]
    pub fn read() -> Self {
        Self {
            memory: memory_under(Path::new("/")),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }

    /// Bytes of memory that are free now, or contain cached files that the system can drop; at most [`Self::memory`].
    #[must_use]
    pub fn available(&self) -> u64 {
        let now = bytes_of(Path::new("/proc/meminfo"), "MemAvailable:");
        now.map_or(self.memory, |now| now.min(self.memory))
    }
}

/// Bytes free for this user on the file system of `path`; `u64::MAX` if the system does not report them.
#[must_use]
pub fn free_space(path: &Path) -> u64 {
    use std::os::unix::ffi::OsStrExt;
    let Ok(c) = std::ffi::CString::new(path.as_os_str().as_bytes()) else {
        return u64::MAX;
    };
    let mut s = std::mem::MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: `c` is a terminated string and `s` has room for the answer.
    if unsafe { libc::statvfs(c.as_ptr(), s.as_mut_ptr()) } != 0 {
        return u64::MAX;
    }
    // SAFETY: the call succeeded and filled it (and all-zero is a valid value).
    let s = unsafe { s.assume_init() };
    s.f_bavail.saturating_mul(s.f_frsize)
}

/// Gives this thread's disk reads a low priority, if the disk's scheduler supports priorities.
pub fn read_after_others() {
    #[cfg(target_os = "linux")]
    set_priority(3 << 13);
}

/// Sets the class and the priority of this thread's disk accesses, encoded as `ioprio_set` expects.
#[cfg(target_os = "linux")]
fn set_priority(priority: libc::c_int) {
    const OF_A_THREAD: libc::c_int = 1;
    // SAFETY: the call takes no pointers; 0 means the calling thread. If the call fails, nothing changes.
    unsafe { libc::syscall(libc::SYS_ioprio_set, OF_A_THREAD, 0, priority) };
}

/// The smallest of the machine's memory and the limits of control groups, read from files below `root`.
fn memory_under(root: &Path) -> u64 {
    let of_machine = total(&root.join("proc/meminfo"));
    let limits = of_machine.into_iter().chain(of_groups(root));
    limits.min().unwrap_or(UNKNOWN)
}

/// `MemTotal` in bytes.
fn total(meminfo: &Path) -> Option<u64> {
    bytes_of(meminfo, "MemTotal:")
}

/// The value in bytes of the line of a `meminfo` file that begins with this name.
fn bytes_of(meminfo: &Path, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(meminfo).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix(name))?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kib.checked_mul(1024)?).filter(|bytes| *bytes > 0)
}

/// Memory limits of the control groups of this process and of all groups that contain them.
fn of_groups(root: &Path) -> Vec<u64> {
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
    let (groups, mounts) = (read("proc/self/cgroup"), read("proc/self/mountinfo"));
    let mut limits = Vec::new();
    for line in groups.lines() {
        // A line is `hierarchy:controllers:path`; in version 2 the hierarchy is 0 and there are no controllers.
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(group)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let (kind, file) = match controllers {
            "" => (CgroupVersion::Two, "memory.max"),
            c if c.split(',').any(|c| c == "memory") => {
                (CgroupVersion::One, "memory.limit_in_bytes")
            }
            _ => continue,
        };
        for mount in mounts.lines().filter_map(|l| Mount::parse(l, kind)) {
            let top = root.join(mount.at.trim_start_matches('/'));
            for folder in folders(&top, &mount.group, group) {
                limits.extend(limit_in(&folder.join(file)));
            }
        }
    }
    limits
}

/// Version of a hierarchy of control groups.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CgroupVersion {
    One,
    Two,
}

/// A mount of a hierarchy of control groups.
struct Mount {
    at: String,
    /// The group that is mounted: `/`, or another one in containers that see only a part of the hierarchy.
    group: String,
}

impl Mount {
    /// The mount described by a line of `mountinfo`, if it belongs to the hierarchy that limits memory.
    fn parse(line: &str, kind: CgroupVersion) -> Option<Self> {
        let (mount, system) = line.split_once(" - ")?;
        let mut system = system.split(' ');
        let options = match (system.next()?, kind) {
            ("cgroup2", CgroupVersion::Two) => None,
            ("cgroup", CgroupVersion::One) => Some(system.next_back()?),
            _ => return None,
        };
        if options.is_some_and(|o| !o.split(',').any(|c| c == "memory")) {
            return None;
        }
        let mut fields = mount.split(' ').skip(3);
        let (group, at) = (fields.next()?, fields.next()?);
        Some(Self {
            at: unescaped(at),
            group: unescaped(group),
        })
    }
}

/// A path with the escapes of `mountinfo` undone, which writes white space and backslashes as `\040` and so on.
fn unescaped(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let code = after.get(..3).and_then(|c| u8::from_str_radix(c, 8).ok());
        match code {
            Some(code) if code.is_ascii() => {
                out.push(code.into());
                rest = &after[3..];
            }
            _ => {
                out.push('\\');
                rest = after;
            }
        }
    }
    out + rest
}

/// The folder of a group, and all folders above it up to the mount point `top`. `mounted` is the group at the mount
/// point.
fn folders(top: &Path, mounted: &str, group: &str) -> Vec<PathBuf> {
    // In a container the group's path may be the host's, which does not exist here. Then the mount point is the folder
    // of the process's own group.
    let own = group
        .strip_prefix(mounted.trim_end_matches('/'))
        .unwrap_or(group)
        .trim_matches('/');
    let mut folders = vec![top.to_owned()];
    if own.split('/').all(|part| part != "..") {
        let mut at = top.to_owned();
        for part in own.split('/').filter(|part| !part.is_empty()) {
            at.push(part);
            folders.push(at.clone());
        }
    }
    folders
}

/// The limit in a file; `None` for `max`, zero, and numbers beyond any machine's memory.
fn limit_in(file: &Path) -> Option<u64> {
    let limit: u64 = std::fs::read_to_string(file).ok()?.trim().parse().ok()?;
    // Version 1 has a huge number if there is no limit; with a limit of zero nothing could run.
    (1..1 << 50).contains(&limit).then_some(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMINFO: &str = "MemTotal:       16777216 kB\nMemFree:         1048576 kB\n";
    const GIB: u64 = 1 << 30;
    const TWO: &str =
        "29 22 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
    const ONE: &str = "33 30 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
        35 30 0:31 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n";

    /// The memory that is detected if the machine has these files.
    fn memory_of(files: &[(&str, &str)]) -> u64 {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        memory_under(root.path())
    }

    #[test]
    fn a_machine_without_groups() {
        assert_eq!(memory_of(&[]), UNKNOWN);
        assert_eq!(memory_of(&[("proc/meminfo", MEMINFO)]), 16 * GIB);
        assert_eq!(memory_of(&[("proc/meminfo", "MemTotal: much\n")]), UNKNOWN);
        assert_eq!(memory_of(&[("proc/meminfo", "MemTotal: 0 kB\n")]), UNKNOWN);
        let huge = format!("MemTotal: {} kB\n", u64::MAX);
        assert_eq!(memory_of(&[("proc/meminfo", &huge)]), UNKNOWN);
    }

    #[test]
    fn version_2_counts_every_level() {
        let with = |own: &str, around: &str, top: &str| {
            memory_of(&[
                ("proc/meminfo", MEMINFO),
                ("proc/self/cgroup", "0::/jobs.slice/one.service\n"),
                ("proc/self/mountinfo", TWO),
                ("sys/fs/cgroup/memory.max", top),
                ("sys/fs/cgroup/jobs.slice/memory.max", around),
                ("sys/fs/cgroup/jobs.slice/one.service/memory.max", own),
                ("sys/fs/cgroup/another.slice/memory.max", "1048576\n"),
            ])
        };
        assert_eq!(with("2147483648\n", "max\n", "max\n"), 2 * GIB);
        assert_eq!(with("2147483648\n", "1073741824\n", "max\n"), GIB);
        assert_eq!(with("max\n", "3221225472\n", "max\n"), 3 * GIB);
        assert_eq!(with("max\n", "max\n", "4294967296"), 4 * GIB);
        assert_eq!(with("max\n", "max\n", "max\n"), 16 * GIB);
        // Limits above the machine's memory, limits of zero, and texts that are not numbers are ignored.
        assert_eq!(with("68719476736\n", "0\n", "-1\n"), 16 * GIB);
        assert_eq!(with("99999999999999999999\n", "much", ""), 16 * GIB);
    }

    #[test]
    fn version_1_counts_every_level() {
        let with = |own: &str, around: &str| {
            memory_of(&[
                ("proc/meminfo", MEMINFO),
                (
                    "proc/self/cgroup",
                    "7:cpu,cpuacct:/docker\n5:memory:/docker/abc\n0::/\n",
                ),
                ("proc/self/mountinfo", ONE),
                (
                    "sys/fs/cgroup/memory/memory.limit_in_bytes",
                    "9223372036854771712\n",
                ),
                ("sys/fs/cgroup/memory/docker/memory.limit_in_bytes", around),
                ("sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", own),
                (
                    "sys/fs/cgroup/cpu,cpuacct/docker/memory.limit_in_bytes",
                    "4096\n",
                ),
            ])
        };
        assert_eq!(with("536870912\n", "9223372036854771712\n"), GIB / 2);
        assert_eq!(with("9223372036854771712\n", "1073741824\n"), GIB);
        assert_eq!(
            with("9223372036854771712\n", "9223372036854771712\n"),
            16 * GIB
        );
    }

    #[test]
    fn a_container_sees_a_part_of_the_hierarchy() {
        // The process's own group is at the mount point, but its path is the host's.
        for (mounted, group) in [
            ("/docker/abc", "/docker/abc"),
            ("/docker/abc", "/elsewhere"),
            ("/", "/../../other"),
        ] {
            let mounts = format!(
                "35 30 0:31 {mounted} /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
            );
            let found = memory_of(&[
                ("proc/meminfo", MEMINFO),
                ("proc/self/cgroup", &format!("5:memory:{group}\n")),
                ("proc/self/mountinfo", &mounts),
                ("sys/fs/cgroup/memory/memory.limit_in_bytes", "805306368\n"),
            ]);
            assert_eq!(found, 768 << 20, "{mounted} {group}");
        }
        // A mount with a space in its path, and lines that are not mounts.
        let found = memory_of(&[
            ("proc/meminfo", MEMINFO),
            ("proc/self/cgroup", "\n:\n0::/a:b\n"),
            (
                "proc/self/mountinfo",
                "nothing\n1 2 3 - cgroup2\n29 22 0:26 / /my\\040groups rw - cgroup2 none rw\n",
            ),
            ("my groups/a:b/memory.max", "1073741824\n"),
        ]);
        assert_eq!(found, GIB);
    }

    #[test]
    fn this_machine_has_something() {
        let machine = Machine::read();
        assert!(machine.memory > 1 << 20 && machine.cores > 0);
    }
}
