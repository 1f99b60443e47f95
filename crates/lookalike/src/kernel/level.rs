//! Detection, once, of the vector instructions of this CPU.

use std::sync::atomic::{AtomicU8, Ordering};

/// A set of instructions that this CPU has: a value of this type is the proof that it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CpuLevel(CpuKind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CpuKind {
    Portable,
    /// Part of every processor of its architecture, aarch64; only there.
    Neon,
    Avx2,
    Avx512,
}

impl CpuKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Neon => "neon",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }
}

/// 0: not yet known; else one more than the kind.
static CURRENT: AtomicU8 = AtomicU8::new(0);

impl CpuLevel {
    /// The level that all machines have.
    pub(crate) const PORTABLE: Self = Self(CpuKind::Portable);

    /// The level in use.
    #[inline]
    pub(crate) fn current() -> Self {
        match CURRENT.load(Ordering::Relaxed) {
            1 => Self::PORTABLE,
            2 => Self(CpuKind::Neon),
            3 => Self(CpuKind::Avx2),
            4 => Self(CpuKind::Avx512),
            _ => Self::PORTABLE.max_of_cpu(),
        }
    }

    /// Finds the best level of this CPU and remembers it.
    #[cold]
    fn max_of_cpu(self) -> Self {
        let best = Self::available().pop().unwrap_or(self);
        best.set();
        best
    }

    fn set(self) {
        CURRENT.store(self.0 as u8 + 1, Ordering::Relaxed);
    }

    /// All levels of this CPU, the best last.
    pub(crate) fn available() -> Vec<Self> {
        let mut levels = vec![Self::PORTABLE];
        #[cfg(target_arch = "aarch64")]
        levels.push(Self(CpuKind::Neon));
        #[cfg(target_arch = "x86_64")]
        {
            use std::is_x86_feature_detected as has;
            let bits = has!("bmi1") && has!("bmi2") && has!("lzcnt") && has!("popcnt");
            if bits && has!("avx2") {
                levels.push(Self(CpuKind::Avx2));
                let wide = has!("avx512f") && has!("avx512bw") && has!("avx512dq");
                if wide && has!("avx512vl") {
                    levels.push(Self(CpuKind::Avx512));
                }
            }
        }
        levels
    }

    /// The level without AVX-512, whose processors have AVX2 as well.
    pub(crate) const fn at_most_avx2(self) -> Self {
        match self.0 {
            CpuKind::Avx512 => Self(CpuKind::Avx2),
            _ => self,
        }
    }

    pub(crate) const fn kind(self) -> CpuKind {
        self.0
    }
}

/// Uses the kernels of this level from now on, `portable`, `neon`, `avx2` or `avx512`, if this CPU has
/// them: for tests and measurements. Results do not depend on it.
#[doc(hidden)]
pub fn force_level(name: &str) -> bool {
    let level = CpuLevel::available()
        .into_iter()
        .find(|level| level.kind().name() == name);
    level.map(CpuLevel::set).is_some()
}

/// The level in use, for reports.
#[doc(hidden)]
#[must_use]
pub fn level_name() -> &'static str {
    CpuLevel::current().kind().name()
}

/// Defines a function that runs a body compiled for the instructions of its [`CpuLevel`]: each body
/// must be `#[inline(always)]`, so that it is compiled with the features of its caller.
///
/// NEON is part of aarch64, so that the compiler uses it for the portable body too; a body of its
/// own is named where instructions help that it does not find.
macro_rules! versions {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? {
        portable: $portable:expr, avx2: $avx2:expr, avx512: $avx512:expr $(,)?
    }) => {
        $crate::kernel::level::versions! {
            $(#[$meta])* $vis fn $name($($arg: $ty),*) $(-> $ret)? {
                portable: $portable, neon: $portable, avx2: $avx2, avx512: $avx512,
            }
        }
    };
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? {
        portable: $portable:expr, neon: $neon:expr, avx2: $avx2:expr, avx512: $avx512:expr $(,)?
    }) => {
        $(#[$meta])*
        #[inline]
        #[cfg_attr(
            target_arch = "x86_64",
            expect(unsafe_code, reason = "calls code for instructions that were detected")
        )]
        $vis fn $name(level: $crate::kernel::CpuLevel, $($arg: $ty),*) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
                fn avx2($($arg: $ty),*) $(-> $ret)? {
                    $avx2($($arg),*)
                }
                #[target_feature(
                    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt"
                )]
                fn avx512($($arg: $ty),*) $(-> $ret)? {
                    $avx512($($arg),*)
                }
                match level.kind() {
                    $crate::kernel::level::CpuKind::Portable | $crate::kernel::level::CpuKind::Neon => {}
                    $crate::kernel::level::CpuKind::Avx2 => {
                        // SAFETY: a level above portable exists only where it was detected.
                        return unsafe { avx2($($arg),*) };
                    }
                    $crate::kernel::level::CpuKind::Avx512 => {
                        // SAFETY: as above.
                        return unsafe { avx512($($arg),*) };
                    }
                }
            }
            #[cfg(target_arch = "aarch64")]
            if level.kind() == $crate::kernel::level::CpuKind::Neon {
                return $neon($($arg),*);
            }
            #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
            let _ = level;
            $portable($($arg),*)
        }
    };
}
pub(crate) use versions;
