//! Turns an image file into pixels within a fixed amount of memory, one picture at a time. Most PNG files are decoded
//! row by row and scaled on the way. The others are decoded whole: what that takes is worked out from the header, and a
//! picture that would take too much is refused before its pixels are touched.

use std::io::{self, BufRead, Seek, SeekFrom};

use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits};
use png::Transformations;

use super::PictureOptions;
use super::jpeg_header::read_jpeg_header;
use super::scale::{PictureSize, Scaler, scale_in_place};
use crate::file::CANCELLED;

/// Memory for decoding one picture: enough for the 12 megapixels of an ordinary photo.
const MEMORY_BYTES_MAX: u64 = 45_000_000;
const EDGE_PX_MAX: u32 = 30_000;
/// Rows cost time, though no memory.
const PIXELS_MAX: u64 = 150_000_000;
/// What the PNG decoder may hold beside rows, such as colour profiles.
const PNG_EXTRAS_BYTES_MAX: usize = 8_000_000;

/// Rows of pixels with one byte per channel: grey, grey and alpha, RGB, or RGBA.
pub(super) struct Pixels {
    pub(super) size: PictureSize,
    pub(super) channels: usize,
    pub(super) bytes: Vec<u8>,
    /// How it is to be turned.
    pub(super) orientation: Orientation,
}

fn damage_text(error: impl std::fmt::Display) -> String {
    format!("it is damaged ({error})")
}

fn check_size(size: PictureSize, memory: u64) -> Result<(), String> {
    let PictureSize { width, height } = size;
    let advice = "scale it down through Bash first, for example with ImageMagick: `magick FILE -resize 2000x2000 SMALL`";
    if size.longer_edge() > EDGE_PX_MAX || size.pixels() > PIXELS_MAX {
        return Err(format!("its {width}×{height} pixels are too many; {advice}"));
    }
    if memory > MEMORY_BYTES_MAX {
        let (needed, max) = (memory.div_ceil(1_000_000), MEMORY_BYTES_MAX / 1_000_000);
        return Err(format!(
            "its {width}×{height} pixels would take {needed} MB of memory, more than the limit of {max} MB; \
             {advice}"
        ));
    }
    Ok(())
}

/// The size of a sound picture and its pixels, scaled; none if its file can stay and `can_keep` allows that.
pub(super) fn decode_png(
    reader: impl BufRead + Seek,
    can_keep: bool,
    options: &PictureOptions<'_>,
) -> Result<(PictureSize, Option<Pixels>), String> {
    let mut decoder = png::Decoder::new_with_limits(reader, png::Limits { bytes: PNG_EXTRAS_BYTES_MAX });
    decoder.set_transformations(Transformations::EXPAND | Transformations::STRIP_16);
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    let header = decoder.read_header_info().map_err(damage_text)?;
    let original = PictureSize { width: header.width, height: header.height };
    // Rows of such a file are spread over all of the picture.
    let interlaced = header.interlaced;
    check_size(original, if interlaced { original.pixels() * 4 } else { 0 })?;
    let mut reader = decoder.read_info().map_err(damage_text)?;
    let exif = reader.info().exif_metadata.as_ref();
    let orientation = exif.and_then(|exif| Orientation::from_exif_chunk(exif));
    let channels = reader.output_color_type().0.samples();
    let size = original.within(options.edge_px_max);
    let keep = can_keep && size == original;
    let len = usize::try_from(size.pixels()).unwrap_or(usize::MAX).saturating_mul(channels);
    let mut bytes = Vec::new();
    if interlaced {
        bytes = vec![0; reader.output_buffer_size().ok_or("its size is absurd")?];
        reader.next_frame(&mut bytes).map_err(damage_text)?;
        scale_in_place(&mut bytes, original, size, channels);
    } else {
        let mut scaler = Scaler::new(original, size, channels);
        bytes.reserve_exact(if keep { 0 } else { len });
        while let Some(row) = reader.next_row().map_err(damage_text)? {
            if !keep && scaler.push(row.data()) {
                bytes.extend_from_slice(&scaler.row);
            }
            if options.cancel.is_cancelled() {
                return Err(CANCELLED.to_owned());
            }
        }
    }
    if keep {
        reader.finish().map_err(damage_text)?;
        return Ok((original, None));
    }
    let orientation = orientation.unwrap_or(Orientation::NoTransforms);
    Ok((original, Some(Pixels { size, channels, bytes, orientation })))
}

/// As [`decode_png`], for a file of `bytes` in another format.
pub(super) fn decode_whole(
    mut reader: impl BufRead + Seek,
    bytes: u64,
    can_keep: bool,
    options: &PictureOptions<'_>,
) -> Result<(PictureSize, Option<Pixels>), String> {
    let bytes_per_pixel = match options.format {
        ImageFormat::Jpeg => {
            let (size, memory) = read_jpeg_header(&mut reader).map_err(damage_text)?;
            check_size(size, bytes + memory)?;
            0
        }
        ImageFormat::WebP => webp_bytes_per_pixel(&mut reader).map_err(damage_text)?,
        // The picture, and a frame that covers only a part of it.
        _ => 8,
    };
    reader.rewind().map_err(damage_text)?;
    let mut reader = ImageReader::with_format(reader, options.format);
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(MEMORY_BYTES_MAX);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(damage_text)?;
    let (width, height) = decoder.dimensions();
    let original = PictureSize { width, height };
    check_size(original, original.pixels() * bytes_per_pixel)?;
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let image = DynamicImage::from_decoder(decoder).map_err(damage_text)?;
    if options.cancel.is_cancelled() {
        return Err(CANCELLED.to_owned());
    }
    let size = original.within(options.edge_px_max);
    if can_keep && size == original {
        return Ok((original, None));
    }
    let (mut bytes, channels) = match image {
        DynamicImage::ImageLuma8(grey) => (grey.into_raw(), 1),
        DynamicImage::ImageRgb8(colour) => (colour.into_raw(), 3),
        other => (other.into_rgba8().into_raw(), 4),
    };
    scale_in_place(&mut bytes, original, size, channels);
    Ok((original, Some(Pixels { size, channels, bytes, orientation })))
}

/// What decoding takes depends on the kind of picture inside: the result, planes of colour or of alpha, a canvas.
fn webp_bytes_per_pixel(reader: &mut (impl BufRead + Seek)) -> io::Result<u64> {
    let mut kind = [0; 4];
    reader.seek(SeekFrom::Start(12))?;
    reader.read_exact(&mut kind)?;
    Ok(match &kind {
        b"VP8 " => 5,
        b"VP8L" => 8,
        _ => 13,
    })
}
