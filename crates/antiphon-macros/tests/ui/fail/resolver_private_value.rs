//! What a resolver gives is seen by whoever sees the resolver.
mod files {
    struct Plan;

    #[antiphon::resolver]
    pub async fn plan() -> antiphon::Result<Plan> {
        Ok(Plan)
    }
}

fn main() {}
