//! Selection of the blocks with the main content: rules on the words and links of a block and its neighbours.
//!
//! The rule for a block is that of Kohlschuetter, Fankhauser, Nejdl, "Boilerplate Detection using Shallow Text Features" (WSDM 2010), figure 8:
//! number of words and link density of the block and its two neighbours, among blocks that are not marked as page chrome. On reference pages,
//! definitions in a `dl` are content from three words on, and their terms with them. The selected blocks are then narrowed to `main` or `article` if
//! most of them, or enough, are inside. If the rule keeps next to nothing of a page (a list, a shop), the whole page counts, without its chrome.

use lookalike::Extraction;

use super::blocks::{TextBlock, TextBlocks};
use super::target::TextGap;
use super::{notes, page};

/// Minimum share of the selected words that must be in `main` or `article` to narrow the selection to it, and the share of the words outside of page
/// chrome below which the rule has failed.
const MIN_SHARE: f64 = 0.3;

/// Minimum number of words of a definition in a `dl`.
const MIN_DEFINITION_WORDS: u32 = 3;

/// Minimum share of all words that must be outside of page chrome for the chrome to be believed: an unclosed `nav` contains the rest of the page.
const MIN_OUTSIDE_SHARE: f64 = 0.1;

/// Buffers of the fast mode, reused from page to page.
#[derive(Debug, Clone, Default)]
pub(super) struct FastExtractor {
    text: String,
    blocks: Vec<TextBlock>,
}

impl FastExtractor {
    /// Appends the main content of a page. Returns its title if that is requested. Linear in the page. Asks `is_reference` only if it matters.
    pub(super) fn extract(
        &mut self,
        html: &str,
        extraction: Extraction,
        is_reference: impl FnOnce() -> bool,
        out: &mut String,
    ) -> Option<String> {
        let title = self.cut(html, extraction);
        // Elsewhere, a `dl` holds the dates and authors of posts.
        let has_definitions = self.blocks.iter().any(|block| block.place.definitions);
        if has_definitions && !is_reference() {
            for block in &mut self.blocks {
                block.place.definitions = false;
            }
        }
        let kept = select_blocks(&self.blocks);
        self.write(&kept, out);
        title
    }

    /// Appends the text of a page outside of its chrome, or all of it if that would leave nothing. Linear in the page.
    pub(super) fn outside_chrome(&mut self, html: &str, extraction: Extraction, out: &mut String) {
        self.cut(html, extraction);
        let own = outside(&self.blocks);
        let kept = match words(&self.blocks, &own) {
            0 => vec![true; self.blocks.len()],
            _ => own,
        };
        self.write(&kept, out);
    }

    /// Divides a page into blocks. Returns its title if that is requested.
    fn cut(&mut self, html: &str, extraction: Extraction) -> Option<String> {
        let mut blocks = TextBlocks::new(&mut self.text, &mut self.blocks);
        let title = notes::walk(extraction, &mut blocks, |target| page::walk(html, target));
        blocks.finish();
        title
    }

    /// Appends the kept blocks. Between two of them comes the strongest gap between them on the page, or at least a blank if something is left out.
    fn write(&self, kept: &[bool], out: &mut String) {
        let start = out.len();
        let mut gap = TextGap::None;
        for (block, kept) in self.blocks.iter().zip(kept) {
            let text = &self.text[block.start..block.end];
            let core = text.trim_matches(BLANK);
            gap = gap.max(block.gap);
            if !kept || core.is_empty() {
                // A block of only white space, for instance in `pre`, is a gap as wide as its lines.
                gap = gap.max(TextGap::Space).max(white(text));
                continue;
            }
            let from = text.len() - text.trim_start_matches(BLANK).len();
            gap = gap.max(white(&text[..from]));
            if out.len() > start {
                out.push_str(gap.as_str());
            }
            out.push_str(core);
            // White space at the edges becomes part of the gap, so that no blank is doubled where two blocks meet.
            gap = white(&text[from + core.len()..]);
        }
    }
}

/// The characters of which a [`TextGap`] is written.
const BLANK: [char; 2] = [' ', '\n'];

/// Returns the gap that the leading white space of a text amounts to.
fn white(text: &str) -> TextGap {
    let blank = text.bytes().take_while(|byte| matches!(byte, b' ' | b'\n'));
    let (blanks, lines) = blank.fold((0, 0), |(blanks, lines), byte| {
        (blanks + 1, lines + u32::from(byte == b'\n'))
    });
    match (blanks, lines) {
        (0, _) => TextGap::None,
        (_, 0) => TextGap::Space,
        (_, 1) => TextGap::Line,
        _ => TextGap::Paragraph,
    }
}

/// Decides for each block whether it is kept.
fn select_blocks(blocks: &[TextBlock]) -> Vec<bool> {
    let own = outside(blocks);
    let all = vec![true; blocks.len()];
    let enough = MIN_OUTSIDE_SHARE * f64::from(words(blocks, &all));
    let own = if f64::from(words(blocks, &own)) < enough {
        all
    } else {
        own
    };
    let kept = by_rule(blocks, &own);
    // Compare before narrowing: the content of `main` is compared with the selection of the rule, not with menus.
    if f64::from(words(blocks, &kept)) < MIN_SHARE * f64::from(words(blocks, &own)) {
        return narrowed(blocks, own);
    }
    narrowed(blocks, kept)
}

/// Returns for each block whether it is outside of page chrome.
fn outside(blocks: &[TextBlock]) -> Vec<bool> {
    blocks.iter().map(|block| !block.place.chrome).collect()
}

/// Returns the number of words in all kept blocks.
fn words(blocks: &[TextBlock], kept: &[bool]) -> u32 {
    let pairs = blocks.iter().zip(kept);
    pairs
        .map(|(block, kept)| u32::from(*kept) * block.words)
        .sum()
}

/// Applies the rule to the blocks marked in `own`. Returns which blocks it keeps.
fn by_rule(blocks: &[TextBlock], own: &[bool]) -> Vec<bool> {
    // Neighbours are those that a reader of the article sees: chrome between two blocks separates them only in the source.
    let candidates: Vec<usize> = (0..blocks.len()).filter(|at| own[*at]).collect();
    let mut kept = vec![false; blocks.len()];
    for (k, &at) in candidates.iter().enumerate() {
        let neighbour = |k: Option<usize>| Some(&blocks[*candidates.get(k?)?]);
        kept[at] = is_content(
            neighbour(k.checked_sub(1)),
            &blocks[at],
            neighbour(Some(k + 1)),
        );
    }
    // From the end, because several terms in a row have one definition.
    for pair in candidates.windows(2).rev() {
        let [term, next] = [pair[0], pair[1]];
        kept[term] |= blocks[term].place.term && blocks[next].place.definitions && kept[next];
    }
    kept
}

/// Narrows the kept blocks to those in `main`, or else in `article`, if they are enough.
fn narrowed(blocks: &[TextBlock], kept: Vec<bool>) -> Vec<bool> {
    let enough = MIN_SHARE * f64::from(words(blocks, &kept));
    for inside in [
        |block: &TextBlock| block.place.main,
        |block: &TextBlock| block.place.article,
    ] {
        let pairs = blocks.iter().zip(&kept);
        let narrow: Vec<bool> = pairs.map(|(block, kept)| *kept && inside(block)).collect();
        if narrow.contains(&true) && f64::from(words(blocks, &narrow)) >= enough {
            return narrow;
        }
    }
    kept
}

/// Applies the rule of the paper to a block and its neighbours.
fn is_content(before: Option<&TextBlock>, block: &TextBlock, next: Option<&TextBlock>) -> bool {
    let words = |block: Option<&TextBlock>| block.map_or(0, |block| block.words);
    let density = |block: &TextBlock| f64::from(block.linked) / f64::from(block.words.max(1));
    if density(block) > 1.0 / 3.0 {
        return false;
    }
    if block.place.definitions && block.words >= MIN_DEFINITION_WORDS {
        return true;
    }
    if before.map_or(0.0, density) <= 5.0 / 9.0 {
        // The constants of the decision tree in the paper, unchanged.
        block.words > 16 || words(next) > 15 || words(before) > 4
    } else {
        block.words > 40 || words(next) > 17
    }
}
