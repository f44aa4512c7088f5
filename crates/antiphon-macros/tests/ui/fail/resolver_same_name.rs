//! Two resolvers of one name: their scopes would be the same.
use antiphon::{Result, tool};

mod files {
    #[antiphon::resolver]
    pub async fn size() -> antiphon::Result<u64> {
        Ok(1)
    }
}

mod disks {
    #[antiphon::resolver]
    pub async fn size() -> antiphon::Result<u64> {
        Ok(1)
    }
}

#[tool]
async fn a(#[resolve(files::size)] files: u64, #[resolve(disks::size)] disks: u64) -> Result<String> {
    Ok((files + disks).to_string())
}

fn main() {}
