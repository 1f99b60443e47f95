//! Writes an index with ids to a file, opens it again, and checks every byte of it.

#![allow(clippy::print_stdout, reason = "an example talks to a person")]

use lookalike_hamming::{
    BuildLimits, Design, Family, IdTexts, IndexFile, IndexFileWriter, Layout, share,
};
use std::fs;
use std::io::BufWriter;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::temp_dir().join("lookalike-hamming-example.lkix");
    let codes: [u64; 4] = [0x0123_4567_89ab_cdef, 0x0123_4567_89ab_cdee, 0, u64::MAX];
    // The ids of all codes back to back, and the end of each.
    let (texts, ends) = ("a.html,b.html,empty,full", [7, 14, 20, 24]);

    // Two tables with keys of 32 bits, one of which may be wrong: complete for distance 3.
    let design = Design::new(Family::budgets(&[1, 1]), 64, 3)?;
    let out = BufWriter::new(fs::File::create(&path)?);
    let mut writer = IndexFileWriter::new(out, None, &design, Layout::Packed)?;
    let ids = IdTexts { texts, ends: &ends };
    while writer.next_table(&codes[..], Some(ids), BuildLimits::default())? {}
    writer.finish()?;

    // A large file would be mapped: anything that implements `AsRef<[u8]>` can be opened.
    let file = IndexFile::<u64>::open(share(fs::read(&path)?))?;
    file.verify()?;
    let mut found = Vec::new();
    file.index().search(codes[0], 3, &mut |code, distance| {
        found.push((distance, code))
    })?;
    for (distance, code) in found {
        let mut ids = Vec::new();
        file.ids(code, &mut ids)?;
        println!("{code:016x}, {distance} bits: {}", ids.join(" "));
    }
    Ok(fs::remove_file(&path)?)
}
