//! The lease on file systems without locks: a file that one process at a time can make, and what it says about its maker.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::{Busy, Lease, Owner, TRIES_MAX, busy, read_owner};

/// Takes the lease, or tells who holds it.
pub(super) fn take(path: &Path) -> io::Result<Result<Lease, Busy>> {
    let own = beside(path, "new");
    let file = write_own(&own)?;
    let taken = link(path, &own);
    let _ = fs::remove_file(&own);
    Ok(match taken? {
        Ok(taken_over) => Ok(Lease { path: path.to_owned(), file, taken_over }),
        Err(busy) => Err(busy),
    })
}

fn beside(path: &Path, what: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.{what}", std::process::id()));
    name.into()
}

fn write_own(own: &Path) -> io::Result<File> {
    let _ = fs::remove_file(own);
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(own)?;
    file.write_all(&Owner::this_process().to_line())?;
    Ok(file)
}

/// Gives our file the lock's name. The name is given to one of several that try; whether a dead owner had it is told.
fn link(path: &Path, own: &Path) -> io::Result<Result<bool, Busy>> {
    let mut taken_over = false;
    for _ in 0..TRIES_MAX {
        match fs::hard_link(own, path) {
            Ok(()) => return Ok(Ok(taken_over)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        let owner = File::open(path).ok().and_then(|mut file| read_owner(&mut file));
        if let Some(owner) = owner.clone().filter(Owner::is_alive) {
            return Ok(Err(busy(Some(owner))));
        }
        taken_over |= owner.is_some();
        move_away(path, owner.as_ref())?;
    }
    Err(io::Error::other("it is taken and removed again and again"))
}

/// Moves a dead owner's file away. If somebody else did that first and has the lease, it gets its file back.
fn move_away(path: &Path, dead: Option<&Owner>) -> io::Result<()> {
    let away = beside(path, "dead");
    match fs::rename(path, &away) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        moved => moved?,
    }
    let moved = File::open(&away).ok().and_then(|mut file| read_owner(&mut file));
    if moved.as_ref() != dead {
        fs::hard_link(&away, path)?;
    }
    fs::remove_file(&away)
}
