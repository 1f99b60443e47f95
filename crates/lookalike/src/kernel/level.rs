//! One-time detection of the vector instructions of this CPU.
//!
//! `lookalike` and `lookalike-hamming` share this file, the second by a symbolic link: neither depends on the other, and a crate for it alone would
//! be one more to publish.

use std::sync::atomic::{AtomicU8, Ordering};

/// A set of instructions that this CPU has: a value of this type proves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CpuLevel(CpuKind);

/// Sets of instructions. Each includes all before it, except NEON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CpuKind {
    /// Plain Rust.
    Portable,
    /// NEON, which every aarch64 processor has; only on that architecture.
    Neon,
    /// AVX2, BMI1, BMI2, LZCNT and POPCNT.
    Avx2,
    /// AVX-512 F, BW, DQ and VL.
    Avx512,
    /// AVX-512 VPOPCNTDQ.
    Avx512Popcnt,
}

impl CpuKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Neon => "neon",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
            Self::Avx512Popcnt => "avx512-popcnt",
        }
    }
}

/// The level in use: 0 if not yet known, else its kind plus one.
static CURRENT: AtomicU8 = AtomicU8::new(0);

impl CpuLevel {
    /// The level that all machines have.
    pub(crate) const PORTABLE: Self = Self(CpuKind::Portable);

    /// Returns the level in use.
    #[inline]
    pub(crate) fn current() -> Self {
        // Relaxed: no other memory depends on it, and threads that detect at the same time store the same value.
        match CURRENT.load(Ordering::Relaxed) {
            1 => Self::PORTABLE,
            2 => Self(CpuKind::Neon),
            3 => Self(CpuKind::Avx2),
            4 => Self(CpuKind::Avx512),
            5 => Self(CpuKind::Avx512Popcnt),
            _ => Self::PORTABLE.max_of_cpu(),
        }
    }

    /// Finds the best level of this CPU and remembers it.
    #[cold]
    fn max_of_cpu(self) -> Self {
        // CPUID traps in most virtual machines and takes microseconds there, so it runs once per process.
        let best = Self::available().pop().unwrap_or(self);
        best.set();
        best
    }

    fn set(self) {
        CURRENT.store(self.0 as u8 + 1, Ordering::Relaxed);
    }

    /// Returns all levels of this CPU, the best last.
    pub(crate) fn available() -> Vec<Self> {
        let mut levels = vec![Self::PORTABLE];
        #[cfg(target_arch = "aarch64")]
        levels.push(Self(CpuKind::Neon));
        #[cfg(target_arch = "x86_64")]
        {
            use std::is_x86_feature_detected as has;
            // Ask for each, because a virtual machine may hide any of them from its guest.
            let bits = has!("bmi1") && has!("bmi2") && has!("lzcnt") && has!("popcnt");
            // For vector instructions the macro also checks that the system saves their registers.
            if bits && has!("avx2") {
                levels.push(Self(CpuKind::Avx2));
                let wide = has!("avx512f") && has!("avx512bw") && has!("avx512dq");
                if wide && has!("avx512vl") {
                    levels.push(Self(CpuKind::Avx512));
                    if has!("avx512vpopcntdq") {
                        levels.push(Self(CpuKind::Avx512Popcnt));
                    }
                }
            }
        }
        levels
    }

    /// Returns the level without AVX-512; processors with AVX-512 have AVX2 as well.
    #[allow(dead_code, reason = "one of the two crates has no use for it")]
    pub(crate) const fn at_most_avx2(self) -> Self {
        match self.0 {
            CpuKind::Avx512 | CpuKind::Avx512Popcnt => Self(CpuKind::Avx2),
            _ => self,
        }
    }

    pub(crate) const fn kind(self) -> CpuKind {
        self.0
    }
}

/// Uses the kernels of this level from now on: `portable`, `neon`, `avx2`, `avx512` or `avx512-popcnt`. Returns false, and changes nothing, if this
/// CPU lacks it. For tests and measurements; results do not depend on the level.
#[doc(hidden)]
pub fn force_level(name: &str) -> bool {
    let level = CpuLevel::available()
        .into_iter()
        .find(|level| level.kind().name() == name);
    level.map(CpuLevel::set).is_some()
}

/// Returns the name of the level in use, for reports.
#[doc(hidden)]
#[must_use]
pub fn level_name() -> &'static str {
    CpuLevel::current().kind().name()
}
