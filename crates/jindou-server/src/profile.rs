//! The JSON document of `?profile=true`. It is written incrementally, since the profile of a union with thousands of
//! branches has tens of megabytes.

use jindou::{PlannedQuery, ProfileNode, QueryReport};
use serde::ser::{Serialize, SerializeStruct, Serializer};
use std::io::{self, BufWriter, Write};
use std::time::Duration;

/// Profiles of plans deeper than this are written without indentation.
const DEEPEST_INDENTED: usize = 100;
/// Profiles whose text has more bytes than this are written without indentation.
const LONGEST_INDENTED: usize = 256 << 10;
/// Size in bytes of the buffer between the serialiser and the response.
const PIECE: usize = 64 << 10;

/// Writes the profile of a query's run; times are in milliseconds.
///
/// # Errors
/// Errors of the writer, such as an answer longer than allowed.
pub(crate) fn write(
    to: impl Write,
    report: &QueryReport,
    planned: &PlannedQuery,
) -> io::Result<()> {
    let document = ProfileDocument {
        report,
        plan_cached: planned.is_cached(),
    };
    // In a deep tree most of the document would be indentation, and long documents are read by programs.
    let indented =
        planned.plan().depth() <= DEEPEST_INDENTED && report.profile.len() <= LONGEST_INDENTED;
    let mut out = BufWriter::with_capacity(PIECE, to);
    if indented {
        serde_json::to_writer_pretty(&mut out, &document)?;
    } else {
        serde_json::to_writer(&mut out, &document)?;
    }
    out.flush()
}

struct ProfileDocument<'a> {
    report: &'a QueryReport,
    plan_cached: bool,
}

impl Serialize for ProfileDocument<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let report = self.report;
        let mut out = to.serialize_struct("profile", 6)?;
        out.serialize_field("plan_cached", &self.plan_cached)?;
        out.serialize_field("plan_ms", &ms(report.plan_time))?;
        out.serialize_field("rows", &report.rows)?;
        out.serialize_field("run_ms", &ms(report.run_time))?;
        out.serialize_field("text", &Lines(&report.profile))?;
        out.serialize_field("tree", &report.profile_tree.as_ref().map(ProfileStep))?;
        out.end()
    }
}

/// A text, serialised as a list of its lines.
struct Lines<'a>(&'a str);

impl Serialize for Lines<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.lines())
    }
}

/// A node of a profile with its inputs, serialised as an object.
pub(crate) struct ProfileStep<'a>(pub(crate) &'a ProfileNode);

impl Serialize for ProfileStep<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let n = self.0;
        let mut out = to.serialize_struct("step", 9)?;
        out.serialize_field("bytes", &n.bytes)?;
        out.serialize_field("bytes_held", &n.held)?;
        out.serialize_field("bytes_written", &n.written)?;
        out.serialize_field("inputs", &ProfileSteps(&n.inputs))?;
        out.serialize_field("ms", &n.time.map(ms))?;
        out.serialize_field("name", &n.name)?;
        out.serialize_field("place", &n.place)?;
        out.serialize_field("rows_in", &n.rows_in)?;
        out.serialize_field("rows_out", &n.rows_out)?;
        out.end()
    }
}

struct ProfileSteps<'a>(&'a [ProfileNode]);

impl Serialize for ProfileSteps<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.iter().map(ProfileStep))
    }
}

fn ms(d: Duration) -> f64 {
    d.as_secs_f64() * 1e3
}
