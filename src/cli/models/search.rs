//! Which models a query means.

use crate::model::Catalog;

/// How alike a word and a part of a name must be for a suggestion.
const LIKENESS_MIN: f64 = 0.6;

/// The words of a query, in lower case.
pub(super) fn words(query: &[String]) -> Vec<String> {
    let words = query.iter().flat_map(|text| text.split_whitespace());
    words.map(str::to_lowercase).collect()
}

/// Whether an id or a name has all the words, in any order.
pub(super) fn matches(words: &[String], id: &str, name: &str) -> bool {
    let (id, name) = (id.to_lowercase(), name.to_lowercase());
    words
        .iter()
        .all(|word| id.contains(word) || name.contains(word))
}

/// The ids whose parts are most like the words, best first.
pub(super) fn nearest(words: &[String], catalog: &Catalog, most: usize) -> Vec<String> {
    let mut scored: Vec<(f64, String)> = catalog
        .models()
        .map(|model| model.full_id())
        .filter_map(|id| Some((likeness(words, &id)?, id)))
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().take(most).map(|(_, id)| id).collect()
}

/// How alike the words and the parts of an id are; none when one of the words
/// is like no part.
fn likeness(words: &[String], id: &str) -> Option<f64> {
    let id = id.to_lowercase();
    let parts: Vec<&str> = id.split(['/', '-', ':', '_']).collect();
    let mut sum = 0.0;
    for word in words {
        let of_parts = parts
            .iter()
            .copied()
            .chain([id.as_str()])
            .map(|part| strsim::normalized_damerau_levenshtein(word, part));
        let best = of_parts.fold(0.0, f64::max);
        if best < LIKENESS_MIN {
            return None;
        }
        sum += best;
    }
    (sum > 0.0).then_some(sum)
}
