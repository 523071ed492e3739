//! Opening a bucket from the text of a log's location.

use super::{Bucket, Limits};
use std::path::Path;

impl Bucket {
    /// Opens the log at `s3://BUCKET/PREFIX`, with the settings in this process's `AWS_*` variables, or in a directory.
    /// Sends no request to an S3 server.
    ///
    /// # Errors
    /// A sentence with the reason why there can be no log at this location.
    pub fn open(place: &str, limits: Limits) -> Result<Self, String> {
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Self::open_with(place, variables, limits)
    }

    /// As [`Self::open`], with these variables instead of the process's environment.
    ///
    /// # Errors
    /// A sentence with the reason why there can be no log at this location.
    pub fn open_with(
        place: &str,
        variables: impl IntoIterator<Item = (String, String)>,
        limits: Limits,
    ) -> Result<Self, String> {
        if let Some(rest) = place.strip_prefix("s3://") {
            let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
            check_bucket(place, bucket)?;
            return s3(bucket, prefix, variables, limits);
        }
        if place.is_empty() || place.contains("://") {
            return Err(format!(
                "invalid log location \"{place}\": expected s3://BUCKET/PREFIX or a directory \
                 (AWS_ENDPOINT_URL names a server other than Amazon's)"
            ));
        }
        Self::directory(Path::new(place), limits)
            .map_err(|e| format!("the log's directory {place} cannot be opened: {e}"))
    }
}

fn check_bucket(place: &str, bucket: &str) -> Result<(), String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    match (3..=255).contains(&bucket.len()) && bucket.chars().all(allowed) {
        true => Ok(()),
        false => Err(format!(
            "invalid log location \"{place}\": \"{bucket}\" cannot be the name of a bucket"
        )),
    }
}

#[cfg(feature = "s3")]
use super::s3::open as s3;

#[cfg(not(feature = "s3"))]
fn s3(
    _: &str,
    _: &str,
    _: impl IntoIterator<Item = (String, String)>,
    _: Limits,
) -> Result<Bucket, String> {
    Err("this program was built without S3, so a log can only be in a directory".into())
}
