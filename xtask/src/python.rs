//! The Python packages that tests call: pinned, in an environment of their own beside what cargo builds.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::cargo::{root, say, target_folder, works};

/// What is installed, relative to the workspace.
const REQUIREMENTS: &str = "crates/cli/tests/python/requirements.txt";

/// The environment, in the target directory. The tests look for it there.
const ENVIRONMENT: &str = "python";

/// Makes the environment unless it is there as it should be, and tells whether tests can go ahead. Without Python, or without
/// a way to get packages, only continuous integration does not.
pub(crate) fn set_up() -> Result<bool> {
    let wanted = std::fs::read_to_string(root().join(REQUIREMENTS))
        .with_context(|| format!("cannot read {REQUIREMENTS}"))?;
    let environment = target_folder()?.join(ENVIRONMENT);
    if is_ready(&environment, &wanted) {
        return Ok(true);
    }
    let made = make(&environment)?;
    if made {
        std::fs::write(stamp(&environment), wanted)?;
        return Ok(true);
    }
    let strict = std::env::var_os("CI").is_some();
    if !strict {
        say("the tests that need the packages will be skipped");
    }
    Ok(!strict)
}

/// The file that is written when everything is in place: a copy of what was asked for.
fn stamp(environment: &Path) -> std::path::PathBuf {
    environment.join("requirements.txt")
}

fn is_ready(environment: &Path, wanted: &str) -> bool {
    let mut python = Command::new(environment.join("bin/python"));
    python.arg("--version");
    std::fs::read_to_string(stamp(environment)).is_ok_and(|found| found == wanted) && works(python)
}

fn make(environment: &Path) -> Result<bool> {
    let mut venv = Command::new("python3");
    venv.args(["-m", "venv", "--clear"]).arg(environment);
    match venv.status() {
        Ok(status) if status.success() => {}
        Ok(_) => {
            say("python3 cannot create an environment: install its module venv (Debian: python3-venv)");
            return Ok(false);
        }
        Err(error) => {
            say(&format!("cannot run python3: {error}"));
            return Ok(false);
        }
    }
    let mut pip = Command::new(environment.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"])
        // As source it is small; built packages bring an engine of several hundred megabytes along.
        .args(["--no-binary", "claude-agent-sdk", "--requirement", REQUIREMENTS])
        .current_dir(root());
    let installed = pip.status()?.success();
    if !installed {
        say("pip could not install the Python packages; see its output above");
    }
    Ok(installed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_is_ready_when_it_was_made_for_just_this() -> Result<()> {
        let folder = std::env::temp_dir().join(format!("windlass-xtask-python-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("bin"))?;
        std::os::unix::fs::symlink("/bin/true", folder.join("bin/python"))?;
        let ready = |wanted: &str| is_ready(&folder, wanted);
        assert!(!ready("a==1"), "nothing says that it is complete");
        std::fs::write(stamp(&folder), "a==1")?;
        assert!(ready("a==1") && !ready("a==2"));
        std::fs::remove_file(folder.join("bin/python"))?;
        assert!(!ready("a==1"), "its Python is gone");
        std::fs::remove_dir_all(folder)?;
        Ok(())
    }
}
