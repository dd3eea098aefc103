//! How many lines two contents differ in.

use std::hash::{DefaultHasher, Hasher as _};
use std::io::{self, BufRead as _, BufReader, Read};
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp};

/// Comparing stops here and counts more coarsely.
const COMPARE_TIME_MAX: Duration = Duration::from_millis(200);
/// A zero byte in the first part tells a content that has no lines.
const LOOKED_AT_BYTES: usize = 8 << 10;
/// Longer contents count as one that has no lines.
const LINES_MAX: usize = 2_000_000;

/// A hash for each line; none for a content without lines. A part of it is in memory at a time.
pub(crate) fn hashes(content: Option<impl Read>) -> io::Result<Vec<u64>> {
    let Some(content) = content else { return Ok(Vec::new()) };
    let mut reader = BufReader::with_capacity(LOOKED_AT_BYTES, content);
    if reader.fill_buf()?.contains(&0) {
        return Ok(Vec::new());
    }
    let mut hashes = Vec::new();
    let mut line = DefaultHasher::new();
    let mut pending = false;
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            break;
        }
        let end = memchr::memchr(b'\n', buffer);
        let taken = end.map_or(buffer.len(), |end| end + 1);
        line.write(&buffer[..taken]);
        pending = end.is_none();
        if !pending {
            hashes.push(std::mem::take(&mut line).finish());
        }
        reader.consume(taken);
        if hashes.len() > LINES_MAX {
            return Ok(Vec::new());
        }
    }
    if pending {
        hashes.push(line.finish());
    }
    Ok(hashes)
}

/// Lines that come, and lines that go, from one content to another.
pub(crate) fn compare(old: &[u64], new: &[u64]) -> (u64, u64) {
    let deadline = Instant::now() + COMPARE_TIME_MAX;
    let (mut insertions, mut deletions) = (0, 0);
    for op in similar::capture_diff_slices_deadline(Algorithm::Myers, old, new, Some(deadline)) {
        match op {
            DiffOp::Equal { .. } => {}
            DiffOp::Insert { new_len, .. } => insertions += new_len as u64,
            DiffOp::Delete { old_len, .. } => deletions += old_len as u64,
            DiffOp::Replace { old_len, new_len, .. } => {
                insertions += new_len as u64;
                deletions += old_len as u64;
            }
        }
    }
    (insertions, deletions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted() {
        let check = |old: &[u8], new: &[u8], expected: (u64, u64)| {
            let (old_hashes, new_hashes) = (hashes(Some(old)).unwrap(), hashes(Some(new)).unwrap());
            assert_eq!(compare(&old_hashes, &new_hashes), expected, "{old:?} {new:?}");
        };
        check(b"", b"", (0, 0));
        check(b"a\nb\n", b"a\nb\n", (0, 0));
        check(b"a\nb\nc\n", b"a\nx\nc\n", (1, 1));
        check(b"", b"a\nb", (2, 0));
        check(b"a\n", b"a\r\n", (1, 1));
        check(b"a\n\0", b"b\n", (1, 0));
        check(&vec![b'x'; 100_000], b"x\n", (1, 1));
    }
}
