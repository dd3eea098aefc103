//! `windlass sessions export`.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{anyhow, ensure};
use windlass::SessionStore;
use windlass::session_store::ExportFormat;

use super::{ExportArguments, check_written, print};
use crate::display;

pub(super) fn run(store: &SessionStore, wanted: &ExportArguments) -> anyhow::Result<()> {
    let session = store.find(&wanted.session)?;
    let ending = || wanted.output.as_deref()?.extension()?.to_str();
    let format = format_named(wanted.format.as_deref().or_else(ending));
    let Some(path) = wanted.output.as_ref().filter(|path| **path != *Path::new("-")) else {
        let stdout = &mut BufWriter::new(io::stdout().lock());
        return check_written(store.export(&session, format, stdout).and_then(|()| stdout.flush()));
    };
    ensure!(
        wanted.force || path.symlink_metadata().is_err(),
        "{} already exists. Give another file with -o, or add --force to overwrite it.",
        path.display()
    );
    to_file(path, |file| store.export(&session, format, file))
}

/// By its name, or by what a file that is named after it ends with.
fn format_named(name: Option<&str>) -> ExportFormat {
    match name {
        Some("md" | "markdown") => ExportFormat::Markdown,
        Some("json") => ExportFormat::Json,
        _ => ExportFormat::Text,
    }
}

/// Fills a private file and says where it is.
pub(crate) fn to_file(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    write_whole(path, fill)
        .map_err(|error| anyhow!("cannot write {}: {error}. Give another file with -o.", path.display()))?;
    print(&format!("{}\n", display::line(&path.to_string_lossy())))
}

/// Writes beside the file's place and puts it there when it is whole.
fn write_whole(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    if path.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    let mut buffered = BufWriter::new(file.as_file_mut());
    fill(&mut buffered)?;
    buffered.flush()?;
    drop(buffered);
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
