//! Sizes and durations as people write them on a command line or in a request.

use std::time::Duration;

/// Number of bytes from `512M`, `8G`, `8GiB`, `1.5g` or `1000000`; a kibibyte has 1,024.
///
/// # Errors
/// A sentence that says how sizes are written.
pub fn parse_size(s: &str) -> Result<u64, String> {
    let lower = s.trim().to_ascii_lowercase();
    let t = lower.trim_end_matches("ib").trim_end_matches('b');
    let (number, shift) = match t.as_bytes().last() {
        Some(b'k') => (&t[..t.len() - 1], 10),
        Some(b'm') => (&t[..t.len() - 1], 20),
        Some(b'g') => (&t[..t.len() - 1], 30),
        Some(b't') => (&t[..t.len() - 1], 40),
        _ => (t, 0),
    };
    match number.trim().parse::<f64>() {
        Ok(n) if n >= 0.0 && n.is_finite() => Ok((n * (1u64 << shift) as f64) as u64),
        _ => Err(format!("'{s}' is not a size; write it like 512M or 8G")),
    }
}

/// Duration from `500ms`, `30s`, `2m`, `1h` or `10` (seconds).
///
/// # Errors
/// A sentence that says how durations are written.
pub fn parse_duration(s: &str) -> Result<Duration, String> {
    let t = s.trim();
    let (number, scale) = if let Some(n) = t.strip_suffix("us") {
        (n, 1e-6)
    } else if let Some(n) = t.strip_suffix("ms") {
        (n, 1e-3)
    } else if let Some(n) = t.strip_suffix('s') {
        (n, 1.0)
    } else if let Some(n) = t.strip_suffix('m') {
        (n, 60.0)
    } else if let Some(n) = t.strip_suffix('h') {
        (n, 3600.0)
    } else {
        (t, 1.0)
    };
    number
        .trim()
        .parse::<f64>()
        .ok()
        .and_then(|n| Duration::try_from_secs_f64(n * scale).ok())
        .ok_or_else(|| format!("'{s}' is not a time; write it like 500ms, 30s or 2m"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times() {
        assert_eq!(parse_size("8G"), Ok(8 << 30));
        assert_eq!(parse_size("1.5KiB"), Ok(1536));
        assert!(parse_size("-1").is_err() && parse_size("much").is_err());
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("2m"), Ok(Duration::from_secs(120)));
        assert!(parse_duration("1e19s").is_ok());
        assert!(parse_duration("-1").is_err() && parse_duration("1e30").is_err());
    }
}
