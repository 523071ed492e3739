//! Counters for `/metrics`.

use crate::live::QueryState;
use crate::shared::AppState;
use prometheus::{
    Encoder, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, Opts,
    Registry, TextEncoder, exponential_buckets,
};
use std::time::Duration;

/// Counters that are kept while requests run, and gauges that are set when they are read.
pub(crate) struct Metrics {
    registry: Registry,
    pub(crate) seconds: HistogramVec,
    pub(crate) queries: IntCounterVec,
    pub(crate) requests: IntCounterVec,
    pub(crate) refused_attempts: IntCounterVec,
    pub(crate) rows: IntCounter,
    pub(crate) bytes: IntCounter,
    pub(crate) plan_hits: IntCounter,
    pub(crate) plan_misses: IntCounter,
    pub(crate) refused: IntCounter,
    panics: IntCounter,
    pub(crate) updates: IntCounterVec,
    pub(crate) update_seconds: Histogram,
    pub(crate) update_phases: HistogramVec,
    pub(crate) update_quads: IntCounterVec,
    pub(crate) jobs: IntCounterVec,
    jobs_running: IntGauge,
    snapshot: IntGauge,
    delta_edits: IntGauge,
    delta_bytes: IntGauge,
    log: LogGauges,
    merge: MergeGauges,
    pub(crate) connections: IntGauge,
    running: IntGauge,
    queued: IntGauge,
    sending: IntGauge,
    plans: IntGauge,
    prepared: IntGauge,
    memory: IntGauge,
    memory_limit: IntGauge,
    resident: IntGauge,
    warm: [IntGauge; 2],
    /// In the order of [`REPLICA`].
    replica: Vec<IntGauge>,
}

/// Gauges of the log's status, set when they are read.
struct LogGauges {
    acknowledged: IntGauge,
    durable: IntGauge,
    files: IntGauge,
    bytes: IntGauge,
    queued: IntGauge,
    groups: IntGauge,
    records: IntGauge,
    failing: IntGauge,
}

/// Gauges of the merges since the store was opened, set when they are read.
struct MergeGauges {
    running: IntGauge,
    done: IntGauge,
    failed: IntGauge,
    bytes: IntGauge,
    merged: IntGauge,
    generations: IntGauge,
}

impl MergeGauges {
    fn set(&self, s: &jindou::MergeStatus) {
        let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        self.running.set(i64::from(s.running));
        self.done.set(signed(s.done));
        self.failed.set(signed(s.failed));
        self.bytes.set(signed(s.bytes));
        self.merged.set(signed(s.merged));
        self.generations.set(signed(s.generations as u64));
    }
}

/// Names and meanings of the figures of a shared log.
const REPLICA: [(&str, &str); 11] = [
    (
        "jindou_replica_group",
        "Newest group of the shared log that queries read",
    ),
    (
        "jindou_replica_groups_behind",
        "Groups that were heard of and are not read yet",
    ),
    (
        "jindou_replica_proof_age_microseconds",
        "Age of the last proof that no later group existed; -1 before the first",
    ),
    (
        "jindou_replica_writes",
        "1 if this server made the newest group",
    ),
    ("jindou_replica_puts", "Puts of groups since the start"),
    ("jindou_replica_put_microseconds", "Their time together"),
    (
        "jindou_replica_failed_requests",
        "Requests to the bucket that failed or whose outcome is unknown",
    ),
    (
        "jindou_replica_lost_numbers",
        "Numbers that another server's group took",
    ),
    (
        "jindou_replica_listings",
        "Listings of the bucket since the start",
    ),
    (
        "jindou_replica_servers_listed",
        "Servers with an entry in the log that is not too old, this one included",
    ),
    (
        "jindou_replica_servers_in_contact",
        "Other servers that acknowledgements of updates wait for, since they speak and hear",
    ),
];

impl Metrics {
    /// # Errors
    /// If two metrics have the same name, which is a bug.
    pub(crate) fn new() -> prometheus::Result<Self> {
        let registry = Registry::new();
        let counter = |name: &str, help: &str| -> prometheus::Result<IntCounter> {
            let c = IntCounter::new(name, help)?;
            registry.register(Box::new(c.clone()))?;
            Ok(c)
        };
        let gauge = |name: &str, help: &str| -> prometheus::Result<IntGauge> {
            let g = IntGauge::new(name, help)?;
            registry.register(Box::new(g.clone()))?;
            Ok(g)
        };
        let counters = |name: &str, help: &str, labels: &[&str]| {
            let c = IntCounterVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(c.clone()))?;
            prometheus::Result::Ok(c)
        };
        let refused_attempts = counters(
            "jindou_authentication_failures_total",
            "Requests refused for lack of a token (missing), for an unknown or malformed one, or for one without the right (forbidden)",
            &["reason"],
        )?;
        for reason in ["missing", "malformed", "unknown", "forbidden"] {
            refused_attempts.with_label_values(&[reason]);
        }
        // 50 µs to 1,700 s.
        let buckets = exponential_buckets(5e-5, 2.0, 26)?;
        let opts = HistogramOpts::new(
            "jindou_query_seconds",
            "Time of a query from admission to its last byte",
        );
        let seconds = HistogramVec::new(opts.buckets(buckets.clone()), &["class"])?;
        registry.register(Box::new(seconds.clone()))?;
        let opts = HistogramOpts::new(
            "jindou_update_seconds",
            "Time of an update from admission to its answer",
        );
        let update_seconds = Histogram::with_opts(opts.buckets(buckets.clone()))?;
        registry.register(Box::new(update_seconds.clone()))?;
        let opts = HistogramOpts::new(
            "jindou_update_phase_seconds",
            "Time of an update's phases: parsing, waiting for its turn, running, waiting for the log",
        );
        let update_phases = HistogramVec::new(opts.buckets(buckets), &["phase"])?;
        registry.register(Box::new(update_phases.clone()))?;
        let log = LogGauges {
            acknowledged: gauge(
                "jindou_log_acknowledged_snapshot",
                "Last snapshot that the log acknowledged",
            )?,
            durable: gauge(
                "jindou_log_durable_snapshot",
                "Last snapshot that would survive a power failure",
            )?,
            files: gauge("jindou_log_files", "Files of the log")?,
            bytes: gauge("jindou_log_bytes", "Bytes of the log's files")?,
            queued: gauge("jindou_log_queued_records", "Records waiting for the log")?,
            groups: gauge(
                "jindou_log_groups",
                "Groups of records written by the log since it was opened",
            )?,
            records: gauge("jindou_log_records", "Records in those groups")?,
            failing: gauge(
                "jindou_log_failing",
                "1 while the log cannot be written and updates are refused",
            )?,
        };
        let merge = MergeGauges {
            running: gauge(
                "jindou_merge_running",
                "1 while changes are being merged into segments; jindou_delta_edits counts those that wait for the next merge",
            )?,
            done: gauge("jindou_merges_done", "Merges that succeeded")?,
            failed: gauge(
                "jindou_merges_failed",
                "Merges that ended early and left the store unchanged",
            )?,
            bytes: gauge("jindou_merge_bytes", "Bytes written by merges")?,
            merged: gauge(
                "jindou_merged_snapshot",
                "Last snapshot merged into the segments",
            )?,
            generations: gauge(
                "jindou_merge_generations",
                "Generations of files from merges that are in use",
            )?,
        };
        Ok(Self {
            seconds,
            queries: counters(
                "jindou_queries_total",
                "Queries that ended",
                &["class", "outcome"],
            )?,
            requests: counters(
                "jindou_http_requests_total",
                "Requests answered",
                &["route", "status"],
            )?,
            refused_attempts,
            rows: counter("jindou_result_rows_total", "Rows and triples written")?,
            bytes: counter(
                "jindou_result_bytes_total",
                "Bytes of answers before compression",
            )?,
            plan_hits: counter(
                "jindou_plan_cache_hits_total",
                "Queries whose plan was in the cache",
            )?,
            plan_misses: counter("jindou_plan_cache_misses_total", "Plans made")?,
            refused: counter(
                "jindou_queries_refused_total",
                "Queries refused because the limit on queries was reached",
            )?,
            panics: counter(
                "jindou_panics_total",
                "Panics that ended a query, an update or a request with an internal error",
            )?,
            updates: counters("jindou_updates_total", "Updates that ended", &["outcome"])?,
            update_seconds,
            update_phases,
            update_quads: counters(
                "jindou_update_quads_total",
                "Quads that updates added and removed",
                &["change"],
            )?,
            jobs: counters(
                "jindou_jobs_total",
                "Jobs on the whole store that ended",
                &["job", "outcome"],
            )?,
            jobs_running: gauge(
                "jindou_jobs_running",
                "1 while a job on the whole store runs",
            )?,
            snapshot: gauge("jindou_snapshot", "Snapshot number that queries read")?,
            delta_edits: gauge(
                "jindou_delta_edits",
                "Quads that updates added to those that were loaded, and removed from them",
            )?,
            delta_bytes: gauge(
                "jindou_delta_bytes",
                "Memory of the changes made by updates since the store was loaded, in the snapshot that queries read",
            )?,
            log,
            merge,
            connections: gauge("jindou_connections", "Open connections")?,
            running: gauge("jindou_queries_running", "Queries computing")?,
            queued: gauge("jindou_queries_queued", "Queries waiting for a slot")?,
            sending: gauge("jindou_queries_sending", "Queries waiting for their reader")?,
            prepared: gauge("jindou_prepared_queries", "Prepared queries held")?,
            plans: gauge("jindou_plan_cache_plans", "Plans in the cache")?,
            memory: gauge("jindou_query_memory_bytes", "Memory of running queries")?,
            memory_limit: gauge(
                "jindou_query_memory_limit_bytes",
                "Memory limit of all queries together",
            )?,
            resident: gauge(
                "process_resident_memory_bytes",
                "Resident memory, including the mapped store",
            )?,
            replica: REPLICA
                .iter()
                .map(|(name, help)| gauge(name, help))
                .collect::<prometheus::Result<_>>()?,
            warm: [
                gauge(
                    "jindou_warm_read_bytes",
                    "Bytes of the store that were read into memory since the start",
                )?,
                gauge(
                    "jindou_warm_wanted_bytes",
                    "Bytes of the store that are to be read into memory after the start: as many as there is room for",
                )?,
            ],
            registry,
        })
    }

    /// The metrics in Prometheus's text format.
    pub(crate) fn text(&self, shared: &AppState) -> prometheus::Result<Vec<u8>> {
        let mut states = [0i64; 3];
        for q in shared.live.list() {
            states[match q.state() {
                QueryState::Running => 0,
                QueryState::Queued | QueryState::Behind => 1,
                QueryState::Sending => 2,
            }] += 1;
        }
        let ended = jindou::invariant::ended();
        self.panics.inc_by(ended.saturating_sub(self.panics.get()));
        self.jobs_running.set(i64::from(shared.jobs.is_running()));
        self.running.set(states[0]);
        self.queued.set(states[1]);
        self.sending.set(states[2]);
        let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let numbers = shared.upkeep.numbers();
        self.snapshot.set(signed(numbers.snapshot));
        self.delta_edits.set(signed(numbers.edits));
        self.delta_bytes.set(signed(numbers.bytes));
        if let Some(replica) = shared.upkeep.replica() {
            let figures = replica.figures();
            let micros = |time: Duration| i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
            for (gauge, figure) in self.replica.iter().zip([
                signed(figures.committed),
                signed(figures.heard.saturating_sub(figures.committed)),
                figures.age.map_or(-1, micros),
                i64::from(figures.writes),
                signed(figures.puts),
                micros(figures.put_time),
                signed(figures.failed),
                signed(figures.lost),
                signed(figures.listings),
                signed(figures.listed),
                signed(figures.in_contact),
            ]) {
                gauge.set(figure);
            }
        }
        if let Some(log) = shared.upkeep.log_status() {
            let g = &self.log;
            g.acknowledged.set(signed(log.acknowledged));
            g.durable.set(signed(log.durable));
            g.files.set(signed(log.files));
            g.bytes.set(signed(log.bytes));
            g.queued.set(signed(log.queued.0));
            g.groups.set(signed(log.groups));
            g.records.set(signed(log.records));
            g.failing.set(i64::from(log.failure.is_some()));
        }
        if let Some(status) = shared.upkeep.merge_status() {
            self.merge.set(&status);
        }
        if let Some(warming) = &shared.warming {
            let (read, wanted) = warming.progress();
            self.warm[0].set(signed(read));
            self.warm[1].set(signed(wanted));
        }
        self.prepared.set(signed(shared.prepared.len() as u64));
        self.plans.set(signed(numbers.plans));
        self.memory.set(signed(shared.memory.used()));
        self.memory_limit.set(signed(shared.memory.limit()));
        self.resident.set(signed(resident().unwrap_or(0)));
        let mut out = Vec::new();
        TextEncoder::new().encode(&self.registry.gather(), &mut out)?;
        Ok(out)
    }
}

/// Resident memory of this process in bytes, where the system reports it (Linux).
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmRSS:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? << 10)
}
