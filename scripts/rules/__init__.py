"""The rules of scripts/house. Each module adds its own to RULES."""
from . import invariants, rooms, foreign_text, raw_json, licences, crates, documents, log_events, mutants, paths, figures, prose  # noqa: F401
from .tree import RULES, Failed, Tree  # noqa: F401
