//! Loading exported documents, which are stored unchanged.

use axum::response::Response;
use lookalike_store::{CollectionSettings, SketchForm, WriteOp, WriteOutcome};
use schemars::JsonSchema;
use serde::Serialize;

use super::collection_request::{CollectionRequest, CollectionTask};
use super::document::write_each;
use crate::operation::ApiOperation;
use crate::problem::ProblemDetails;
use crate::request::{ExportedDocument, InsertOptions, ItemResponse, packed};

/// The answer to a load.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "LoadAnswer")]
pub(crate) struct LoadResponse {
    /// True if a document with this id existed.
    replaced: bool,
    /// Parts of the document that the collection does not keep: `fingerprint`, `text_hash`, `text`, `signature`, `paragraphs`, `category`,
    /// `length`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    dropped: Vec<&'static str>,
}

impl ItemResponse for LoadResponse {
    fn packed(&self) -> u8 {
        packed::byte(None, self.replaced)
    }
}

/// Returns the names of a document's parts that a collection drops.
fn dropped(document: &ExportedDocument, settings: &CollectionSettings) -> Vec<&'static str> {
    let (keep, pairs) = (settings.keep, &settings.pairs);
    let form = settings.sketch_form();
    let has_minima = matches!(document.signature, Some(Some(_)));
    let has_shingles = matches!(document.super_shingles, Some(Some(_)));
    // Sketches by which documents are found are always kept.
    // `signature` stands for all sketches that are kept besides the one by which documents are found.
    let has_signature = match form {
        SketchForm::Fingerprint | SketchForm::Bits(_) => has_minima || has_shingles,
        SketchForm::SuperShingles(_) => has_minima,
        SketchForm::Minima(_) => has_shingles,
    };
    let has_fingerprint = matches!(document.fingerprint, Some(Some(_)));
    let has_category = matches!(document.category_hash, Some(Some(_)));
    let has_paragraphs = !document.paragraphs.is_empty();
    let parts = [
        ("fingerprint", has_fingerprint, form.places().is_none()),
        ("text_hash", document.text_hash.is_some(), keep.text_hashes),
        ("text", document.text.is_some(), keep.texts),
        ("signature", has_signature, keep.signatures),
        ("paragraphs", has_paragraphs, keep.paragraphs),
        ("category", has_category, pairs.category.is_some()),
        (
            "length",
            document.length.is_some(),
            pairs.length_share.is_some(),
        ),
    ];
    let lost = parts
        .into_iter()
        .filter(|&(_, is_there, is_kept)| is_there && !is_kept);
    lost.map(|(name, ..)| name).collect()
}

/// Handles `POST /v1/collections/NAME/load`.
pub(crate) async fn load(
    request: CollectionRequest<InsertOptions>,
) -> Result<Response, ProblemDetails> {
    let options = request.options.checked()?;
    let writes = move |task: &mut CollectionTask<'_>| {
        options.scope.radius_in(&task.collection)?;
        let items = task.items::<ExportedDocument>()?;
        items.try_map(|item| {
            item.ensure_scheme_of(&task.collection)?;
            let lost = dropped(&item, &task.settings);
            let document =
                item.document(task.time.lives_from, options.time_to_live, &task.settings);
            Ok((WriteOp::Insert(document?), lost))
        })
    };
    let answer = |outcome, dropped| LoadResponse {
        replaced: matches!(outcome, WriteOutcome::Inserted { replaced: true }),
        dropped,
    };
    write_each(request, ApiOperation::Load, writes, answer).await
}

#[cfg(test)]
mod tests {
    use lookalike::Scheme;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_without_a_category_lost_its_category() {
        let settings = CollectionSettings::new(&Scheme::default());
        for (category, lost) in [
            (json!(null), &[][..]),
            (json!("00000000000000a1"), &["category"][..]),
        ] {
            let document =
                json!({"id": "a", "fingerprint": "00000000000000a1", "category_hash": category});
            let document = serde_json::from_value(document).expect("a document");
            assert_eq!(dropped(&document, &settings), lost);
        }
    }
}
