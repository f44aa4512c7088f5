//! The tools, one file each.

pub(crate) mod ask_the_model;
pub(crate) mod book_table;
pub(crate) mod charge_once;
pub(crate) mod confirm_delete;
pub(crate) mod delete_folder;
pub(crate) mod draft_echo;
pub(crate) mod echo;
pub(crate) mod get_weather;
pub(crate) mod load_shedding;
pub(crate) mod pay_deposit;
pub(crate) mod pick_file;
pub(crate) mod provision;
pub(crate) mod provision_cluster;
pub(crate) mod rolling_upgrade;
pub(crate) mod update_work_item;
