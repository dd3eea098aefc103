//! Images: checked, scaled to what models take, and kept small. Every image is decoded before it is handed on: a broken
//! one would make the provider refuse the whole conversation. Memory is bounded, whatever the file claims.

mod compress;
mod decode;
mod jpeg_header;
mod scale;

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek};
use std::sync::{Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use image::ImageFormat;
use serde_json::json;
use windlass_ports::CancellationToken;
use windlass_protocol::{Block, ToolOutput};

use super::{ReadJob, bytes};
use crate::content::STRUCTURED_BYTES_MAX;
use crate::file::without_nulls;
use compress::{BYTES_MAX, compress};
use decode::{decode_png, decode_whole};
use scale::PictureSize;

/// Larger files are not even tried.
const FILE_BYTES_MAX: u64 = 32 * 1024 * 1024;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

pub(super) fn read(job: &ReadJob<'_>, format: ImageFormat) -> Result<ToolOutput, String> {
    let size = job.source.stamp.size;
    if size > FILE_BYTES_MAX {
        return Err(job.fail(format_args!(
            "is an image of {}; at most {} can be shown. Scale it down through Bash first.",
            bytes(size),
            bytes(FILE_BYTES_MAX)
        )));
    }
    let unreadable = |error: io::Error| format!("Cannot read {}: {error}.", job.subject.shown);
    let small = if size <= BYTES_MAX as u64 { job.source.all(BYTES_MAX).map_err(unreadable)? } else { None };
    let target = PictureOptions { format, edge_px_max: job.limits.image_edge_px_max, cancel: &job.cx.cancel };
    let picture = match &small {
        Some(content) => Picture::prepare(content, &target),
        None => Picture::prepare_file(&job.source.file, size, &target),
    };
    let picture = picture.map_err(|error| job.fail(format_args!("cannot be shown as an image: {error}.")))?;
    let encoded = STANDARD.encode(&picture.bytes);
    let block = Block::image(picture.media_type, &encoded);
    let file = without_nulls(json!({
        // The block holds it anyway.
        "base64": (encoded.len() <= STRUCTURED_BYTES_MAX).then_some(&encoded),
        "type": picture.media_type,
        "originalSize": size,
        "dimensions": {
            "originalWidth": picture.original.width,
            "originalHeight": picture.original.height,
            "displayWidth": picture.size.width,
            "displayHeight": picture.size.height,
        },
    }));
    Ok(ToolOutput::blocks(vec![block]).with_structured(&json!({ "type": "image", "file": file })))
}

pub(super) struct PictureOptions<'a> {
    pub(super) format: ImageFormat,
    pub(super) edge_px_max: u32,
    pub(super) cancel: &'a CancellationToken,
}

pub(super) struct Picture<'a> {
    pub(super) bytes: Cow<'a, [u8]>,
    pub(super) media_type: &'static str,
    original: PictureSize,
    /// As it is shown.
    size: PictureSize,
}

impl<'a> Picture<'a> {
    /// Of a file in memory, which is used as it is if it fits.
    pub(super) fn prepare(content: &'a [u8], target: &PictureOptions<'_>) -> Result<Self, String> {
        let small = content.len() <= BYTES_MAX;
        Self::new(Cursor::new(content), content.len() as u64, small.then_some(content), target)
    }

    /// Of a file that is too large to be used as it is.
    fn prepare_file(mut file: &File, size: u64, target: &PictureOptions<'_>) -> Result<Self, String> {
        file.rewind().map_err(|error| format!("it cannot be read ({error})"))?;
        // A file that grows meanwhile is damaged as far as this goes.
        Self::new(BufReader::new(file.take(FILE_BYTES_MAX)), size, None, target)
    }

    fn new(
        reader: impl BufRead + Seek,
        bytes: u64,
        content: Option<&'a [u8]>,
        target: &PictureOptions<'_>,
    ) -> Result<Self, String> {
        // Memory is for one picture at a time, however many calls there are.
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let may_keep = content.is_some();
        let (original, pixels) = match target.format {
            ImageFormat::Png => decode_png(reader, may_keep, target)?,
            _ => decode_whole(reader, bytes, may_keep, target)?,
        };
        let (bytes, media_type, size) = match (pixels, content) {
            (None, Some(content)) => (Cow::Borrowed(content), target.format.to_mime_type(), original),
            (None, None) => return Err("it has no pixels".to_owned()),
            (Some(pixels), _) => {
                let lossless = matches!(target.format, ImageFormat::Png | ImageFormat::Gif);
                let (bytes, media_type, size) = compress(pixels, lossless)?;
                (Cow::Owned(bytes), media_type, size)
            }
        };
        Ok(Self { bytes, media_type, original, size })
    }

    pub(super) fn block(&self) -> Block {
        Block::image(self.media_type, &STANDARD.encode(&self.bytes))
    }
}

#[cfg(test)]
mod tests;
