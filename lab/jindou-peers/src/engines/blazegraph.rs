//! Blazegraph: its bulk loader, and its server (`NanoSparqlServer`), from one jar.

use super::server::{Server, serve};
use super::{Setup, free_port, java};
use crate::process::{disk_usage, run_to_end};
use crate::{About, Engine, Error, Loaded, Result, install};
use std::path::{Path, PathBuf};
use std::process::Command;

pub struct Blazegraph {
    jar: PathBuf,
    setup: Setup,
    server: Server,
}

impl Blazegraph {
    pub fn new(at: PathBuf, setup: Setup) -> Self {
        Self {
            jar: install::jar_in(&at),
            setup,
            server: Server::default(),
        }
    }

    fn java(&self) -> Command {
        let mut c = Command::new(java());
        c.arg(format!("-Xmx{}m", self.setup.mebibytes()))
            .arg("-server")
            .current_dir(&self.setup.work);
        c
    }

    /// Triples only, no inference, no text index; branching factors as its documentation gives them for bulk loads.
    fn properties(&self) -> Result<PathBuf> {
        let file = self.setup.work.join("blazegraph.properties");
        let text = format!(
            "com.bigdata.journal.AbstractJournal.file={}\n\
             com.bigdata.journal.AbstractJournal.bufferMode=DiskRW\n\
             com.bigdata.journal.AbstractJournal.writeCacheBufferCount=1000\n\
             com.bigdata.journal.AbstractJournal.initialExtent=209715200\n\
             com.bigdata.journal.AbstractJournal.maximumExtent=209715200\n\
             com.bigdata.btree.writeRetentionQueue.capacity=4000\n\
             com.bigdata.btree.BTree.branchingFactor=128\n\
             com.bigdata.namespace.kb.lex.com.bigdata.btree.BTree.branchingFactor=400\n\
             com.bigdata.namespace.kb.spo.com.bigdata.btree.BTree.branchingFactor=1024\n\
             com.bigdata.rdf.sail.truthMaintenance=false\n\
             com.bigdata.rdf.store.AbstractTripleStore.quads=false\n\
             com.bigdata.rdf.store.AbstractTripleStore.statementIdentifiers=false\n\
             com.bigdata.rdf.store.AbstractTripleStore.textIndex=false\n\
             com.bigdata.rdf.store.AbstractTripleStore.axiomsClass=com.bigdata.rdf.axioms.NoAxioms\n",
            self.setup.store().join("blazegraph.jnl").display()
        );
        std::fs::write(&file, text).map_err(|e| Error::io(&file, e))?;
        Ok(file)
    }
}

impl Engine for Blazegraph {
    fn about(&self) -> About {
        About {
            name: "blazegraph".into(),
            version: format!(
                "{}, {}",
                install::version_in(&self.jar),
                install::java_version()
            ),
            licence: "GPL-2.0".into(),
            how: format!(
                "its DataLoader in triples mode, no inference, no text index; NanoSparqlServer with a heap of {} MiB.",
                self.setup.mebibytes()
            ),
            over_http: true,
        }
    }

    fn load(&mut self, data: &Path) -> Result<Loaded> {
        let store = self.setup.fresh_store()?;
        let data = std::path::absolute(data).map_err(|e| Error::io(data, e))?;
        let properties = self.properties()?;
        let (seconds, memory) = run_to_end(
            self.java()
                .arg("-cp")
                .arg(&self.jar)
                .args(["com.bigdata.rdf.store.DataLoader", "-namespace", "kb"])
                .arg(&properties)
                .arg(&data),
            &self.setup.log("load"),
        )?;
        Ok(Loaded {
            seconds,
            disk: disk_usage(&store),
            memory,
        })
    }

    fn start(&mut self) -> Result<()> {
        let port = free_port()?;
        let properties = self.properties()?;
        // From Java 9 on it does not find the web application in its own jar (it asks the class loader of
        // `java.lang.Class`), so it is told; and its ten seconds for starting are few on a busy machine.
        let war = format!("jar:file:{}!/war", self.jar.display());
        self.server.start(
            self.java()
                .arg(format!("-Djetty.home={war}"))
                .arg(format!("-Djetty.resourceBase={war}"))
                .arg("-Djetty.host=127.0.0.1")
                .arg("-Djetty.start.timeout=150")
                .arg("-cp")
                .arg(&self.jar)
                .arg("com.bigdata.rdf.sail.webapp.NanoSparqlServer")
                .arg(port.to_string())
                .arg("kb")
                .arg(&properties),
            &self.setup.log("serve"),
            format!("http://127.0.0.1:{port}/blazegraph/namespace/kb/sparql"),
            &[],
        )
    }

    serve!();
}
