//! What a JPEG file says about itself before its pixels: as much as is needed to know what decoding will take.

use std::io::{self, BufRead, Read, Seek, SeekFrom};

use super::scale::PictureSize;

/// What the start of a frame says.
struct Frame {
    size: PictureSize,
    channels: u64,
    /// Coefficients for one pixel, in units of 1/`full`: planes of colour are often coarser.
    coefficients: u64,
    full: u64,
    is_progressive: bool,
}

/// Reads up to the first scan: the size, and the bytes for pixels, and for all coefficients if they have to be collected first.
pub(super) fn read_jpeg_header(reader: &mut (impl BufRead + Seek)) -> io::Result<(PictureSize, u64)> {
    let mut frame = None;
    reader.seek(SeekFrom::Start(2))?;
    loop {
        let marker = next_marker(reader)?;
        // These stand alone.
        if matches!(marker, 0x01 | 0xd0..=0xd8) {
            continue;
        }
        let mut length = [0; 2];
        reader.read_exact(&mut length)?;
        let length = i64::from(u16::from_be_bytes(length)) - 2;
        match (marker, &frame) {
            (0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf, _) => {
                let found = Frame::read(reader, matches!(marker, 0xc2 | 0xc6 | 0xca | 0xce))?;
                reader.seek_relative(length - 6 - 3 * i64::try_from(found.channels).unwrap_or(0))?;
                frame = Some(found);
            }
            (0xda, Some(frame)) => {
                let mut channels_in_scan = [0];
                reader.read_exact(&mut channels_in_scan)?;
                return Ok((frame.size, frame.memory(u64::from(channels_in_scan[0]))));
            }
            (0xda | 0xd9, _) => return Err(io::Error::other("it has no image data")),
            _ => reader.seek_relative(length)?,
        }
    }
}

impl Frame {
    fn read(reader: &mut impl Read, is_progressive: bool) -> io::Result<Self> {
        let mut fixed = [0; 6];
        reader.read_exact(&mut fixed)?;
        let [_, h1, h0, w1, w0, channels] = fixed;
        let size = PictureSize {
            width: u32::from(u16::from_be_bytes([w1, w0])),
            height: u32::from(u16::from_be_bytes([h1, h0])),
        };
        let (mut sum, mut across, mut down) = (0, 1, 1);
        for _ in 0..channels {
            let mut channel = [0; 3];
            reader.read_exact(&mut channel)?;
            let (x, y) = (u64::from(channel[1] >> 4), u64::from(channel[1] & 15));
            sum += x * y;
            across = across.max(x);
            down = down.max(y);
        }
        Ok(Self { size, channels: channels.into(), coefficients: sum, full: across * down, is_progressive })
    }

    fn memory(&self, channels_in_scan: u64) -> u64 {
        let pixels = self.size.pixels();
        let collected = self.is_progressive || channels_in_scan < self.channels;
        let coefficients = if collected { pixels * self.coefficients * 2 / self.full } else { 0 };
        pixels * self.channels.max(1) + coefficients
    }
}

/// Anything up to the next marker is skipped, as decoders do.
fn next_marker(reader: &mut impl BufRead) -> io::Result<u8> {
    loop {
        reader.skip_until(0xff)?;
        let mut byte = [0xff];
        while byte[0] == 0xff {
            reader.read_exact(&mut byte)?;
        }
        if byte[0] != 0 {
            return Ok(byte[0]);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// A file of a comment, a frame of 100×50 pixels with these channels, and the start of a scan.
    fn file(marker: u8, sampling: &[u8], channels_in_scan: u8) -> Vec<u8> {
        let count = u8::try_from(sampling.len()).unwrap();
        let mut bytes = b"\xff\xd8\xff\xfe\0\x06\xff\xc2ab".to_vec();
        bytes.extend_from_slice(&[0xff, marker, 0, 8 + 3 * count, 8, 0, 50, 0, 100, count]);
        for sampling in sampling {
            bytes.extend_from_slice(&[1, *sampling, 0]);
        }
        bytes.extend_from_slice(&[0xff, 0xff, 0xda, 0, 8, channels_in_scan]);
        bytes
    }

    #[test]
    fn the_memory_follows_from_the_kind() {
        let check = |bytes: &[u8], expected: u64| {
            let header = read_jpeg_header(&mut Cursor::new(bytes)).unwrap();
            assert_eq!(header, (PictureSize { width: 100, height: 50 }, expected));
        };
        check(&file(0xc0, &[0x11], 1), 5000);
        check(&file(0xc0, &[0x22, 0x11, 0x11], 3), 15_000);
        check(&file(0xc0, &[0x11, 0x11, 0x11], 1), 15_000 + 30_000);
        check(&file(0xc2, &[0x11, 0x11, 0x11], 3), 15_000 + 30_000);
        check(&file(0xc2, &[0x22, 0x11, 0x11], 3), 15_000 + 15_000);
    }

    #[test]
    fn what_is_cut_short_is_an_error() {
        let whole = file(0xc0, &[0x22, 0x11, 0x11], 3);
        for end in 0..whole.len() {
            assert!(read_jpeg_header(&mut Cursor::new(&whole[..end])).is_err(), "{end}");
        }
        assert!(read_jpeg_header(&mut Cursor::new(b"\xff\xd8\xff\xd9\0\x02")).is_err());
    }
}
