//! The log of a session on disk: append, read, list, repair, fork.
//!
//! One JSONL file per session holds everything that was said, decided and done. It is only ever appended to, and it can always
//! be read: what is damaged is skipped and reported, never fatal. This crate never interprets what it stores.

mod catalogue;
mod glance;
mod index;
mod layout;
mod repository;
mod time;

pub use catalogue::{Catalogue, FindError, Scope, SessionInfo, Wanted};
pub use layout::{Layout, SessionPaths, create_private};
pub use repository::{Identity, Repository};
