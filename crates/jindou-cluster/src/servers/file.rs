//! The cluster file: TOML that is the same on every server.
//!
//! ```toml
//! token = "…"                      # the same secret on all servers
//! authority = "authority.pem"      # the cluster's own certificate authority
//! fabric = "tls"                   # or "ucx", without encryption: only for a network that strangers cannot reach
//! reads = true                     # with "ucx": servers read lists out of each other's memory, where that is quicker than asking
//!
//! [[server]]
//! name = "one"                     # its certificate is for this name
//! address = "10.0.0.1:7979"        # for the other servers
//! http = "10.0.0.1:7878"           # for clients; only shown
//! shards = [0, 1]
//! certificate = "one.pem"          # needed on this server only
//! key = "one.key"
//! devices = "mlx5_0:1,eth0"        # with "ucx" only: UCX's names of what it may use
//! ```
//!
//! With `fabric = "ucx"` either all servers have `devices`, or all are at a loopback address and use shared memory.
//!
//! Relative paths are relative to the file.

use jindou_model::{Error, Result};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// The content of a cluster file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterFile {
    /// Path from which it was read.
    pub path: PathBuf,
    /// The secret by which servers authenticate each other.
    pub token: String,
    /// The carrier of requests and replies.
    pub fabric: Fabric,
    /// True if servers read lists from each other's memory.
    pub reads: bool,
    /// The servers in the file's order.
    pub servers: Vec<ServerEntry>,
}

/// The carrier of requests between servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fabric {
    /// TLS.
    Tls,
    /// UCX, which has neither authentication nor encryption. TLS is used for handshakes and heartbeats, and while UCX
    /// does not work.
    Ucx,
}

/// One server of a cluster file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerEntry {
    /// Its name: letters, digits and hyphens.
    pub name: String,
    /// Host and port for the other servers.
    pub address: String,
    /// Host and port for clients.
    pub http: String,
    /// The shards that it holds, ascending.
    pub shards: Vec<u32>,
    /// PEM file of the cluster's authority.
    pub authority: PathBuf,
    /// PEM file of the server's certificate.
    pub certificate: PathBuf,
    /// PEM file of the server's private key.
    pub key: PathBuf,
    /// Names of the devices that UCX may use.
    pub devices: Option<String>,
}

/// Most servers in a file.
const MAX_SERVERS: usize = 256;
/// Fewest characters of a token.
const MIN_TOKEN: usize = 16;
/// Most characters of a token.
const MAX_TOKEN: usize = 512;

impl ClusterFile {
    /// Reads a cluster file.
    ///
    /// # Errors
    /// [`Error::Io`] when it cannot be read; [`Error::Usage`] with file and reason for anything wrong in it.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|e| Error::io(path, e))?;
        Self::parse(path, &text)
    }

    /// Parses a file's text.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn parse(path: &Path, text: &str) -> Result<Self> {
        let wrong = |what: String| Error::Usage(format!("{}: {what}", path.display()));
        let table: Table = text.parse().map_err(|e| wrong(format!("not TOML: {e}")))?;
        only(&table, &["token", "authority", "fabric", "reads", "server"]).map_err(wrong)?;
        let token = text_of(&table, "token").map_err(wrong)?;
        if !(MIN_TOKEN..=MAX_TOKEN).contains(&token.len()) {
            return Err(wrong(format!(
                "token must have {MIN_TOKEN} to {MAX_TOKEN} bytes"
            )));
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        let authority = folder.join(text_of(&table, "authority").map_err(wrong)?);
        let Some(Value::Array(all)) = table.get("server") else {
            return Err(wrong("it has no [[server]]".into()));
        };
        if all.is_empty() || all.len() > MAX_SERVERS {
            return Err(wrong(format!(
                "it names no server, or more than {MAX_SERVERS}"
            )));
        }
        let mut servers: Vec<ServerEntry> = Vec::with_capacity(all.len());
        for (i, value) in (1..).zip(all) {
            let server = entry(value, folder, &authority)
                .map_err(|what| wrong(format!("server {i}: {what}")))?;
            if servers.iter().any(|s| s.name == server.name) {
                return Err(wrong(format!("two servers are called {}", server.name)));
            }
            servers.push(server);
        }
        let fabric = fabric(&table, &servers).map_err(wrong)?;
        let reads = match table.get("reads") {
            None => fabric == Fabric::Ucx,
            Some(Value::Boolean(reads)) if fabric == Fabric::Ucx || !reads => *reads,
            Some(Value::Boolean(_)) => return Err(wrong("reads needs fabric = \"ucx\"".into())),
            Some(_) => return Err(wrong("reads must be true or false".into())),
        };
        Ok(Self {
            path: path.to_owned(),
            token: token.to_owned(),
            fabric,
            reads,
            servers,
        })
    }

    /// The server with this name.
    ///
    /// # Errors
    /// [`Error::Usage`] with the names of all servers if it is unknown.
    pub fn server(&self, name: &str) -> Result<&ServerEntry> {
        self.servers.iter().find(|s| s.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.servers.iter().map(|s| s.name.as_str()).collect();
            Error::Usage(format!(
                "{}: no server {name}; it has {}",
                self.path.display(),
                names.join(", ")
            ))
        })
    }

    /// Checks that each of a store's shards is held by exactly one server.
    ///
    /// # Errors
    /// [`Error::Usage`] with the shard.
    pub fn check(&self, shards: usize) -> Result<()> {
        let mut holders: Vec<Option<&str>> = vec![None; shards];
        let wrong = |what: String| Err(Error::Usage(format!("{}: {what}", self.path.display())));
        for server in &self.servers {
            for &shard in &server.shards {
                match holders.get_mut(shard as usize) {
                    None => {
                        return wrong(format!(
                            "server {} should hold shard {shard}, but the store has {shards} shards, numbered from 0",
                            server.name
                        ));
                    }
                    Some(Some(other)) => {
                        return wrong(format!(
                            "shard {shard} is on both {other} and {}",
                            server.name
                        ));
                    }
                    Some(place) => *place = Some(&server.name),
                }
            }
        }
        match holders.iter().position(Option::is_none) {
            Some(shard) => wrong(format!("no server holds shard {shard}")),
            None => Ok(()),
        }
    }
}

fn only(table: &Table, known: &[&str]) -> Result<(), String> {
    match table.keys().find(|k| !known.contains(&k.as_str())) {
        Some(key) => Err(format!(
            "unknown setting {key}; the settings are {}",
            known.join(", ")
        )),
        None => Ok(()),
    }
}

fn text_of<'t>(table: &'t Table, key: &str) -> Result<&'t str, String> {
    match table.get(key) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text),
        Some(_) => Err(format!("{key} must be a string")),
        None => Err(format!("{key} is missing")),
    }
}

fn fabric(table: &Table, servers: &[ServerEntry]) -> Result<Fabric, String> {
    let chosen = match table.get("fabric") {
        None => Fabric::Tls,
        Some(Value::String(name)) if name == "tls" => Fabric::Tls,
        Some(Value::String(name)) if name == "ucx" => Fabric::Ucx,
        Some(_) => return Err("fabric must be \"tls\" or \"ucx\"".into()),
    };
    let named = servers.iter().filter(|s| s.devices.is_some()).count();
    if chosen == Fabric::Tls {
        return match named {
            0 => Ok(chosen),
            _ => Err("devices needs fabric = \"ucx\"".into()),
        };
    }
    let other = servers.iter().find(|s| match named {
        0 => !is_loopback(&s.address),
        _ => s.devices.is_none(),
    });
    match other {
        None => Ok(chosen),
        Some(server) => Err(format!(
            "with fabric = \"ucx\" server {} needs devices, such as \"mlx5_0:1,eth0\": list those of a machine with `ucx_info -d`",
            server.name
        )),
    }
}

fn is_loopback(address: &str) -> bool {
    let host = address.rsplit_once(':').map_or(address, |a| a.0);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn entry(value: &Value, folder: &Path, authority: &Path) -> Result<ServerEntry, String> {
    let Value::Table(table) = value else {
        return Err("it must be a table".into());
    };
    only(
        table,
        &[
            "name",
            "address",
            "http",
            "shards",
            "certificate",
            "key",
            "devices",
        ],
    )?;
    let name = text_of(table, "name")?;
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.len() > 63 || !name.chars().all(plain) || name.starts_with('-') || name.ends_with('-') {
        return Err(format!(
            "{name:?} is not a valid server name: use up to 63 lower-case letters, digits and hyphens"
        ));
    }
    let address = text_of(table, "address")?;
    if address
        .rsplit_once(':')
        .is_none_or(|a| a.1.parse::<u16>().is_err())
    {
        return Err(format!("address {address:?} is not HOST:PORT"));
    }
    let Some(Value::Array(all)) = table.get("shards") else {
        return Err("shards must be a list of numbers".into());
    };
    let number = |v: &Value| v.as_integer().and_then(|n| u32::try_from(n).ok());
    let shards: Option<Vec<u32>> = all.iter().map(number).collect();
    let mut shards = shards.ok_or("shards must be a list of numbers")?;
    shards.sort_unstable();
    if shards.is_empty() {
        return Err("it holds no shard".into());
    }
    let devices = match table.get("devices") {
        None => None,
        Some(_) => Some(text_of(table, "devices")?.to_owned()),
    };
    Ok(ServerEntry {
        name: name.to_owned(),
        address: address.to_owned(),
        http: text_of(table, "http")?.to_owned(),
        shards,
        authority: authority.to_owned(),
        certificate: folder.join(text_of(table, "certificate")?),
        key: folder.join(text_of(table, "key")?),
        devices,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        token = "0123456789abcdef"
        authority = "a.pem"
        [[server]]
        name = "one"
        address = "h:1"
        http = "h:2"
        shards = [2, 0]
        certificate = "one.pem"
        key = "/k/one.key"
        [[server]]
        name = "two"
        address = "h:3"
        http = "h:4"
        shards = [1]
        certificate = "two.pem"
        key = "two.key"
    "#;

    fn parse(text: &str) -> Result<ClusterFile> {
        ClusterFile::parse(Path::new("/f/c.toml"), text)
    }

    #[test]
    fn a_file_is_read() {
        let file = parse(TEXT).unwrap();
        assert_eq!(file.servers[0].shards, [0, 2]);
        assert_eq!(file.servers[0].certificate, Path::new("/f/one.pem"));
        assert_eq!(file.servers[0].key, Path::new("/k/one.key"));
        assert!(file.check(3).is_ok());
        assert!(file.server("three").is_err());
    }

    #[test]
    fn a_fabric_needs_devices_or_one_machine() {
        let ucx = TEXT.replace("authority =", "fabric = \"ucx\"\nauthority =");
        let here = ucx.replace("h:1", "127.0.0.1:1").replace("h:3", "[::1]:3");
        let key = "key = \"/k/one.key\"";
        let one = format!("{key}\ndevices = \"mlx5_0:1\"");
        let other = "key = \"two.key\"\ndevices = \"eth0\"";
        let both = ucx.replace(key, &one).replace("key = \"two.key\"", other);
        let parsed = parse(TEXT).unwrap();
        assert_eq!((parsed.fabric, parsed.reads), (Fabric::Tls, false));
        assert!(parse(&here).unwrap().reads);
        let asking = here.replace("authority =", "reads = false\nauthority =");
        assert!(!parse(&asking).unwrap().reads);
        assert_eq!(parse(&here).unwrap().fabric, Fabric::Ucx);
        let file = parse(&both).unwrap();
        assert_eq!(file.servers[1].devices.as_deref(), Some("eth0"));
        for (text, says) in [
            (ucx.clone(), "server one needs devices"),
            (here.replace(key, &one), "server two needs devices"),
            (both.replace("\"ucx\"", "\"tls\""), "devices needs"),
            (ucx.replace("\"ucx\"", "\"rdma\""), "fabric must be"),
            (asking.replace("false", "\"no\""), "true or false"),
            (
                TEXT.replace("authority =", "reads = true\nauthority ="),
                "reads needs",
            ),
        ] {
            let e = parse(&text).unwrap_err().to_string();
            assert!(e.contains(says), "{e}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (from, to, says) in [
            ("0123456789abcdef", "short", "token must have"),
            ("\"two\"", "\"one\"", "two servers are called one"),
            ("\"two\"", "\"Two!\"", "not a valid server name"),
            ("h:3", "h", "not HOST:PORT"),
            ("shards = [1]", "shards = []", "server 2: it holds no shard"),
            ("shards = [1]", "shards = [-1]", "list of numbers"),
            ("http = \"h:4\"", "", "server 2: http is missing"),
            ("http = \"h:4\"", "htpp = \"h:4\"", "unknown setting htpp"),
            ("[2, 0]", "[2, 0", "not TOML"),
        ] {
            let e = parse(&TEXT.replace(from, to)).unwrap_err().to_string();
            assert!(e.contains(says) && e.contains("/f/c.toml"), "{e}");
        }
        let file = parse(TEXT).unwrap();
        for (shards, says) in [(2, "shard 2"), (4, "no server holds shard 3")] {
            let e = file.check(shards).unwrap_err().to_string();
            assert!(e.contains(says), "{e}");
        }
        let twice = parse(&TEXT.replace("[1]", "[1, 2]")).unwrap();
        let e = twice.check(3).unwrap_err().to_string();
        assert!(e.contains("shard 2 is on both one and two"), "{e}");
    }
}
