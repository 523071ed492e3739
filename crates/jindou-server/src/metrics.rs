//! Counters for `/metrics`.

use crate::live::State;
use crate::shared::Shared;
use prometheus::{
    Encoder, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, Opts, Registry,
    TextEncoder, exponential_buckets,
};

/// What is counted while requests run; gauges of the moment are set when somebody looks.
pub(crate) struct Metrics {
    registry: Registry,
    pub(crate) seconds: HistogramVec,
    pub(crate) queries: IntCounterVec,
    pub(crate) requests: IntCounterVec,
    pub(crate) rows: IntCounter,
    pub(crate) bytes: IntCounter,
    pub(crate) plan_hits: IntCounter,
    pub(crate) plan_misses: IntCounter,
    pub(crate) refused: IntCounter,
    pub(crate) connections: IntGauge,
    running: IntGauge,
    queued: IntGauge,
    sending: IntGauge,
    plans: IntGauge,
    memory: IntGauge,
    memory_limit: IntGauge,
    resident: IntGauge,
}

impl Metrics {
    /// # Errors
    /// Two metrics of one name: a bug.
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
        // 50 µs to 1,700 s.
        let buckets = exponential_buckets(5e-5, 2.0, 26)?;
        let opts = HistogramOpts::new(
            "jindou_query_seconds",
            "Time of a query from admission to its last byte",
        );
        let seconds = HistogramVec::new(opts.buckets(buckets), &["class"])?;
        registry.register(Box::new(seconds.clone()))?;
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
            rows: counter("jindou_result_rows_total", "Rows and triples written")?,
            bytes: counter(
                "jindou_result_bytes_total",
                "Bytes of answers before compression",
            )?,
            plan_hits: counter("jindou_plan_cache_hits_total", "Plans found in the cache")?,
            plan_misses: counter("jindou_plan_cache_misses_total", "Plans made")?,
            refused: counter(
                "jindou_queries_refused_total",
                "Queries refused because too many existed",
            )?,
            connections: gauge("jindou_connections", "Open connections")?,
            running: gauge("jindou_queries_running", "Queries that compute")?,
            queued: gauge("jindou_queries_queued", "Queries that wait for a slot")?,
            sending: gauge(
                "jindou_queries_sending",
                "Queries that wait for their reader",
            )?,
            plans: gauge("jindou_plan_cache_plans", "Plans in the cache")?,
            memory: gauge("jindou_query_memory_bytes", "Memory of running queries")?,
            memory_limit: gauge(
                "jindou_query_memory_limit_bytes",
                "Memory that all queries together may use",
            )?,
            resident: gauge(
                "process_resident_memory_bytes",
                "Resident memory, mapped store included",
            )?,
            registry,
        })
    }

    /// Prometheus text.
    pub(crate) fn text(&self, shared: &Shared) -> prometheus::Result<Vec<u8>> {
        let mut states = [0i64; 3];
        for q in shared.live.list() {
            states[match q.state() {
                State::Running => 0,
                State::Queued => 1,
                State::Sending => 2,
            }] += 1;
        }
        self.running.set(states[0]);
        self.queued.set(states[1]);
        self.sending.set(states[2]);
        let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        self.plans.set(signed(shared.db.cached_plans() as u64));
        self.memory.set(signed(shared.memory.used()));
        self.memory_limit.set(signed(shared.memory.limit()));
        self.resident.set(signed(resident().unwrap_or(0)));
        let mut out = Vec::new();
        TextEncoder::new().encode(&self.registry.gather(), &mut out)?;
        Ok(out)
    }
}

/// Resident memory of this process in bytes, where the system tells (Linux).
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmRSS:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? << 10)
}
