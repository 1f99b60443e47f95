//! Archives and fingerprint files: they are read as written, and all damage is detected.

use super::collections::{SHAPES, Shape, collection};
use lookalike_hamming::{
    Analyzer, ArchiveWriter, FileError, FingerprintArchiveReader, FingerprintReader,
    FingerprintWriter, GapCounts, SketchWords,
};
use xxhash_rust::xxh3::xxh3_64_with_seed;

const SCHEME: u64 = 0x1234_5678_9abc_def0;

fn sorted(shape: Shape, count: usize) -> Vec<u64> {
    let mut codes: Vec<_> = collection(shape, 64, count, 3, 9)
        .into_iter()
        .map(|code| code as u64)
        .collect();
    codes.sort_unstable();
    codes
}

fn archived(codes: &[u64], block_bytes: u32) -> Vec<u8> {
    let mut gaps = GapCounts::default();
    codes.iter().for_each(|&code| gaps.observe(code));
    let mut writer = ArchiveWriter::new(Vec::new(), SCHEME, &gaps, block_bytes).unwrap();
    codes.iter().for_each(|&code| writer.push(code).unwrap());
    writer.finish().unwrap()
}

fn read_archive(bytes: &[u8]) -> Result<Vec<u64>, FileError> {
    let mut reader = FingerprintArchiveReader::new(bytes)?;
    let mut codes = Vec::new();
    while reader.read_block(&mut codes)? {}
    Ok(codes)
}

#[test]
fn archives_read_back() {
    for shape in SHAPES {
        for block_bytes in [64, 1024, 65_536] {
            for count in [0, 1, 2, 3_000] {
                let codes = sorted(shape, count);
                let bytes = archived(&codes, block_bytes);
                let reader = FingerprintArchiveReader::new(bytes.as_slice()).unwrap();
                assert_eq!(reader.scheme(), SCHEME);
                let back = read_archive(&bytes).unwrap();
                assert!(back == codes, "{shape:?} {block_bytes} {count}");
            }
        }
    }
}

#[test]
fn random_fingerprints_come_near_the_information_limit() {
    let codes = sorted(Shape::Random, 1 << 16);
    let bits = archived(&codes, 1024).len() as f64 * 8.0 / codes.len() as f64;
    let limit = 64.0 - 16.0 + std::f64::consts::LOG2_E;
    assert!(bits > limit && bits < limit + 3.0, "{bits} against {limit}");
}

#[test]
fn unsorted_fingerprints_and_odd_blocks_are_refused() {
    let mut writer = ArchiveWriter::new(Vec::new(), SCHEME, &GapCounts::default(), 1024).unwrap();
    writer.push(5).unwrap();
    assert!(matches!(
        writer.push(4),
        Err(FileError::NotSorted { at: 1 })
    ));
    let odd = ArchiveWriter::new(Vec::new(), SCHEME, &GapCounts::default(), 63);
    assert!(matches!(odd, Err(FileError::BlockSize(63))));
}

/// Regression test: an archive that was cut off or damaged behind its blocks was read as whole.
#[test]
fn no_flipped_or_missing_byte_of_an_archive_goes_unseen() {
    let bytes = archived(&sorted(Shape::Random, 300), 128);
    let whole = read_archive;
    assert!(whole(&bytes).is_ok());
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        assert!(whole(&damaged).is_err(), "byte {at}");
        assert!(whole(&bytes[..at]).is_err(), "cut at {at}");
    }
    // The second of two files in one was lost in silence.
    let two = whole(&[&bytes[..], &bytes].concat()).unwrap_err();
    assert!(two.to_string().contains("bytes follow the end"), "{two}");
}

#[test]
fn an_archive_whose_blocks_descend_is_refused() {
    // The block of 5 as the second, with the check of its place.
    let [first, mut second] = [9, 5].map(|code| archived(&[code], 64)[96..160].to_vec());
    let check = xxh3_64_with_seed(&second[4..], 1) as u32;
    second[..4].copy_from_slice(&check.to_le_bytes());
    let head = archived(&[9], 64)[..96].to_vec();
    let refused = read_archive(&[head, first, second].concat()).unwrap_err();
    assert!(refused.to_string().contains("do not ascend"), "{refused}");
}

fn written(codes: &[u64], with_ids: bool) -> Vec<u8> {
    let mut writer = if with_ids {
        FingerprintWriter::with_ids(Vec::new(), SCHEME).unwrap()
    } else {
        FingerprintWriter::new(Vec::new(), SCHEME, SketchWords::FINGERPRINT, false).unwrap()
    };
    for (id, &code) in codes.iter().enumerate() {
        writer.push(code, id as u64 * 3).unwrap();
    }
    writer.finish().unwrap()
}

fn read(bytes: &[u8]) -> Result<(Vec<u64>, Vec<u64>), FileError> {
    let mut reader = FingerprintReader::new(bytes)?;
    assert_eq!(reader.scheme(), SCHEME);
    let (mut codes, mut ids) = (Vec::new(), Vec::new());
    while let Some(chunk) = reader.next_chunk()? {
        codes.extend_from_slice(chunk.fingerprints);
        ids.extend_from_slice(chunk.ids);
    }
    Ok((codes, ids))
}

#[test]
fn fingerprint_files_read_back() {
    for count in [0, 1, 65_536, 70_000] {
        let codes = sorted(Shape::Random, count);
        assert_eq!(
            read(&written(&codes, false)).unwrap(),
            (codes.clone(), Vec::new())
        );
        let ids = (0..count as u64).map(|id| id * 3).collect();
        assert_eq!(read(&written(&codes, true)).unwrap(), (codes, ids));
    }
}

#[test]
fn no_flipped_or_missing_byte_of_a_fingerprint_file_goes_unseen() {
    let bytes = written(&sorted(Shape::Random, 100), true);
    assert!(read(&bytes).is_ok());
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        assert!(read(&damaged).is_err(), "byte {at}");
        assert!(read(&bytes[..at]).is_err(), "cut at {at}");
    }
    let two = read(&[&bytes[..], &bytes].concat()).unwrap_err();
    assert!(two.to_string().contains("bytes follow the end"), "{two}");
}

/// Returns an id; ids have various lengths, including 0, and contain multi-byte characters.
fn text(at: usize) -> String {
    "\u{e9}".repeat(at % 7) + &"ab"[..at % 3]
}

fn begin_texts() -> FingerprintWriter<Vec<u8>> {
    FingerprintWriter::new(Vec::new(), SCHEME, SketchWords::FINGERPRINT, true).unwrap()
}

fn written_with_texts(codes: &[u64]) -> Vec<u8> {
    let mut writer = begin_texts();
    for (at, &code) in codes.iter().enumerate() {
        writer.push_sketch(&[code], &text(at)).unwrap();
    }
    writer.finish().unwrap()
}

fn read_texts(bytes: &[u8]) -> Result<(Vec<u64>, Vec<String>), FileError> {
    let mut reader = FingerprintReader::new(bytes)?;
    let (mut codes, mut ids) = (Vec::new(), Vec::new());
    while let Some(chunk) = reader.next_chunk()? {
        codes.extend_from_slice(chunk.fingerprints);
        let mut start = 0;
        for &end in chunk.ends {
            ids.push(chunk.texts[start..end as usize].to_owned());
            start = end as usize;
        }
    }
    Ok((codes, ids))
}

#[test]
fn fingerprint_files_keep_ids_that_are_texts() {
    for count in [0, 1, 10, 70_000] {
        let codes = sorted(Shape::Random, count);
        let ids: Vec<_> = (0..codes.len()).map(text).collect();
        let read = read_texts(&written_with_texts(&codes)).unwrap();
        assert_eq!(read, (codes, ids));
    }
    // A few long ids end a chunk early.
    let mut writer = begin_texts();
    let long = "x".repeat(5 << 20);
    for at in 0..4 {
        writer.push_sketch(&[at], &long).unwrap();
    }
    writer.push(9, 77).unwrap();
    let (codes, ids) = read_texts(&writer.finish().unwrap()).unwrap();
    assert_eq!(codes.len(), 5);
    assert!(ids[..4].iter().all(|id| *id == long) && ids[4] == "77");
}

#[test]
fn no_flipped_or_missing_byte_of_a_file_with_texts_goes_unseen() {
    let bytes = written_with_texts(&sorted(Shape::Random, 40));
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        assert!(read_texts(&damaged).is_err(), "byte {at}");
        assert!(read_texts(&bytes[..at]).is_err(), "cut at {at}");
    }
}

/// Writes `count` sketches of three words, each with or without a text.
fn sketches(count: usize, with_texts: bool) -> Vec<u8> {
    let sketch = SketchWords { words: 3, kind: 9 };
    let mut writer = FingerprintWriter::new(Vec::new(), SCHEME, sketch, with_texts).unwrap();
    for at in 0..count {
        let words = [at as u64, 7, u64::MAX - at as u64];
        writer.push_sketch(&words, &text(at)).unwrap();
    }
    writer.finish().unwrap()
}

fn read_sketches(bytes: &[u8]) -> Result<(Vec<u64>, Vec<String>), FileError> {
    let mut reader = FingerprintReader::new(bytes)?;
    let (mut words, mut ids) = (Vec::new(), Vec::new());
    while let Some(chunk) = reader.next_chunk()? {
        words.extend_from_slice(chunk.fingerprints);
        let mut start = 0;
        for &end in chunk.ends {
            ids.push(chunk.texts[start..end as usize].to_owned());
            start = end as usize;
        }
    }
    Ok((words, ids))
}

#[test]
fn longer_sketches_read_back_and_are_told() {
    for count in [0, 1, 21_846, 50_000] {
        let words = (0..count).flat_map(|at| [at as u64, 7, u64::MAX - at as u64]);
        let words: Vec<u64> = words.collect();
        let bytes = sketches(count, true);
        let ids = (0..count).map(text).collect();
        assert_eq!(read_sketches(&bytes).unwrap(), (words.clone(), ids));
        let bare = sketches(count, false);
        assert_eq!(read_sketches(&bare).unwrap(), (words, Vec::new()));
        let told = FingerprintReader::new(bytes.as_slice()).unwrap().sketch();
        assert_eq!(told, SketchWords { words: 3, kind: 9 });
    }
}

/// Regression test: every call succeeded, and the file could not be read.
#[test]
fn a_text_among_ids_that_are_numbers_spoilt_the_file() {
    let mut writer = FingerprintWriter::with_ids(Vec::new(), SCHEME).unwrap();
    writer.push(7, 42).unwrap();
    let refused = writer.push_sketch(&[8], "a.html");
    assert!(matches!(refused, Err(FileError::NumberIds)), "{refused:?}");
    writer.push(9, 43).unwrap();
    let bytes = writer.finish().unwrap();
    assert_eq!(read(&bytes).unwrap(), (vec![7, 9], vec![42, 43]));
}

#[test]
fn no_flipped_or_missing_byte_of_a_file_of_sketches_goes_unseen() {
    for with_texts in [true, false] {
        let bytes = sketches(20, with_texts);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            assert!(read_sketches(&damaged).is_err(), "byte {at}");
            assert!(read_sketches(&bytes[..at]).is_err(), "cut at {at}");
        }
    }
}

#[test]
fn ids_too_long_for_a_file_are_refused() {
    let mut writer = begin_texts();
    let error = writer.push_sketch(&[1], &"x".repeat(126 << 20));
    assert!(error.unwrap_err().to_string().contains("too long"));
}

#[test]
fn other_files_are_refused_by_name() {
    let error = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
    assert!(error(&[0; 40]).contains("not a fingerprint file"));
    let mut newer = written(&[], false);
    newer[4] = 3;
    assert!(error(&newer).contains("version 3"));
    let bare = written(&[], false);
    let mut reader = FingerprintReader::new(bare.as_slice()).unwrap();
    assert!(reader.next_chunk().unwrap().is_none() && reader.next_chunk().unwrap().is_none());
    assert!(error(&[]).contains("cut off at byte 0"));
}

#[test]
fn an_analysis_counts_gaps_ranges_and_spikes() {
    let mut codes = sorted(Shape::Random, 1 << 15);
    codes.extend([7 << 57; 2_000]);
    codes.sort_unstable();
    let mut analyzer = Analyzer::default();
    codes.iter().for_each(|&code| analyzer.push(code));
    let analysis = analyzer.finish();
    assert_eq!((analysis.count, analysis.distinct), (34_768, 32_769));
    assert_eq!(analysis.ranges.iter().sum::<u64>(), analysis.count);
    assert_eq!(
        analysis.leading_gaps.iter().sum::<u64>(),
        analysis.distinct - 1
    );
    let [spike] = analysis.spikes.as_slice() else {
        panic!("{:?}", analysis.spikes)
    };
    assert_eq!((spike.range, spike.code, spike.copies), (7, 7 << 57, 2_000));
    for (seen, expected) in analysis.leading_gaps.iter().zip(analysis.expected_gaps()) {
        let error = 6.0 * expected.max(1.0).sqrt();
        assert!(
            (*seen as f64 - expected).abs() <= error,
            "{seen} {expected}"
        );
    }
}
