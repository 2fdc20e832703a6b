"""Running it: status, health pages, quarantine."""
