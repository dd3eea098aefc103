//! Running cargo and other commands in the workspace.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

/// Prints a line. The output of cargo goes to the same place, so what is said must be out before cargo runs.
pub(crate) fn say(line: &str) {
    let mut stdout = std::io::stdout().lock();
    // Nobody is left to be told when stdout is closed.
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let xtask = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().map_or_else(|| xtask.clone(), PathBuf::from)
}

/// A cargo command at the root of the workspace.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(root());
    command
}

/// What a command prints; an error if it fails.
pub(crate) fn output(mut command: Command) -> Result<String> {
    let shown = format!("{command:?}");
    let output = command.stderr(Stdio::inherit()).output().with_context(|| format!("cannot run {shown}"))?;
    if !output.status.success() {
        bail!("{shown} failed ({})", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("{shown} printed something that is not text"))
}

/// Where cargo puts what it builds.
pub(crate) fn target_folder() -> Result<PathBuf> {
    let metadata = output(cargo(&["metadata", "--format-version", "1", "--no-deps"]))?;
    let metadata: Value = serde_json::from_str(&metadata).context("cargo metadata printed no JSON")?;
    let folder = metadata["target_directory"].as_str().context("cargo metadata names no target directory")?;
    Ok(folder.into())
}

/// Whether a command can be run at all.
pub(crate) fn works(mut command: Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
