"""The notes, alive: chapters, examples, exercises, and the builder of one offline file."""
