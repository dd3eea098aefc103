//! Finds secrets in text, known values and well-known shapes, and hides them.
//!
//! [`Redactor::redact`] takes out values the engine itself knows, in whatever form they were printed, and then what has the
//! shape of a secret. What stands for a secret says which kind it was and nothing else. Ordinary text, code, hashes,
//! ids and pictures are left as they are, byte for byte, and cost next to nothing.
//!
//! Each finder has a file: [`prefixes`] (tokens that say whose they are), [`parts`] (tokens made of parts), [`pem`],
//! [`headers`] (and passwords in addresses), [`assignments`] (a telling name beside a random value), [`known_values`].

mod assignments;
mod headers;
mod known_values;
mod parts;
mod pem;
mod prefixes;
mod redactor;
mod span;
mod words;

pub use redactor::Redactor;
