"""Reading transcripts: omnijudge's own form and those of other tools."""
