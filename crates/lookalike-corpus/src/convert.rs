//! Conversion of files of other formats to text, by a command that the user specifies.
//!
//! The command gets the file on standard input, or as a path if one of its words contains `{}`, and writes the text to standard output. No shell is
//! involved, unless the command is one. The output, the run time and the processes left running are limited; a failure costs this one document, with
//! a reason.

use std::fmt;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::detached::spawn_detached;
use crate::error::OptionError;

/// Placeholder for the path of the file.
const PATH: &str = "{}";

/// Maximum number of bytes of a command's standard error that are kept.
const MAX_STDERR_BYTES: usize = 4096;

/// Interval at which a command that has closed its output is polled.
const POLL: Duration = Duration::from_millis(2);

/// Time to wait for standard error once the command has ended: a process that it left running may hold the pipe open.
const STDERR_GRACE_PERIOD: Duration = Duration::from_millis(200);

/// A command that converts files whose names have a given suffix to text: `.ps=ps2ascii`.
///
/// ```
/// use lookalike_corpus::Converter;
/// let converter: Converter = ".tex=sed 's/%.*//' {}".parse()?;
/// assert_eq!(converter.suffix(), ".tex");
/// assert_eq!(converter.words(), ["sed", "s/%.*//", "{}"]);
/// # Ok::<(), lookalike_corpus::OptionError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Converter {
    suffix: String,
    words: Vec<String>,
}

impl fmt::Display for Converter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Quoted, so that it parses as the same words. Words come from a text, so none has a zero byte, which cannot be quoted.
        let words = self.words.iter().map(String::as_str);
        let command = shlex::try_join(words).unwrap_or_else(|_| self.words.join(" "));
        write!(f, "{}={command}", self.suffix)
    }
}

impl FromStr for Converter {
    type Err = OptionError;

    fn from_str(text: &str) -> Result<Converter, OptionError> {
        let wrong = |why: &str| {
            OptionError(format!(
                "`{text}`: {why}: write .ps=ps2ascii, or '.doc=antiword {{}}'"
            ))
        };
        let (suffix, command) = text.split_once('=').ok_or_else(|| wrong("no `=`"))?;
        if suffix.len() < 2 || !suffix.starts_with('.') || suffix.contains('/') {
            return Err(wrong("the ending must begin with a dot"));
        }
        let words = shlex::split(command).ok_or_else(|| wrong("unterminated quotation"))?;
        if words.first().is_none_or(String::is_empty) {
            return Err(wrong("no command"));
        }
        Ok(Converter {
            // Names are compared in lower case, so `.PS` and `.ps` are the same format.
            suffix: suffix.to_lowercase(),
            words,
        })
    }
}

impl Converter {
    /// Returns the suffix, in lower case, of the names of files to convert.
    pub fn suffix(&self) -> &str {
        &self.suffix
    }

    /// Returns the program and its arguments; never empty.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Runs the command on a file, for at most `limit`. Returns its output, or `None` if that is longer than `most` bytes.
    ///
    /// # Errors
    /// Returns the reason, to be read after the name of the file: the command does not exist, took too long, or ended with a status other than
    /// success.
    pub(crate) fn convert(
        &self,
        bytes: &[u8],
        most: usize,
        limit: Duration,
    ) -> Result<Option<Vec<u8>>, String> {
        let copy = match self.words.iter().any(|word| word.contains(PATH)) {
            true => Some(
                self.copy(bytes)
                    .map_err(|error| format!("cannot be copied for {}: {error}", self.name()))?,
            ),
            false => None,
        };
        // The name is generated here, from TMPDIR and the suffix. With a TMPDIR that is not UTF-8, the command would not find the file, and its error
        // would name it.
        let path = copy.as_ref().map(|copy| copy.path().to_string_lossy());
        let words = self.words.iter().map(|word| match &path {
            // Replaced within one word: a path never becomes two arguments, whatever its characters.
            Some(path) => word.replace(PATH, path),
            None => word.clone(),
        });
        let words: Vec<String> = words.collect();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        // The thread that writes the input may outlive this call if the command neither reads nor ends, so it cannot borrow.
        let input = copy.is_none().then(|| bytes.to_vec());
        let mut running = RunningCommand::start(command, input, most)
            .map_err(|error| format!("{} cannot be started: {error}", self.name()))?;
        let finished = running.finish(limit);
        finished.map_err(|reason| format!("{}{reason}", self.name()))
    }

    /// Writes the file to a temporary path for the command, with the suffix that the command may depend on.
    fn copy(&self, bytes: &[u8]) -> io::Result<tempfile::NamedTempFile> {
        let mut file = tempfile::Builder::new().suffix(&self.suffix).tempfile()?;
        file.write_all(bytes)?;
        file.flush()?;
        Ok(file)
    }

    fn name(&self) -> String {
        format!("the converter `{}`", self.words[0])
    }
}

/// Returns the converter for a file name, given in lower case and without the suffix of its compression: the one with the longest matching suffix,
/// and of several with the same suffix the last.
pub(crate) fn converter_of<'c>(converters: &'c [Converter], name: &str) -> Option<&'c Converter> {
    let fitting = converters
        .iter()
        .filter(|converter| name.ends_with(&converter.suffix));
    // `max_by_key` returns the last of equal ones, so a later option overrides an earlier one.
    fitting.max_by_key(|converter| converter.suffix.len())
}

/// A running command. Its pipes are served by separate threads, because it may stall anywhere. Processes that it leaves running may hold the pipes
/// open forever, so nobody waits for these threads.
struct RunningCommand {
    child: Child,
    output: PipeContents,
    complaint: PipeContents,
    most: usize,
}

/// Receives the contents of a pipe, once it is closed or the wanted number of bytes was read.
type PipeContents = Receiver<io::Result<Vec<u8>>>;

impl RunningCommand {
    fn start(
        mut command: Command,
        input: Option<Vec<u8>>,
        most: usize,
    ) -> io::Result<RunningCommand> {
        let stdin = if input.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        };
        command
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // Its own group, so that all its child processes can be killed with it. This also shields it from Ctrl-C in the terminal: the job decides what
        // happens to a document in progress.
        command.process_group(0);
        let mut child = command.spawn()?;
        match Self::serve_pipes(&mut child, input, most) {
            Ok((output, complaint)) => Ok(RunningCommand {
                child,
                output,
                complaint,
                most,
            }),
            Err(no_thread) => {
                end_group(&mut child);
                child.wait()?;
                Err(no_thread)
            }
        }
    }

    /// Starts threads that write the input and read the output and the complaints.
    fn serve_pipes(
        child: &mut Child,
        input: Option<Vec<u8>>,
        most: usize,
    ) -> io::Result<(PipeContents, PipeContents)> {
        if let (Some(mut pipe), Some(input)) = (child.stdin.take(), input) {
            // A command may end without reading all of its input.
            let write = move || drop(pipe.write_all(&input));
            spawn_detached(thread::Builder::new(), write)?;
        }
        // Dropping the pipe after this many bytes ends a command that continues to write, by SIGPIPE.
        let output = read(child.stdout.take(), most.saturating_add(1))?;
        Ok((output, read(child.stderr.take(), MAX_STDERR_BYTES)?))
    }

    /// Waits for the command to end and returns its output, or the reason, to be read after its name.
    fn finish(&mut self, limit: Duration) -> Result<Option<Vec<u8>>, String> {
        let start = Instant::now();
        let finished = self.output(start, limit);
        // In any case, no process that the command started may continue to run. Kill them before the command is reaped, because then its group id may
        // be reused.
        end_group(&mut self.child);
        let status = self.child.wait();
        let Some(output) = finished? else {
            return Ok(None);
        };
        let status = status.map_err(failed)?;
        if status.success() {
            return Ok(Some(output));
        }
        let words = self
            .complaint
            .recv_timeout(STDERR_GRACE_PERIOD)
            .ok()
            .and_then(Result::ok);
        let words = String::from_utf8_lossy(&words.unwrap_or_default()).into_owned();
        let line = words.lines().map(str::trim).find(|line| !line.is_empty());
        Err(match line {
            Some(line) => format!(" failed: {status}: {line}"),
            None => format!(" failed: {status}"),
        })
    }

    /// Waits for the command to end and returns its output. Does not reap it.
    fn output(&mut self, start: Instant, limit: Duration) -> Result<Option<Vec<u8>>, String> {
        let late = || format!(" took longer than {} s and was killed", limit.as_secs_f64());
        // One wait for all of the output: the thread sends when the pipe closes or `most` is reached. A thread that ended without sending counts as
        // late; that happens only if it panicked.
        let output = self.output.recv_timeout(limit).map_err(|_| late())?;
        let output = output.map_err(failed)?;
        if output.len() > self.most {
            return Ok(None);
        }
        // The output is closed, so the command nearly always ends soon. If it does not, `wait` would block forever.
        while !has_ended(&self.child).map_err(failed)? {
            if start.elapsed() > limit {
                return Err(late());
            }
            thread::sleep(POLL);
        }
        Ok(Some(output))
    }
}

/// Returns an error of the system as a reason, to be read after the name of the converter.
fn failed(error: io::Error) -> String {
    format!(": {error}")
}

/// Reads up to `most` bytes of a pipe on a thread. Further complaints are read and dropped, so that the command can continue.
fn read(pipe: Option<impl Read + Send + 'static>, most: usize) -> io::Result<PipeContents> {
    let (send, receive) = channel();
    if let Some(mut pipe) = pipe {
        spawn_detached(thread::Builder::new(), move || {
            let mut bytes = Vec::new();
            let read = (&mut pipe).take(most as u64).read_to_end(&mut bytes);
            let full = bytes.len() >= most;
            // Nothing receives once the command was given up.
            let _ = send.send(read.map(|_| bytes));
            // A command that writes much to standard error would block on a full pipe, and never finish its output.
            if full && most == MAX_STDERR_BYTES {
                let _ = io::copy(&mut pipe, &mut io::sink());
            }
        })?;
    }
    Ok(receive)
}

/// Returns true if the command has ended, without reaping it.
fn has_ended(child: &Child) -> io::Result<bool> {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    Ok(waitid(WaitId::Pid(Pid::from_child(child)), options)?.is_some())
}

/// Kills the command and all processes that it started.
fn end_group(child: &mut Child) {
    use rustix::process::{Pid, Signal, kill_process_group};
    // Fails if none of them is left.
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    fn convert(
        command: &str,
        input: &[u8],
        most: usize,
        limit: Duration,
    ) -> Result<Option<Vec<u8>>, String> {
        let converter: Converter = format!(".x={command}").parse().unwrap();
        converter.convert(input, most, limit)
    }

    fn text(bytes: &[u8]) -> Result<Option<Vec<u8>>, String> {
        Ok(Some(bytes.to_vec()))
    }

    #[test]
    fn what_a_command_left_running_went_on_after_its_success() {
        let left = r#"sh -c "sleep 1000 >/dev/null 2>&1 </dev/null & echo $!; cat >/dev/null""#;
        let Ok(Some(number)) = convert(left, b"some", 100, LONG) else {
            panic!("no number");
        };
        let number = String::from_utf8(number).unwrap();
        let stat = format!("/proc/{}/stat", number.trim());
        let start = Instant::now();
        // Gone, or a zombie that its new parent has not reaped.
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
            assert!(start.elapsed() < LONG, "{number} runs on");
            thread::sleep(POLL);
        }
    }

    /// Regression test: a converter was printed as `.x:cat`, which does not parse.
    #[test]
    fn the_text_of_a_converter_parses_as_the_same() {
        for text in [
            ".x=cat",
            ".tex=sed 's/%.*//' {}",
            ".y=sh -c \"cat >&2; echo 'a'\"",
        ] {
            let converter: Converter = text.parse().unwrap();
            assert_eq!(converter.to_string().parse(), Ok(converter.clone()));
            assert!(
                converter
                    .to_string()
                    .starts_with(&format!("{}=", converter.suffix()))
            );
        }
    }

    #[test]
    fn by_standard_input_and_by_path() {
        assert_eq!(convert("tr a-z A-Z", b"some", 100, LONG), text(b"SOME"));
        assert_eq!(convert("tail -n 1 {}", b"a\nb\n", 100, LONG), text(b"b\n"));
        assert_eq!(
            convert("sh -c 'tr a b | tr b c'", b"a", 100, LONG),
            text(b"c")
        );
        // More than fits into a pipe, in both directions.
        let long = b"0123456789abcdef".repeat(1 << 16);
        assert_eq!(convert("cat", &long, 1 << 21, LONG), text(&long));
        // The command may ignore its input.
        assert_eq!(convert("echo no", &long, 100, LONG), text(b"no\n"));
    }

    #[test]
    fn failures_say_why() {
        let failed = |command| convert(command, b"a", 100, LONG).unwrap_err();
        assert_eq!(
            failed("sh -c 'echo; echo bad font >&2; echo more >&2; exit 3'"),
            "the converter `sh` failed: exit status: 3: bad font"
        );
        assert!(
            failed("no-such-program-here").contains("`no-such-program-here` cannot be started")
        );
        assert!(failed("sh -c 'kill -9 $$'").contains("signal: 9"));
        // Endless complaints do not block anything.
        assert!(
            failed("sh -c 'yes 2>/dev/null | head -c 300000 >&2; exit 1'")
                .ends_with("exit status: 1: y")
        );
    }

    #[test]
    fn output_and_time_are_bounded() {
        assert_eq!(convert("cat", b"12345", 5, LONG), text(b"12345"));
        assert_eq!(convert("cat", b"123456", 5, LONG), Ok(None));
        assert_eq!(convert("yes", b"", 1000, LONG), Ok(None));
        let short = Duration::from_millis(300);
        let start = Instant::now();
        for command in [
            "sleep 60",
            "sh -c 'sleep 60 | cat'",
            "sh -c 'exec >&-; sleep 60'",
            "sh -c 'sleep 60 & echo a'",
        ] {
            let late = convert(command, b"a", 100, short).unwrap_err();
            assert!(late.contains("took longer than 0.3 s"), "{command}: {late}");
        }
        assert!(start.elapsed() < LONG);
    }

    #[test]
    fn commands_are_words_not_shell() {
        let words = |text: &str| text.parse::<Converter>().map(|converter| converter.words);
        assert_eq!(
            words(".x=a 'b c' \"d\" e\\ f").unwrap(),
            ["a", "b c", "d", "e f"]
        );
        assert_eq!(words(".x=a $HOME *").unwrap(), ["a", "$HOME", "*"]);
        for (wrong, why) in [
            ("ps2ascii", "no `=`"),
            ("ps=ps2ascii", "must begin with a dot"),
            (".=a", "must begin with a dot"),
            (".ps=", "no command"),
            (".ps='a", "quotation"),
        ] {
            let error = words(wrong).unwrap_err().to_string();
            assert!(
                error.contains(why) && error.contains(".ps=ps2ascii"),
                "{error}"
            );
        }
    }

    #[test]
    fn the_longest_ending_wins_then_the_last() {
        let converters: Vec<Converter> = [".x=a", ".y.x=b", ".x=c"]
            .iter()
            .map(|text| text.parse().unwrap())
            .collect();
        let program =
            |name| converter_of(&converters, name).map(|converter| converter.words[0].as_str());
        assert_eq!(program("1.x"), Some("c"));
        assert_eq!(program("1.y.x"), Some("b"));
        assert_eq!(program("1.z"), None);
    }
}
