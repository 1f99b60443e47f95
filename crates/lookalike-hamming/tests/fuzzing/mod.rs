//! Fuzz targets for the readers of lookalike's own files, which must cope with arbitrary bytes.
//!
//! [`run`] passes bytes to one reader and checks what must hold for all input: the reader does not panic, and its answers agree with what the file
//! claims to hold. Files end in checksums, so nearly every mutation would stop there. Each input is therefore read a second time with matching
//! checksums, as an adversary would supply them.

use lookalike_hamming::{
    ArchiveWriter, BuildLimits, FingerprintArchiveReader, FingerprintReader, FingerprintWriter,
    GapCounts, IdTexts, IndexFile, IndexFileWriter, Layout, SketchWords, designs,
};
use xxhash_rust::xxh3::xxh3_64;

/// The names of all targets.
pub(crate) const TARGETS: &[&str] = &["fingerprints", "archive", "index"];

/// Runs a target on `bytes`.
///
/// # Panics
/// If the reader breaks a promise.
pub(crate) fn run(target: &str, bytes: &[u8]) {
    match target {
        "fingerprints" => fingerprints(bytes),
        "archive" => {
            archive(bytes);
            archive(&summed(bytes));
        }
        _ => index(bytes),
    }
}

/// Returns the initial inputs of a target.
pub(crate) fn seeds(target: &str) -> Vec<Vec<u8>> {
    match target {
        "fingerprints" => fingerprint_files(),
        "archive" => vec![packed(&[]), packed(&codes(300))],
        _ => Layout::ALL
            .into_iter()
            .flat_map(|layout| [false, true].map(|ids| built(layout, ids)))
            .collect(),
    }
}

/// Returns `bytes` with its last eight replaced by the checksum of all bytes before them.
fn summed(bytes: &[u8]) -> Vec<u8> {
    let body = &bytes[..bytes.len().saturating_sub(8)];
    [body, &xxh3_64(body).to_le_bytes()].concat()
}

fn codes(count: u64) -> Vec<u64> {
    let mut codes: Vec<u64> = (0..count)
        .map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .collect();
    codes.sort_unstable();
    codes
}

fn fingerprint_files() -> Vec<Vec<u8>> {
    let id = 7;
    let begin = |with_texts| {
        FingerprintWriter::new(Vec::new(), id, SketchWords::FINGERPRINT, with_texts)
            .expect("memory")
    };
    let (mut bare, mut named) = (begin(false), begin(true));
    let mut numbered = FingerprintWriter::with_ids(Vec::new(), id).expect("memory");
    for (number, code) in codes(20).into_iter().enumerate() {
        bare.push(code, 0).expect("memory");
        numbered.push(code, number as u64).expect("memory");
        named
            .push_sketch(&[code], &format!("\u{e9}{number}"))
            .expect("memory");
    }
    let shape = SketchWords { words: 3, kind: 1 };
    let mut sketches = FingerprintWriter::new(Vec::new(), id, shape, true).expect("memory");
    for code in codes(20) {
        sketches
            .push_sketch(&[code, code >> 3, 5], &format!("{code}"))
            .expect("memory");
    }
    [bare, numbered, named, sketches]
        .map(|writer| writer.finish().expect("memory"))
        .to_vec()
}

fn fingerprints(bytes: &[u8]) {
    let Ok(mut reader) = FingerprintReader::new(bytes) else {
        return;
    };
    let mut held = 0;
    while let Ok(Some(chunk)) = reader.next_chunk() {
        held += chunk.fingerprints.len();
        assert!(held * 8 <= bytes.len(), "no more than there is");
    }
}

fn packed(codes: &[u64]) -> Vec<u8> {
    let mut gaps = GapCounts::default();
    codes.iter().for_each(|&code| gaps.observe(code));
    let mut writer = ArchiveWriter::new(Vec::new(), 7, &gaps, 1 << 10).expect("memory");
    for &code in codes {
        writer.push(code).expect("ascending");
    }
    writer.finish().expect("memory")
}

/// Checks that the codes of an archive ascend, whatever its blocks hold.
fn archive(bytes: &[u8]) {
    let mut codes = Vec::new();
    if let Ok(mut reader) = FingerprintArchiveReader::new(bytes) {
        while let Ok(true) = reader.read_block(&mut codes) {
            assert!(codes.is_sorted());
        }
    }
}

fn built(layout: Layout, with_ids: bool) -> Vec<u8> {
    let design = designs(64, 1, 4).into_iter().next().expect("a design");
    let codes = codes(40);
    let names: Vec<String> = (0..codes.len())
        .map(|number| format!("n{number}"))
        .collect();
    let texts = names.concat();
    let ends: Vec<u64> = names
        .iter()
        .scan(0, |end, name| {
            *end += name.len() as u64;
            Some(*end)
        })
        .collect();
    let ids = with_ids.then_some(IdTexts {
        texts: &texts,
        ends: &ends,
    });
    let mut writer = IndexFileWriter::new(Vec::new(), Some(7), &design, layout).expect("memory");
    while writer
        .next_table(&codes[..], ids, BuildLimits::default())
        .expect("memory")
    {}
    writer.finish().expect("memory")
}

/// Checks that an index file that opens and verifies answers every query.
fn index(bytes: &[u8]) {
    let held = lookalike_hamming::share(bytes.to_vec());
    let Ok(file) = IndexFile::<u64>::open(held) else {
        return;
    };
    let sound = file.verify().is_ok();
    let mut found = 0_u64;
    for query in codes(5) {
        let searched = file.index().search(query, 1, &mut |_, distance| {
            found += 1;
            assert!(distance <= 1);
        });
        let mut ids = Vec::new();
        let told = file.ids(query, &mut ids);
        assert!(!sound || told.is_ok() && searched.is_ok());
    }
    let _ = file.copies(&mut |_, copies| found += copies);
}
