//! As much of HTTP/1.1 as a model client speaks: requests with a length or in chunks, on a kept connection.

use std::io;
use std::time::Instant;

use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

const HEAD_BYTES_MAX: usize = 64 * 1024;
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A request as it came.
#[derive(Debug)]
pub(crate) struct HttpRequest {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) first_byte: Instant,
    pub(crate) read: Instant,
}

impl HttpRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }

    /// The betas it asks for.
    pub(crate) fn betas(&self) -> Vec<&str> {
        let values = self.headers.iter().filter(|(name, _)| name == "anthropic-beta");
        values
            .flat_map(|(_, value)| value.split(','))
            .map(str::trim)
            .filter(|beta| !beta.is_empty())
            .collect()
    }
}

fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
}

/// Reads the next request; `None` if the client has closed the connection. Clients do not send the next request
/// before they have the answer to the last, so nothing of it can be in here.
pub(crate) async fn read_request(stream: &mut TcpStream) -> io::Result<Option<HttpRequest>> {
    let mut buffer = Vec::with_capacity(16 * 1024);
    if stream.read_buf(&mut buffer).await? == 0 {
        return Ok(None);
    }
    let first_byte = Instant::now();
    let head_end = loop {
        if let Some(at) = find(&buffer, b"\r\n\r\n") {
            break at + 4;
        }
        if buffer.len() > HEAD_BYTES_MAX {
            return Err(invalid("the head of the request is too large"));
        }
        fill(stream, &mut buffer).await?;
    };
    let body_start = buffer.split_off(head_end);
    let (method, target, headers) = parse_head(&buffer)?;
    let body = read_body(stream, &headers, body_start).await?;
    Ok(Some(HttpRequest { method, target, headers, body, first_byte, read: Instant::now() }))
}

type Head = (String, String, Vec<(String, String)>);

fn parse_head(head: &[u8]) -> io::Result<Head> {
    let head = std::str::from_utf8(head).map_err(|_| invalid("the head of the request is not text"))?;
    let mut lines = head.split("\r\n").filter(|line| !line.is_empty());
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some("HTTP/1.1")) = (words.next(), words.next(), words.next()) else {
        return Err(invalid("the first line is not a request of HTTP/1.1"));
    };
    let pair = |line: &str| {
        let (name, value) = line.split_once(':').ok_or_else(|| invalid("a header has no colon"))?;
        Ok((name.to_ascii_lowercase(), value.trim().to_owned()))
    };
    Ok((method.to_owned(), target.to_owned(), lines.map(pair).collect::<io::Result<_>>()?))
}

async fn read_body(
    stream: &mut TcpStream,
    headers: &[(String, String)],
    mut body: Vec<u8>,
) -> io::Result<Vec<u8>> {
    if header(headers, "transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
        return read_chunks(stream, body).await;
    }
    let length = header(headers, "content-length").unwrap_or("0");
    let length: usize = length.parse().map_err(|_| invalid("content-length is not a number"))?;
    if length > BODY_BYTES_MAX {
        return Err(invalid("the body is too large"));
    }
    body.reserve_exact(length.saturating_sub(body.len()));
    while body.len() < length {
        fill(stream, &mut body).await?;
    }
    Ok(body)
}

/// Reads a body in chunks: each is its length in hexadecimal, a line end, the bytes, a line end.
async fn read_chunks(stream: &mut TcpStream, mut buffer: Vec<u8>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line_end = loop {
            match find(&buffer, b"\r\n") {
                Some(at) => break at,
                None => fill(stream, &mut buffer).await?,
            }
        };
        let digits = std::str::from_utf8(&buffer[..line_end]).ok().and_then(|line| line.split(';').next());
        let length = digits.and_then(|digits| usize::from_str_radix(digits.trim(), 16).ok());
        let length = length.ok_or_else(|| invalid("the length of a chunk is not hexadecimal"))?;
        if body.len() + length > BODY_BYTES_MAX {
            return Err(invalid("the body is too large"));
        }
        let chunk = line_end + 2..line_end + 2 + length;
        while buffer.len() < chunk.end + 2 {
            fill(stream, &mut buffer).await?;
        }
        body.extend_from_slice(&buffer[chunk.clone()]);
        buffer.drain(..chunk.end + 2);
        if length == 0 {
            return Ok(body);
        }
    }
}

async fn fill(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<()> {
    match stream.read_buf(buffer).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes.windows(pattern.len()).position(|window| window == pattern)
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
