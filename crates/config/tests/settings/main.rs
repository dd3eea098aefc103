//! Settings files: reading, merging, problems, trust and changes, on real files.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod change;
mod documents;
mod environment;
mod files;
mod limits;
mod machine;
mod places;
mod problems;
mod property;
mod trust;
