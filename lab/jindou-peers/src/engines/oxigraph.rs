//! Oxigraph: its own command loads and serves.

use super::server::Server;
use super::{Setup, free_port, version_of};
use crate::process::{disk_usage, run_to_end};
use crate::{About, Engine, Loaded, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

pub struct Oxigraph {
    program: PathBuf,
    setup: Setup,
    server: Server,
}

impl Oxigraph {
    pub fn new(at: PathBuf, setup: Setup) -> Self {
        Self {
            program: at.join("bin/oxigraph"),
            setup,
            server: Server::default(),
        }
    }
}

impl Engine for Oxigraph {
    fn about(&self) -> About {
        About {
            name: "oxigraph".into(),
            version: version_of(&self.program, &["--version"], None).unwrap_or_default(),
            licence: "MIT or Apache-2.0".into(),
            how: "`oxigraph load`, then `oxigraph optimize`; `oxigraph serve-read-only`. It takes no limit for memory \
                  or threads."
                .into(),
            over_http: true,
        }
    }

    fn load(&mut self, data: &Path) -> Result<Loaded> {
        let store = self.setup.fresh_store()?;
        let (load_s, load_m) = run_to_end(
            Command::new(&self.program)
                .args(["load", "--location"])
                .arg(&store)
                .arg("--file")
                .arg(data),
            &self.setup.log("load"),
        )?;
        let (optimize_s, optimize_m) = run_to_end(
            Command::new(&self.program)
                .args(["optimize", "--location"])
                .arg(&store),
            &self.setup.log("optimize"),
        )?;
        Ok(Loaded {
            seconds: load_s + optimize_s,
            disk: disk_usage(&store),
            memory: load_m.max(optimize_m),
        })
    }

    fn start(&mut self) -> Result<()> {
        let port = free_port()?;
        self.server.start(
            Command::new(&self.program)
                .args(["serve-read-only", "--location"])
                .arg(self.setup.store())
                .args(["--bind", &format!("127.0.0.1:{port}")]),
            &self.setup.log("serve"),
            format!("http://127.0.0.1:{port}/query"),
            &[],
        )
    }

    fn server(&mut self) -> Option<&mut Server> {
        Some(&mut self.server)
    }
}
