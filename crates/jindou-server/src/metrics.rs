//! Metrics at `/metrics` that are counted while requests run. `figures` has those whose values other modules know.

use crate::figures::{Figures, registered};
use crate::shared::AppState;
use http::StatusCode;
use prometheus::{
    Encoder, Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec,
    IntGauge, Opts, Registry, TextEncoder, exponential_buckets,
};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(crate) struct Metrics {
    registry: Registry,
    figures: Figures,
    seconds: HistogramVec,
    queries: IntCounterVec,
    requests: IntCounterVec,
    /// Members of `requests` for the status 200 at `/query` and at `/sparql`. Cached at first use, as are those
    /// below, since a lookup by labels takes a lock and hashes each label.
    answered: [OnceLock<IntCounter>; 2],
    /// Members of `seconds`, and of `queries` for the outcome `ok`, for each class.
    classes: [(OnceLock<Histogram>, OnceLock<IntCounter>); 3],
    pub(crate) refused_attempts: IntCounterVec,
    pub(crate) rows: IntCounter,
    pub(crate) bytes: IntCounter,
    pub(crate) plan_hits: IntCounter,
    pub(crate) plan_misses: IntCounter,
    pub(crate) refused: IntCounter,
    pub(crate) updates: IntCounterVec,
    pub(crate) update_seconds: Histogram,
    pub(crate) update_phases: HistogramVec,
    pub(crate) update_quads: IntCounterVec,
    pub(crate) jobs: IntCounterVec,
    pub(crate) connections: IntGauge,
    /// End of the TLS certificate's validity, in seconds since 1970.
    pub(crate) certificate: Gauge,
}

impl Metrics {
    /// # Errors
    /// If two metrics have the same name, which is a bug.
    pub(crate) fn new(options: &MetricsOptions<'_>) -> prometheus::Result<Self> {
        let registry = Registry::new();
        let counter = |name: &str, help: &str| registered(&registry, IntCounter::new(name, help));
        let counters = |name: &str, help: &str, labels: &[&str]| {
            let options = Opts::new(name, help);
            registered(&registry, IntCounterVec::new(options, labels))
        };
        // Upper bounds of the buckets, in seconds: from 50 µs to 1,700 s.
        let buckets = exponential_buckets(5e-5, 2.0, 26)?;
        let histograms = |name: &str, help: &str, label: &str| {
            let opts = HistogramOpts::new(name, help).buckets(buckets.clone());
            registered(&registry, HistogramVec::new(opts, &[label]))
        };
        let opts = HistogramOpts::new(
            "jindou_update_seconds",
            "Time of an update from admission to its answer",
        );
        let update_seconds = Histogram::with_opts(opts.buckets(buckets.clone()));
        let update_seconds = registered(&registry, update_seconds)?;
        let connections = IntGauge::new("jindou_connections", "Open connections");
        let connections = registered(&registry, connections)?;
        let certificate = Gauge::new(
            "jindou_tls_certificate_expiry_timestamp_seconds",
            "End of the TLS certificate's validity, in seconds since 1970",
        )?;
        if options.tls {
            registry.register(Box::new(certificate.clone()))?;
        }
        constants(&registry, options.commit)?;
        let refused_attempts = counters(
            "jindou_authentication_failures_total",
            "Requests refused for lack of a token (missing), for an unknown or malformed one, or for one without the right (forbidden)",
            &["reason"],
        )?;
        for reason in ["missing", "malformed", "unknown", "forbidden"] {
            refused_attempts.with_label_values(&[reason]);
        }
        Ok(Self {
            figures: Figures::new(&registry, options.replica)?,
            seconds: histograms(
                "jindou_query_seconds",
                "Time of a query from admission to its last byte",
                "class",
            )?,
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
            answered: Default::default(),
            classes: Default::default(),
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
            updates: counters("jindou_updates_total", "Updates that ended", &["outcome"])?,
            update_seconds,
            update_phases: histograms(
                "jindou_update_phase_seconds",
                "Time of an update's phases: parsing, waiting for its turn, running, waiting for the log",
                "phase",
            )?,
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
            connections,
            certificate,
            registry,
        })
    }

    /// Counts an answered request. `route` is one of the names that [`crate::routes::name`] returns.
    pub(crate) fn answered(&self, route: &str, status: StatusCode) {
        let find = || self.requests.with_label_values(&[route, status.as_str()]);
        let kept = match (route, status) {
            ("/query", StatusCode::OK) => &self.answered[0],
            ("/sparql", StatusCode::OK) => &self.answered[1],
            _ => return find().inc(),
        };
        kept.get_or_init(find).inc();
    }

    /// Counts a query that has ended; `light` is `None` if it has no plan.
    pub(crate) fn ended(&self, light: Option<bool>, outcome: &str, took: Duration) {
        let class = class(light);
        let (seconds, ok) = &self.classes[light.map_or(0, |light| 1 + usize::from(light))];
        let find = || self.seconds.with_label_values(&[class]);
        seconds.get_or_init(find).observe(took.as_secs_f64());
        let find = || self.queries.with_label_values(&[class, outcome]);
        match outcome {
            "ok" => ok.get_or_init(find).inc(),
            _ => find().inc(),
        }
    }

    /// The metrics in Prometheus's text format.
    pub(crate) fn text(&self, shared: &AppState) -> prometheus::Result<Vec<u8>> {
        self.figures.read(shared);
        let mut out = Vec::new();
        TextEncoder::new().encode(&self.registry.gather(), &mut out)?;
        Ok(out)
    }
}

/// The name of a class of queries; `light` is `None` for a query without a plan.
pub(crate) fn class(light: Option<bool>) -> &'static str {
    match light {
        Some(true) => "light",
        Some(false) => "heavy",
        None => "unplanned",
    }
}

/// Properties of a server that decide which metrics it has.
pub(crate) struct MetricsOptions<'a> {
    pub(crate) commit: &'a str,
    pub(crate) tls: bool,
    /// True if the store has a shared log.
    pub(crate) replica: bool,
}

/// Metrics whose value never changes.
fn constants(registry: &Registry, commit: &str) -> prometheus::Result<()> {
    let options = Opts::new("jindou_build_info", "1, with the version and its commit");
    let build = registered(registry, GaugeVec::new(options, &["version", "commit"]))?;
    let labels = [env!("CARGO_PKG_VERSION"), commit];
    build.with_label_values(&labels).set(1.0);
    let start = Gauge::new(
        "process_start_time_seconds",
        "Start of the server, in seconds since 1970",
    );
    let start = registered(registry, start)?;
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    start.set(since.unwrap_or_default().as_secs_f64());
    Ok(())
}
