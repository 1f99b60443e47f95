//! Earlier results as input: finds their kept documents.

use std::ffi::OsString;
use std::io::Read;
use std::path::{Component, Path};

use lookalike_corpus::{PROGRAM, SPARK_PROGRAM, SUMMARY_FILE, open_summary};

use crate::arguments::quoted;
use crate::failure::Failure;

/// The folder of kept documents that are files; it exists only if one was kept.
const FILES: &str = "kept";

/// Maximum size of a summary; a larger file was not written by this program.
const MAX_SUMMARY_BYTES: u64 = 64 << 20;

/// The part of a job's summary that is needed to find its kept documents.
#[derive(serde::Deserialize)]
struct KeptView {
    program: String,
    #[serde(default)]
    command: String,
    kept_in: Vec<String>,
    #[serde(default)]
    decisions: KeptCount,
    /// Present only if documents were added to a collection.
    added: Option<AddedCount>,
    #[serde(default)]
    counts: ReadCounts,
}

#[derive(serde::Deserialize)]
struct AddedCount {
    added: u64,
}

/// A job on Spark counts no bytes.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct ReadCounts {
    input_bytes: u64,
    against_bytes: u64,
}

/// Returns true if the job that wrote these results added its kept documents to a collection.
pub(crate) fn has_added(folder: &Path) -> bool {
    summary(folder).is_some_and(|summary| summary.added.is_some())
}

/// Returns the number of documents that the job which wrote these results added to a collection, if it read these inputs, `input_bytes` bytes in all.
pub(crate) fn added_count(folder: &Path, inputs: &[OsString], input_bytes: u64) -> Option<u64> {
    let summary = summary(folder)?;
    // A summary keeps the command line, with quotes, not a list of the inputs.
    let is_named = |input: &OsString| summary.command.contains(&quoted(input.clone()));
    if !inputs.iter().all(is_named) {
        return None;
    }
    let ReadCounts {
        input_bytes: all,
        against_bytes,
    } = summary.counts;
    let added = summary.added?.added;
    // What was read with `--against` is not part of the input.
    (added > 0 && all.checked_sub(against_bytes) == Some(input_bytes)).then_some(added)
}

#[derive(Default, serde::Deserialize)]
struct KeptCount {
    kept: u64,
}

/// Returns the kept documents of an earlier result, or the path itself.
pub(crate) fn kept_documents(path: &OsString) -> Result<Vec<OsString>, Failure> {
    let folder = Path::new(path);
    // A path that is not a results folder is an ordinary input; errors occur when it is read.
    match summary(folder) {
        Some(summary) if [PROGRAM, SPARK_PROGRAM].contains(&&*summary.program) => {
            summary.documents(folder)
        }
        // Spark writes a summary as a folder, without text until the job is done.
        None if folder.join(SUMMARY_FILE).is_dir() => Err(Failure::Failed(format!(
            "{}: holds results of a job on Spark that is not finished, or of which {SUMMARY_FILE} cannot be read: finish the job, or \
             name the files to read",
            folder.display()
        ))),
        _ => Ok(vec![path.clone()]),
    }
}

fn summary(folder: &Path) -> Option<KeptView> {
    let file = open_summary(folder).ok()?;
    let mut text = Vec::new();
    // A longer file is cut off and then is no JSON, so it counts as none of this program's.
    file.take(MAX_SUMMARY_BYTES).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

impl KeptView {
    fn documents(&self, folder: &Path) -> Result<Vec<OsString>, Failure> {
        // Results may come from elsewhere: their summary must not make a job read other files.
        if let Some(name) = self.kept_in.iter().find(|name| !is_file_name(name)) {
            return Err(Failure::Failed(format!(
                "{}: {SUMMARY_FILE} says that the kept documents are in {name:?}, which is not a file in this directory: name the files \
                 to read",
                folder.display()
            )));
        }
        let (there, gone): (Vec<&String>, Vec<&String>) = self
            .kept_in
            .iter()
            .partition(|name| folder.join(name).exists());
        // Otherwise a job would be compared with nothing, and silently keep what it should remove.
        let may_be_gone =
            |name: &&&String| **name == FILES && (self.decisions.kept == 0 || !there.is_empty());
        match gone.iter().find(|name| !may_be_gone(name)) {
            Some(name) => Err(Failure::Failed(format!(
                "{}: its kept documents are missing: {name} is not there; restore it, or name the files to read",
                folder.display()
            ))),
            None => Ok(there
                .iter()
                .map(|name| folder.join(name).into_os_string())
                .collect()),
        }
    }
}

/// Returns true if a name leads to nothing outside of its folder.
fn is_file_name(name: &str) -> bool {
    let mut components = Path::new(name).components();
    matches!(
        (components.next(), components.next()),
        (Some(Component::Normal(_)), None)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(summary: &str, files: &[&str]) -> Result<Vec<String>, String> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(SUMMARY_FILE), summary).unwrap();
        for name in files {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let found = kept_documents(&folder.path().into()).map_err(|error| error.to_string())?;
        let name = |path: OsString| {
            let below = Path::new(&path).strip_prefix(folder.path()).unwrap();
            below.to_str().unwrap().to_owned()
        };
        Ok(found.into_iter().map(name).collect())
    }

    #[test]
    fn kept_documents_that_were_gone_were_left_out_without_a_word() {
        let lines = r#"{"program":"lookalike","kept_in":["kept.jsonl"],"decisions":{"kept":2}}"#;
        assert_eq!(found(lines, &["kept.jsonl"]).unwrap(), ["kept.jsonl"]);
        assert!(
            found(lines, &["kept.jsonl.zst"])
                .unwrap_err()
                .contains("kept.jsonl is not there")
        );
        let both = lines.replace(r#""kept.jsonl""#, r#""kept.jsonl","kept""#);
        // It is unknown whether a file was among the kept documents.
        assert_eq!(found(&both, &["kept.jsonl"]).unwrap(), ["kept.jsonl"]);
        assert!(found(&both, &["kept"]).unwrap_err().contains("kept.jsonl"));
        let files = lines.replace("kept.jsonl", "kept");
        assert!(
            found(&files, &[])
                .unwrap_err()
                .contains("kept is not there")
        );
        let none = files.replace(r#""kept":2"#, r#""kept":0"#);
        assert_eq!(found(&none, &[]).unwrap(), [""; 0]);
        assert_eq!(
            found(r#"{"program":"other","kept_in":["x"]}"#, &[]).unwrap(),
            [""]
        );
    }

    #[test]
    fn names_of_kept_documents_led_out_of_the_folder() {
        for name in ["/etc/passwd", "../x", "a/b", "", "."] {
            let summary = format!(r#"{{"program":"lookalike","kept_in":[{name:?}]}}"#);
            assert!(
                found(&summary, &[])
                    .unwrap_err()
                    .contains("not a file in this directory"),
                "{name}"
            );
        }
    }

    #[test]
    fn an_input_with_a_quote_in_its_name_was_added_again() {
        let folder = tempfile::tempdir().unwrap();
        let inputs = ["it's.jsonl", "two words.jsonl", "plain.jsonl"].map(OsString::from);
        let words: Vec<String> = inputs.iter().cloned().map(quoted).collect();
        let summary = serde_json::json!({
            "program": PROGRAM,
            "command": format!("lookalike dedup {} -o out --into all", words.join(" ")),
            "kept_in": ["kept.jsonl"],
            "added": {"added": 2},
            "counts": {"input_bytes": 9, "against_bytes": 2},
        });
        std::fs::write(folder.path().join(SUMMARY_FILE), summary.to_string()).unwrap();
        assert_eq!(added_count(folder.path(), &inputs, 7), Some(2));
        assert_eq!(added_count(folder.path(), &inputs, 9), None);
        assert_eq!(added_count(folder.path(), &["other.jsonl".into()], 7), None);
    }

    #[test]
    fn a_pipe_in_place_of_the_summary_was_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join(SUMMARY_FILE);
        let made = std::process::Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap();
        assert!(made.success());
        let path: OsString = folder.path().into();
        assert_eq!(kept_documents(&path).unwrap(), [path]);
    }
}
