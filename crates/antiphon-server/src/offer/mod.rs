//! The offers of a server: tools, prompts, resources and templates, their lists, and the completion of their arguments.

pub(crate) mod advertised;
pub(crate) mod cache;
pub(crate) mod check;
pub(crate) mod completion;
pub(crate) mod cursor;
pub(crate) mod list;
pub(crate) mod offers;
pub(crate) mod profile;
pub(crate) mod prompt;
pub(crate) mod resource;
pub(crate) mod template;
pub(crate) mod tool;
pub(crate) mod uri;
