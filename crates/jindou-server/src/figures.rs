//! Metrics whose values other parts of the server know: they are read at each request for `/metrics`.

use crate::live::QueryState;
use crate::shared::AppState;
use jindou::replica::ShardFigures;
use prometheus::core::Collector;
use prometheus::{CounterVec, GaugeVec, Opts, Registry};
use rustc_hash::FxHashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A metric's name and its help text. Names of counters end in `_total`.
type Row = (&'static str, &'static str);

#[rustfmt::skip]
const OWN: &[Row] = &[
    ("jindou_panics_total", "Panics that ended a query, an update or a request with an internal error"),
    ("jindou_jobs_running", "1 while a job on the whole store runs"),
    ("jindou_snapshot", "Snapshot number that queries read"),
    ("jindou_delta_edits", "Quads that updates added to those that were loaded, and removed from them"),
    (
        "jindou_delta_bytes",
        "Memory of the changes made by updates since the store was loaded, in the snapshot that queries read",
    ),
    ("jindou_queries_running", "Queries computing"),
    ("jindou_queries_queued", "Queries waiting for a slot"),
    ("jindou_queries_sending", "Queries waiting for their reader"),
    ("jindou_prepared_queries", "Prepared queries held"),
    ("jindou_plan_cache_plans", "Plans in the cache"),
    ("jindou_query_memory_bytes", "Memory of running queries"),
    ("jindou_query_memory_limit_bytes", "Memory limit of all queries together"),
    ("jindou_query_temp_bytes", "Bytes of temporary files of running queries"),
    ("jindou_query_temp_written_bytes", "Bytes that queries wrote to temporary files since the start"),
    ("process_resident_memory_bytes", "Resident memory, including the mapped store"),
    ("jindou_warm_read_bytes", "Bytes of the store that were read into memory since the start"),
    (
        "jindou_warm_wanted_bytes",
        "Bytes of the store that are to be read into memory after the start: as many as there is room for",
    ),
    ("jindou_log_acknowledged_snapshot", "Last snapshot that the log acknowledged"),
    ("jindou_log_durable_snapshot", "Last snapshot that would survive a power failure"),
    ("jindou_log_files", "Files of the log"),
    ("jindou_log_bytes", "Bytes of the log's files"),
    ("jindou_log_queued_records", "Records waiting for the log"),
    ("jindou_log_groups_total", "Groups of records written by the log since it was opened"),
    ("jindou_log_records_total", "Records in those groups"),
    ("jindou_log_failing", "1 while the log cannot be written and updates are refused"),
    (
        "jindou_merge_running",
        "1 while changes are being merged into segments; jindou_delta_edits counts those that wait for the next merge",
    ),
    ("jindou_merges_done_total", "Merges that succeeded"),
    ("jindou_merges_failed_total", "Merges that ended early and left the store unchanged"),
    ("jindou_merge_bytes_total", "Bytes written by merges"),
    ("jindou_merged_snapshot", "Last snapshot merged into the segments"),
    ("jindou_merge_generations", "Generations of files from merges that are in use"),
    ("jindou_changes_bytes", "Memory of the changes since the last merge"),
    (
        "jindou_changes_limit_bytes",
        "Memory of the changes at which a merge is started; at twice as much updates wait",
    ),
];

/// Figures of a server with a shared log.
#[rustfmt::skip]
const REPLICA: &[Row] = &[
    ("jindou_replica_group", "Newest group of the shared log that queries read"),
    ("jindou_replica_groups_behind", "Groups that are known to exist and are not read yet"),
    ("jindou_replica_proof_age_seconds", "Age of the last proof that no later group existed; -1 before the first"),
    ("jindou_replica_writes", "1 if this server wrote the newest group"),
    ("jindou_replica_puts_total", "Puts of groups"),
    ("jindou_replica_put_seconds_total", "Their time together"),
    ("jindou_replica_failed_requests_total", "Requests to the bucket that failed or whose outcome is unknown"),
    (
        "jindou_replica_lost_puts_total",
        "Rollbacks of uncommitted changes, most after another server had written a put's number",
    ),
    ("jindou_replica_listings_total", "Listings of the bucket"),
    ("jindou_replica_servers_listed", "Servers with an entry in the log that is not too old, this one included"),
    ("jindou_replica_servers_in_contact", "Other servers in contact, which acknowledgements of updates wait for"),
];

/// Names of servers: of this one and the log's writer, and of those that have a shard. Set to 1.
const NAMES: &[(Row, &[&str])] = &[
    (
        (
            "jindou_replica_info",
            "1, with this server's name and that of the server that wrote the newest group",
        ),
        &["server", "writer"],
    ),
    (
        (
            "jindou_shard_holder",
            "1, with the name of each connected server that has the shard, this one included",
        ),
        &["shard", "server"],
    ),
];

/// Figures about each other server in the log's list, by its name.
const OTHER: &[Row] = &[
    (
        "jindou_replica_contact_age_seconds",
        "Time since the latest message from the server; -1 before the first",
    ),
    (
        "jindou_replica_server_group",
        "Newest group that the server has acknowledged",
    ),
];

/// Figures about each shard, by its number.
#[rustfmt::skip]
const SHARD: &[Row] = &[
    ("jindou_shard_holders", "Connected servers that have the shard, this one included"),
    ("jindou_shard_bases", "Bases of the shard that are on this server"),
    ("jindou_shard_bytes", "Bytes of the shard's files on this server"),
    ("jindou_shard_requests_total", "Messages with requests for the shard that were sent to other servers"),
    (
        "jindou_shard_requests_hedged_total",
        "Those that were also sent to a second server, since the first one was slow",
    ),
    ("jindou_shard_requests_failed_over_total", "Those that another server got, since the first one failed"),
];

/// A metric, with or without labels.
enum Figure {
    Counter(CounterVec),
    Gauge(GaugeVec),
}

impl Figure {
    fn new(registry: &Registry, (name, help): Row, labels: &[&str]) -> prometheus::Result<Self> {
        let options = Opts::new(name, help);
        Ok(match name.ends_with("_total") {
            true => Self::Counter(registered(registry, CounterVec::new(options, labels))?),
            false => Self::Gauge(registered(registry, GaugeVec::new(options, labels))?),
        })
    }

    /// Forgets the values of all labels.
    fn reset(&self) {
        match self {
            Self::Counter(all) => all.reset(),
            Self::Gauge(all) => all.reset(),
        }
    }

    fn set(&self, labels: &[&str], value: f64) {
        match self {
            Self::Counter(all) => {
                let counter = all.with_label_values(labels);
                counter.inc_by((value - counter.get()).max(0.0));
            }
            Self::Gauge(all) => all.with_label_values(labels).set(value),
        }
    }
}

/// Registers a new metric.
///
/// # Errors
/// If another one has its name, which is a bug.
pub(crate) fn registered<M: Collector + Clone + 'static>(
    registry: &Registry,
    made: prometheus::Result<M>,
) -> prometheus::Result<M> {
    let metric = made?;
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}

pub(crate) struct Figures {
    all: FxHashMap<&'static str, Figure>,
    /// In the order of [`NAMES`], [`OTHER`] and [`SHARD`]; none without a shared log.
    names: Vec<Figure>,
    others: Vec<Figure>,
    shards: Vec<Figure>,
    /// Locked while values are read, so that two concurrent scrapes do not increase a counter twice.
    reading: Mutex<()>,
}

impl Figures {
    /// # Errors
    /// If two metrics have the same name, which is a bug.
    pub(crate) fn new(registry: &Registry, is_replica: bool) -> prometheus::Result<Self> {
        let mut all = FxHashMap::default();
        let replica = if is_replica { REPLICA } else { &[] };
        for row in OWN.iter().chain(replica) {
            let figure = Figure::new(registry, *row, &[])?;
            // A metric without labels is shown from the start.
            figure.set(&[], 0.0);
            all.insert(row.0, figure);
        }
        let labelled = |rows: &[Row], label: &str| {
            let rows = if is_replica { rows } else { &[] };
            rows.iter()
                .map(|row| Figure::new(registry, *row, &[label]))
                .collect::<prometheus::Result<_>>()
        };
        let names = if is_replica { NAMES } else { &[] };
        let names = names
            .iter()
            .map(|(row, labels)| Figure::new(registry, *row, labels));
        Ok(Self {
            all,
            names: names.collect::<prometheus::Result<_>>()?,
            others: labelled(OTHER, "server")?,
            shards: labelled(SHARD, "shard")?,
            reading: Mutex::default(),
        })
    }

    fn set<const N: usize>(&self, values: [(&str, f64); N]) {
        for (name, value) in values {
            match self.all.get(name) {
                Some(figure) => figure.set(&[], value),
                None => debug_assert!(false, "{name} is not in the table"),
            }
        }
    }

    /// Sets all metrics to their current values.
    pub(crate) fn read(&self, shared: &AppState) {
        let _alone = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let states = shared.live.list();
        let in_state = |of: &[QueryState]| {
            let here = states.iter().filter(|q| of.contains(&q.state()));
            here.count() as f64
        };
        let numbers = shared.upkeep.numbers();
        let temp = shared.upkeep.temp();
        self.set([
            ("jindou_panics_total", jindou::invariant::ended() as f64),
            ("jindou_jobs_running", flag(shared.jobs.is_running())),
            ("jindou_snapshot", numbers.snapshot as f64),
            ("jindou_delta_edits", numbers.edits as f64),
            ("jindou_delta_bytes", numbers.bytes as f64),
            ("jindou_plan_cache_plans", numbers.plans as f64),
            ("jindou_queries_running", in_state(&[QueryState::Running])),
            (
                "jindou_queries_queued",
                in_state(&[QueryState::Queued, QueryState::Behind]),
            ),
            ("jindou_queries_sending", in_state(&[QueryState::Sending])),
            ("jindou_prepared_queries", shared.prepared.len() as f64),
            ("jindou_query_memory_bytes", shared.memory.used() as f64),
            (
                "jindou_query_memory_limit_bytes",
                shared.memory.limit() as f64,
            ),
            ("jindou_query_temp_bytes", temp.used() as f64),
            ("jindou_query_temp_written_bytes", temp.written() as f64),
            (
                "process_resident_memory_bytes",
                resident().unwrap_or(0) as f64,
            ),
        ]);
        if let Some(warming) = &shared.warming {
            let (read, wanted) = warming.progress();
            self.set([
                ("jindou_warm_read_bytes", read as f64),
                ("jindou_warm_wanted_bytes", wanted as f64),
            ]);
        }
        self.read_log(shared);
        self.read_merges(shared);
        self.read_replica(shared);
        if let Some(replica) = shared.upkeep.replica() {
            self.set_shards(&replica.shard_figures());
        }
    }

    fn set_shards(&self, all: &[ShardFigures]) {
        for of in all {
            let shard = of.shard.to_string();
            if let Some(holder) = self.names.get(1) {
                let names = of.holders.iter();
                names.for_each(|name| holder.set(&[&shard, name], 1.0));
            }
            let values = [
                of.holders.len() as f64,
                of.bases as f64,
                of.bytes as f64,
                of.asked.requests as f64,
                of.asked.hedged as f64,
                of.asked.failed_over as f64,
            ];
            for (figure, value) in self.shards.iter().zip(values) {
                figure.set(&[&shard], value);
            }
        }
    }

    fn read_log(&self, shared: &AppState) {
        let Some(mut log) = shared.upkeep.log_status() else {
            return;
        };
        // After a failure, tries the log again, so that the status also recovers when no updates come.
        if log.failure.is_some() && shared.upkeep.probe_log().is_ok() {
            log = shared.upkeep.log_status().unwrap_or(log);
        }
        self.set([
            ("jindou_log_acknowledged_snapshot", log.acknowledged as f64),
            ("jindou_log_durable_snapshot", log.durable as f64),
            ("jindou_log_files", log.files as f64),
            ("jindou_log_bytes", log.bytes as f64),
            ("jindou_log_queued_records", log.queued.0 as f64),
            ("jindou_log_groups_total", log.groups as f64),
            ("jindou_log_records_total", log.records as f64),
            ("jindou_log_failing", flag(log.failure.is_some())),
        ]);
    }

    fn read_merges(&self, shared: &AppState) {
        let Some(merges) = shared.upkeep.merge_status() else {
            return;
        };
        self.set([
            ("jindou_merge_running", flag(merges.running)),
            ("jindou_merges_done_total", merges.done as f64),
            ("jindou_merges_failed_total", merges.failed as f64),
            ("jindou_merge_bytes_total", merges.bytes as f64),
            ("jindou_merged_snapshot", merges.merged as f64),
            ("jindou_merge_generations", merges.generations as f64),
            ("jindou_changes_bytes", merges.changes_bytes as f64),
            (
                "jindou_changes_limit_bytes",
                merges.changes_memory.map_or(f64::INFINITY, |b| b as f64),
            ),
        ]);
    }

    fn read_replica(&self, shared: &AppState) {
        let Some(replica) = shared.upkeep.replica() else {
            return;
        };
        let f = replica.figures();
        // Servers leave the list, and shards their servers.
        self.names
            .iter()
            .chain(&self.others)
            .for_each(Figure::reset);
        if let Some(names) = self.names.first() {
            let writer = replica.writer().unwrap_or_default();
            names.set(&[replica.name(), &writer], 1.0);
        }
        for other in &f.others {
            let silent = other.silent.as_ref().map_or(-1.0, Duration::as_secs_f64);
            for (figure, value) in self.others.iter().zip([silent, other.newest_known as f64]) {
                figure.set(&[&other.name], value);
            }
        }
        let behind = f.newest_known.saturating_sub(f.committed);
        let age = f.age.as_ref().map_or(-1.0, Duration::as_secs_f64);
        self.set([
            ("jindou_replica_group", f.committed as f64),
            ("jindou_replica_groups_behind", behind as f64),
            ("jindou_replica_proof_age_seconds", age),
            ("jindou_replica_writes", flag(f.writes)),
            ("jindou_replica_puts_total", f.puts as f64),
            ("jindou_replica_put_seconds_total", f.put_time.as_secs_f64()),
            ("jindou_replica_failed_requests_total", f.failed as f64),
            ("jindou_replica_lost_puts_total", f.lost as f64),
            ("jindou_replica_listings_total", f.listings as f64),
            ("jindou_replica_servers_listed", f.listed as f64),
            ("jindou_replica_servers_in_contact", f.in_contact as f64),
        ]);
    }
}

fn flag(on: bool) -> f64 {
    f64::from(u8::from(on))
}

/// Resident memory of this process in bytes, where the system reports it (Linux).
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmRSS:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? << 10)
}
