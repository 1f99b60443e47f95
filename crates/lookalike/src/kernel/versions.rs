//! Functions in one version for each level of instructions.

/// Defines a function that runs a body compiled for the instructions of its [`CpuLevel`]. Each body must be `#[inline(always)]`, so that it is
/// compiled with the features of its caller.
///
/// NEON is part of aarch64, so the compiler uses it for the portable body, too; a separate body is named where instructions help that the compiler
/// does not find.
macro_rules! versions {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? {
        portable: $portable:expr, avx2: $avx2:expr, avx512: $avx512:expr $(,)?
    }) => {
        $crate::kernel::versions::versions! {
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
                    // Neither has a version here, so the body at the end runs.
                    $crate::kernel::level::CpuKind::Portable | $crate::kernel::level::CpuKind::Neon => {}
                    $crate::kernel::level::CpuKind::Avx2 => {
                        // SAFETY: a level above portable exists only where it was detected.
                        return unsafe { avx2($($arg),*) };
                    }
                    $crate::kernel::level::CpuKind::Avx512
                    | $crate::kernel::level::CpuKind::Avx512Popcnt => {
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
