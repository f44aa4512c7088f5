//! The value of a public resolver must be a public type.
mod files {
    struct Plan;

    #[antiphon::resolver]
    pub async fn plan() -> antiphon::Result<Plan> {
        Ok(Plan)
    }
}

fn main() {}
