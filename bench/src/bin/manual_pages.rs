//! Converts the HTML pages of a Debian package to JSON Lines of `{"id", "text"}`.
//!
//! `dpkg-deb --fsys-tarfile FILE.deb | manual_pages NAME >NAME.jsonl 2>NAME.tsv`. Pages come in the
//! order of the package; pages without text are left out. Standard error gets one line: name,
//! number of pages, bytes of HTML and bytes of text.

use std::error::Error;
use std::ffi::OsStr;
use std::io::{BufWriter, Read, Write, stdin, stdout};
use std::path::Path;

use flate2::read::GzDecoder;
use lookalike_bench::strip::visible_text;
use serde::Serialize;

#[derive(Serialize)]
struct Page<'a> {
    id: String,
    text: &'a str,
}

/// Returns whether a page is compressed, or `None` if the file is not a page.
fn page_kind(path: &Path) -> Option<bool> {
    let packed = path.extension() == Some(OsStr::new("gz"));
    let name = if packed {
        path.file_stem()?
    } else {
        path.file_name()?
    };
    let extension = Path::new(name).extension()?.to_str()?;
    ["html", "htm", "xhtml"]
        .contains(&extension)
        .then_some(packed)
}

/// Writes a line for every page of the archive. Returns the number of pages, bytes of HTML and bytes of text.
fn convert(package: &str, out: &mut impl Write) -> Result<[u64; 3], Box<dyn Error>> {
    let mut counts = [0; 3];
    let mut raw = Vec::new();
    for entry in tar::Archive::new(stdin().lock()).entries()? {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        let Some(packed) = page_kind(&path).filter(|_| entry.header().entry_type().is_file())
        else {
            continue;
        };
        raw.clear();
        if packed {
            GzDecoder::new(entry).read_to_end(&mut raw)?;
        } else {
            entry.read_to_end(&mut raw)?;
        }
        counts[1] += raw.len() as u64;
        let text = visible_text(&String::from_utf8_lossy(&raw));
        if text.is_empty() {
            continue;
        }
        let path = path.strip_prefix(".").unwrap_or(&path);
        let id = format!("{package}/{}", path.display());
        serde_json::to_writer(&mut *out, &Page { id, text: &text })?;
        out.write_all(b"\n")?;
        counts[0] += 1;
        counts[2] += text.len() as u64;
    }
    Ok(counts)
}

fn main() -> Result<(), Box<dyn Error>> {
    let package = std::env::args()
        .nth(1)
        .ok_or("usage: manual_pages NAME <ARCHIVE.tar")?;
    let mut out = BufWriter::with_capacity(1 << 20, stdout().lock());
    let [pages, html, text] = convert(&package, &mut out)?;
    out.flush()?;
    eprintln!("{package}\t{pages}\t{html}\t{text}");
    Ok(())
}
