//! `windlass sessions export`.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{anyhow, ensure};
use windlass_config::Settings;
use windlass_secrets::Redactor;
use windlass_session::{ExportFormat, SessionInfo, export};

use super::{ExportWanted, Ground, print, written};
use crate::display;

pub(super) fn run(ground: &Ground, wanted: &ExportWanted) -> anyhow::Result<()> {
    let session = ground.find(&wanted.session)?;
    let ending = || wanted.output.as_deref()?.extension()?.to_str();
    let format = format_named(wanted.format.as_deref().or_else(ending));
    let redactor = redactor(&ground.settings);
    let Some(path) = wanted.output.as_ref().filter(|path| **path != *Path::new("-")) else {
        let stdout = &mut BufWriter::new(io::stdout().lock());
        return written(write(&session, format, &redactor, stdout).and_then(|()| stdout.flush()));
    };
    ensure!(
        wanted.force || path.symlink_metadata().is_err(),
        "{} already exists. Give another file with -o, or add --force to overwrite it.",
        path.display()
    );
    to_file(path, |file| write(&session, format, &redactor, file))
        .map_err(|error| anyhow!("cannot write {}: {error}. Give another file with -o.", path.display()))?;
    print(&format!("{}\n", display::line(&path.to_string_lossy())))
}

fn write(
    session: &SessionInfo,
    format: ExportFormat,
    redactor: &Redactor,
    to: &mut dyn Write,
) -> io::Result<()> {
    match format {
        ExportFormat::Json => {
            export(session, format, &|text: &str| redactor.redact_json(text), &mut Escaped(to))
        }
        // Whoever prints it must not be at the mercy of what a tool wrote.
        ExportFormat::Text | ExportFormat::Markdown => {
            export(session, format, &|text| display::paragraph(&redactor.redact_json(text)).into(), to)
        }
    }
}

/// What is known to be secret here, besides everything that looks like it.
pub(crate) fn redactor(settings: &Settings) -> Redactor {
    Redactor::new(settings.api.secrets())
}

/// By its name, or by what a file that is named after it ends with.
fn format_named(name: Option<&str>) -> ExportFormat {
    match name {
        Some("md" | "markdown") => ExportFormat::Markdown,
        Some("json") => ExportFormat::Json,
        _ => ExportFormat::Text,
    }
}

/// Writes a private file beside its place and puts it there when it is whole.
pub(crate) fn to_file(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
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

/// JSON on its way to whatever prints it.
struct Escaped<'a>(&'a mut dyn Write);

impl Write for Escaped<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Every piece is a text of its own: it comes out of the formatter.
        self.0.write_all(display::escaped(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
