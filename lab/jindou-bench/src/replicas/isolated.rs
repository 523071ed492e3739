//! A network whose links can be cut, and disks that can be full. Needs root, `ip` and `mount`.

use jindou::{Error, Result};
use std::fs::File;
use std::io::Write;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An address of no interface: what is sent there is lost.
const NOWHERE: &str = "02:00:00:00:00:01";
/// The interface of each namespace.
const INTERFACE: &str = "eth0";

fn run(command: &[&str]) -> Result<()> {
    let done = Command::new(command[0])
        .args(&command[1..])
        .output()
        .map_err(|e| Error::io(command[0], e))?;
    match done.status.success() {
        true => Ok(()),
        false => Err(Error::external(format!(
            "{}: {}",
            command.join(" "),
            String::from_utf8_lossy(&done.stderr).trim_end()
        ))),
    }
}

/// Network namespaces, one for each server, on one bridge.
pub struct Network {
    number: u8,
    servers: usize,
}

impl Network {
    pub fn new(servers: usize) -> Result<Self> {
        let number = (std::process::id() % 200) as u8;
        let network = Self { number, servers };
        let bridge = network.bridge();
        run(&["ip", "link", "add", &bridge, "type", "bridge"])?;
        let own = format!("10.213.{number}.254/24");
        run(&["ip", "addr", "add", &own, "dev", &bridge])?;
        run(&["ip", "link", "set", &bridge, "up"])?;
        for i in 0..servers {
            let (name, outer) = (network.name(i), network.outer(i));
            let address = format!("{}/24", network.address(i));
            run(&["ip", "netns", "add", &name])?;
            run(&[
                "ip", "link", "add", &outer, "type", "veth", "peer", "name", INTERFACE, "netns",
                &name,
            ])?;
            run(&["ip", "link", "set", &outer, "master", &bridge, "up"])?;
            run(&["ip", "-n", &name, "addr", "add", &address, "dev", INTERFACE])?;
            run(&["ip", "-n", &name, "link", "set", INTERFACE, "up"])?;
            run(&["ip", "-n", &name, "link", "set", "lo", "up"])?;
        }
        Ok(network)
    }

    fn bridge(&self) -> String {
        format!("jindou{}", self.number)
    }

    fn name(&self, i: usize) -> String {
        format!("jindou{}-{i}", self.number)
    }

    fn outer(&self, i: usize) -> String {
        format!("jd{}-{i}", self.number)
    }

    /// The server's address.
    pub fn address(&self, i: usize) -> Ipv4Addr {
        Ipv4Addr::new(10, 213, self.number, i as u8 + 1)
    }

    /// The command before that of a server.
    pub fn within(&self, i: usize) -> Vec<String> {
        ["ip", "netns", "exec", &self.name(i)]
            .map(str::to_owned)
            .into()
    }

    /// Loses all that one server sends to another, without a word.
    pub fn cut(&self, from: usize, to: usize) -> Result<()> {
        let (name, to) = (self.name(from), self.address(to).to_string());
        run(&[
            "ip",
            "-n",
            &name,
            "neigh",
            "replace",
            &to,
            "lladdr",
            NOWHERE,
            "dev",
            INTERFACE,
            "nud",
            "permanent",
        ])
    }

    /// Delivers it again.
    pub fn mend(&self, from: usize, to: usize) -> Result<()> {
        let (name, to) = (self.name(from), self.address(to).to_string());
        run(&["ip", "-n", &name, "neigh", "del", &to, "dev", INTERFACE])
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for i in 0..self.servers {
            let _ = run(&["ip", "link", "del", &self.outer(i)]);
            let _ = run(&["ip", "netns", "del", &self.name(i)]);
        }
        let _ = run(&["ip", "link", "del", &self.bridge()]);
    }
}

/// A file system of its own, in memory.
pub struct Disk(PathBuf);

impl Disk {
    /// Mounts one of some gigabytes at a path that is not there yet.
    pub fn new(path: &Path, gigabytes: u32) -> Result<Self> {
        std::fs::create_dir(path).map_err(|e| Error::io(path, e))?;
        let at = path.display().to_string();
        let size = format!("size={gigabytes}g");
        run(&["mount", "-t", "tmpfs", "-o", &size, "none", &at])?;
        Ok(Self(path.into()))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    fn ballast(&self) -> PathBuf {
        self.0.join("ballast")
    }

    /// Takes all room that is left.
    pub fn fill(&self) -> Result<()> {
        let mut file = File::create(self.ballast()).map_err(|e| Error::io(&self.0, e))?;
        for size in [1 << 20, 1 << 12, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
        Ok(())
    }

    /// Gives it back.
    pub fn free(&self) -> Result<()> {
        std::fs::remove_file(self.ballast()).map_err(|e| Error::io(&self.0, e))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = run(&["umount", "--lazy", &self.0.display().to_string()]);
    }
}
