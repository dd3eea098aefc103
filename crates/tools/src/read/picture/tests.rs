use image::{DynamicImage, Rgb, RgbImage};

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

fn prepare(content: &[u8], format: ImageFormat, edge_px_max: u32) -> Result<Picture<'_>, String> {
    Picture::prepare(content, &PictureOptions { format, edge_px_max, cancel: &CancellationToken::new() })
}

#[test]
fn small_images_pass_unchanged() {
    let image = DynamicImage::new_rgb8(20, 10);
    for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Gif, ImageFormat::WebP] {
        let content = encode(&image, format);
        let picture = prepare(&content, format, 2576).unwrap();
        assert_eq!((&*picture.bytes, picture.media_type), (&*content, format.to_mime_type()));
    }
}

#[test]
fn large_images_are_scaled_and_compressed() {
    let check = |image: &DynamicImage, format, edge, expected: (u32, u32), media_type: &str| {
        let content = encode(image, format);
        let picture = prepare(&content, format, edge).unwrap();
        let shown = image::load_from_memory(&picture.bytes).unwrap();
        assert_eq!(((shown.width(), shown.height()), picture.media_type), (expected, media_type));
        assert!(picture.bytes.len() <= BYTES_MAX);
        assert_eq!((picture.original.width, picture.size.width), (image.width(), expected.0));
    };
    let (wide, png) = (DynamicImage::new_rgb8(400, 100), ImageFormat::Png);
    check(&wide, png, 200, (200, 50), "image/png");
    check(&wide.clone().into_luma8().into(), png, 200, (200, 50), "image/png");
    check(&wide.clone().into_luma_alpha8().into(), png, 200, (200, 50), "image/png");
    check(&wide.clone().into_rgba16().into(), png, 200, (200, 50), "image/png");
    check(&wide, ImageFormat::Gif, 200, (200, 50), "image/png");
    check(&wide, ImageFormat::Jpeg, 200, (200, 50), "image/jpeg");
    check(&wide, ImageFormat::WebP, 200, (200, 50), "image/jpeg");
    check(&noise(600, 500), png, 2576, (600, 500), "image/jpeg");
    check(&noise(900, 300), png, 450, (450, 150), "image/png");
}

#[test]
fn interlaced_pictures_are_scaled_too() {
    // 8×8 grey pixels in seven passes, all of them 77.
    let mut content = Vec::new();
    let mut encoder = png::Encoder::new(&mut content, 8, 8);
    encoder.set_color(png::ColorType::Grayscale);
    let mut writer = encoder.write_header().unwrap();
    let widths = [(1, 1), (1, 1), (2, 1), (2, 2), (4, 2), (4, 4), (8, 4)];
    let raw: Vec<u8> = widths
        .iter()
        .flat_map(|&(width, height)| {
            std::iter::once(0).chain(vec![77; width]).collect::<Vec<u8>>().repeat(height)
        })
        .collect();
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, &raw).unwrap();
    writer.write_chunk(png::chunk::IDAT, &packed.finish().unwrap()).unwrap();
    drop(writer);
    content[28] = 1;
    let crc = crc(&content[12..29]);
    content[29..33].copy_from_slice(&crc.to_be_bytes());
    let picture = prepare(&content, ImageFormat::Png, 4).unwrap();
    let shown = image::load_from_memory(&picture.bytes).unwrap().into_luma8();
    assert_eq!((shown.dimensions(), shown.into_raw()), ((4, 4), vec![77; 16]));
}

#[test]
fn noise_that_no_quality_fits_gets_fewer_pixels() {
    let content = encode(&noise(1500, 1500), ImageFormat::Png);
    let picture = prepare(&content, ImageFormat::Png, 2576).unwrap();
    assert!(picture.bytes.len() <= BYTES_MAX);
}

#[test]
fn bombs_and_damage_are_refused() {
    let check = |content: &[u8], format, expected: &str| {
        let error = prepare(content, format, 2576).err().unwrap();
        assert!(error.contains(expected), "{error}");
    };
    let png = encode(&DynamicImage::new_rgb8(4, 4), ImageFormat::Png);
    check(&png[..png.len() - 20], ImageFormat::Png, "damaged");
    check(&png[..10], ImageFormat::Png, "damaged");
    // Width and height in the header, with the checksum that belongs to them.
    let with_header = |width: u32, height: u32, interlaced: u8| {
        let mut png = png.clone();
        png[16..20].copy_from_slice(&width.to_be_bytes());
        png[20..24].copy_from_slice(&height.to_be_bytes());
        png[28] = interlaced;
        let crc = crc(&png[12..29]);
        png[29..33].copy_from_slice(&crc.to_be_bytes());
        png
    };
    check(
        &with_header(28_672, 28_672, 0),
        ImageFormat::Png,
        "its 28672×28672 pixels are too many; scale it down",
    );
    check(&with_header(40_000, 1, 0), ImageFormat::Png, "its 40000×1 pixels are too many");
    check(
        &with_header(8000, 8000, 1),
        ImageFormat::Png,
        "its 8000×8000 pixels would take 256 MB of memory, more than the limit of 45",
    );
    let mut gif = encode(&DynamicImage::new_rgb8(4, 4), ImageFormat::Gif);
    gif[6..10].copy_from_slice(&[0, 0x20, 0, 0x20]);
    check(&gif, ImageFormat::Gif, "its 8192×8192 pixels would take 537 MB");
    let mut jpeg = encode(&DynamicImage::new_rgb8(4, 4), ImageFormat::Jpeg);
    let frame = memchr::memmem::find(&jpeg, b"\xff\xc0").unwrap();
    jpeg[frame + 5..frame + 9].copy_from_slice(&[0x20, 0, 0x20, 0]);
    check(&jpeg, ImageFormat::Jpeg, "its 8192×8192 pixels would take 202 MB");
}

fn crc(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    };
    !bytes.iter().fold(u32::MAX, step)
}
