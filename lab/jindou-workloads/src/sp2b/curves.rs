//! The curves and tables that SP²Bench published.

use crate::random::SplitMix;
use crate::real::exp;

/// Classes of documents, in the order in which the documents of a year are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DocumentClass {
    Journal,
    Article,
    Proceedings,
    Inproceedings,
    Book,
    Incollection,
    PhdThesis,
    MastersThesis,
    Www,
}

impl DocumentClass {
    pub(super) const ALL: [Self; 9] = [
        Self::Journal,
        Self::Article,
        Self::Proceedings,
        Self::Inproceedings,
        Self::Book,
        Self::Incollection,
        Self::PhdThesis,
        Self::MastersThesis,
        Self::Www,
    ];
}

/// Defines a struct of a document's attributes, and its values for each class, which are in the order of the classes.
macro_rules! attributes {
    ($($attribute:ident: $($share:literal)*;)*) => {
        /// Probability of each attribute for documents of one class.
        #[derive(Clone, Copy, Debug, Default)]
        pub(super) struct AttributeShares {
            $(pub(super) $attribute: f64,)*
        }

        impl DocumentClass {
            /// The probabilities of this class's attributes. Titles are not included, since every document has one.
            pub(super) const fn attributes(self) -> AttributeShares {
                const CLASSES: usize = DocumentClass::ALL.len();
                AttributeShares {
                    $($attribute: {
                        const SHARES: [f64; CLASSES] = [$($share),*];
                        SHARES[self as usize]
                    },)*
                }
            }
        }
    };
}

attributes! {
    //         Journal Article Proceedings Inproc. Book   Incoll. PhdThesis Masters Www
    summary:   0.0     0.01    0.0         0.01    0.0    0.0     0.0       0.0     0.0;
    address:   0.0     0.0     0.0004      0.0     0.0    0.0     0.0       0.0     0.0;
    author:    0.0     0.9895  0.0001      0.997   0.8937 0.8459  1.0       1.0     0.9973;
    booktitle: 0.0     0.0006  0.9579      1.0     0.0183 1.0     0.0       0.0     0.0001;
    cdrom:     0.0     0.0112  0.0         0.0162  0.0032 0.0138  0.0       0.0     0.0;
    chapter:   0.0     0.0     0.0         0.0     0.0    0.0005  0.0       0.0     0.0;
    cite:      0.0     0.0048  0.0001      0.0104  0.0079 0.0047  0.0       0.0     0.0;
    crossref:  0.0     0.0006  0.0016      0.8003  0.0    0.6951  0.0       0.0     0.0;
    editor:    0.7     0.0     0.7992      0.0     0.104  0.0     0.0       0.0     0.0004;
    ee:        0.0     0.6781  0.0019      0.6519  0.0079 0.361   0.1444    0.0     0.0;
    isbn:      0.0     0.0     0.8592      0.0     0.9294 0.0073  0.0222    0.0     0.0;
    journal:   0.0     0.9994  0.0004      0.0     0.0    0.0     0.0       0.0     0.0;
    month:     0.0     0.0065  0.0001      0.0     0.0008 0.0     0.0333    0.0     0.0;
    note:      0.0     0.0297  0.0002      0.0     0.0    0.0     0.0       0.0     0.0273;
    number:    0.9224  0.0     0.0009      0.0001  0.0    0.0     0.0333    0.0     0.0;
    pages:     0.0     0.9261  0.0         0.9489  0.0    0.6849  0.0       0.0     0.0;
    publisher: 0.0     0.0006  0.9737      0.0     0.9992 0.0237  0.0444    0.0     0.0;
    school:    0.0     0.0     0.0         0.0     0.0    0.0     1.0       1.0     0.0;
    series:    0.0     0.0     0.5791      0.0     0.5365 0.0     0.0222    0.0     0.0;
    url:       0.0     0.9986  0.986       1.0     0.2373 0.9992  0.0222    0.375   0.9624;
    volume:    0.9982  0.0     0.567       0.0     0.5024 0.0     0.0111    0.0     0.0;
    year:      1.0     0.0     1.0         1.0     1.0    1.0     1.0       1.0     0.0011;
}

/// a / (1 + b · e^(−c · (year − from))) + d
fn logistic(year: u32, [a, b, c, d]: [f64; 4], from: u32) -> f64 {
    a / (1.0 + b * exp(-c * (f64::from(year) - f64::from(from)))) + d
}

/// A year, with the numbers that depend on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Year(pub(super) u32);

impl Year {
    /// Number of documents of a class in the year; 0 for theses and web pages, whose number is drawn at random.
    pub(super) fn documents(self, class: DocumentClass) -> u32 {
        let curve = |a, b, c, from| logistic(self.0, [a, b, c, 0.0], from).round() as u32;
        match class {
            DocumentClass::Journal => curve(740.43, 426.28, 0.12, 1950),
            DocumentClass::Article if self.documents(DocumentClass::Journal) > 0 => {
                curve(58_519.12, 876.80, 0.12, 1950)
            }
            DocumentClass::Proceedings => curve(5_502.31, 1_250.26, 0.14, 1965),
            DocumentClass::Inproceedings if self.documents(DocumentClass::Proceedings) > 0 => {
                curve(337_132.34, 1_901.05, 0.15, 1965)
            }
            DocumentClass::Book => curve(52.97, 40_739.38, 0.32, 1950),
            DocumentClass::Incollection => curve(3_577.31, 196.49, 0.091, 1980),
            _ => 0,
        }
    }

    /// Number of different authors in `slots` author positions.
    pub(super) fn different(self, slots: u32) -> u32 {
        let part = logistic(self.0, [-0.667, 169.41, 0.0714, 0.84], 1936);
        (part * f64::from(slots)).round() as u32
    }

    /// Number of those among `different` authors who write for the first time.
    pub(super) fn first_time(self, different: u32) -> u32 {
        let part = logistic(self.0, [-0.293, 1740.0, 0.136, 0.628], 1936);
        (part * f64::from(different)).round() as u32
    }
}

/// Mean and standard deviation of the number of authors of a document.
pub(super) fn authors_mean_deviation(year: u32) -> (f64, f64) {
    (
        logistic(year, [2.05, 17.59, 0.11, 1.05], 1975),
        logistic(year, [1.0, 6.46, 0.10, 0.50], 1975),
    )
}

/// A random number up to `most` from 1980 on; 0 before.
pub(super) fn random_count(year: u32, most: u32, random: &mut SplitMix) -> u32 {
    if year < 1980 {
        0
    } else {
        random.range(0, most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The curves were fitted to DBLP. In figure 2 of the paper, 2000 has about 30,000 articles and 60,000 papers in
    /// proceedings.
    #[test]
    fn documents_grow_as_they_did() {
        assert_eq!(Year(1936).documents(DocumentClass::Article), 0);
        assert_eq!(Year(1940).documents(DocumentClass::Journal), 1);
        let articles = Year(2000).documents(DocumentClass::Article);
        let papers = Year(2000).documents(DocumentClass::Inproceedings);
        assert!((15_000..35_000).contains(&articles), "{articles}");
        assert!((25_000..70_000).contains(&papers), "{papers}");
    }
}
