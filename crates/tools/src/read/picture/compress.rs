//! Writing pixels as a file of bounded size.

use std::fmt::Display;
use std::io::{Cursor, Write};

use image::codecs::jpeg::JpegEncoder;
use image::metadata::Orientation;
use image::{DynamicImage, ExtendedColorType, GrayAlphaImage, GrayImage, ImageResult, RgbImage, RgbaImage};

use super::decode::Pixels;
use super::scale::{PictureSize, scale_in_place};

/// Pictures above this size are compressed further.
pub(super) const BYTES_MAX: usize = 500_000;
const JPEG_QUALITIES: [u8; 4] = [80, 60, 40, 20];

/// Makes a file below the limit with the least loss: PNG if lossless, worse JPEG, fewer pixels.
pub(super) fn compress(
    pixels: Pixels,
    is_lossless: bool,
) -> Result<(Vec<u8>, &'static str, PictureSize), String> {
    let mut pixels = upright(pixels)?;
    if is_lossless && let Some(bytes) = write_capped(|to| write_png(&pixels, to))? {
        return Ok((bytes, "image/png", pixels.size));
    }
    put_on_white(&mut pixels);
    loop {
        for quality in JPEG_QUALITIES {
            if let Some(bytes) = write_capped(|to| write_jpeg(&pixels, quality, to))? {
                return Ok((bytes, "image/jpeg", pixels.size));
            }
        }
        let smaller = pixels.size.within((pixels.size.longer_edge() * 3 / 4).max(1));
        scale_in_place(&mut pixels.bytes, pixels.size, smaller, pixels.channels);
        pixels.size = smaller;
    }
}

/// Encoding again drops what the file said about how it is to be turned.
fn upright(mut pixels: Pixels) -> Result<Pixels, String> {
    if pixels.orientation == Orientation::NoTransforms {
        return Ok(pixels);
    }
    let (PictureSize { width, height }, bytes) = (pixels.size, std::mem::take(&mut pixels.bytes));
    let image = match pixels.channels {
        1 => GrayImage::from_raw(width, height, bytes).map(DynamicImage::from),
        2 => GrayAlphaImage::from_raw(width, height, bytes).map(DynamicImage::from),
        3 => RgbImage::from_raw(width, height, bytes).map(DynamicImage::from),
        _ => RgbaImage::from_raw(width, height, bytes).map(DynamicImage::from),
    };
    let mut image = image.ok_or("it has fewer pixels than it says")?;
    image.apply_orientation(pixels.orientation);
    let size = PictureSize { width: image.width(), height: image.height() };
    Ok(Pixels { size, bytes: image.into_bytes(), orientation: Orientation::NoTransforms, ..pixels })
}

/// A file as it is written; `None` if it is larger than the limit.
fn write_capped<E: Display>(
    write: impl FnOnce(&mut Cursor<&mut [u8]>) -> Result<(), E>,
) -> Result<Option<Vec<u8>>, String> {
    let mut bytes = vec![0; BYTES_MAX];
    let mut file = Cursor::new(&mut bytes[..]);
    let written = write(&mut file);
    let len = usize::try_from(file.position()).unwrap_or(BYTES_MAX);
    match written {
        Ok(()) => {
            bytes.truncate(len);
            Ok(Some(bytes))
        }
        Err(_) if len == BYTES_MAX => Ok(None),
        Err(error) => Err(format!("it cannot be compressed ({error})")),
    }
}

fn write_png(pixels: &Pixels, to: impl Write) -> Result<(), png::EncodingError> {
    let mut encoder = png::Encoder::new(to, pixels.size.width, pixels.size.height);
    encoder.set_color(match pixels.channels {
        1 => png::ColorType::Grayscale,
        2 => png::ColorType::GrayscaleAlpha,
        3 => png::ColorType::Rgb,
        _ => png::ColorType::Rgba,
    });
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    // In pieces: at once, the compressed form of everything would be in memory.
    let mut stream = writer.stream_writer()?;
    stream.write_all(&pixels.bytes)?;
    stream.finish()?;
    writer.finish()
}

fn write_jpeg(pixels: &Pixels, quality: u8, to: impl Write) -> ImageResult<()> {
    let colour = if pixels.channels == 1 { ExtendedColorType::L8 } else { ExtendedColorType::Rgb8 };
    let PictureSize { width, height } = pixels.size;
    JpegEncoder::new_with_quality(to, quality).encode(&pixels.bytes, width, height, colour)
}

/// JPEG has no transparency; paper is white. The pixels move together inside their own memory.
fn put_on_white(pixels: &mut Pixels) {
    if pixels.channels % 2 == 1 {
        return;
    }
    let blend = |value: u8, alpha: u8| {
        let (value, alpha) = (u32::from(value), u32::from(alpha));
        u8::try_from((value * alpha + 255 * (255 - alpha)) / 255).unwrap_or(u8::MAX)
    };
    let colours = pixels.channels - 1;
    let count = pixels.bytes.len() / pixels.channels;
    for pixel in 0..count {
        let (from, to) = (pixel * pixels.channels, pixel * colours);
        let alpha = pixels.bytes[from + colours];
        for colour in 0..colours {
            pixels.bytes[to + colour] = blend(pixels.bytes[from + colour], alpha);
        }
    }
    pixels.bytes.truncate(count * colours);
    pixels.channels = colours;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pixels(channels: usize, bytes: &[u8], orientation: Orientation) -> Pixels {
        let width = u32::try_from(bytes.len() / channels).unwrap();
        Pixels { size: PictureSize { width, height: 1 }, channels, bytes: bytes.to_vec(), orientation }
    }

    #[test]
    fn transparency_becomes_white() {
        let check = |channels, bytes: &[u8], expected: &[u8]| {
            let mut pixels = pixels(channels, bytes, Orientation::NoTransforms);
            put_on_white(&mut pixels);
            assert_eq!(pixels.bytes, expected);
        };
        check(4, &[0, 0, 0, 0, 1, 2, 3, 255], &[255, 255, 255, 1, 2, 3]);
        check(2, &[0, 0, 9, 255], &[255, 9]);
        check(3, &[1, 2, 3], &[1, 2, 3]);
    }

    #[test]
    fn pictures_are_turned_before_they_are_written() {
        for channels in 1..=4 {
            let bytes: Vec<u8> = (0..3).flat_map(|value| vec![value; channels]).collect();
            let turned = upright(pixels(channels, &bytes, Orientation::Rotate90)).unwrap();
            assert_eq!((turned.size.width, turned.size.height, &turned.bytes), (1, 3, &bytes));
        }
    }
}
