//! Instructions of the processor, found once.

use std::sync::OnceLock;

/// Instructions that the kernels use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KernelLevel {
    /// Plain Rust.
    Portable,
    /// NEON, which every aarch64 processor has.
    Neon,
    /// AVX2, BMI1, BMI2, LZCNT and POPCNT.
    Avx2,
    /// AVX-512 F and BW besides.
    Avx512,
    /// AVX-512 VPOPCNTDQ besides.
    Avx512Popcnt,
}

impl KernelLevel {
    /// The best level of this processor, found once.
    pub fn detected() -> Self {
        static LEVEL: OnceLock<KernelLevel> = OnceLock::new();
        *LEVEL.get_or_init(detect)
    }

    /// Every level this processor has, for tests that compare them.
    pub fn available() -> impl Iterator<Item = Self> {
        use KernelLevel::{Avx2, Avx512, Avx512Popcnt, Neon, Portable};
        let all: &[Self] = if cfg!(target_arch = "aarch64") {
            &[Portable, Neon]
        } else {
            &[Portable, Avx2, Avx512, Avx512Popcnt]
        };
        all.iter()
            .copied()
            .filter(|&level| level <= Self::detected())
    }
}

#[cfg(target_arch = "aarch64")]
fn detect() -> KernelLevel {
    KernelLevel::Neon
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn detect() -> KernelLevel {
    KernelLevel::Portable
}

#[cfg(target_arch = "x86_64")]
fn detect() -> KernelLevel {
    let avx2 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt");
    let avx512 = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw");
    match (avx2, avx512, is_x86_feature_detected!("avx512vpopcntdq")) {
        (false, _, _) => KernelLevel::Portable,
        (true, false, _) => KernelLevel::Avx2,
        (true, true, false) => KernelLevel::Avx512,
        (true, true, true) => KernelLevel::Avx512Popcnt,
    }
}
