//! Names of families, by which callers ask for designs.
//!
//! | name | family |
//! |---|---|
//! | `scan`, `biplane`, `affine`, `projective` | the families of these names |
//! | `nested-4-4` | block choice in levels of this many blocks |
//! | `3-of-6x1` | one group of bits: keys are 3 of its 6 blocks |
//! | `2-of-3x2` | two such groups, which share the errors evenly |
//! | `1-of-1e1x1+2-of-3e1x1` | groups of several kinds, joined by `+`; `e` is the errors that a group may hold |
//!
//! `x1` may be left out, and so may `e` if all groups hold equally many errors.

use super::family::{BlockGroup, Family};

/// Error for a name that no family has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FamilyNameError {
    /// The text does not have the form of a name.
    #[error(
        "no design is called {name:?}: names are 3-of-6x1 (3 of 6 blocks, one group of bits), 2-of-3x2, nested-4-4, biplane, \
         affine, projective and scan"
    )]
    Unknown {
        /// The name.
        name: String,
    },
    /// The groups cannot share the errors of a radius evenly.
    #[error(
        "{name}: {groups} groups do not share distance {radius} evenly: give the errors that each may hold, as in 1-of-1e1x1"
    )]
    Uneven {
        /// The name.
        name: String,
        /// Number of groups.
        groups: u32,
        /// The radius.
        radius: u32,
    },
}

/// A group as it is named, with the errors that it holds, if they are given.
struct NamedGroup {
    chosen: u32,
    blocks: u32,
    errors: Option<u32>,
    count: u32,
}

/// Maximum of a number in a name: more groups than bits would have none to share.
const MAX_GROUPS: u32 = 128;

impl NamedGroup {
    fn parse(text: &str) -> Option<Self> {
        let (text, count) = match text.split_once('x') {
            Some((text, count)) => (text, number(count)?),
            None => (text, 1),
        };
        let (text, errors) = match text.split_once('e') {
            Some((text, errors)) => (text, Some(number(errors)?)),
            None => (text, None),
        };
        let (chosen, blocks) = text.split_once("-of-")?;
        Some(Self {
            chosen: number(chosen)?,
            blocks: number(blocks)?,
            errors,
            count,
        })
    }
}

/// Parses a number that is written without leading zeros or signs.
fn number(text: &str) -> Option<u32> {
    let number = text.parse().ok()?;
    (u32::to_string(&number) == text && number <= MAX_GROUPS).then_some(number)
}

impl Family {
    /// Returns the family of a name, for designs of a radius.
    ///
    /// ```
    /// use lookalike_hamming::{Design, Family};
    /// let family = Family::named("3-of-6x1", 3)?;
    /// assert_eq!(Design::new(family, 64, 3)?.tables().len(), 20);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`FamilyNameError`] if no family has the name. [`Design::new`](crate::Design::new) tells whether the family has a design for a width
    /// and radius.
    pub fn named(name: &str, radius: u32) -> Result<Self, FamilyNameError> {
        let unknown = || FamilyNameError::Unknown {
            name: name.to_owned(),
        };
        match name {
            "scan" => return Ok(Self::Scan),
            "biplane" => return Ok(Self::Biplane),
            "affine" => return Ok(Self::Affine),
            "projective" => return Ok(Self::Projective),
            _ => {}
        }
        if let Some(levels) = name.strip_prefix("nested-") {
            let levels: Option<Vec<u32>> = levels.split('-').map(number).collect();
            return levels.map(Self::Nested).ok_or_else(unknown);
        }
        let groups: Option<Vec<NamedGroup>> = name.split('+').map(NamedGroup::parse).collect();
        let groups = groups.ok_or_else(unknown)?;
        let count: u32 = groups.iter().map(|group| group.count).sum();
        let is_usual = groups.iter().all(|group| group.blocks > 0) && count <= MAX_GROUPS;
        if !is_usual || count == 0 {
            return Err(unknown());
        }
        // The sum of errors + 1 over the groups is radius + 1, so a group holds one error less than its share.
        let (errors, groups_in_all) = (u64::from(radius) + 1, u64::from(count));
        let even = errors
            .is_multiple_of(groups_in_all)
            .then(|| (errors / groups_in_all - 1) as u32);
        let mut all = Vec::new();
        for group in groups {
            let uneven = || FamilyNameError::Uneven {
                name: name.to_owned(),
                groups: count,
                radius,
            };
            let block_group = BlockGroup {
                errors: group.errors.or(even).ok_or_else(uneven)?,
                blocks: group.blocks,
                chosen: group.chosen,
            };
            all.extend((0..group.count).map(|_| block_group));
        }
        Ok(Self::Groups(all))
    }

    /// Returns the name that [`Family::named`] parses with the radius of the design. [`Display`](std::fmt::Display) writes a text for people instead.
    pub fn name(&self) -> String {
        match self {
            Self::Scan => "scan".to_owned(),
            Self::Biplane => "biplane".to_owned(),
            Self::Affine => "affine".to_owned(),
            Self::Projective => "projective".to_owned(),
            Self::Nested(levels) => {
                let levels: Vec<_> = levels.iter().map(u32::to_string).collect();
                format!("nested-{}", levels.join("-"))
            }
            Self::Groups(groups) => {
                let is_even = groups
                    .windows(2)
                    .all(|pair| pair[0].errors == pair[1].errors);
                let run = |equal: &[BlockGroup]| {
                    let BlockGroup {
                        errors,
                        blocks,
                        chosen,
                    } = equal[0];
                    let errors = match is_even {
                        true => String::new(),
                        false => format!("e{errors}"),
                    };
                    format!("{chosen}-of-{blocks}{errors}x{}", equal.len())
                };
                let runs: Vec<_> = groups.chunk_by(|a, b| a == b).map(run).collect();
                runs.join("+")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Design, designs};

    #[test]
    fn every_design_that_is_listed_is_found_by_its_name() {
        for (bits, radius) in [(32, 2), (64, 0), (64, 3), (64, 8), (64, 13), (128, 5)] {
            for design in designs(bits, radius, 64) {
                let name = design.family().name();
                let family = Family::named(&name, radius).unwrap();
                assert_eq!(&family, design.family(), "{name}");
                assert_eq!(
                    Design::new(family, bits, radius).unwrap().tables().len(),
                    design.tables().len().max(1)
                );
            }
        }
    }

    /// Example 3.1 of the paper: tables, and the shortest and longest key.
    #[test]
    fn the_tables_of_the_paper_by_name() {
        for (name, tables, keys) in [
            ("3-of-6", 20, (31, 33)),
            ("nested-4-4", 16, (28, 28)),
            ("2-of-5x1", 10, (25, 26)),
            ("1-of-4x1", 4, (16, 16)),
            ("4-of-7x1", 35, (36, 37)),
        ] {
            let design = Design::new(Family::named(name, 3).unwrap(), 64, 3).unwrap();
            assert_eq!(
                (design.tables().len(), design.prefix_range()),
                (tables, keys),
                "{name}"
            );
            assert!(design.is_complete(), "{name}");
        }
        let groups = |name| Family::named(name, 3).unwrap();
        assert_eq!(groups("1-of-1x2"), Family::budgets(&[1, 1]));
        assert_eq!(groups("1-of-1e2+1-of-1e0"), Family::budgets(&[2, 0]));
        assert_eq!(groups("2-of-3x2"), Family::exact_groups(&[(1, 3), (1, 3)]));
    }

    #[test]
    fn other_names_are_refused() {
        for name in [
            "",
            "4",
            "of",
            "1-of-0",
            "1-of-4x0",
            "1-of-4x",
            "-1-of-4",
            "01-of-4",
            "1-of-4x129",
            "nested-",
            "nested-4-x",
            "1-of-4 x1",
            "1-of-4+",
            "4-of-99999999999",
        ] {
            let refused = Family::named(name, 3);
            assert!(
                matches!(refused, Err(FamilyNameError::Unknown { .. })),
                "{name}: {refused:?}"
            );
        }
        let uneven = Family::named("1-of-1x3", 3).unwrap_err().to_string();
        assert!(
            uneven.contains("3 groups do not share distance 3 evenly"),
            "{uneven}"
        );
        // Regression test: the largest radius overflowed.
        let largest = u32::MAX;
        assert!(Design::new(Family::named("1-of-1x2", largest).unwrap(), 64, largest).is_ok());
        assert!(Design::new(Family::budgets(&[largest, largest]), 64, 3).is_err());
        assert!(Family::named("1-of-1x3", largest).is_err());
        // A valid name, but no design.
        assert!(Design::new(Family::named("5-of-6", 3).unwrap(), 64, 3).is_ok());
        let refused = Design::new(Family::named("7-of-6", 3).unwrap(), 64, 3).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "no design 7-of-6x1 for 64-bit codes at distance 3: its keys have no blocks, or more than there are"
        );
        assert!(Design::new(Family::named("1-of-100", 3).unwrap(), 64, 3).is_err());
    }
}
