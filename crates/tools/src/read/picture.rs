//! Images: checked, scaled to what models take, and kept small.
//!
//! Every image is decoded before it is handed on, also one that needs no change: a broken image in a request would
//! make the provider refuse the whole conversation. Decoding is bounded in memory, whatever the file claims.

use std::borrow::Cow;
use std::io::Cursor;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use image::codecs::jpeg::JpegEncoder;
use image::imageops::FilterType;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits, Rgb, RgbImage};
use serde::Serialize;
use windlass_protocol::{Block, ToolOutcome};

use super::{Job, bytes};
use crate::content::STRUCTURED_BYTES_MAX;

/// Larger files are not even tried.
const FILE_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Memory for the decoded picture: enough for 60 megapixels.
const DECODED_BYTES_MAX: u64 = 256 * 1024 * 1024;
const EDGE_PX_MAX: u32 = 30_000;
/// Pictures above this size are compressed further.
const BYTES_MAX: usize = 500_000;
const JPEG_QUALITIES: [u8; 4] = [80, 60, 40, 20];

#[derive(Serialize)]
struct ImageOutput<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    file: ImageFile<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ImageFile<'a> {
    /// Left out when it is large; the block holds it anyway.
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<&'a str>,
    #[serde(rename = "type")]
    media_type: &'static str,
    original_size: u64,
    dimensions: Dimensions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Dimensions {
    original_width: u32,
    original_height: u32,
    display_width: u32,
    display_height: u32,
}

pub(super) fn read(mut job: Job<'_>, format: ImageFormat) -> Result<ToolOutcome, String> {
    let size = job.source.size;
    let read = job.source.all(FILE_BYTES_MAX);
    let Some(content) = read.map_err(|error| job.fail(format_args!("cannot be read: {error}.")))? else {
        return Err(job.fail(format_args!(
            "is an image of {}, larger than the {} that can be shown. Scale it down through Bash first.",
            bytes(size),
            bytes(FILE_BYTES_MAX as u64)
        )));
    };
    let picture = Picture::prepare(&content, format, job.limits.image_edge_px_max)
        .map_err(|error| job.fail(format_args!("cannot be shown as an image: {error}.")))?;
    let encoded = STANDARD.encode(&picture.bytes);
    let block = Block::image(picture.media_type, &encoded);
    let file = ImageFile {
        base64: (encoded.len() <= STRUCTURED_BYTES_MAX).then_some(&encoded),
        media_type: picture.media_type,
        original_size: size,
        dimensions: picture.dimensions,
    };
    Ok(ToolOutcome::blocks(vec![block]).with_structured(&ImageOutput { kind: "image", file }))
}

/// An image fit for a model.
pub(super) struct Picture<'a> {
    pub(super) bytes: Cow<'a, [u8]>,
    pub(super) media_type: &'static str,
    dimensions: Dimensions,
}

impl<'a> Picture<'a> {
    pub(super) fn prepare(content: &'a [u8], format: ImageFormat, edge_px_max: u32) -> Result<Self, String> {
        let (image, orientation) = decode(content, format)?;
        let (width, height) = (image.width(), image.height());
        let fits = width.max(height) <= edge_px_max;
        let kept = Dimensions {
            original_width: width,
            original_height: height,
            display_width: width,
            display_height: height,
        };
        if fits && content.len() <= BYTES_MAX {
            return Ok(Self {
                bytes: Cow::Borrowed(content),
                media_type: format.to_mime_type(),
                dimensions: kept,
            });
        }
        let mut image =
            if fits { image } else { image.resize(edge_px_max, edge_px_max, FilterType::Triangle) };
        // Encoding again drops what the file said about it.
        image.apply_orientation(orientation);
        let lossless = matches!(format, ImageFormat::Png | ImageFormat::Gif);
        let (bytes, media_type) = compress(&mut image, lossless)?;
        let dimensions = Dimensions { display_width: image.width(), display_height: image.height(), ..kept };
        Ok(Self { bytes: Cow::Owned(bytes), media_type, dimensions })
    }

    pub(super) fn block(&self) -> Block {
        Block::image(self.media_type, &STANDARD.encode(&self.bytes))
    }
}

fn decode(content: &[u8], format: ImageFormat) -> Result<(DynamicImage, Orientation), String> {
    let mut reader = ImageReader::with_format(Cursor::new(content), format);
    let mut limits = Limits::default();
    limits.max_image_width = Some(EDGE_PX_MAX);
    limits.max_image_height = Some(EDGE_PX_MAX);
    limits.max_alloc = Some(DECODED_BYTES_MAX);
    reader.limits(limits);
    let broken = |error: image::ImageError| match error {
        image::ImageError::Limits(_) => "it has too many pixels; scale it down through Bash first".to_owned(),
        error => format!("it is damaged ({error})"),
    };
    let mut decoder = reader.into_decoder().map_err(broken)?;
    if decoder.total_bytes() > DECODED_BYTES_MAX {
        return Err("it has too many pixels; scale it down through Bash first".to_owned());
    }
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let image = DynamicImage::from_decoder(decoder).map_err(broken)?;
    Ok((image, orientation))
}

/// The smallest loss that brings the picture below the limit: PNG if it was lossless, then JPEG of lower and lower
/// quality, and only then fewer pixels.
fn compress(image: &mut DynamicImage, lossless: bool) -> Result<(Vec<u8>, &'static str), String> {
    let failed = |error: image::ImageError| format!("it cannot be compressed ({error})");
    if lossless {
        let mut png = Vec::new();
        image.write_to(&mut Cursor::new(&mut png), ImageFormat::Png).map_err(failed)?;
        if png.len() <= BYTES_MAX {
            return Ok((png, "image/png"));
        }
    }
    loop {
        let opaque = on_white(image);
        let mut jpeg = Vec::new();
        for quality in JPEG_QUALITIES {
            jpeg.clear();
            JpegEncoder::new_with_quality(&mut jpeg, quality).encode_image(&opaque).map_err(failed)?;
            if jpeg.len() <= BYTES_MAX {
                return Ok((jpeg, "image/jpeg"));
            }
        }
        let (width, height) = (image.width() * 3 / 4, image.height() * 3 / 4);
        *image = image.resize(width.max(1), height.max(1), FilterType::Triangle);
    }
}

/// JPEG has no transparency; paper is white.
fn on_white(image: &DynamicImage) -> RgbImage {
    if !image.color().has_alpha() {
        return image.to_rgb8();
    }
    let image = image.to_rgba8();
    let blend = |value: u8, alpha: u8| {
        let (value, alpha) = (u32::from(value), u32::from(alpha));
        u8::try_from((value * alpha + 255 * (255 - alpha)) / 255).unwrap_or(u8::MAX)
    };
    RgbImage::from_fn(image.width(), image.height(), |x, y| {
        let [r, g, b, a] = image.get_pixel(x, y).0;
        Rgb([blend(r, a), blend(g, a), blend(b, a)])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(width: u32, height: u32) -> DynamicImage {
        let mut state = 1_u32;
        let mut next = move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        };
        RgbImage::from_fn(width, height, |_, _| Rgb([next(), next(), next()])).into()
    }

    fn encode(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
        let mut bytes = Vec::new();
        image.write_to(&mut Cursor::new(&mut bytes), format).unwrap();
        bytes
    }

    #[test]
    fn small_images_pass_unchanged() {
        let image = DynamicImage::new_rgb8(20, 10);
        for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Gif, ImageFormat::WebP] {
            let content = encode(&image, format);
            let picture = Picture::prepare(&content, format, 2576).unwrap();
            assert_eq!((&*picture.bytes, picture.media_type), (&*content, format.to_mime_type()));
        }
    }

    #[test]
    fn large_images_are_scaled_and_compressed() {
        let check = |image: &DynamicImage, edge, expected: (u32, u32), media_type: &str| {
            let content = encode(image, ImageFormat::Png);
            let picture = Picture::prepare(&content, ImageFormat::Png, edge).unwrap();
            let format = ImageFormat::from_mime_type(picture.media_type).unwrap();
            let (shown, _) = decode(&picture.bytes, format).unwrap();
            assert_eq!(((shown.width(), shown.height()), picture.media_type), (expected, media_type));
            assert!(picture.bytes.len() <= BYTES_MAX);
            let dimensions = picture.dimensions;
            assert_eq!((dimensions.original_width, dimensions.display_width), (image.width(), expected.0));
        };
        check(&DynamicImage::new_rgb8(400, 100), 200, (200, 50), "image/png");
        check(&noise(600, 500), 2576, (600, 500), "image/jpeg");
        check(&noise(900, 300), 450, (450, 150), "image/png");
    }

    #[test]
    fn noise_that_no_quality_fits_gets_fewer_pixels() {
        let content = encode(&noise(1500, 1500), ImageFormat::Png);
        let picture = Picture::prepare(&content, ImageFormat::Png, 2576).unwrap();
        assert!(picture.bytes.len() <= BYTES_MAX);
    }

    #[test]
    fn bombs_and_damage_are_refused() {
        let check = |content: &[u8], expected: &str| {
            let error = Picture::prepare(content, ImageFormat::Png, 2576).err().unwrap();
            assert!(error.contains(expected), "{error}");
        };
        let mut png = encode(&DynamicImage::new_rgb8(4, 4), ImageFormat::Png);
        check(&png[..png.len() - 20], "damaged");
        check(&png[..10], "damaged");
        // Width and height in the header, with the checksum that belongs to them.
        png[16..24].copy_from_slice(&[0, 0, 0x70, 0, 0, 0, 0x70, 0]);
        let crc = crc(&png[12..29]);
        png[29..33].copy_from_slice(&crc.to_be_bytes());
        check(&png, "too many pixels");
    }

    fn crc(bytes: &[u8]) -> u32 {
        let step = |crc: u32, byte: &u8| {
            (0..8)
                .fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
        };
        !bytes.iter().fold(u32::MAX, step)
    }

    #[test]
    fn transparency_becomes_white() {
        let image = DynamicImage::new_rgba8(1, 1);
        assert_eq!(on_white(&image).get_pixel(0, 0).0, [255, 255, 255]);
    }
}
