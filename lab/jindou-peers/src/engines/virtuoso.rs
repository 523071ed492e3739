//! Virtuoso: the server loads (`rdf_loader_run` through `isql-vt`) and answers.

use super::server::Server;
use super::{Setup, free_port, version_of};
use crate::process::{Running, disk_usage, run_to_end};
use crate::{About, Engine, Error, Loaded, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Virtuoso's triples are always in a named graph; queries name it as their default graph.
const GRAPH: &str = "urn:jindou:peers:data";
/// How long it may take to come up and to make its database.
const PATIENCE: Duration = Duration::from_secs(180);

pub struct Virtuoso {
    root: PathBuf,
    setup: Setup,
    server: Server,
    sql_port: u16,
}

impl Virtuoso {
    pub fn new(at: PathBuf, setup: Setup) -> Self {
        Self {
            root: at,
            setup,
            server: Server::default(),
            sql_port: 0,
        }
    }

    fn libraries(&self) -> String {
        [
            "usr/lib/x86_64-linux-gnu",
            "lib/x86_64-linux-gnu",
            "usr/lib/aarch64-linux-gnu",
            "lib/aarch64-linux-gnu",
        ]
        .map(|l| self.root.join(l).display().to_string())
        .join(":")
    }

    fn buffers(&self) -> u64 {
        // Its manual: two thirds of the memory, 8 KiB a buffer with its head: 85,000 a GiB.
        self.setup.mebibytes() * 85_000 / 1024
    }

    /// The settings file. No limit on rows, cost or time: the harness has its own.
    fn settings(&self, http_port: u16, data: Option<&Path>) -> Result<PathBuf> {
        let store = self.setup.store();
        let at = store.display();
        let allowed = data
            .and_then(Path::parent)
            .map_or(String::new(), |p| p.display().to_string());
        let (buffers, threads) = (self.buffers(), self.setup.threads);
        let text = format!(
            "[Database]\nDatabaseFile={at}/virtuoso.db\nErrorLogFile={at}/virtuoso.log\nLockFile={at}/virtuoso.lck\n\
             TransactionFile={at}/virtuoso.trx\nxa_persistent_file={at}/virtuoso.pxa\nErrorLogLevel=7\nFileExtend=200\n\
             MaxCheckpointRemap={remap}\nStriping=0\nTempStorage=TempDatabase\n\
             [TempDatabase]\nDatabaseFile={at}/virtuoso-temp.db\nTransactionFile={at}/virtuoso-temp.trx\n\
             MaxCheckpointRemap=2000\nStriping=0\n\
             [Parameters]\nServerPort=127.0.0.1:{sql}\nDisableUnixSocket=1\nMaxClientConnections=10\nCheckpointInterval=0\n\
             CaseMode=2\nAllowOSCalls=0\nSchedulerInterval=10\nDirsAllowed={allowed}\nSingleCPU=0\n\
             NumberOfBuffers={buffers}\nMaxDirtyBuffers={dirty}\nMaxQueryMem={query}M\nVectorSize=1000\n\
             MaxVectorSize=1000000\nAdjustVectorSize=1\nThreadsPerQuery={threads}\nAsyncQueueMaxThreads={queue}\n\
             DefaultIsolation=2\n\
             [HTTPServer]\nServerPort=127.0.0.1:{http_port}\nServerRoot={at}\nMaxClientConnections=10\nServerThreads=10\n\
             MaxKeepAlives=10\nKeepAliveTimeout=60\nEnabledGzipContent=0\n\
             [Client]\nSQL_PREFETCH_ROWS=100\nSQL_PREFETCH_BYTES=16000\nSQL_QUERY_TIMEOUT=0\nSQL_TXN_TIMEOUT=0\n\
             [SPARQL]\nMaxQueryCostEstimationTime=0\nMaxQueryExecutionTime=0\nDeferInferenceRulesInit=0\n\
             [Plugins]\nLoadPath={at}\n",
            remap = buffers / 4,
            sql = self.sql_port,
            dirty = buffers * 3 / 4,
            query = self.setup.mebibytes() / 4,
            queue = threads * 2,
        );
        let file = self.setup.work.join("virtuoso.ini");
        fs::write(&file, text).map_err(|e| Error::io(&file, e))?;
        Ok(file)
    }

    fn virtuoso(&self, settings: &Path) -> Command {
        let mut c = Command::new(self.root.join("usr/bin/virtuoso-t"));
        c.arg("+configfile")
            .arg(settings)
            .arg("+foreground")
            .env("LD_LIBRARY_PATH", self.libraries());
        c
    }

    /// Runs a script through its SQL client and gives back what it printed. The database is reachable from this
    /// machine only, and keeps the password that a new one has.
    fn sql(&self, script: &str) -> Result<String> {
        let file = self.setup.work.join("load.sql");
        fs::write(&file, script).map_err(|e| Error::io(&file, e))?;
        let log = self.setup.log("isql");
        run_to_end(
            Command::new(self.root.join("usr/bin/isql-vt"))
                .arg(format!("127.0.0.1:{}", self.sql_port))
                .args(["dba", "dba", "ERRORS=STDOUT"])
                .arg(&file)
                .env("LD_LIBRARY_PATH", self.libraries()),
            &log,
        )?;
        fs::read_to_string(&log).map_err(|e| Error::io(&log, e))
    }

    fn wait_online(&self, running: &Running) -> Result<()> {
        let log = self.setup.store().join("virtuoso.log");
        let end = Instant::now() + PATIENCE;
        loop {
            let said = fs::read(&log).unwrap_or_default();
            if String::from_utf8_lossy(&said).contains("Server online") {
                return Ok(());
            }
            if !running.alive() || Instant::now() > end {
                return Err(running.error("it did not come up"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Engine for Virtuoso {
    fn about(&self) -> About {
        let version = version_of(
            &self.root.join("usr/bin/virtuoso-t"),
            &["-?"],
            Some(&self.libraries()),
        );
        About {
            name: "virtuoso".into(),
            version: version.unwrap_or_default(),
            licence: "GPL-2.0".into(),
            how: format!(
                "`rdf_loader_run`, one loader for the one file, then a checkpoint, in its default indexes (2 full, 3 partial); {} buffers of 8 KiB, \
                 {} threads a query, no limit on rows. Its TSV leaves out datatypes and language tags, so it writes less.",
                self.buffers(),
                self.setup.threads
            ),
            over_http: true,
        }
    }

    fn load(&mut self, data: &Path) -> Result<Loaded> {
        let store = self.setup.fresh_store()?;
        let data = std::path::absolute(data).map_err(|e| Error::io(data, e))?;
        self.sql_port = free_port()?;
        let settings = self.settings(free_port()?, Some(&data))?;
        let start = Instant::now();
        let running = Running::start(
            &mut self.virtuoso(&settings),
            &self.setup.log("load"),
            Duration::from_millis(50),
        )?;
        self.wait_online(&running)?;
        let (folder, name) = (
            data.parent().unwrap_or(Path::new("/")).display(),
            data.file_name().unwrap_or_default().to_string_lossy(),
        );
        let said = self.sql(&format!(
            "ld_dir('{folder}', '{name}', '{GRAPH}');\nlog_enable(2, 1);\nrdf_loader_run();\ncheckpoint;\n\
             select 'files loaded: ' || cast(count(*) as varchar) from DB.DBA.load_list where ll_state = 2 and ll_error is null;\n\
             select 'error: ' || ll_error from DB.DBA.load_list where ll_error is not null;\n"
        ))?;
        let seconds = start.elapsed().as_secs_f64();
        let memory = running.memory();
        // Its way to end well; what comes of the connection that breaks does not matter.
        let _ = self.sql("shutdown;\n");
        running.terminate(Duration::from_secs(60));
        if !said.contains("files loaded: 1") {
            return Err(Error::Engine(format!(
                "virtuoso did not load {}: {}",
                data.display(),
                said.lines()
                    .rfind(|l| l.contains("rror"))
                    .unwrap_or("no error given")
            )));
        }
        Ok(Loaded {
            seconds,
            disk: disk_usage(&store),
            memory,
        })
    }

    fn start(&mut self) -> Result<()> {
        self.sql_port = free_port()?;
        let port = free_port()?;
        let settings = self.settings(port, None)?;
        self.server.start(
            &mut self.virtuoso(&settings),
            &self.setup.log("serve"),
            format!("http://127.0.0.1:{port}/sparql"),
            &[("default-graph-uri", GRAPH)],
        )
    }

    fn server(&mut self) -> Option<&mut Server> {
        Some(&mut self.server)
    }
}
