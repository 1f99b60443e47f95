//! Extraction of text from PDF, by a library in this process that is isolated from the rest of the job.
//!
//! Threats from hostile files, and the defence against each:
//!
//! - it swells to gigabytes when unpacked: all its streams are measured first ([`decompression_guard`]), and the streams that a page names, however
//!   often, are unpacked for that page alone;
//! - it makes the library panic or recurse: each file is read on its own thread, with its own stack;
//! - it never ends: the thread is told to stop after some seconds, more for a larger file, and abandoned if it does not react;
//! - it draws more text than a document may have: the drawn text is counted ([`page`]).
//!
//! Each of these costs only this document, with a reason.

mod decompression_guard;
mod page;

use std::any::Any;
use std::borrow::Cow;
use std::io::{ErrorKind, copy, sink};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use flate2::read::DeflateDecoder;
use hayro_interpret::hayro_syntax::content::TypedIter;
use hayro_interpret::hayro_syntax::object::dict::keys::{CONTENTS, COUNT, PAGES};
use hayro_interpret::hayro_syntax::object::{Array, Dict, Null, Stream};
use hayro_interpret::hayro_syntax::page::Page;
use hayro_interpret::hayro_syntax::{DecryptionError, Filter, LoadPdfError, Pdf};
use hayro_interpret::kurbo::Rect;
use hayro_interpret::{
    Context, InterpreterCache, InterpreterSettings, RenderContent, TransformExt, interpret,
    interpret_page,
};

use crate::detached::spawn_detached;
use crate::guard::catch_panic;
use crate::record::BadRecordKind;
use decompression_guard::{GuardRefusal, MAX_STREAM_BYTES, ascii85};
use page::PageTextWriter;

/// Stack size of the thread. The library recurses into nested objects, up to its own limits.
const STACK_BYTES: usize = 16 << 20;

/// Time limit for the smallest file, and for each further mebibyte. Real files of a mebibyte take less than a second.
const MIN_TIME: Duration = Duration::from_secs(5);
const TIME_PER_MEBIBYTE: Duration = Duration::from_secs(5);

const MAX_TIME: Duration = Duration::from_secs(60);

/// Returns the time limit for a file of this many bytes.
fn limit(bytes: usize) -> Duration {
    let mebibytes = u32::try_from(bytes >> 20).unwrap_or(u32::MAX);
    MAX_TIME.min(MIN_TIME.saturating_add(TIME_PER_MEBIBYTE.saturating_mul(mebibytes)))
}

/// Reason why a file has no text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PdfError {
    pub(crate) kind: BadRecordKind,
    /// The reason, to be read after the name of the file.
    pub(crate) reason: String,
}

impl PdfError {
    fn new(reason: &str) -> PdfError {
        PdfError {
            kind: BadRecordKind::Conversion,
            reason: reason.to_owned(),
        }
    }
}

/// The text of a file, or `None` if it is longer than the longest document.
type PdfOutcome = Result<Option<String>, PdfError>;

/// Extracts the text of a file, at most `most` bytes: lines in drawing order, with blank lines between pages, and between paragraphs if they are set
/// apart.
///
/// `is_cut` is true if its end is known to be missing: then one page is enough. Takes at most `time`, or by default a limit that depends on the
/// file's size.
pub(crate) fn text(bytes: &[u8], is_cut: bool, most: usize, time: Option<Duration>) -> PdfOutcome {
    let limit = time.unwrap_or_else(|| limit(bytes.len()));
    let start = Instant::now();
    decompression_guard::measure(bytes, start.checked_add(limit)).map_err(
        |refusal| match refusal {
            GuardRefusal::TooLarge(reason) => PdfError {
                kind: BadRecordKind::Bomb,
                reason,
            },
            GuardRefusal::TimedOut => late(bytes, limit),
        },
    )?;
    let stop = Arc::new(AtomicBool::new(false));
    let (send, receive) = channel();
    // The thread may outlive this call, so it borrows nothing.
    let (copy, heard) = (bytes.to_vec(), Arc::clone(&stop));
    let reader = move || {
        // On this thread, because the panic hook of the program asks the thread that panics.
        let outcome = catch_panic(|| read(copy, is_cut, most, &heard));
        // Nothing receives any more if it took too long.
        let _ = send.send(outcome.unwrap_or_else(|panic| of_panic(&*panic)));
    };
    let thread = thread::Builder::new()
        .name("lookalike-pdf".to_owned())
        .stack_size(STACK_BYTES);
    spawn_detached(thread, reader)
        .map_err(|error| PdfError::new(&format!("cannot start a thread to read it: {error}")))?;
    // A thread cannot be ended from outside. An abandoned one uses a processor until it notices the flag; a process for each file would cost a start
    // each time.
    let outcome = receive.recv_timeout(limit.saturating_sub(start.elapsed()));
    outcome.unwrap_or_else(|_| {
        // The thread is abandoned: it notices this when it draws next, and ends. The flag publishes no other data, so no ordering is needed.
        stop.store(true, Ordering::Relaxed);
        Err(late(bytes, limit))
    })
}

/// Returns the outcome after a panic: of the library itself, or because there was too much to draw.
fn of_panic(panic: &(dyn Any + Send)) -> PdfOutcome {
    // Unwinding is the only way out of the library's interpreter, which does not handle errors of a device.
    match panic.is::<page::TextFull>() {
        true => Ok(None),
        false => Err(PdfError::new(
            "the PDF is damaged in a way that its reader cannot handle",
        )),
    }
}

fn late(bytes: &[u8], limit: Duration) -> PdfError {
    PdfError::new(&format!(
        "the PDF takes longer than {} s for its {} bytes",
        limit.as_secs_f64(),
        bytes.len()
    ))
}

fn read(bytes: Vec<u8>, is_cut: bool, most: usize, stop: &AtomicBool) -> PdfOutcome {
    match Pdf::new(bytes) {
        Ok(pdf) => draw(&pdf, is_cut, most, stop),
        Err(LoadPdfError::Decryption(DecryptionError::PasswordProtected)) => {
            Err(PdfError::new("the PDF is encrypted with a password"))
        }
        Err(LoadPdfError::Decryption(_)) => {
            Err(PdfError::new("the PDF is encrypted in an unknown way"))
        }
        Err(LoadPdfError::Invalid) => Err(PdfError::new("not a PDF, or damaged beyond reading")),
    }
}

/// Draws all pages as text, or, of a file that is cut, those that are there.
fn draw(pdf: &Pdf, is_cut: bool, most: usize, stop: &AtomicBool) -> PdfOutcome {
    let (found, declared) = (pdf.pages().len(), declared_pages(pdf));
    // At least one page has to be there.
    let (least, mut spare) = match is_cut {
        true => (declared.min(1), found.saturating_sub(1)),
        false => (declared, 0),
    };
    if found < least {
        return Err(PdfError::new(&format!(
            "it has {found} of the {declared} pages that it declares"
        )));
    }
    let cache = InterpreterCache::new();
    let mut writer = PageTextWriter::new(most, stop);
    for page in pdf.pages().iter() {
        let (width, height) = page.render_dimensions();
        let area = Rect::new(0.0, 0.0, f64::from(width), f64::from(height));
        let upright = page.initial_transform(true).to_kurbo();
        let settings = InterpreterSettings {
            render_content: RenderContent::ANNOTATIONS,
            ..InterpreterSettings::default()
        };
        let mut context = Context::new(upright, area, &cache, pdf.xref(), settings);
        // Not by `interpret_page`: it keeps the contents of every page while the file is open, and any number of pages can share one stream.
        let contents = match contents(page, &writer) {
            Err(error) if spare > 0 && error.kind == BadRecordKind::Conversion => {
                spare -= 1;
                Vec::new()
            }
            contents => contents?,
        };
        let operations = TypedIter::new(&contents);
        interpret(operations, page.resources(), &mut context, &mut writer);
        interpret_page(page, &mut context, &mut writer);
        writer.end_page();
    }
    Ok(Some(writer.finish()))
}

/// Returns the number of pages that the root of their tree declares, or 0 if it cannot be read.
fn declared_pages(pdf: &Pdf) -> usize {
    let root = pdf.xref().get::<Dict<'_>>(pdf.xref().root_id());
    let tree = root.and_then(|root| root.get::<Dict<'_>>(PAGES));
    let count = tree.and_then(|tree| tree.get::<i32>(COUNT));
    count.map_or(0, |count| count.max(0) as usize)
}

/// Returns the operations of a page, joined from all its streams. A page can name the same stream any number of times.
fn contents(page: &Page<'_>, writer: &PageTextWriter<'_>) -> Result<Vec<u8>, PdfError> {
    let dict = page.raw();
    if let Some(stream) = dict.get::<Stream<'_>>(CONTENTS) {
        return unpacked(&stream).ok_or_else(damaged_page);
    }
    let mut all = Vec::new();
    let Some(streams) = dict.get::<Array<'_>>(CONTENTS) else {
        let is_blank = !dict.contains_key(CONTENTS) || dict.get::<Null>(CONTENTS).is_some();
        return is_blank.then_some(all).ok_or_else(damaged_page);
    };
    // Streams in an array are references, never written out (ISO 32000-1, section 7.3.8.1).
    for name in streams.raw_iter().filter_map(|item| item.as_obj_ref()) {
        writer.check();
        let stream = page.xref().get::<Stream<'_>>(name.into());
        all.extend(
            stream
                .and_then(|stream| unpacked(&stream))
                .ok_or_else(damaged_page)?,
        );
        // Streams are divided only between tokens (ISO 32000-1, table 30).
        all.push(b' ');
        if all.len() as u64 > MAX_STREAM_BYTES {
            return Err(PdfError {
                kind: BadRecordKind::Bomb,
                reason: format!(
                    "the streams of one of its pages grow to more than {} MiB together",
                    MAX_STREAM_BYTES >> 20
                ),
            });
        }
    }
    Ok(all)
}

fn damaged_page() -> PdfError {
    PdfError::new("the contents of a page are damaged or missing")
}

/// Returns the contents of a stream, or `None` if it is damaged.
fn unpacked(stream: &Stream<'_>) -> Option<Vec<u8>> {
    let contents = stream.decoded_data().ok()?;
    (!is_damaged(stream)).then(|| contents.into_owned())
}

/// Returns true for a stream whose compressed bytes are invalid, of which the library silently returns the beginning. A wrong checksum or a missing end
/// is no damage here: some producers write such streams, and all readers show them.
fn is_damaged(stream: &Stream<'_>) -> bool {
    let stored = stream.raw_data();
    let packed: Cow<'_, [u8]> = match &*stream.filters() {
        [Filter::FlateDecode, ..] => stored,
        [Filter::Ascii85Decode, Filter::FlateDecode, ..] => ascii85(&stored).into(),
        _ => return false,
    };
    // After the head of zlib, or without one.
    [2, 0].iter().all(|&start| {
        let mut inflated = DeflateDecoder::new(packed.get(start..).unwrap_or_default());
        let outcome = copy(&mut inflated, &mut sink());
        outcome.is_err_and(|error| error.kind() == ErrorKind::InvalidInput)
    })
}
