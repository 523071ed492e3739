//! Obtaining the peers: each from its registry, by the registry's own client, in a pinned version, into a folder.

use crate::{Error, Result};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A peer that can be installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its name.
    pub name: &'static str,
    /// The pinned version.
    pub version: &'static str,
    /// Its licence.
    pub licence: &'static str,
    from: Registry,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Registry {
    /// A wheel of PyPI that carries a program at this path.
    Pip {
        package: &'static str,
        program: &'static str,
    },
    /// Packages of Debian, unpacked next to the system and not installed into it. Those before the bar have the pinned version.
    Debian {
        packages: &'static [&'static str],
        libraries: &'static [&'static str],
        program: &'static str,
    },
    /// A jar of Maven Central and its SHA-256.
    Maven {
        group: &'static str,
        artifact: &'static str,
        sha256: &'static str,
    },
}

/// All that can be installed. Versions are pinned, so that a table can be made again.
pub const PEERS: [Peer; 4] = [
    Peer {
        name: "oxigraph",
        version: "0.5.13",
        licence: "MIT or Apache-2.0",
        from: Registry::Pip {
            package: "oxigraph",
            program: "bin/oxigraph",
        },
    },
    Peer {
        name: "virtuoso",
        version: "7.2.5.1+dfsg1-0.3",
        licence: "GPL-2.0",
        from: Registry::Debian {
            packages: &["virtuoso-opensource-7-bin", "virtuoso-opensource-7-common"],
            libraries: &["libminizip1", "libpcre3", "libldap-2.5-0", "libreadline8"],
            program: "usr/bin/virtuoso-t",
        },
    },
    Peer {
        name: "jena",
        version: "5.6.0",
        licence: "Apache-2.0",
        from: Registry::Maven {
            group: "org.apache.jena",
            artifact: "jena-fuseki-server",
            sha256: "d28c1eaf703122ee628895a460c20fa4aa60a892f435d403ea8c036f241da1f8",
        },
    },
    Peer {
        name: "duckdb",
        version: "1.5.6",
        licence: "MIT",
        from: Registry::Pip {
            package: "duckdb-cli",
            // What is in `bin` is a script that starts this and needs Python.
            program: "duckdb_cli/duckdb",
        },
    },
];

/// Maven's plugin that copies an artifact.
const COPY: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy";

impl Peer {
    /// A peer by its name; `duckdb-text` is DuckDB too.
    pub fn named(name: &str) -> Result<Self> {
        let plain = name.strip_suffix("-text").filter(|n| *n == "duckdb");
        PEERS
            .into_iter()
            .find(|p| p.name == plain.unwrap_or(name))
            .ok_or_else(|| {
                Error::Engine(format!(
                    "unknown engine '{name}'; use one of {}, duckdb-text, or qlever=DIR for a QLever that you have built",
                    PEERS.map(|p| p.name).join(", ")
                ))
            })
    }

    fn folder(&self, engines: &Path) -> PathBuf {
        engines.join(format!("{}-{}", self.name, self.version))
    }

    fn program(&self, folder: &Path) -> PathBuf {
        match self.from {
            Registry::Pip { program, .. } | Registry::Debian { program, .. } => {
                folder.join(program)
            }
            Registry::Maven { artifact, .. } => {
                folder.join(format!("{artifact}-{}.jar", self.version))
            }
        }
    }

    /// Its folder, if it is installed there.
    pub fn installed(&self, engines: &Path) -> Option<PathBuf> {
        let folder = self.folder(engines);
        self.program(&folder).exists().then_some(folder)
    }

    /// Installs it below `engines`, if it is not there. All or nothing: what is half there is taken away.
    pub fn install(&self, engines: &Path) -> Result<PathBuf> {
        if let Some(there) = self.installed(engines) {
            return Ok(there);
        }
        fs::create_dir_all(engines).map_err(|e| Error::io(engines, e))?;
        let engines = std::path::absolute(engines).map_err(|e| Error::io(engines, e))?;
        let partial = engines.join(format!(".{}-{}.partial", self.name, std::process::id()));
        fs::create_dir_all(&partial).map_err(|e| Error::io(&partial, e))?;
        let done = self.fetch(&partial).and_then(|()| {
            let program = self.program(&partial);
            if program.exists() {
                let to = self.folder(&engines);
                fs::rename(&partial, &to).map_err(|e| Error::io(&to, e))?;
                Ok(to)
            } else {
                Err(Error::Engine(format!(
                    "what came for {} has no {}",
                    self.name,
                    program.display()
                )))
            }
        });
        if done.is_err() {
            let _ = fs::remove_dir_all(&partial);
        }
        done
    }

    fn fetch(&self, into: &Path) -> Result<()> {
        match self.from {
            Registry::Pip { package, .. } => client(
                Command::new("python3")
                    .args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"])
                    .arg(into)
                    .arg(format!("{package}=={}", self.version)),
                "pip (Debian: python3-pip)",
            ),
            Registry::Debian {
                packages,
                libraries,
                ..
            } => {
                let pinned = packages.iter().map(|p| format!("{p}={}", self.version));
                let all: Vec<String> = pinned
                    .chain(libraries.iter().map(|&l| l.to_owned()))
                    .collect();
                client(
                    Command::new("apt-get")
                        .args(["download", "-q"])
                        .args(&all)
                        .current_dir(into),
                    "apt-get (Debian 12, or Ubuntu with these packages; perhaps after `apt-get update`)",
                )?;
                for entry in fs::read_dir(into)
                    .map_err(|e| Error::io(into, e))?
                    .flatten()
                {
                    let path = entry.path();
                    if path.extension().is_some_and(|e| e == "deb") {
                        client(Command::new("dpkg").arg("-x").arg(&path).arg(into), "dpkg")?;
                        fs::remove_file(&path).map_err(|e| Error::io(&path, e))?;
                    }
                }
                Ok(())
            }
            Registry::Maven {
                group,
                artifact,
                sha256,
            } => {
                client(
                    Command::new("mvn")
                        .args(["-q", "-B", "--strict-checksums", COPY])
                        .arg(format!("-Dartifact={group}:{artifact}:{}", self.version))
                        .arg(format!("-DoutputDirectory={}", into.display()))
                        .current_dir(into),
                    "mvn (Debian: maven, default-jre-headless)",
                )?;
                let jar = self.program(into);
                let found = sha256_of(&jar)?;
                if found == sha256 {
                    Ok(())
                } else {
                    Err(Error::Engine(format!(
                        "{} has the SHA-256 {found}, expected {sha256}; it was not installed",
                        jar.display()
                    )))
                }
            }
        }
    }
}

fn client(command: &mut Command, what: &str) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let out = command
        .stdin(Stdio::null())
        .output()
        .map_err(|e| Error::Engine(format!("{program}: {e}; this needs {what}")))?;
    if out.status.success() {
        return Ok(());
    }
    let mut said = String::from_utf8_lossy(&out.stdout).into_owned();
    said += &String::from_utf8_lossy(&out.stderr);
    let lines: Vec<&str> = said.lines().filter(|l| !l.trim().is_empty()).collect();
    Err(Error::Program {
        program,
        status: out.status.to_string(),
        said: lines[lines.len().saturating_sub(4)..].join(" | "),
    })
}

fn sha256_of(file: &Path) -> Result<String> {
    let mut hash = Sha256::new();
    let f = File::open(file).map_err(|e| Error::io(file, e))?;
    let mut bytes = BufReader::with_capacity(1 << 20, f);
    loop {
        let part = match bytes.fill_buf() {
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            part => part.map_err(|e| Error::io(file, e))?,
        };
        if part.is_empty() {
            break;
        }
        hash.update(part);
        let n = part.len();
        bytes.consume(n);
    }
    Ok(hash.finalize().iter().map(|b| format!("{b:02x}")).collect())
}

/// Where peers are installed unless told otherwise: `jindou/peers` in the user's cache folder.
pub fn default_folder() -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|p| p.is_absolute())
        .or_else(|| std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".cache")))
        .unwrap_or_else(std::env::temp_dir);
    cache.join("jindou/peers")
}

/// `java`, of `JAVA_HOME` if that is set.
pub(crate) fn java() -> PathBuf {
    std::env::var_os("JAVA_HOME")
        .map(|h| PathBuf::from(h).join("bin/java"))
        .filter(|j| j.exists())
        .unwrap_or_else(|| "java".into())
}

/// The version of `java` by its own account, in a few words.
pub(crate) fn java_version() -> String {
    let out = Command::new(java())
        .arg("-version")
        .stdin(Stdio::null())
        .output();
    let text = out.map_or(String::new(), |o| {
        String::from_utf8_lossy(&o.stderr).into_owned()
    });
    text.split('"')
        .nth(1)
        .map_or_else(|| "no java found".into(), |v| format!("Java {v}"))
}

/// The jar of a peer's folder.
pub(crate) fn jar_in(folder: &Path) -> PathBuf {
    fs::read_dir(folder)
        .ok()
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path())
        .find(|p| p.extension().is_some_and(|e| e == "jar"))
        .unwrap_or_else(|| folder.join("missing.jar"))
}

/// The version in a jar's name.
pub(crate) fn version_in(jar: &Path) -> String {
    let name = jar.file_stem().unwrap_or_default().to_string_lossy();
    name.rsplit_once('-')
        .map_or_else(|| name.to_string(), |(_, v)| v.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_found_by_name() {
        assert_eq!(Peer::named("duckdb-text").unwrap().name, "duckdb");
        assert_eq!(Peer::named("jena").unwrap().name, "jena");
        let e = Peer::named("jena-text").unwrap_err().to_string();
        assert!(e.contains("jena-text") && e.contains("virtuoso"), "{e}");
    }

    #[test]
    fn nothing_is_installed_in_an_empty_folder_and_jars_tell_their_version() {
        let dir = tempfile::tempdir().unwrap();
        for p in PEERS {
            assert_eq!(p.installed(dir.path()), None);
        }
        let jena = PEERS[2].folder(dir.path());
        fs::create_dir_all(&jena).unwrap();
        fs::write(PEERS[2].program(&jena), b"x").unwrap();
        assert_eq!(PEERS[2].installed(dir.path()), Some(jena.clone()));
        assert_eq!(version_in(&jar_in(&jena)), "5.6.0");
        assert_eq!(
            sha256_of(&jar_in(&jena)).unwrap(),
            "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
        );
    }

    #[test]
    fn a_missing_client_is_named() {
        let e = client(&mut Command::new("no-such-client"), "no such thing")
            .unwrap_err()
            .to_string();
        assert!(
            e.contains("no-such-client") && e.contains("no such thing"),
            "{e}"
        );
    }
}
