//! Settings of an overlap job.

use std::fmt;
use std::str::FromStr;

use lookalike::Scheme;
use lookalike::chunk::{ChunkBits, Chunking, RunChunking};
use lookalike_corpus::FieldPath;

use crate::losses::LossPolicy;
use crate::overlap::SharedCount;
use crate::overlap::server_name::ServerName;
use crate::overlap::settings_error::OverlapSettingsError;
use crate::setting_words::{ParseSettingError, setting_from_str};
use crate::settings::RepeatedIds;
use crate::settings_error::{BoundedSetting, SettingsError};

lookalike::words! {
    /// Method of counting pairs of units with shared chunks. All engines give the same rows.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum OverlapEngine {
        /// Chosen according to the chunks.
        #[default]
        Auto = "auto",
        /// Writes out, sorts and counts every pair of every chunk (Shivakumar and Garcia-Molina 1998, section 2.1).
        Sort = "sort",
        /// Counts pairs directly and adds very common chunks last (Shivakumar and Garcia-Molina 1998, section 2, probabilistic counting).
        Count = "count",
    }
}

lookalike::words! {
    /// Kind of units to compare.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum OverlapUnit {
        /// Documents.
        #[default]
        Document = "document",
        /// Servers, each of which has the chunks of all its documents (Shivakumar and Garcia-Molina 1998, section 3).
        Server = "server",
    }
}

lookalike::words! {
    /// Treatment of documents with equal texts in the rows.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ExactCopies {
        /// All are listed: every pair of documents gets a row.
        Listed = "listed",
        /// The document with the smallest id represents all (Shivakumar and Garcia-Molina 1998, section 2).
        Apart = "apart",
    }
}

setting_from_str!(OverlapEngine, "engine");
setting_from_str!(OverlapUnit, "unit");
setting_from_str!(ExactCopies, "choice");

/// A minimum number of shared chunks. Parsed from text such as `25` or `lines:4=15`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinShared {
    /// The chunking that it applies to. `None` means all others.
    pub chunking: Option<Chunking>,
    /// The minimum number of shared chunks.
    pub shared: u32,
}

impl FromStr for MinShared {
    type Err = ParseSettingError;

    fn from_str(text: &str) -> Result<Self, ParseSettingError> {
        let (chunking, number) = match text.split_once('=') {
            Some((name, number)) => {
                let chunking = name.parse::<Chunking>().map_err(ParseSettingError::part)?;
                (Some(chunking), number)
            }
            None => (None, text),
        };
        let fault = "is not a number of chunks: use a value such as 25 or lines:4=15";
        let shared = number
            .parse()
            .map_err(|_| ParseSettingError::malformed(text, fault))?;
        Ok(Self { chunking, shared })
    }
}

impl fmt::Display for MinShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.chunking {
            Some(chunking) => write!(f, "{chunking}={}", self.shared),
            None => write!(f, "{}", self.shared),
        }
    }
}

const TWO_LINES: RunChunking = RunChunking::new(2, false).expect("1 to 1000 parts");

lookalike::settings! {
    /// Settings that determine the result of an overlap job. By default, it gives a row for every two documents with a common chunk of two lines.
    #[derive(Clone, Debug)]
    pub struct OverlapSettings {
        /// Chunkings of the texts: at least one, without duplicates.
        chunkings: Vec<Chunking> = vec![Chunking::Lines(TWO_LINES)],
        /// Definition of words and characters, for chunkings that use them.
        scheme: Scheme,
        /// Width of the fingerprints of chunks.
        bits: ChunkBits,
        /// Minimum number of chunks that two units share, at least 1 (T in the paper): for all chunkings, or for one.
        min_shared: Vec<MinShared>,
        /// Minimum share of the chunks of one of the two units that the other has, from 0 to 1.
        min_containment: f64 = 0.0,
        /// Method of counting pairs.
        engine: OverlapEngine,
        /// Kind of units to compare.
        by: OverlapUnit,
        /// Source of the names of servers.
        server: ServerName,
        /// Field with the address of the server that a document came from.
        address: FieldPath = FieldPath::name(Self::ADDRESS),
        /// Treatment of documents with equal texts.
        copies: ExactCopies = ExactCopies::Listed,
        /// Rule for repeated ids.
        repeated_ids: RepeatedIds,
        /// Policy for records and files that cannot be read.
        losses: LossPolicy,
    }
}

impl OverlapSettings {
    /// Field in which records of web archives store the address of their server.
    pub const ADDRESS: &str = "ip";

    /// Returns the settings as one line, which must be the same for a resumed job. The engine is not included.
    #[must_use]
    pub fn canonical(&self) -> String {
        let chunkings: Vec<String> = self.chunkings.iter().map(ToString::to_string).collect();
        // As they apply to each chunking: different ways to state the same minima are the same job.
        let least = (0..chunkings.len()).map(|number| self.least(number).to_string());
        let least: Vec<String> = least.collect();
        // A scheme on which no chunk depends must not keep a job from being resumed.
        let rules = match self.needs_scheme() {
            true => format!(" {}", self.scheme.token_rules()),
            false => String::new(),
        };
        format!(
            "overlap chunk={}{rules} bits={} min-shared={} min-containment={} by={} server={} address={} copies={} repeated-ids={} strict={}",
            chunkings.join(","),
            self.bits.count(),
            least.join(","),
            self.min_containment,
            self.by,
            self.server,
            self.address,
            self.copies,
            self.repeated_ids,
            self.losses.is_strict(),
        )
    }

    /// Tells whether chunks consist of words or characters, which the scheme defines.
    pub(crate) fn needs_scheme(&self) -> bool {
        self.chunkings
            .iter()
            .any(|chunking| chunking.needs_scheme())
    }

    /// Returns the minimum number of shared chunks for the chunking at position `number`; 1 by default.
    #[must_use]
    pub fn least(&self, number: usize) -> u32 {
        let chunking = self.chunkings[number];
        let of = |chunking: Option<Chunking>| {
            let mut minima = self.min_shared.iter();
            minima.find(|least| least.chunking == chunking)
        };
        let own = of(Some(chunking)).or_else(|| of(None));
        own.map_or(1, |least| least.shared)
    }

    /// Tells whether the containment of a pair is high enough.
    pub(crate) fn is_contained_enough(&self, row: SharedCount, sizes: &[u32]) -> bool {
        // The containment of the smaller unit is the larger of the two.
        let smaller = sizes[row.a as usize].min(sizes[row.b as usize]);
        f64::from(row.shared) / f64::from(smaller) >= self.min_containment
    }

    pub(crate) fn check(&self) -> Result<(), SettingsError> {
        if self.chunkings.is_empty() {
            return Err(OverlapSettingsError::NoChunking.into());
        }
        let repeated =
            (1..self.chunkings.len()).find(|&i| self.chunkings[..i].contains(&self.chunkings[i]));
        if let Some(i) = repeated {
            return Err(OverlapSettingsError::RepeatedChunking(self.chunkings[i]).into());
        }
        // A misspelt chunking would otherwise leave the minimum of the intended one at 1 without a word.
        let stray = self.min_shared.iter().filter_map(|least| least.chunking);
        if let Some(stray) = stray
            .into_iter()
            .find(|chunking| !self.chunkings.contains(chunking))
        {
            return Err(OverlapSettingsError::StrayChunking(stray).into());
        }
        if self.min_shared.iter().any(|least| least.shared == 0) {
            return Err(BoundedSetting::MinShared.error(0));
        }
        if !(0.0..=1.0).contains(&self.min_containment) {
            let setting = BoundedSetting::MinContainment;
            return Err(setting.error(self.min_containment));
        }
        Ok(())
    }
}
