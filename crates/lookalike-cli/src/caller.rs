//! The caller of a command: the process of the program, or another program that embeds this library.
//!
//! A job in another program installs no signal handlers and prints nothing: its warnings are kept for the caller. Both facts are stored for the
//! thread that runs the command, on which all warnings occur.

use std::cell::RefCell;
use std::ffi::OsString;

thread_local! {
    static CALL: RefCell<CommandCall> = const { RefCell::new(CommandCall { words: None, warnings: None }) };
}

/// The command that this thread runs.
#[derive(Default)]
struct CommandCall {
    /// The words of its command line, without the name of the program; `None` means those of the process.
    words: Option<Vec<OsString>>,
    /// Warnings for another program; `None` if they are printed.
    warnings: Option<Vec<String>>,
}

/// Sets the words of the command, without the name of the program.
pub(crate) fn set_words(words: Vec<OsString>) {
    CALL.with_borrow_mut(|call| call.words = Some(words));
}

/// Returns the words of the command, without the name of the program.
pub(crate) fn words() -> Vec<OsString> {
    let words = CALL.with_borrow(|call| call.words.clone());
    words.unwrap_or_else(|| std::env::args_os().skip(1).collect())
}

/// Returns true if another program runs the command.
pub(crate) fn is_program() -> bool {
    CALL.with_borrow(|call| call.warnings.is_some())
}

/// Keeps a warning for the program that runs the command. Returns false if it is to be printed.
pub(crate) fn keep_warning(text: &str) -> bool {
    CALL.with_borrow_mut(|call| match &mut call.warnings {
        Some(warnings) => {
            warnings.push(text.to_owned());
            true
        }
        None => false,
    })
}

/// Runs `job` for another program, with the words of its command line. Returns its result and its warnings.
pub(crate) fn for_program<T>(words: &[OsString], job: impl FnOnce() -> T) -> (T, Vec<String>) {
    let call = CommandCall {
        words: Some(words.to_vec()),
        warnings: Some(Vec::new()),
    };
    // Calls nest: a command of another program may run another command from within its callbacks.
    let before = CallGuard(CALL.replace(call));
    let done = job();
    // Before the previous call is restored, which has its own warnings.
    let warnings = CALL.with_borrow_mut(|call| call.warnings.take());
    drop(before);
    (done, warnings.unwrap_or_default())
}

/// The previous call, which is restored even if the job panics.
struct CallGuard(CommandCall);

impl Drop for CallGuard {
    fn drop(&mut self) {
        CALL.set(std::mem::take(&mut self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_of_another_program_are_kept_for_it() {
        assert!(!keep_warning("printed"));
        let words = ["dedup".into(), "a b".into()];
        let (seen, warnings) = for_program(&words, || {
            assert!(is_program() && keep_warning("kept"));
            super::words()
        });
        assert_eq!(
            (seen.as_slice(), &*warnings),
            (&words[..], &["kept".to_owned()][..])
        );
        assert!(!is_program());
    }
}
