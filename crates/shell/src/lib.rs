//! Pure analysis of shell command lines.
//!
//! [`analyse`] reads a line in two ways that fail in opposite directions: the strict one knows every command that would run, or
//! says that it does not; the generous one finds every command there may be. Grants go by the first, refusals by the second.
//! Nothing here runs a command or touches the file system.

mod all_commands;
mod analysis;
mod delegation;
mod effect;
mod expansion;
mod names;
mod places;
mod search;
mod strict;
mod visible;

pub use analysis::{
    Analysis, LineEffect, LinePath, ListedNames, LooseCommand, NameEnd, Only, PipedNames, Place,
    StrictCommand, Word, analyse,
};
