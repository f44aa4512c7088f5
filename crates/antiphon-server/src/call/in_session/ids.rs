//! The elicitation ids of one round.

use antiphon_seal::Call;
use antiphon_wire::{InputRequest, InputRequests};

/// The ids of the URL questions of one round, by their keys.
pub(crate) struct ElicitationIds(Vec<(String, String)>);

impl ElicitationIds {
    /// Collects the given ids, and generates the others.
    pub(crate) fn of(call: Option<&Call>, requests: &InputRequests, given: &[(String, String)]) -> Self {
        let is_url =
            |request: &InputRequest| matches!(request, InputRequest::Elicit(elicit) if elicit.is_url());
        let made_up = |key: &str| {
            let call = call?;
            // A repeated question has a new id.
            Some(call.secret().idempotency_key("#elicitation", &format!("{key} {}", call.leg())))
        };
        let urls = requests.iter().filter(|(_, request)| is_url(request)).filter_map(|(key, _)| {
            let given = given.iter().find(|(known, _)| known == key).map(|(_, id)| id.clone());
            Some((key.to_owned(), given.or_else(|| made_up(key))?))
        });
        Self(urls.collect())
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, id)| id.as_str())
    }
}
