"""What can be checked: one adapter per kind of subject."""
