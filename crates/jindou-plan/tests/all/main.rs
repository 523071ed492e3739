//! Planning: the plans of known and of random queries. What plans mean is tested where they are executed: `jindou-engine --test queries`.

mod comparisons;
mod lubm;
mod random;
mod w3c;
