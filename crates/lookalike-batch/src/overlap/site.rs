//! Source of a document: its URL and its server.

use std::borrow::Cow;

use lookalike_corpus::{FieldPath, Record, field_of, host};

use super::server_name::ServerName;

/// URL, server and address of a document.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct DocumentSite {
    /// The URL, if it is not the id.
    pub(crate) url: Option<String>,
    pub(crate) server: Option<String>,
    /// The address of the server.
    pub(crate) address: Option<String>,
}

impl DocumentSite {
    /// Finds a record's site. Files that are documents have no fields, only an id; rows of tables and pages of archives are given as the JSON object
    /// of their fields.
    pub(crate) fn of(
        record: &Record<'_>,
        has_fields: bool,
        name: &ServerName,
        url_field: &FieldPath,
        address_field: &FieldPath,
    ) -> Self {
        let named = |path: &FieldPath| has_fields.then(|| field_of(record, path)).flatten();
        // A URL that is the id is not stored a second time.
        let url = named(url_field).filter(|url| *url != record.id);
        let server = match name {
            ServerName::Url => {
                let of_field = url.as_deref().and_then(host);
                of_field.or_else(|| host(&record.id)).map(Cow::into_owned)
            }
            ServerName::Field(path) => named(path),
            ServerName::Path(depth) => leading(&record.id, *depth),
        };
        let address = server.as_ref().and_then(|_| named(address_field));
        Self {
            url,
            server,
            address,
        }
    }
}

/// Returns the first `depth` components of a path, or `None` if nothing follows them.
fn leading(path: &str, depth: usize) -> Option<String> {
    let mut parts = path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".");
    let front: Vec<&str> = parts.by_ref().take(depth).collect();
    (front.len() == depth && parts.next().is_some()).then(|| front.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_servers() {
        assert_eq!(
            leading("/srv/./docs/a.html", 2).as_deref(),
            Some("srv/docs")
        );
        assert_eq!(leading("docs/a.html", 2), None);
    }
}
