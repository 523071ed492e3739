//! Jindou itself, loaded and asked like the others: its command as a program, its server over HTTP.

use super::server::Server;
use super::{Setup, free_port, version_of};
use crate::process::{disk_usage, run_to_end};
use crate::{About, Engine, Loaded, Result};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The command `jindou`, as a peer among peers.
pub struct Jindou {
    program: PathBuf,
    setup: Setup,
    server: Server,
}

impl Jindou {
    /// `program` is the command's path.
    pub fn new(program: PathBuf, setup: Setup) -> Self {
        Self {
            program,
            setup,
            server: Server::default(),
        }
    }

    /// True if the command has a server.
    pub fn can_serve(program: &Path) -> bool {
        Command::new(program)
            .args(["serve", "--help"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|s| s.success())
    }

    /// The store that a load makes.
    pub fn store(&self) -> PathBuf {
        self.setup.store().join("jindou")
    }
}

impl Engine for Jindou {
    fn about(&self) -> About {
        About {
            name: "jindou".into(),
            version: version_of(&self.program, &["--version"], None).unwrap_or_default(),
            licence: "Apache-2.0".into(),
            how: format!(
                "`jindou load`; `jindou serve`. Its store is mapped from files; at most {} MiB for a load.",
                self.setup.mebibytes()
            ),
            over_http: true,
        }
    }

    fn load(&mut self, data: &Path) -> Result<Loaded> {
        self.setup.fresh_store()?;
        let (seconds, memory) = run_to_end(
            Command::new(&self.program)
                .args(["load", "--quiet", "--store"])
                .arg(self.store())
                .args(["--threads", &self.setup.threads.to_string()])
                .args(["--memory", &format!("{}M", self.setup.mebibytes())])
                .arg(data),
            &self.setup.log("load"),
        )?;
        Ok(Loaded {
            seconds,
            disk: disk_usage(&self.store()),
            memory,
        })
    }

    fn start(&mut self) -> Result<()> {
        let port = free_port()?;
        self.server.start(
            Command::new(&self.program)
                .args(["serve", "--store"])
                .arg(self.store())
                .args(["--host", "127.0.0.1", "--port", &port.to_string()]),
            &self.setup.log("serve"),
            format!("http://127.0.0.1:{port}/query"),
            &[],
        )
    }

    fn server(&mut self) -> Option<&mut Server> {
        Some(&mut self.server)
    }
}
