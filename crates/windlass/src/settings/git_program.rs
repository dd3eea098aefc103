//! The git that may be asked about a repository: none before trust, and never one that came with the project.

use windlass_config::{ProcessContext, SettingsFiles};
use windlass_sandbox::{child_environment, distrust};
use windlass_session::GitProgram;

use super::SettingsFlags;

/// The user's git with an environment like that of commands: without secrets, and with no `PATH` into the project.
pub(super) fn program(files: &SettingsFiles) -> Option<GitProgram> {
    let places = &files.places;
    let mut environment = child_environment(std::env::vars_os(), &[], places.root());
    let inside =
        [places.root(), &places.start].map(|path| path.canonicalize().unwrap_or_else(|_| path.into()));
    distrust(&mut environment, &inside);
    GitProgram::find(environment)
}

/// The same where nobody is asked for trust: none unless it was given, or nothing of the project needs it.
pub fn if_trusted(place: &ProcessContext) -> Option<GitProgram> {
    let said = SettingsFlags { headless: true, ..SettingsFlags::default() };
    let (files, home) = super::files(said, place).ok()?;
    let (is_trusted, _) = super::decide_trust(&files, &home, said, super::nobody_agrees).ok()?;
    if is_trusted { program(&files) } else { None }
}
