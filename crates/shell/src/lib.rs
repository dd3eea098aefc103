//! Pure analysis of shell command lines.
//!
//! The strict reading knows every command that would run, or says that it does not; the generous one finds every
//! command there may be. Permissions go by the first, refusals by the second. Nothing here runs or reads anything.

mod all_commands;
mod analysis;
mod delegation;
mod effect;
mod expansion;
mod names;
mod places;
mod strict;
mod visible;

pub use analysis::{
    Analysis, CommandDirectory, LineEffect, LinePath, ListedNames, LooseCommand, NameEnd, PipedNames,
    SearchFilter, StrictCommand, Word, analyse,
};
