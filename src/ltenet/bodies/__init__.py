"""Generated people and animals: endless shapes with exact correspondence; numpy only."""
