//! The endpoints that queries may contact.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use ureq::http::Uri;

/// One entry of an allow-list, written `HOST` or `HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// Host name in lower case, or IP address; an IPv6 address without brackets.
    host: String,
    /// The port; `None` for the default port of `http` (80) or `https` (443).
    port: Option<u16>,
}

impl FromStr for Allowed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("{text} is not HOST or HOST:PORT, such as example.org or [::1]:7878");
        let (host, port) = if let Some(rest) = text.strip_prefix('[') {
            let (host, rest) = rest.split_once(']').ok_or_else(bad)?;
            host.parse::<Ipv6Addr>().map_err(|_| bad())?;
            (
                host,
                rest.strip_prefix(':').or(rest.is_empty().then_some("")),
            )
        } else if text.parse::<Ipv6Addr>().is_ok() {
            (text, Some(""))
        } else {
            let (host, port) = text.split_once(':').unwrap_or((text, ""));
            let ends = text.ends_with(':');
            (host, (!ends).then_some(port))
        };
        let port = match port.ok_or_else(bad)? {
            "" => None,
            p => Some(p.parse().map_err(|_| bad())?),
        };
        let of_host = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
        if host.is_empty() || !host.chars().all(of_host) {
            return Err(bad());
        }
        Ok(Self {
            host: spelled(host),
            port,
        })
    }
}

/// A host in the form in which hosts are compared: names in lower case, IP addresses in their canonical form.
fn spelled(host: &str) -> String {
    match host.parse::<Ipv6Addr>() {
        Ok(ip) => ip.to_string(),
        Err(_) => host.to_ascii_lowercase(),
    }
}

/// The endpoints that queries may contact. An empty list allows none.
#[derive(Clone, Debug, Default)]
pub struct AllowList(Vec<Allowed>);

impl FromIterator<Allowed> for AllowList {
    fn from_iter<I: IntoIterator<Item = Allowed>>(list: I) -> Self {
        Self(list.into_iter().collect())
    }
}

/// Reason why an endpoint is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotAllowed {
    /// The endpoint's IRI is not an http or https URL with a host, or it contains a user name.
    #[error("it is not an http or https URL with a host")]
    NoUrl,
    /// The host is not on the list.
    #[error("{0} is not on the list of allowed addresses")]
    Host(String),
    /// The host's name resolves to an internal address, which is not on the list.
    #[error(
        "{0} resolves to {1}, an address of this machine or its own network; that address must be on the list of allowed addresses as well"
    )]
    Inside(String, IpAddr),
}

/// Scheme, host and port of an http or https URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UrlTarget {
    pub host: String,
    pub port: u16,
    /// True if the port is the scheme's default one.
    usual: bool,
}

impl UrlTarget {
    pub fn from_url(url: &Uri) -> Result<Self, NotAllowed> {
        let usual = match url.scheme_str() {
            Some("http") => 80,
            Some("https") => 443,
            _ => return Err(NotAllowed::NoUrl),
        };
        let authority = url.authority().ok_or(NotAllowed::NoUrl)?;
        let host = authority
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']');
        let host = spelled(host);
        if host.is_empty() || authority.as_str().contains('@') {
            return Err(NotAllowed::NoUrl);
        }
        let port = authority.port_u16().unwrap_or(usual);
        Ok(Self {
            host,
            port,
            usual: port == usual,
        })
    }
}

impl AllowList {
    fn has(&self, host: &str, target: &UrlTarget) -> bool {
        self.0
            .iter()
            .any(|a| a.host == host && a.port.map_or(target.usual, |p| p == target.port))
    }

    /// Checks that the URL's host and port are on the list.
    pub(crate) fn check(&self, url: &Uri) -> Result<UrlTarget, NotAllowed> {
        let target = UrlTarget::from_url(url)?;
        if self.has(&target.host, &target) {
            return Ok(target);
        }
        Err(NotAllowed::Host(format!("{}:{}", target.host, target.port)))
    }

    /// Checks that an address to which the target's name resolves may be contacted.
    pub(crate) fn check_address(
        &self,
        target: &UrlTarget,
        at: &SocketAddr,
    ) -> Result<(), NotAllowed> {
        let ip = at.ip();
        let named = || self.has(&ip.to_string(), target);
        // The name `localhost` states that it means this machine, so it is enough that the name is on the list.
        let says_so = target.host == "localhost" && ip.is_loopback();
        if !is_inside(ip) || says_so || named() {
            return Ok(());
        }
        Err(NotAllowed::Inside(target.host.clone(), ip))
    }
}

/// True for internal addresses, which refer to this machine or its own network: loopback, private and link-local ones,
/// multicast, and those reserved for special use.
fn is_inside(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => {
            let [a, b, ..] = ip.octets();
            ip.is_loopback()
                || ip.is_private()
                || ip.is_link_local()
                || ip.is_broadcast()
                || ip.is_multicast()
                || a == 0
                // Addresses that a provider's customers share (RFC 6598), addresses for benchmarks (RFC 2544), and
                // reserved ones (RFC 1112).
                || (a == 100 && (64..128).contains(&b))
                || (a == 198 && (b == 18 || b == 19))
                || a >= 240
        }
        IpAddr::V6(ip) => {
            let s = ip.segments();
            // IPv4 addresses embedded in IPv6 ones: mapped addresses, and those translated by a network (RFC 6052, RFC
            // 3056).
            let v4 = |a: u16, b: u16| {
                let ([a, b], [c, d]) = (a.to_be_bytes(), b.to_be_bytes());
                is_inside(IpAddr::from([a, b, c, d]))
            };
            ip.is_loopback()
                || ip.is_unspecified()
                || ip.is_multicast()
                || ip.is_unique_local()
                || ip.is_unicast_link_local()
                || (s[..5] == [0; 5] && (s[5] == 0 || s[5] == 0xffff) && v4(s[6], s[7]))
                || (s[..6] == [0x64, 0xff9b, 0, 0, 0, 0] && v4(s[6], s[7]))
                || (s[0] == 0x2002 && v4(s[1], s[2]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[&str]) -> AllowList {
        entries
            .iter()
            .map(|e| e.parse::<Allowed>().unwrap())
            .collect()
    }

    fn check(entries: &[&str], url: &str) -> Result<UrlTarget, NotAllowed> {
        list(entries).check(&url.parse().unwrap())
    }

    #[test]
    fn entries_are_hosts_with_or_without_port() {
        for bad in [
            "",
            ":80",
            "a b",
            "a:",
            "a:b",
            "a:70000",
            "[::1",
            "[x]:1",
            "http://a/",
            "a/b",
        ] {
            assert!(bad.parse::<Allowed>().is_err(), "{bad}");
        }
        assert_eq!("::1".parse::<Allowed>(), "[::1]".parse());
        assert_eq!(
            "Example.ORG:81".parse::<Allowed>(),
            "example.org:81".parse()
        );
    }

    #[test]
    fn only_named_hosts_and_ports_are_asked() {
        for (entry, url) in [
            ("example.org", "http://example.org/sparql"),
            ("example.org", "https://EXAMPLE.org:443/sparql?x=y"),
            ("example.org:8080", "https://example.org:8080"),
            ("127.0.0.1:7878", "http://127.0.0.1:7878/query"),
            ("[::1]:7878", "http://[::1]:7878/query"),
        ] {
            assert!(check(&[entry], url).is_ok(), "{entry} {url}");
        }
        for (entry, url) in [
            ("example.org", "http://example.org:8080/"),
            ("example.org", "http://example.org.evil.net/"),
            ("example.org", "http://a.example.org/"),
            ("example.org:80", "https://example.org/"),
            ("example.org", "http://example.org@evil.net/"),
            ("example.org", "http://user@example.org/"),
            ("example.org", "ftp://example.org/"),
            ("127.0.0.1", "http://127.0.0.1:7878/"),
        ] {
            assert!(check(&[entry], url).is_err(), "{entry} {url}");
        }
        assert!(check(&[], "http://example.org/").is_err());
    }

    #[test]
    fn a_name_that_leads_inside_needs_its_address_on_the_list() {
        let inside = [
            "127.0.0.1",
            "10.1.2.3",
            "172.20.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "0.0.0.0",
            "100.64.0.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "fd00::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "64:ff9b::10.0.0.1",
            "2002:7f00:1::",
        ];
        let outside = [
            "8.8.8.8",
            "172.32.0.1",
            "100.128.0.1",
            "2001:4860::1",
            "::ffff:8.8.8.8",
        ];
        let named = list(&["example.org"]);
        let target = named
            .check(&"http://example.org/".parse().unwrap())
            .unwrap();
        let at = |ip: &str| SocketAddr::new(ip.parse().unwrap(), 80);
        for ip in inside {
            assert!(named.check_address(&target, &at(ip)).is_err(), "{ip}");
            let both = list(&["example.org", ip]);
            assert!(both.check_address(&target, &at(ip)).is_ok(), "{ip}");
        }
        for ip in outside {
            assert!(named.check_address(&target, &at(ip)).is_ok(), "{ip}");
        }
        let local = list(&["localhost:80"]);
        let target = local.check(&"http://localhost/".parse().unwrap()).unwrap();
        assert!(local.check_address(&target, &at("127.0.0.1")).is_ok());
        assert!(local.check_address(&target, &at("10.0.0.1")).is_err());
    }
}
