//! The analysis of command lines against bash, against the programs it knows, and against lists of lines.
#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod corpus;
mod jail;
mod lines;
mod oracle;
mod programs;
mod properties;
