"""The paper: `plain` has all of it on one page, the other modules the same, fast."""
