//! Kernels compiled for each level of instructions, and the choice of one.

use super::super::code::Integer;
use super::level::{CpuKind, CpuLevel};
#[cfg(target_arch = "aarch64")]
use super::neon::Neon;
use super::one_by_one::OneByOne;
use super::vector::Kernel;
#[cfg(target_arch = "x86_64")]
use super::{avx2::Avx2, avx512::Avx512};

/// Runs a kernel at the level in use.
#[inline]
pub(in super::super) fn run<K: Kernel<u64>>(kernel: K) -> K::Output {
    run_at(CpuLevel::current(), kernel)
}

/// [`run`] at a chosen level.
#[inline]
pub(super) fn run_at<K: Kernel<u64>>(level: CpuLevel, kernel: K) -> K::Output {
    // One branch for a whole kernel: everything that it calls is compiled for the level, too. A function with target features is not inlined into one
    // without, so this call is where generic code gets its instructions.
    match level.kind() {
        // SAFETY: a level above portable exists only where it was detected, here and below.
        #[cfg(target_arch = "x86_64")]
        CpuKind::Avx2 => unsafe { by_avx2(kernel) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        CpuKind::Avx512 => unsafe { by_avx512(kernel) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        CpuKind::Avx512Popcnt => unsafe { by_avx512_popcnt(kernel) },
        // SAFETY: as above.
        #[cfg(target_arch = "aarch64")]
        CpuKind::Neon => kernel.run(unsafe { Neon::new() }),
        _ => kernel.run(OneByOne),
    }
}

/// Runs a kernel for words without vectors, with the instructions for single words that come with AVX2.
#[inline]
pub(in super::super) fn run_one_by_one<W: Integer, K: Kernel<W>>(kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    if CpuLevel::current() != CpuLevel::PORTABLE {
        // Baseline x86-64 has no POPCNT: without these features, `count_ones` takes a dozen instructions.
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        fn by_popcnt<W: Integer, K: Kernel<W>>(kernel: K) -> K::Output {
            kernel.run(OneByOne)
        }
        // SAFETY: every level of x86-64 above portable includes these.
        return unsafe { by_popcnt(kernel) };
    }
    kernel.run(OneByOne)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
// These are the features that `CpuLevel::available` checks: with one more, the code could run on a processor that lacks it.
fn by_avx2<K: Kernel<u64>>(kernel: K) -> K::Output {
    // SAFETY: this function is compiled for these instructions, so its caller knows that they are there.
    kernel.run(unsafe { Avx2::new() })
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
fn by_avx512<K: Kernel<u64>>(kernel: K) -> K::Output {
    // SAFETY: as above.
    kernel.run(unsafe { Avx512::<false>::new() })
}

#[cfg(target_arch = "x86_64")]
#[target_feature(
    enable = "avx512vpopcntdq,avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt"
)]
fn by_avx512_popcnt<K: Kernel<u64>>(kernel: K) -> K::Output {
    // SAFETY: as above.
    kernel.run(unsafe { Avx512::<true>::new() })
}
