//! Negotiation of formats and codings: Accept and Accept-Encoding with their weights (RFC 9110, section 12.5).

use http::HeaderMap;
use http::header::{ACCEPT, ACCEPT_ENCODING, AsHeaderName};
use jindou::ResultFormat;
use oxrdfio::RdfFormat;

/// A media type that the server offers, and its format.
pub(crate) type Offer = (&'static str, ResultFormat);

/// Formats offered for SELECT and ASK; a client without a preference gets the first one.
pub(crate) const TABLES: [Offer; 9] = [
    ("application/sparql-results+json", ResultFormat::Json),
    ("application/sparql-results+xml", ResultFormat::Xml),
    ("text/csv; charset=utf-8", ResultFormat::Csv),
    (
        "text/tab-separated-values; charset=utf-8",
        ResultFormat::Tsv,
    ),
    ("application/x-ndjson", ResultFormat::JsonLines),
    ("application/json", ResultFormat::Json),
    ("application/xml", ResultFormat::Xml),
    ("text/xml", ResultFormat::Xml),
    ("text/plain; charset=utf-8", ResultFormat::Tsv),
];

const JSON_LD: ResultFormat = ResultFormat::Rdf(RdfFormat::JsonLd {
    profile: oxrdfio::JsonLdProfileSet::empty(),
});

/// Formats offered for CONSTRUCT, DESCRIBE, graphs and the service description.
pub(crate) const GRAPHS: [Offer; 10] = [
    ("text/turtle", ResultFormat::Rdf(RdfFormat::Turtle)),
    (
        "application/n-triples",
        ResultFormat::Rdf(RdfFormat::NTriples),
    ),
    ("application/rdf+xml", ResultFormat::Rdf(RdfFormat::RdfXml)),
    ("application/ld+json", JSON_LD),
    ("application/n-quads", ResultFormat::Rdf(RdfFormat::NQuads)),
    ("application/trig", ResultFormat::Rdf(RdfFormat::TriG)),
    ("application/json", JSON_LD),
    ("application/xml", ResultFormat::Rdf(RdfFormat::RdfXml)),
    ("text/xml", ResultFormat::Rdf(RdfFormat::RdfXml)),
    (
        "text/plain; charset=utf-8",
        ResultFormat::Rdf(RdfFormat::NTriples),
    ),
];

/// Formats offered for CONSTRUCT and DESCRIBE: those for graphs, and those for rows of triples.
pub(crate) const GRAPH_ANSWERS: [Offer; 13] = {
    let mut all = [TABLES[2]; 13];
    let mut i = 0;
    while i < GRAPHS.len() {
        all[i] = GRAPHS[i];
        i += 1;
    }
    all[11] = TABLES[3];
    all[12] = TABLES[4];
    all
};

/// Formats offered for datasets.
pub(crate) const DATASETS: [Offer; 3] = [
    ("application/n-quads", ResultFormat::Rdf(RdfFormat::NQuads)),
    ("application/trig", ResultFormat::Rdf(RdfFormat::TriG)),
    ("application/ld+json", JSON_LD),
];

/// Formats offered for errors; true for JSON.
pub(crate) const PROBLEMS: [(&str, bool); 3] = [
    ("application/problem+json", true),
    ("application/json", true),
    ("text/plain; charset=utf-8", false),
];

/// Content coding of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    Identity,
    Gzip,
    Zstd,
}

impl Coding {
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            Self::Identity => None,
            Self::Gzip => Some("gzip"),
            Self::Zstd => Some("zstd"),
        }
    }
}

/// The items of a list header with their weights in thousandths, over all lines of the header. Items are compared
/// without regard to case.
fn weighted(headers: &HeaderMap, name: impl AsHeaderName) -> Vec<(&str, u16)> {
    let lines = headers.get_all(name);
    let items = lines
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','));
    items
        .filter_map(|item| {
            let mut parts = item.split(';').map(str::trim);
            let what = parts.next().filter(|w| !w.is_empty())?;
            let weight = parts
                .filter_map(|p| p.split_once('='))
                .find(|(k, _)| k.trim().eq_ignore_ascii_case("q"))
                .map_or(Some(1.0), |(_, q)| q.trim().parse::<f32>().ok())
                .filter(|q| (0.0..=1.0).contains(q))
                .unwrap_or(0.0);
            Some((what, (weight * 1000.0) as u16))
        })
        .collect()
}

/// The weight of a media type, which is that of the most specific range that matches it; 0 if none does.
fn weight(ranges: &[(&str, u16)], media: &str) -> u16 {
    let media = media.split(';').next().unwrap_or(media);
    let group = media.split('/').next().unwrap_or(media);
    let specific = |range: &str| {
        let whole_group = range.strip_suffix("/*");
        if range.eq_ignore_ascii_case(media) {
            3
        } else if whole_group.is_some_and(|g| g.eq_ignore_ascii_case(group)) {
            2
        } else {
            u8::from(range == "*/*")
        }
    };
    ranges
        .iter()
        .map(|(range, q)| (specific(range), *q))
        .filter(|(s, _)| *s > 0)
        .max_by_key(|(s, _)| *s)
        .map_or(0, |(_, q)| q)
}

/// The offer with the highest weight, the first one if several have it; `None` if the client accepts none of the
/// offers.
pub(crate) fn accept<T: Copy>(
    headers: &HeaderMap,
    offers: &[(&'static str, T)],
) -> Option<(&'static str, T)> {
    let ranges = weighted(headers, ACCEPT);
    if ranges.is_empty() {
        return offers.first().copied();
    }
    let mut best = None;
    let mut most = 0;
    for &offer in offers {
        let q = weight(&ranges, offer.0);
        if q > most {
            (best, most) = (Some(offer), q);
        }
    }
    best
}

/// True if the client requests this media type explicitly, rather than by a range such as `*/*`, and prefers no other
/// one.
pub(crate) fn names_type(headers: &HeaderMap, media: &str) -> bool {
    let ranges = weighted(headers, ACCEPT);
    let most = ranges.iter().map(|(_, q)| *q).max().unwrap_or(0);
    let named =
        |(range, q): &(&str, u16)| range.eq_ignore_ascii_case(media) && *q == most && most > 0;
    ranges.iter().any(named)
}

/// The offer that a parameter such as `format=csv` names, by a short name or a media type; `None` if nothing has that
/// name.
pub(crate) fn named(name: &str, offers: &[Offer]) -> Option<Offer> {
    let name = name.trim().to_ascii_lowercase();
    let media = |offer: &Offer| offer.0.split(';').next() == Some(&*name);
    if name.contains('/') && name != "rdf/xml" {
        return offers.iter().copied().find(media);
    }
    let wanted: ResultFormat = name.parse().ok()?;
    let suits = |offer: &Offer| match (offer.1, wanted) {
        (has, wanted) if has == wanted => true,
        // For graphs, the names of JSON and XML mean JSON-LD and RDF/XML.
        (JSON_LD, ResultFormat::Json) => true,
        (ResultFormat::Rdf(RdfFormat::RdfXml), ResultFormat::Xml) => true,
        _ => false,
    };
    offers.iter().copied().find(suits)
}

/// True if this is the name of a format for any kind of answer.
pub(crate) fn is_known(name: &str) -> bool {
    named(name, &TABLES).is_some() || named(name, &GRAPHS).is_some()
}

/// The media types of the offers, as a list for an error message.
pub(crate) fn names<T>(offers: &[(&'static str, T)]) -> String {
    let names = offers
        .iter()
        .map(|o| o.0.split(';').next().unwrap_or_default());
    names.collect::<Vec<_>>().join(", ")
}

/// The weights that the client gives to these codings, each with its aliases, and to an uncompressed answer.
fn weights<const N: usize>(headers: &HeaderMap, codings: [&[&str]; N]) -> ([u16; N], u16) {
    let items = weighted(headers, ACCEPT_ENCODING);
    let of = |names: &[&str]| {
        let is_named = |n: &str| names.iter().any(|name| n.eq_ignore_ascii_case(name));
        let named = items.iter().find(|(n, _)| is_named(n));
        let any = || items.iter().find(|(n, _)| *n == "*");
        named.or_else(any).map_or(0, |(_, q)| *q)
    };
    let identity = items
        .iter()
        .find(|(n, _)| n.eq_ignore_ascii_case("identity"));
    (codings.map(of), identity.map_or(1, |(_, q)| *q))
}

const GZIP: &[&str] = &["gzip", "x-gzip"];

/// The content coding that the client prefers; identity if it does not send Accept-Encoding.
pub(crate) fn coding(headers: &HeaderMap) -> Coding {
    let ([zstd, gzip], identity) = weights(headers, [&["zstd"], GZIP]);
    if zstd == 0 && gzip == 0 || identity > zstd.max(gzip) {
        Coding::Identity
    } else if zstd >= gzip {
        Coding::Zstd
    } else {
        Coding::Gzip
    }
}

/// True if the client accepts gzip and does not prefer an uncompressed answer.
pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let ([gzip], identity) = weights(headers, [GZIP]);
    gzip > 0 && gzip >= identity
}
