//! Queries over BSBM: the 12 of the explore use case (E1 to E12) and the 8 of the business intelligence use case (B1 to
//! B8), as specified except for two changes: E7 and E10 compare dates with an `xsd:dateTime`, the type of the data, and
//! B7 breaks ties before its inner LIMIT, since its answer would otherwise not be determined.

use crate::bsbm::{Bsbm, COUNTRIES, COUNTRY, TODAY, country};
use crate::date::Day;
use crate::queries::Instance;
use crate::random::SplitMix;

/// A query in which some constants are replaced by placeholders `%Name%`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Template {
    /// Short name, such as `E1`.
    pub name: &'static str,
    /// SPARQL without prefixes.
    pub text: &'static str,
}

macro_rules! templates {
    ($($name:literal)*) => {
        [$(Template {
            name: $name,
            text: include_str!(concat!("../../queries/bsbm/", $name, ".rq")),
        }),*]
    };
}

/// The explore use case: a consumer looks for a product.
pub const EXPLORE: [Template; 12] =
    templates!("E1" "E2" "E3" "E4" "E5" "E6" "E7" "E8" "E9" "E10" "E11" "E12");

/// The business intelligence use case: an analyst examines products, offers and reviews.
pub const BUSINESS: [Template; 8] = templates!("B1" "B2" "B3" "B4" "B5" "B6" "B7" "B8");

const PREFIXES: &str = "\
PREFIX bsbm: <http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/>
PREFIX export: <http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/export/>
PREFIX country: <http://downlode.org/rdf/iso-3166/countries#>
PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX foaf: <http://xmlns.com/foaf/0.1/>
PREFIX dc: <http://purl.org/dc/elements/1.1/>
PREFIX rev: <http://purl.org/stuff/rev#>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
";

impl Template {
    /// Creates `count` queries over some data; the same seed of the data gives the same queries. Product types are
    /// ancestors of a random product's type, from each level below the root in turn, so that queries read different
    /// amounts of data. Features are those of the product type or of an ancestor.
    pub fn instances(&self, data: &Bsbm, count: u32) -> Vec<Instance> {
        (0..count)
            .map(|number| Instance {
                name: format!("{}-{number}", self.name),
                template: self.name.to_owned(),
                text: format!("{PREFIXES}{}", self.fill(data, number)),
            })
            .collect()
    }

    fn fill(&self, data: &Bsbm, number: u32) -> String {
        let layout = data.layout();
        let mut random =
            SplitMix::stream(layout.seed, layout.query_stream(self.name), number.into());
        let any = &mut random;
        let iri = |iri: String| format!("<{iri}>");
        let product = any.below(layout.products());
        let path: Vec<u32> = layout.types.path(layout.leaf(product)).collect();
        // The path ends with the root. Levels are counted from 1, the children of the root.
        let level = 1 + number as usize % layout.types.depth() as usize;
        let product_type = path[path.len() - 1 - level];
        let features: Vec<u32> = layout
            .types
            .path(product_type)
            .flat_map(|t| layout.types.features_of(t))
            .collect();
        let month = TODAY.0 - 365 + any.below(300) as i32;
        let date = |day: i32| {
            let (y, m, d) = Day(day).date();
            format!("\"{y:04}-{m:02}-{d:02}\"^^xsd:date")
        };
        let label = data.label(any.below(layout.products()));
        let word = label.split(' ').next().unwrap_or_default().to_owned();
        let (y, m, d) = TODAY.date();
        let mut values = vec![
            ("%Product%", iri(layout.product_iri(product))),
            ("%ProductType%", iri(layout.type_iri(product_type))),
            ("%word%", word),
            (
                "%currentDate%",
                format!("\"{y:04}-{m:02}-{d:02}T00:00:00\"^^xsd:dateTime"),
            ),
            ("%Month0%", date(month)),
            ("%Month1%", date(month + 28)),
            ("%Month2%", date(month + 56)),
        ];
        for feature in ["%Feature1%", "%Feature2%", "%Feature3%"] {
            values.push((feature, iri(layout.feature_iri(*any.pick(&features)))));
        }
        for bound in ["%x%", "%y%"] {
            values.push((bound, any.range(1, 500).to_string()));
        }
        for which in ["%Country1%", "%Country2%"] {
            values.push((
                which,
                iri(format!("{COUNTRIES}{}", COUNTRY[country(any)].0)),
            ));
        }
        let review = any.below(layout.reviewers.things());
        values.push(("%Review%", iri(layout.review_iri(review))));
        let offer = any.below(layout.vendors.things());
        values.push(("%Offer%", iri(layout.offer_iri(offer))));
        let producer = any.below(layout.producers.len());
        values.push(("%Producer%", iri(layout.producer_iri(producer))));
        values
            .iter()
            .fold(self.text.to_owned(), |text, (name, value)| {
                text.replace(name, value)
            })
    }
}
