//! S3: requests and signatures of `object_store`, sent over this crate's HTTP client.
//!
//! The client does not retry requests: the machine retries puts under the same name and must know which of its attempts
//! created the object. (A client that repeated a put after a lost response would find its own object and report that
//! the name exists. The machine would then read the object back, which is slower, but not wrong.) There is one
//! exception: if a kept-alive connection turns out to be closed before any byte of a request was sent, the request is
//! sent over another connection.

mod client;

use super::{Bucket, Failure, Limits};
use client::{Connector, Metadata};
use object_store::RetryConfig;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::client::ClientConfigKey;
use std::sync::Arc;
use std::time::Duration;

/// Environment variables for the endpoint that `object_store` does not read, or reads under other names. The first that
/// is set is used.
const ENDPOINT: [&str; 3] = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"];

/// Opens the S3 bucket with this name, with settings from these environment variables.
pub(super) fn open(
    bucket: &str,
    prefix: &str,
    variables: impl IntoIterator<Item = (String, String)>,
    limits: Limits,
) -> Result<Bucket, String> {
    let mut builder = AmazonS3Builder::new();
    let mut endpoint = None;
    let mut default_region = None;
    let mut region = false;
    let mut roots = None;
    for (name, value) in variables {
        if value.is_empty() || !name.starts_with("AWS_") {
            continue;
        }
        if let Some(rank) = ENDPOINT.iter().position(|known| *known == name) {
            endpoint = endpoint.max(Some((ENDPOINT.len() - rank, name, value)));
            continue;
        }
        if name == "AWS_DEFAULT_REGION" {
            default_region = Some(value);
            continue;
        }
        if name == "AWS_CA_BUNDLE" {
            roots = Some(value);
            continue;
        }
        region |= name == "AWS_REGION";
        if let Ok(key) = name.to_ascii_lowercase().parse::<AmazonS3ConfigKey>() {
            builder = builder.with_config(key, value);
        }
    }
    if let Some(value) = default_region.filter(|_| !region) {
        builder = builder.with_region(value);
    }
    if let Some((_, name, value)) = endpoint {
        let http = value.starts_with("http://");
        if !http && !value.starts_with("https://") {
            return Err(format!(
                "{name} is \"{value}\", which does not begin with http:// or https://"
            ));
        }
        let allow = AmazonS3ConfigKey::Client(ClientConfigKey::AllowHttp);
        if http && !is_set(&builder, allow) {
            return Err(format!(
                "{name} is \"{value}\", whose requests are not encrypted: AWS_ALLOW_HTTP=true allows that"
            ));
        }
        builder = builder.with_endpoint(value);
    }
    let metadata = Metadata {
        place: builder.get_config_value(&AmazonS3ConfigKey::MetadataEndpoint),
        fallback: is_set(&builder, AmazonS3ConfigKey::ImdsV1Fallback),
    };
    let none = RetryConfig {
        max_retries: 0,
        retry_timeout: Duration::ZERO,
        ..RetryConfig::default()
    };
    let store = builder
        .with_bucket_name(bucket)
        .with_retry(none)
        .with_http_connector(Connector::new(limits.clone(), metadata, roots))
        .build()
        .map_err(|e| format!("the settings for S3 are not right: {e}"))?;
    Ok(Bucket::new(Arc::new(store), prefix, limits))
}

fn is_set(builder: &AmazonS3Builder, key: AmazonS3ConfigKey) -> bool {
    let value = builder.get_config_value(&key);
    value.is_some_and(|value| value.eq_ignore_ascii_case("true") || value == "1")
}

/// A failure of the HTTP client, which `object_store` wraps in an error of its own.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(super) struct Fault(Failure);

/// The failure that an error of `object_store` stands for; `None` if the error does not come from S3.
pub(super) fn failure(error: &object_store::Error) -> Option<Failure> {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(e) = cause {
        if let Some(Fault(failure)) = e.downcast_ref::<Fault>() {
            return Some(failure.clone());
        }
        cause = e.source();
    }
    // The error type with status and response is private to `object_store`, so both are parsed from the text.
    let text = error.to_string();
    let status = (text.split_once("non-2xx status code: "))
        .and_then(|(_, rest)| rest.get(..3)?.parse::<u16>().ok());
    let code = element(&text, "Code");
    match (status, code) {
        (Some(404), Some("NoSuchBucket")) => {
            return Some(Failure::Refused("there is no such bucket".into()));
        }
        // Codes for a missing object. versitygw also returns 404 for unknown access keys.
        (Some(404), None | Some("NoSuchKey" | "NotFound")) => return Some(Failure::Missing),
        (None, None) if text.contains("redirect without LOCATION") => {
            return Some(Failure::Refused(
                "the bucket is in another region than AWS_REGION says".into(),
            ));
        }
        (None, None) => return None,
        _ => {}
    }
    let says = match (code, element(&text, "Message")) {
        (Some(code), Some(message)) => {
            let message = unescaped(message.trim_end_matches('.'));
            format!("{code} ({message})")
        }
        (Some(code), None) => code.to_owned(),
        (None, _) => format!("status {}", status.unwrap_or_default()),
    };
    // Errors that a retry would not change. 409 and 412 are handled elsewhere, and 400 may mean that a body arrived too
    // slowly.
    let final_one = matches!(
        status,
        Some(301 | 307 | 308 | 400 | 401 | 403 | 404 | 405 | 501)
    ) && !matches!(code, Some("RequestTimeout" | "SlowDown"));
    Some(match final_one {
        true => Failure::Refused(says),
        false => Failure::Unknown(format!("the bucket answers {says}")),
    })
}

/// Text of the first XML element with this name.
fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let (content, _) = rest.split_once("</")?;
    Some(content.trim()).filter(|content| !content.is_empty())
}

/// Replaces XML character references in a text.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        out.push_str(before);
        let reference = after.split_once(';').and_then(|(name, after)| {
            let number = |digits, radix| char::from_u32(u32::from_str_radix(digits, radix).ok()?);
            let character = match (name, name.strip_prefix('#')) {
                ("amp", _) => '&',
                ("lt", _) => '<',
                ("gt", _) => '>',
                ("quot", _) => '"',
                ("apos", _) => '\'',
                (_, Some(n)) => match n.strip_prefix('x') {
                    Some(hex) => number(hex, 16)?,
                    None => number(n, 10)?,
                },
                _ => return None,
            };
            Some((character, after))
        });
        let (character, after) = reference.unwrap_or(('&', after));
        out.push(character);
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::unescaped;

    #[test]
    fn references_to_characters_are_replaced() {
        for (text, plain) in [
            ("no &#34;x&#34; &amp; &#x3C;y&gt;", "no \"x\" & <y>"),
            ("a & b &unknown; &#xD800; &", "a & b &unknown; &#xD800; &"),
            ("&apos;&quot;&lt;", "'\"<"),
        ] {
            assert_eq!(unescaped(text), plain);
        }
    }
}
