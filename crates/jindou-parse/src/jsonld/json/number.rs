//! Conversion of JSON numbers to literals: by JSON-LD 1.1 API 8.6.2, and by RFC 8785 for JSON literals.

/// Whole numbers from here on are written with an exponent.
const LARGE: f64 = 1e21;
/// Largest number of digits of a whole number below [`LARGE`].
const DIGITS: usize = 21;

/// A JSON number as a double and, if it is whole, exactly.
pub(in crate::jsonld) struct Number {
    double: f64,
    /// The digits of a whole number below 10^21, not rounded.
    whole: Option<String>,
}

impl Number {
    /// Parses a number that follows JSON's grammar.
    pub(in crate::jsonld) fn parse(text: &str) -> Self {
        let double: f64 = text.parse().unwrap_or(f64::NAN);
        let whole = exact(text).or_else(|| {
            // A number whose fraction is lost when it is rounded to a double.
            (double.fract() == 0.0 && double.abs() < LARGE).then(|| format!("{double:.0}"))
        });
        let whole = whole.map(|w| if w == "-0" { "0".to_owned() } else { w });
        Self { double, whole }
    }

    /// The lexical form of an `xsd:integer`; `None` if the number has a fraction or more than 21 digits.
    pub(in crate::jsonld) fn integer(&self) -> Option<&str> {
        self.whole.as_deref()
    }

    /// The canonical form of an `xsd:double`, with the fewest digits that identify the double (XSD 1.1). JSON-LD 1.1
    /// API 8.6 rounds to 15 digits after the point instead, which changes the value of half of all numbers with 17
    /// digits.
    pub(in crate::jsonld) fn double(&self) -> String {
        if self.double.is_infinite() {
            return if self.double > 0.0 { "INF" } else { "-INF" }.into();
        }
        let text = format!("{:E}", self.double);
        let (mantissa, exponent) = text.split_once('E').unwrap_or((&text, "0"));
        let fraction = if mantissa.contains('.') { "" } else { ".0" };
        format!("{mantissa}{fraction}E{exponent}")
    }

    /// The form of RFC 8785, which is JavaScript's; `None` for numbers that exceed the range of a double.
    pub(in crate::jsonld) fn canonical(&self) -> Option<String> {
        let value = self.double;
        if !value.is_finite() {
            return None;
        }
        if value == 0.0 {
            return Some("0".into());
        }
        let text = format!("{:e}", value.abs());
        let (mantissa, exponent) = text.split_once('e')?;
        let digits = even(value, mantissa.replace('.', ""));
        let exponent: i32 = exponent.parse().ok()?;
        let point = exponent + 1;
        let len = digits.len() as i32;
        let unsigned = if len <= point && point <= 21 {
            digits + &"0".repeat((point - len) as usize)
        } else if 0 < point && point <= 21 {
            let (whole, fraction) = digits.split_at(point as usize);
            format!("{whole}.{fraction}")
        } else if -6 < point && point <= 0 {
            format!("0.{}{digits}", "0".repeat(-point as usize))
        } else {
            let (first, rest) = digits.split_at(1);
            let dot = if rest.is_empty() { "" } else { "." };
            format!("{first}{dot}{rest}e{exponent:+}")
        };
        Some(match value < 0.0 {
            true => format!("-{unsigned}"),
            false => unsigned,
        })
    }
}

/// The shortest digits of a double. If two are equally near, RFC 8785 requires the one whose last digit is even, as in
/// JavaScript.
fn even(value: f64, digits: String) -> String {
    let exact = format!("{:.40e}", value.abs()).replace('.', "");
    let (below, rest) = exact.split_at(digits.len().min(exact.len()));
    let rest = rest.split('e').next().unwrap_or_default();
    let is_between = rest.starts_with('5') && rest[1..].bytes().all(|b| b == b'0');
    match is_between && below.ends_with(['0', '2', '4', '6', '8']) {
        true => below.to_owned(),
        false => digits,
    }
}

/// The digits of a number that is whole and below 10^21, in whatever form it is written.
fn exact(text: &str) -> Option<String> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text),
    };
    if text.len() <= DIGITS && text.bytes().all(|b| b.is_ascii_digit()) {
        return Some(format!("{sign}{text}"));
    }
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    // Number of digits before the point, leading zeros included.
    let point = exponent.checked_add(whole.len() as i64)?;
    let leading = digits.len() - digits.trim_start_matches('0').len();
    let digits = digits[leading..].trim_end_matches('0');
    if digits.is_empty() {
        return Some(format!("{sign}0"));
    }
    let point = usize::try_from(point.checked_sub(leading as i64)?).ok()?;
    if digits.len() > point || point > DIGITS {
        return None;
    }
    Some(format!(
        "{sign}{digits}{}",
        "0".repeat(point - digits.len())
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_found_however_they_are_written() {
        for (text, expected) in [
            ("0", Some("0")),
            ("-0", Some("0")),
            ("-0.0", Some("0")),
            ("0e20", Some("0")),
            ("5e0", Some("5")),
            ("-12.50e1", Some("-125")),
            ("1e20", Some("100000000000000000000")),
            ("-1E+20", Some("-100000000000000000000")),
            ("0.0001e24", Some("100000000000000000000")),
            ("10000000000000000000000e-2", Some("100000000000000000000")),
            ("999999999999999999999", Some("999999999999999999999")),
            ("100000000000000000000.000", Some("100000000000000000000")),
            // When rounded to a double, this number is whole.
            ("12345678901234567890.5", Some("12345678901234567168")),
            ("1e21", None),
            ("1000000000000000000000", None),
            ("1e99999999999999999999", None),
            ("1e-9223372036854775808", Some("0")),
            ("1.5", None),
            ("1e-20", None),
        ] {
            assert_eq!(Number::parse(text).integer(), expected, "{text}");
        }
    }

    #[test]
    fn doubles_are_canonical() {
        for (text, expected) in [
            ("5.3", "5.3E0"),
            ("-0", "-0.0E0"),
            ("0", "0.0E0"),
            ("100", "1.0E2"),
            ("1e21", "1.0E21"),
            ("1e-7", "1.0E-7"),
            ("0.30000000000000004", "3.0000000000000004E-1"),
            ("1e-20", "1.0E-20"),
            ("123456789.123456789", "1.2345678912345679E8"),
            ("1.7976931348623157e308", "1.7976931348623157E308"),
            ("5e-324", "5.0E-324"),
            ("-1e400", "-INF"),
        ] {
            assert_eq!(Number::parse(text).double(), expected, "{text}");
        }
    }

    #[test]
    fn json_numbers_are_those_of_rfc_8785() {
        // The numbers of RFC 8785, appendix B, and numbers at the limits of its forms.
        for (text, expected) in [
            ("0", "0"),
            ("-0.0", "0"),
            ("5e-324", "5e-324"),
            ("-1.7976931348623157e308", "-1.7976931348623157e+308"),
            ("9007199254740992", "9007199254740992"),
            ("295147905179352830000", "295147905179352830000"),
            ("9.999999999999997e22", "9.999999999999997e+22"),
            ("1e23", "1e+23"),
            ("1e21", "1e+21"),
            ("999999999999999900000", "999999999999999900000"),
            ("1e-6", "0.000001"),
            ("9.999999999999997e-7", "9.999999999999997e-7"),
            ("333333333.33333329", "333333333.3333333"),
            ("-0.0000033333333333333333", "-0.0000033333333333333333"),
            ("1424953923781206.25", "1424953923781206.2"),
            ("12345678901234567890.5", "12345678901234567000"),
        ] {
            let number = Number::parse(text).canonical();
            assert_eq!(number.as_deref(), Some(expected), "{text}");
        }
        assert_eq!(Number::parse("1e400").canonical(), None);
    }
}
